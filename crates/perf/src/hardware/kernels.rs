//! What kernels reach on a part: the measured ceilings and floors under the serving model.

use super::Accelerator;
use crate::precision::{Dtype, Math};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Ceilings as fractions of the datasheet, grouped products in operations per second, floors in
/// seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernels {
    /// Fraction of the bandwidth in thin matrix products, by weights in 16, 8 and 4 bits.
    pub weights: [f64; 3],
    /// Fraction of the bandwidth in decode attention, by a cache in 16 and 8 bits.
    pub cache: [f64; 2],
    /// Fraction of the peak in large matrix products, by format.
    pub gemm: [f64; 3],
    /// Whether a matrix product hides the shorter of reading its weights and multiplying behind the
    /// longer. Where it does not, the two join as the root of the sum of their squares.
    pub gemm_overlaps: bool,
    /// Fraction of the 16-bit peak in prompt attention.
    pub attention: f64,
    /// How much of the cache is read again for each further query head that shares it, in steps that
    /// mix prompts and decoding.
    pub mixed_rereads: f64,
    pub grouped: Grouped,
    pub floors: Floors,
    /// Shortest time of a layer's latent attention with its projections, by engine: their kernels
    /// differ by a factor of two.
    pub latent_attention: BTreeMap<String, f64>,
    /// Start of an all-reduce over 2, 4 and 8 accelerators, by engine.
    pub all_reduce: BTreeMap<String, [f64; 3]>,
}

/// Grouped matrix products of experts, in operations per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grouped {
    pub half: f64,
    pub fp8: f64,
    pub fp4: f64,
    /// Four-bit weights, eight-bit activations.
    pub w4a8: f64,
    /// Four-bit weights, sixteen-bit activations.
    pub w4a16: f64,
}

impl Grouped {
    /// For experts stored like this.
    pub const fn at(&self, experts: Dtype) -> f64 {
        match experts {
            Dtype::Fp32 | Dtype::Bf16 | Dtype::Fp16 => self.half,
            Dtype::Fp8 | Dtype::Int8 => self.fp8,
            Dtype::Nvfp4 => self.fp4,
            // What gpt-oss's checkpoints are run with.
            Dtype::Mxfp4 => self.w4a8,
            Dtype::Int4 => self.w4a16,
        }
    }
}

/// The shortest time of each kernel of one layer in decoding, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floors {
    pub attention: f64,
    pub sparse_attention: f64,
    pub linear_attention: f64,
    /// Convolution, gates and norms around linear attention.
    pub linear_rest: f64,
    pub experts: f64,
    pub experts_4bit: f64,
    pub gemm_half: f64,
    pub gemm_fp8: f64,
    pub gemm_fp4: f64,
    /// Norms and residuals of one layer.
    pub norms: f64,
}

impl Floors {
    /// A matrix product with weights of this format.
    pub const fn gemm(&self, weights: Dtype) -> f64 {
        match weights {
            Dtype::Fp8 => self.gemm_fp8,
            Dtype::Nvfp4 | Dtype::Mxfp4 => self.gemm_fp4,
            _ => self.gemm_half,
        }
    }

    pub(crate) fn scaled(self, by: f64) -> Self {
        Self {
            attention: self.attention * by,
            sparse_attention: self.sparse_attention * by,
            linear_attention: self.linear_attention * by,
            linear_rest: self.linear_rest * by,
            experts: self.experts * by,
            experts_4bit: self.experts_4bit * by,
            gemm_half: self.gemm_half * by,
            gemm_fp8: self.gemm_fp8 * by,
            gemm_fp4: self.gemm_fp4 * by,
            norms: self.norms * by,
        }
    }
}

impl Kernels {
    /// Fraction of the bandwidth with which weights of this format are read.
    pub const fn weights_at(&self, weights: Dtype) -> f64 {
        match weights {
            Dtype::Fp32 | Dtype::Bf16 | Dtype::Fp16 => self.weights[0],
            Dtype::Fp8 | Dtype::Int8 => self.weights[1],
            Dtype::Mxfp4 | Dtype::Nvfp4 | Dtype::Int4 => self.weights[2],
        }
    }

    /// Fraction of the bandwidth with which a cache of this format is read.
    pub const fn cache_at(&self, cache: Dtype) -> f64 {
        match cache {
            Dtype::Fp8 | Dtype::Int8 => self.cache[1],
            _ => self.cache[0],
        }
    }

    /// Operations per second of large matrix products.
    ///
    /// A part without FP4 keeps FP4 weights but multiplies in 16 bits.
    pub fn flops(&self, part: &Accelerator, math: Math) -> f64 {
        match math {
            Math::Fp8 if part.peak.fp8.is_some() => part.peak.at(Math::Fp8) * self.gemm[1],
            Math::Fp4 if part.peak.fp4.is_some() => part.peak.at(Math::Fp4) * self.gemm[2],
            _ => part.peak.half * self.gemm[0],
        }
    }

    /// Shortest time of a layer's latent attention with this engine, in seconds.
    pub fn latent_floor(&self, engine: &str) -> f64 {
        let floors = &self.latent_attention;
        floors.get(engine).or_else(|| floors.values().next()).copied().unwrap_or(0.0)
    }

    /// Start of an all-reduce with this engine, in seconds.
    pub fn all_reduce_start(&self, engine: &str, gpus: u32) -> f64 {
        let of = self.all_reduce.get(engine).or_else(|| self.all_reduce.values().next());
        let place = match gpus {
            0..=2 => 0,
            3..=4 => 1,
            _ => 2,
        };
        of.map_or(0.0, |starts| starts[place])
    }
}
