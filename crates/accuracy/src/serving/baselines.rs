//! What simpler ways say about the same rows.

use super::predict::Question;
use super::rows::Row;
use flyball_perf::hardware::{Floors, Grouped, Kernels};
use flyball_perf::precision::Math;
use flyball_perf::serving::factors::Factors;
use std::collections::BTreeMap;

/// Bytes over the datasheet's bandwidth and operations over its peak; nothing else takes time.
pub(super) fn roofline(row: &Row) -> f64 {
    Question::with_kernels(row, &datasheet(row)).answer(&FREE_LINKS)
}

/// The shortest step in which so many requests each get one token: weights and cache read once, at
/// the datasheet's bandwidth.
pub(super) fn least_step(row: &Row, requests: f64) -> f64 {
    Question::with_kernels(row, &datasheet(row)).decoding(requests, &FREE_LINKS)
}

const FREE_LINKS: Factors = Factors { collectives: 0.0, ..Factors::KERNELS };

fn datasheet(row: &Row) -> Kernels {
    let peak = &row.accelerator.peak;
    let narrow = peak.fp4.unwrap_or(peak.half);
    Kernels {
        weights: [1.0; 3],
        cache: [1.0; 2],
        gemm: [1.0; 3],
        gemm_overlaps: true,
        attention: 1.0,
        mixed_rereads: 0.0,
        grouped: Grouped {
            half: peak.half,
            fp8: peak.at(Math::Fp8),
            fp4: narrow,
            w4a8: narrow,
            w4a16: peak.half,
        },
        floors: NO_FLOORS,
        latent_attention: BTreeMap::new(),
        all_reduce: BTreeMap::new(),
    }
}

const NO_FLOORS: Floors = Floors {
    attention: 0.0,
    sparse_attention: 0.0,
    linear_attention: 0.0,
    linear_rest: 0.0,
    experts: 0.0,
    experts_4bit: 0.0,
    gemm_half: 0.0,
    gemm_fp8: 0.0,
    gemm_fp4: 0.0,
    norms: 0.0,
};
