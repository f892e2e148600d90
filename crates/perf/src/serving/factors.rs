//! The fitted numbers as they apply to one engine on one accelerator.

use crate::coefficients::{CoefficientError, Coefficients};
use crate::engine::Engine;

/// What calibration says about an engine on an accelerator.
///
/// Factors near 1 say that serving reaches what the kernels reach alone; the seconds are host time
/// that no kernel table shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// Bandwidth while reading experts, over that while reading dense weights.
    pub expert_bandwidth: f64,
    /// Throughput of the experts' grouped products, over that in their benchmark: tokens do not
    /// spread evenly over experts, and tiles are not full.
    pub expert_flops: f64,
    /// Bandwidth while reading the cache, over that of the measured kernel.
    pub cache_bandwidth: f64,
    /// Time of collectives over their measured curve.
    pub collectives: f64,
    /// Host time per step that nothing hides.
    pub step_seconds: f64,
    /// Host time per running request and step: sampling, scheduling, turning tokens into text.
    pub request_seconds: f64,
    /// Time between and around kernels, over the sum of the kernels' floors.
    pub floors: f64,
    /// Host time per layer to launch a step that is not replayed from a recorded graph.
    pub launch_seconds: f64,
    /// How slow the host of the accelerator is, over the usual one.
    pub host: f64,
}

impl Factors {
    /// Kernels alone: every factor 1, and no host time.
    pub const KERNELS: Self = Self {
        expert_bandwidth: 1.0,
        expert_flops: 1.0,
        cache_bandwidth: 1.0,
        collectives: 1.0,
        step_seconds: 0.0,
        request_seconds: 0.0,
        floors: 1.0,
        launch_seconds: 0.0,
        host: 1.0,
    };

    /// Those for an engine on the accelerator of this id.
    pub fn of(
        coefficients: &Coefficients,
        engine: Engine,
        accelerator: &str,
    ) -> Result<Self, CoefficientError> {
        let name = engine.name();
        Ok(Self {
            expert_bandwidth: coefficients.global("expert_bandwidth")?,
            expert_flops: coefficients.global("expert_flops")?,
            cache_bandwidth: coefficients.global("cache_bandwidth")?,
            collectives: coefficients.global("collectives")?,
            step_seconds: coefficients.global("step_seconds")?,
            request_seconds: coefficients.global("request_seconds")?,
            floors: coefficients.engine(name, "floors")?,
            launch_seconds: coefficients.engine(name, "launch_seconds")?,
            host: coefficients.accelerator(accelerator, "host")?,
        })
    }
}
