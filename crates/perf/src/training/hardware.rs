//! What the accelerators of a run reach, as the model of a step needs it.
//!
//! Where a part was measured, its own numbers count. Where it was not, two rules stand in:
//!
//! 1. A measured part with the same architecture and the same 16-bit peak has the same chip, so its
//!    fractions hold. If the part in question is allowed less power than that one, it is slower by
//!    the square root of the ratio: power falls faster than the clock, because the voltage falls
//!    with it.
//! 2. Without such a relative, the fractions are the mean over all measured parts, and the bus
//!    bandwidth is 0.74 of the link: 222 of 300 GB/s on A100 SXM, the oldest part with both.

use crate::hardware::{Accelerator, MeasuredSpeed};
use crate::precision::Math;
use thiserror::Error;

/// Bus bandwidth of large messages over the bandwidth of the link; see rule 2.
const BUS_SHARE: f64 = 0.74;

/// The model of a step does not describe this accelerator.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("training on `{id}` is not modelled: its accelerators form a torus ({link})")]
pub struct NotModelled {
    pub id: String,
    pub link: String,
}

/// Rates per accelerator, in operations or bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingHardware {
    /// Large matrix products in BF16.
    pub half: f64,
    /// The same in FP8, or in the next wider format that the part has.
    pub fp8: f64,
    pub fp4: f64,
    /// Peak memory bandwidth.
    pub memory: f64,
    /// Bus bandwidth of collectives inside a domain.
    pub bus: f64,
    /// The network between domains.
    pub network: f64,
    /// Accelerators of one domain that a layout of powers of two can use: 64 of the 72 of a rack.
    pub domain: f64,
    /// Tensor cores that need other instructions than Ampere's to reach their peak.
    pub newer_tensor_cores: bool,
}

impl TrainingHardware {
    /// For a part; `all` is the catalogue, where relatives are looked for.
    pub fn of(part: &Accelerator, all: &[Accelerator]) -> Result<Self, NotModelled> {
        if part.scale_up.name.contains("torus") {
            let (id, link) = (part.id.as_str().to_owned(), part.scale_up.name.clone());
            return Err(NotModelled { id, link });
        }
        let relative = relative(part, all);
        let measured = relative.and_then(|relative| relative.measured.as_ref());
        let derate = relative.map_or(1.0, |relative| derate(part, relative));
        let fraction = |of: fn(&MeasuredSpeed) -> Option<f64>| {
            measured.and_then(of).unwrap_or_else(|| mean(all, of)) * derate
        };
        let half = part.peak.half * fraction(|measured| Some(measured.half_gemm));
        let fp8 = part.peak.fp8.map_or(half, |peak| peak * fraction(|measured| measured.fp8_gemm));
        let fp4 = part.peak.fp4.map_or(fp8, |peak| peak * fraction(|measured| measured.fp4_gemm));
        let bus_share = relative
            .and_then(|relative| {
                let group = relative.measured.as_ref()?.all_reduce.last()?;
                Some(group.nccl_bus_bandwidth / relative.scale_up.bandwidth)
            })
            .unwrap_or(BUS_SHARE);
        let domain = part.scale_up_domain.get().max(1);
        Ok(Self {
            half,
            fp8,
            fp4,
            memory: part.bandwidth,
            bus: part.scale_up.bandwidth * bus_share,
            network: part.scale_out.bandwidth,
            domain: f64::from(1_u32 << domain.ilog2()),
            newer_tensor_cores: newer_tensor_cores(part),
        })
    }

    /// Large matrix products in this format.
    pub const fn products(&self, math: Math) -> f64 {
        match math {
            Math::Half => self.half,
            Math::Fp8 => self.fp8,
            Math::Fp4 => self.fp4,
        }
    }
}

/// Whether anybody has measured this part or one with the same chip.
pub fn chip_is_measured(part: &Accelerator, all: &[Accelerator]) -> bool {
    relative(part, all).is_some()
}

/// The part itself if it was measured, or a measured part with the same chip.
fn relative<'a>(part: &'a Accelerator, all: &'a [Accelerator]) -> Option<&'a Accelerator> {
    if part.measured.is_some() {
        return Some(part);
    }
    all.iter().find(|other| {
        other.measured.is_some()
            && other.architecture == part.architecture
            && other.peak.half == part.peak.half
    })
}

fn derate(part: &Accelerator, relative: &Accelerator) -> f64 {
    match (part.tdp_watts, relative.tdp_watts) {
        (Some(own), Some(theirs)) if own < theirs => (f64::from(own) / f64::from(theirs)).sqrt(),
        _ => 1.0,
    }
}

/// The mean over all measured parts; 1 if there are none, which only an empty catalogue has.
fn mean(all: &[Accelerator], of: fn(&MeasuredSpeed) -> Option<f64>) -> f64 {
    let values: Vec<f64> =
        all.iter().filter_map(|part| part.measured.as_ref()).filter_map(of).collect();
    if values.is_empty() { 1.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Hopper brought asynchronous products and Blackwell's servers changed them again; Blackwell on a
/// PCIe card still has Ampere's.
fn newer_tensor_cores(part: &Accelerator) -> bool {
    part.architecture == "Hopper"
        || (part.architecture.starts_with("Blackwell") && !part.form.starts_with("PCIe"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn hardware(name: &str) -> TrainingHardware {
        let catalog = Catalog::builtin();
        let part = catalog.accelerator(name).unwrap();
        TrainingHardware::of(part, &catalog.accelerators).unwrap()
    }

    #[test]
    fn a_measured_part_has_its_own_numbers() {
        let h100 = hardware("h100");
        assert_eq!((h100.half, h100.bus, h100.domain), (989e12 * 0.89, 445e9, 8.0));
        assert!(h100.newer_tensor_cores);
        // Racks of 72 are used in powers of two, and the largest measured group is of four.
        let gb200 = hardware("gb200");
        assert_eq!((gb200.domain, gb200.bus), (64.0, 628e9));
    }

    #[test]
    fn the_same_chip_with_less_power_is_slower() {
        let capped = hardware("h100-96gb-hbm2e");
        let ratio = capped.half / hardware("h100").half;
        assert!((ratio - (500.0_f64 / 700.0).sqrt()).abs() < 1e-12, "{ratio}");
        assert_eq!(hardware("a100-sxm-40gb").half, hardware("a100-sxm-80gb").half);
    }

    #[test]
    fn a_part_without_relatives_gets_the_mean() {
        let v100 = hardware("v100-sxm2-16gb");
        assert_eq!(v100.bus, 150e9 * BUS_SHARE);
        assert!((v100.half / 125e12 - 0.8762).abs() < 1e-4, "{}", v100.half / 125e12);
        assert_eq!(v100.products(Math::Fp4), v100.half);
    }

    #[test]
    fn a_torus_is_refused() {
        let catalog = Catalog::builtin();
        let tpu = catalog.accelerator("tpu-v4").unwrap();
        assert!(TrainingHardware::of(tpu, &catalog.accelerators).is_err());
    }
}
