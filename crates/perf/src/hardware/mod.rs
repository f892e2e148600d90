//! What there is to run a model on: one accelerator, its links and its host.
//!
//! Plain values, all per accelerator. Datasheet numbers are dense: makers like to print the sparse
//! figure, which is twice as high. Links count one direction, for the same reason. How much of a
//! datasheet is reached stands in `Measured`, where somebody has measured it.

mod kernels;

pub use kernels::{Floors, Grouped, Kernels};

use crate::precision::Math;
use flyball_core::ids::AcceleratorId;
use flyball_core::units::{Bytes, Gpus};

/// One kind of accelerator, as the catalogue knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Accelerator {
    pub id: AcceleratorId,
    /// Other names people and clusters use, product labels of nodes among them.
    pub aliases: Vec<String>,
    /// Empty when nobody said; so are `architecture` and `form`.
    pub vendor: String,
    pub architecture: String,
    /// How it is mounted, such as `SXM5` or `PCIe4`.
    pub form: String,
    /// First sold; 0 when nobody said.
    pub year: u16,
    /// Memory as advertised, in units of 10^9 bytes. Often less than what is usable, because the
    /// "80 GB" of a datasheet may be 80 GiB.
    pub memory: Bytes,
    /// Memory as the device shows it to a program.
    pub usable_memory: Bytes,
    /// Peak memory bandwidth in bytes per second.
    pub bandwidth: f64,
    pub peak: Peaks,
    /// The fast link between the accelerators of one domain: NVLink, or the PCIe of a host.
    pub scale_up: Link,
    /// How many accelerators the scale-up link joins.
    pub scale_up_domain: Gpus,
    /// How many accelerators a host has, as sold.
    pub node_gpus: Gpus,
    /// The network between hosts.
    pub scale_out: Link,
    pub tdp_watts: Option<u32>,
    /// What was reached in practice; `None` when nobody has measured this part.
    pub measured: Option<MeasuredSpeed>,
    /// What kernels reach; `None` when nobody has measured that.
    pub kernels: Option<Kernels>,
    pub notes: String,
    /// Where the numbers come from.
    pub source: String,
}

impl Accelerator {
    /// The slowest link among so many accelerators placed as close as possible: the scale-up link,
    /// beyond its domain the PCIe of the host, beyond the host the network.
    pub fn link_among(&self, gpus: u32) -> Link {
        if gpus <= self.scale_up_domain.get() {
            return self.scale_up.clone();
        }
        let generation = self.form.strip_prefix("PCIe");
        match generation {
            Some(generation) if gpus <= self.node_gpus.get() => {
                // Sixteen lanes: 16 GB/s in the third generation, twice that in each later one.
                let doubled = generation.parse::<i32>().unwrap_or(4) - 3;
                let bandwidth = 16e9 * 2f64.powi(doubled);
                Link { name: format!("PCIe{generation} x16"), bandwidth }
            }
            _ => self.scale_out.clone(),
        }
    }
}

/// Dense peaks in floating-point operations per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    /// BF16 or FP16.
    pub half: f64,
    pub fp8: Option<f64>,
    pub fp4: Option<f64>,
}

impl Peaks {
    /// The peak in this format. A part without it computes in the next wider one.
    pub fn at(&self, math: Math) -> f64 {
        let fp8 = self.fp8.unwrap_or(self.half);
        match math {
            Math::Half => self.half,
            Math::Fp8 => fp8,
            Math::Fp4 => self.fp4.unwrap_or(fp8),
        }
    }
}

/// A link between accelerators.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    pub name: String,
    /// Bytes per second, per direction and accelerator.
    pub bandwidth: f64,
}

/// How much of the datasheet was reached. Fractions are of the dense peak.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredSpeed {
    /// Matrix products in BF16: the best one in a hundred shapes.
    pub half_gemm: f64,
    /// Matrix products in BF16: the median over all measured shapes.
    pub half_gemm_median: f64,
    pub fp8_gemm: Option<f64>,
    pub fp8_gemm_median: Option<f64>,
    pub fp4_gemm: Option<f64>,
    pub fp4_gemm_median: Option<f64>,
    /// Fraction of the peak bandwidth that the thin matrix products of decoding reach.
    pub decode_bandwidth: f64,
    /// What the smallest matrix product takes, in seconds.
    pub small_gemm_seconds: f64,
    /// All-reduce within a host, by number of accelerators, ascending; empty when not measured.
    pub all_reduce: Vec<AllReduce>,
}

/// An all-reduce takes `alpha` plus the bytes over the bus bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllReduce {
    pub gpus: u32,
    /// Seconds for an empty message with NCCL.
    pub nccl_alpha: f64,
    /// Bus bandwidth of large messages with NCCL, in bytes per second. For `n` accelerators, `b`
    /// bytes take `2 (n - 1) / n * b` over this.
    pub nccl_bus_bandwidth: f64,
    /// Seconds for an empty message with an engine's own kernel.
    pub custom_alpha: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_without_a_format_computes_in_the_next_wider_one() {
        let all = Peaks { half: 1.0, fp8: Some(2.0), fp4: Some(4.0) };
        let hopper = Peaks { half: 1.0, fp8: Some(2.0), fp4: None };
        let ampere = Peaks { half: 1.0, fp8: None, fp4: None };
        let at = |peaks: Peaks| [Math::Half, Math::Fp8, Math::Fp4].map(|math| peaks.at(math));
        assert_eq!(at(all), [1.0, 2.0, 4.0]);
        assert_eq!(at(hopper), [1.0, 2.0, 2.0]);
        assert_eq!(at(ampere), [1.0, 1.0, 1.0]);
    }
}
