//! What was measured on the parts, from measured.csv.

use super::accelerators::GIGA;
use super::problems::{CatalogError, Reader};
use super::table;
use crate::hardware::{AllReduce, MeasuredSpeed};
use flyball_core::ids::AcceleratorId;
use serde::Deserialize;

const MICROSECOND: f64 = 1e-6;

/// The columns of measured.csv.
pub(super) const COLUMNS: &[&str] = &[
    "id",
    "aic_system",
    "bf16_gemm_p99_tflops",
    "bf16_gemm_p99_frac",
    "bf16_gemm_median_frac",
    "decode_gemm_bw_frac_median",
    "small_gemm_floor_us",
    "nccl_ar2_alpha_us",
    "nccl_ar2_busbw_gbs",
    "nccl_ar4_alpha_us",
    "nccl_ar4_busbw_gbs",
    "nccl_ar8_alpha_us",
    "nccl_ar8_busbw_gbs",
    "trtllm_ar2_alpha_us",
    "trtllm_ar4_alpha_us",
    "trtllm_ar8_alpha_us",
    "fp8_gemm_p99_tflops",
    "fp8_gemm_p99_frac",
    "fp8_gemm_median_frac",
    "nvfp4_gemm_p99_tflops",
    "nvfp4_gemm_p99_frac",
    "nvfp4_gemm_median_frac",
    "source",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    /// The name in the data set the row was derived from.
    aic_system: String,
    bf16_gemm_p99_tflops: String,
    bf16_gemm_p99_frac: String,
    bf16_gemm_median_frac: String,
    decode_gemm_bw_frac_median: String,
    small_gemm_floor_us: String,
    nccl_ar2_alpha_us: String,
    nccl_ar2_busbw_gbs: String,
    nccl_ar4_alpha_us: String,
    nccl_ar4_busbw_gbs: String,
    nccl_ar8_alpha_us: String,
    nccl_ar8_busbw_gbs: String,
    trtllm_ar2_alpha_us: String,
    trtllm_ar4_alpha_us: String,
    trtllm_ar8_alpha_us: String,
    fp8_gemm_p99_tflops: String,
    fp8_gemm_p99_frac: String,
    fp8_gemm_median_frac: String,
    nvfp4_gemm_p99_tflops: String,
    nvfp4_gemm_p99_frac: String,
    nvfp4_gemm_median_frac: String,
    source: String,
}

/// One row: which part, what was measured, and by whom.
pub(super) struct Entry {
    pub(super) id: AcceleratorId,
    pub(super) measured: MeasuredSpeed,
    pub(super) source: String,
}

/// Reads measured.csv. `known` says whether there is an accelerator of that id.
pub(super) fn read(
    file: &str,
    text: &str,
    known: impl Fn(&AcceleratorId) -> bool,
) -> Result<Vec<Entry>, CatalogError> {
    let mut reader = Reader::new(file);
    let mut found: Vec<Entry> = Vec::new();
    for (line, row) in table::rows::<Row>(&mut reader, text, COLUMNS) {
        reader.line = line;
        let Some(entry) = entry(&mut reader, row) else { continue };
        if !known(&entry.id) {
            let what = format!("id `{}` is not in accelerators.csv", entry.id);
            reader.wrong(what, "add its row there, or correct the id");
        }
        if found.iter().any(|other| other.id == entry.id) {
            reader.wrong(format!("a second row for `{}`", entry.id), "keep one");
        }
        found.push(entry);
    }
    reader.finish(found)
}

fn entry(reader: &mut Reader<'_>, row: Row) -> Option<Entry> {
    if row.source.is_empty() || row.aic_system.is_empty() {
        reader.wrong("source or aic_system is empty", "write where the numbers come from");
    }
    let id = reader.id("id", &row.id);
    // The fractions say the same; these are for readers of the file.
    for (key, text) in [
        ("bf16_gemm_p99_tflops", &row.bf16_gemm_p99_tflops),
        ("fp8_gemm_p99_tflops", &row.fp8_gemm_p99_tflops),
        ("nvfp4_gemm_p99_tflops", &row.nvfp4_gemm_p99_tflops),
    ] {
        reader.optional(key, text);
    }
    let half_gemm = reader.fraction("bf16_gemm_p99_frac", &row.bf16_gemm_p99_frac);
    let half_gemm_median = reader.fraction("bf16_gemm_median_frac", &row.bf16_gemm_median_frac);
    let decode = reader.fraction("decode_gemm_bw_frac_median", &row.decode_gemm_bw_frac_median);
    let small = reader.positive("small_gemm_floor_us", &row.small_gemm_floor_us);
    let mut optional = |key: &str, text: &str| {
        if text.is_empty() { None } else { reader.fraction(key, text) }
    };
    let fp8_gemm = optional("fp8_gemm_p99_frac", &row.fp8_gemm_p99_frac);
    let fp8_gemm_median = optional("fp8_gemm_median_frac", &row.fp8_gemm_median_frac);
    let fp4_gemm = optional("nvfp4_gemm_p99_frac", &row.nvfp4_gemm_p99_frac);
    let fp4_gemm_median = optional("nvfp4_gemm_median_frac", &row.nvfp4_gemm_median_frac);
    let all_reduce = all_reduces(reader, &row);
    let measured = MeasuredSpeed {
        half_gemm: half_gemm?,
        half_gemm_median: half_gemm_median?,
        fp8_gemm,
        fp8_gemm_median,
        fp4_gemm,
        fp4_gemm_median,
        decode_bandwidth: decode?,
        small_gemm_seconds: small? * MICROSECOND,
        all_reduce,
    };
    Some(Entry { id: id?, measured, source: row.source })
}

/// Groups without NCCL numbers are left out: an engine's kernel covers small messages only.
fn all_reduces(reader: &mut Reader<'_>, row: &Row) -> Vec<AllReduce> {
    let groups = [
        (2, &row.nccl_ar2_alpha_us, &row.nccl_ar2_busbw_gbs, &row.trtllm_ar2_alpha_us),
        (4, &row.nccl_ar4_alpha_us, &row.nccl_ar4_busbw_gbs, &row.trtllm_ar4_alpha_us),
        (8, &row.nccl_ar8_alpha_us, &row.nccl_ar8_busbw_gbs, &row.trtllm_ar8_alpha_us),
    ];
    let mut found = Vec::new();
    for (gpus, alpha, bus, custom) in groups {
        let alpha = reader.optional(&format!("nccl_ar{gpus}_alpha_us"), alpha);
        let bus = reader.optional(&format!("nccl_ar{gpus}_busbw_gbs"), bus);
        let custom = reader.optional(&format!("trtllm_ar{gpus}_alpha_us"), custom);
        if let (Some(alpha), Some(bus)) = (alpha, bus) {
            found.push(AllReduce {
                gpus,
                nccl_alpha: alpha * MICROSECOND,
                nccl_bus_bandwidth: bus * GIGA,
                custom_alpha: custom.map(|alpha| alpha * MICROSECOND),
            });
        }
    }
    found
}
