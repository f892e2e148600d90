//! What kernels reach, from kernels.toml.
//!
//! Where nobody has measured a part, its fractions are the median of the measured parts, its grouped
//! products reach the usual fraction of its own peak, and its floors are those of the older
//! generation, whose kernels are what an older or foreign part gets at best.

use crate::hardware::{Accelerator, Floors, Grouped, Kernels};
use crate::precision::Math;
use flyball_core::quantile;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

static BUILTIN: LazyLock<KernelFile> = LazyLock::new(|| {
    let text = include_str!("../../../../catalog/kernels.toml");
    toml::from_str(text).expect("tests read the built-in file")
});

/// What was measured on the part of this id, if anything was.
pub(super) fn measured(part: &Accelerator) -> Option<Kernels> {
    let row = BUILTIN.accelerator.get(part.id.as_str())?;
    Some(BUILTIN.of(part, Some(row)))
}

/// Whether anything was measured on the part of this id.
pub fn kernels_measured(id: &str) -> bool {
    BUILTIN.accelerator.contains_key(id)
}

impl Accelerator {
    /// What kernels reach on this part, or on parts like it if nobody has measured it.
    pub fn kernels_or_assumed(&self) -> Kernels {
        self.kernels.clone().unwrap_or_else(|| BUILTIN.of(self, None))
    }
}

/// `catalog/kernels.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KernelFile {
    accelerator: BTreeMap<String, Row>,
    generation: BTreeMap<String, Generation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    generation: String,
    weights_half: f64,
    weights_fp8: Option<f64>,
    weights_fp4: Option<f64>,
    cache_half: f64,
    cache_fp8: Option<f64>,
    gemm_half: f64,
    gemm_fp8: Option<f64>,
    gemm_fp4: Option<f64>,
    gemm_overlaps: Option<bool>,
    attention: f64,
    mixed_rereads: Option<f64>,
    grouped_half: Option<f64>,
    grouped_fp8: Option<f64>,
    grouped_fp4: Option<f64>,
    grouped_w4a8: Option<f64>,
    grouped_w4a16: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Generation {
    floors_us: Floors,
    latent_attention_us: BTreeMap<String, f64>,
    all_reduce_us: BTreeMap<String, [f64; 3]>,
}

/// Floors of a part that nobody measured.
const OLDER: &str = "hopper";

impl KernelFile {
    fn of(&self, part: &Accelerator, row: Option<&Row>) -> Kernels {
        let median = |field: fn(&Row) -> Option<f64>| {
            let mut found: Vec<f64> = self.accelerator.values().filter_map(field).collect();
            found.sort_by(f64::total_cmp);
            quantile::median(&found).unwrap_or(1.0)
        };
        let value =
            |field: fn(&Row) -> Option<f64>| row.and_then(field).unwrap_or_else(|| median(field));
        let generation = &self.generation[row.map_or(OLDER, |row| row.generation.as_str())];
        // The shares are those of H100, H200 and B200, rounded: 219 of 989 TFLOPS in 16 bits, and
        // so on.
        let grouped = |field: fn(&Row) -> Option<f64>, peak: f64, share: f64| {
            row.and_then(field).map_or(peak * share, |tera| tera * 1e12)
        };
        Kernels {
            weights: [
                value(|row| Some(row.weights_half)),
                value(|row| row.weights_fp8),
                value(|row| row.weights_fp4),
            ],
            cache: [value(|row| Some(row.cache_half)), value(|row| row.cache_fp8)],
            gemm: [
                value(|row| Some(row.gemm_half)),
                value(|row| row.gemm_fp8),
                value(|row| row.gemm_fp4),
            ],
            gemm_overlaps: row.and_then(|row| row.gemm_overlaps).unwrap_or(true),
            attention: value(|row| Some(row.attention)),
            mixed_rereads: row.and_then(|row| row.mixed_rereads).unwrap_or(0.0),
            grouped: Grouped {
                half: grouped(|row| row.grouped_half, part.peak.half, 0.22),
                fp8: grouped(|row| row.grouped_fp8, part.peak.at(Math::Fp8), 0.11),
                fp4: grouped(|row| row.grouped_fp4, part.peak.at(Math::Fp4), 0.11),
                w4a8: grouped(|row| row.grouped_w4a8, part.peak.at(Math::Fp8), 0.12),
                w4a16: grouped(|row| row.grouped_w4a16, part.peak.half, 0.16),
            },
            floors: generation.floors_us.scaled(1e-6),
            latent_attention: generation
                .latent_attention_us
                .iter()
                .map(|(engine, floor)| (engine.clone(), floor * 1e-6))
                .collect(),
            all_reduce: generation
                .all_reduce_us
                .iter()
                .map(|(engine, starts)| (engine.clone(), starts.map(|start| start * 1e-6)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn every_row_is_of_a_part_and_of_a_generation() {
        let catalog = Catalog::builtin();
        for (id, row) in &BUILTIN.accelerator {
            assert!(catalog.accelerators.iter().any(|part| part.id.as_str() == id), "{id}");
            assert!(BUILTIN.generation.contains_key(&row.generation), "{id}");
        }
    }

    #[test]
    fn fractions_are_fractions() {
        for part in &Catalog::builtin().accelerators {
            let kernels = part.kernels_or_assumed();
            let all = kernels.weights.iter().chain(&kernels.cache).chain(&kernels.gemm);
            for fraction in all.chain([&kernels.attention]) {
                assert!((0.1..=1.0).contains(fraction), "{}: {fraction}", part.id);
            }
            assert!(kernels.grouped.half < part.peak.half, "{}", part.id);
        }
    }
}
