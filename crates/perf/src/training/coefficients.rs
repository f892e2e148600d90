//! The fitted numbers of a training step.

use super::run::Framework;
use crate::coefficients::{CoefficientError, Coefficients};

/// The fitted numbers of a step, resolved from their names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingCoefficients {
    /// Memory traffic of elementwise work, relative to a layer whose operations are ideally fused
    /// and reach the peak bandwidth.
    pub elementwise_traffic: f64,
    /// Share of the communication that could be hidden and is not.
    pub exposed_share: f64,
    /// Launch cost of a layer, forward and backward.
    pub layer_launch_seconds: f64,
    /// Launch cost of one expert on its accelerator, forward and backward.
    pub expert_launch_seconds: f64,
    /// Share of the all-to-all that is not hidden or saved by sending each token only once.
    pub all_to_all_share: f64,
    /// Share of the network's line rate that rings reach.
    pub network_share: f64,
    /// In the order of [`Framework::ALL`].
    pub frameworks: [FrameworkCoefficients; 5],
}

/// The fitted numbers of one framework.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameworkCoefficients {
    /// Matrix products of the layers, relative to benchmarked large ones.
    pub linear_efficiency: f64,
    /// Fused attention, relative to the same.
    pub attention_efficiency: f64,
    /// Share of the collectives inside layers that is not hidden.
    pub tensor_exposed_share: f64,
}

impl TrainingCoefficients {
    /// Looks the names up. A framework without its own number gets the mean of the others.
    pub fn of(named: &Coefficients) -> Result<Self, CoefficientError> {
        let own = |framework: Framework| {
            let of = |name| named.engine(framework.name(), name);
            Ok(FrameworkCoefficients {
                linear_efficiency: of("linear_efficiency")?,
                attention_efficiency: of("attention_efficiency")?,
                tensor_exposed_share: of("tensor_exposed_share")?,
            })
        };
        let [megatron, fsdp, foundry, one_flow, other] = Framework::ALL.map(own);
        Ok(Self {
            elementwise_traffic: named.global("elementwise_traffic")?,
            exposed_share: named.global("exposed_share")?,
            layer_launch_seconds: named.global("layer_launch_seconds")?,
            expert_launch_seconds: named.global("expert_launch_seconds")?,
            all_to_all_share: named.global("all_to_all_share")?,
            network_share: named.global("network_share")?,
            frameworks: [megatron?, fsdp?, foundry?, one_flow?, other?],
        })
    }

    /// The numbers that come with the program.
    pub fn builtin() -> Self {
        Self::of(&Coefficients::training()).expect("a test reads the built-in file")
    }
}
