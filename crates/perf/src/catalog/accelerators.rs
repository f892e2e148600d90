//! The parts themselves, from accelerators.csv, and what holds for every part.

use super::problems::{CatalogError, Reader};
use super::table;
use crate::hardware::{Accelerator, Link, Peaks};
use flyball_core::units::{Bytes, Gpus};
use serde::Deserialize;

pub(super) const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
pub(super) const GIGA: f64 = 1e9;
pub(super) const TERA: f64 = 1e12;

/// The columns of accelerators.csv.
pub(super) const COLUMNS: &[&str] = &[
    "id",
    "aliases",
    "vendor",
    "architecture",
    "form",
    "year",
    "memory_gb",
    "memory_usable_gib",
    "memory_bandwidth_tb_s",
    "bf16_tflops",
    "fp16_tflops",
    "fp8_tflops",
    "fp4_tflops",
    "int8_tops",
    "scale_up_link",
    "scale_up_gb_s",
    "scale_up_domain",
    "node_gpus",
    "scale_out_link",
    "scale_out_gb_s",
    "tdp_w",
    "notes",
    "source",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    /// Separated by bars.
    aliases: String,
    vendor: String,
    architecture: String,
    form: String,
    year: String,
    memory_gb: String,
    memory_usable_gib: String,
    memory_bandwidth_tb_s: String,
    bf16_tflops: String,
    fp16_tflops: String,
    fp8_tflops: String,
    fp4_tflops: String,
    int8_tops: String,
    scale_up_link: String,
    scale_up_gb_s: String,
    scale_up_domain: String,
    node_gpus: String,
    scale_out_link: String,
    scale_out_gb_s: String,
    tdp_w: String,
    notes: String,
    source: String,
}

/// Reads accelerators.csv.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<Accelerator>, CatalogError> {
    let mut reader = Reader::new(file);
    let mut found: Vec<Accelerator> = Vec::new();
    for (line, row) in table::rows::<Row>(&mut reader, text, COLUMNS) {
        reader.line = line;
        let Some(part) = accelerator(&mut reader, row) else { continue };
        check(&mut reader, &part);
        check_names(&mut reader, &part, &found);
        found.push(part);
    }
    reader.finish(found)
}

fn accelerator(reader: &mut Reader<'_>, row: Row) -> Option<Accelerator> {
    let texts = [
        ("vendor", &row.vendor),
        ("architecture", &row.architecture),
        ("form", &row.form),
        ("scale_up_link", &row.scale_up_link),
        ("scale_out_link", &row.scale_out_link),
        ("source", &row.source),
    ];
    for (key, _) in texts.into_iter().filter(|(_, text)| text.is_empty()) {
        reader.wrong(format!("{key} is empty"), "write it");
    }
    let id = reader.id("id", &row.id);
    let year = reader.whole("year", &row.year);
    let memory = reader.positive("memory_gb", &row.memory_gb);
    let usable = reader.positive("memory_usable_gib", &row.memory_usable_gib);
    let bandwidth = reader.positive("memory_bandwidth_tb_s", &row.memory_bandwidth_tb_s);
    let bf16 = reader.optional("bf16_tflops", &row.bf16_tflops);
    let fp16 = reader.optional("fp16_tflops", &row.fp16_tflops);
    if bf16.is_some() && fp16.is_some() && bf16 != fp16 {
        reader.wrong("bf16_tflops and fp16_tflops differ", "leave the smaller one empty");
    }
    let half = bf16.or(fp16);
    if half.is_none() {
        reader.wrong("both bf16_tflops and fp16_tflops are missing", "write one of them");
    }
    let fp8 = reader.optional("fp8_tflops", &row.fp8_tflops);
    let fp4 = reader.optional("fp4_tflops", &row.fp4_tflops);
    // No model uses it yet; it is kept for those who compare parts, so it must be a number.
    reader.optional("int8_tops", &row.int8_tops);
    let scale_up = reader.positive("scale_up_gb_s", &row.scale_up_gb_s);
    let scale_out = reader.positive("scale_out_gb_s", &row.scale_out_gb_s);
    let scale_up_domain = reader.whole("scale_up_domain", &row.scale_up_domain);
    let node_gpus = reader.whole("node_gpus", &row.node_gpus);
    let tdp_watts = if row.tdp_w.is_empty() { None } else { reader.whole("tdp_w", &row.tdp_w) };
    Some(Accelerator {
        id: id?,
        aliases: row.aliases.split('|').filter(|name| !name.is_empty()).map(Into::into).collect(),
        vendor: row.vendor,
        architecture: row.architecture,
        form: row.form,
        year: year?,
        memory: bytes(memory?, GIGA),
        usable_memory: bytes(usable?, GIB),
        bandwidth: bandwidth? * TERA,
        peak: Peaks {
            half: half? * TERA,
            fp8: fp8.map(|peak| peak * TERA),
            fp4: fp4.map(|peak| peak * TERA),
        },
        scale_up: Link { name: row.scale_up_link, bandwidth: scale_up? * GIGA },
        scale_up_domain: Gpus::new(scale_up_domain?),
        node_gpus: Gpus::new(node_gpus?),
        scale_out: Link { name: row.scale_out_link, bandwidth: scale_out? * GIGA },
        tdp_watts,
        measured: None,
        kernels: None,
        notes: row.notes,
        source: row.source,
    })
}

/// So many units of memory, rounded to whole bytes.
pub(super) fn bytes(count: f64, unit: f64) -> Bytes {
    Bytes::new((count * unit).round() as u64)
}

/// What physics and the makers allow. Most of what this finds is a wrong unit.
pub(super) fn check(reader: &mut Reader<'_>, part: &Accelerator) {
    let memory = part.usable_memory.get() as f64 / GIB;
    let ranges = [
        ("usable memory", memory, 1.0..=4096.0, "GiB"),
        ("memory bandwidth", part.bandwidth / TERA, 0.05..=50.0, "TB/s"),
        ("half-precision peak", part.peak.half / TERA, 1.0..=100_000.0, "TFLOPS"),
        ("scale-up link", part.scale_up.bandwidth / GIGA, 0.1..=20_000.0, "GB/s per direction"),
        ("scale-out link", part.scale_out.bandwidth / GIGA, 0.1..=20_000.0, "GB/s per direction"),
    ];
    for (what, value, range, unit) in ranges {
        if !range.contains(&value) {
            let (low, high) = (range.start(), range.end());
            reader.wrong(
                format!("{what} of {value} {unit}"),
                format!("write {unit}, between {low} and {high}"),
            );
        }
    }
    let wider = [Some(part.peak.half), part.peak.fp8, part.peak.fp4];
    if !wider.into_iter().flatten().is_sorted() {
        let mend = "write dense peaks, so that half <= fp8 <= fp4";
        reader.wrong("a narrower format has a lower peak", mend);
    }
}

/// Names are looked up without regard to case and marks, so that is how they must differ.
pub(super) fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Every name leads to one part.
pub(super) fn check_names(reader: &mut Reader<'_>, part: &Accelerator, others: &[Accelerator]) {
    for name in names(part) {
        let taken = others.iter().find(|other| names(other).any(|n| folded(n) == folded(name)));
        if let Some(other) = taken {
            let what = format!("the name `{name}` already stands for {}", other.id);
            reader.wrong(what, "choose another name, or remove one of the two");
        }
    }
}

pub(super) fn names(part: &Accelerator) -> impl Iterator<Item = &str> {
    std::iter::once(part.id.as_str()).chain(part.aliases.iter().map(String::as_str))
}
