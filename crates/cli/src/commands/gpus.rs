//! `flyball gpus`: which accelerators the catalog knows, and all about one of them.

use std::fmt;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::prices::days;
use crate::catalog::{self, CatalogArgs, LinkView, MeasuredView, PartView, PriceView};
use crate::output::document::{Block, Column, Document, Row, Table};
use crate::output::{Answer, Detail, Exit, Failure, Printer, plural};

/// List known accelerators, or show one in detail
///
/// From the built-in catalog and your own files, without a network. Peaks are dense, links count
/// one direction, prices show their date.
#[derive(Debug, Args)]
pub(crate) struct GpusArgs {
    /// Show this one in detail: an id, an alias or the product label of a node
    #[arg(value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    catalog: CatalogArgs,
}

/// All accelerators of the catalog.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Parts {
    accelerators: Vec<PartView>,
}

/// One accelerator.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OnePart {
    accelerator: PartView,
}

pub(crate) fn run(args: &GpusArgs, printer: &Printer) -> Result<Exit, Failure> {
    let catalog = args.catalog.load()?;
    let view = |part| PartView::new(&catalog, part);
    match &args.name {
        None => Ok(printer
            .answer(&Parts { accelerators: catalog.accelerators.iter().map(view).collect() })),
        Some(name) => {
            let part = catalog::accelerator(&catalog, name, "flyball gpus")?;
            Ok(printer.answer(&OnePart { accelerator: view(part) }))
        }
    }
}

/// What is not known.
const UNKNOWN: &str = "-";

fn tera(rate: Option<f64>) -> String {
    rate.map_or_else(|| UNKNOWN.to_owned(), |rate| format!("{:.0}", rate / 1e12))
}

fn or_unknown(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| value.to_string())
}

fn on_demand(part: &PartView) -> Option<&PriceView> {
    part.cheapest.iter().find(|price| price.purchase == "on-demand")
}

impl Answer for Parts {
    const KIND: &'static str = "AcceleratorList";

    fn view(&self, _: Detail) -> Document {
        let mut table = Table::new(vec![
            Column::left("ID"),
            Column::right("GB"),
            Column::right("TB/S"),
            Column::right("BF16"),
            Column::right("FP8"),
            Column::right("FP4"),
            Column::left("LINK"),
            Column::left("MEASURED"),
            Column::right("$/GPU-H"),
            Column::left("AS-OF"),
        ]);
        for part in &self.accelerators {
            let price = on_demand(part);
            let LinkView { name, bytes_per_second } = &part.scale_up;
            let name = name.split(" (").next().unwrap_or(name);
            table.rows.push(Row::new([
                part.id.clone(),
                format!("{:.0}", part.memory_bytes as f64 / 1e9),
                format!("{:.2}", part.bandwidth_bytes_per_second / 1e12),
                tera(Some(part.peak.half_flops)),
                tera(part.peak.fp8_flops),
                tera(part.peak.fp4_flops),
                format!("{}x {name} {:.0}", part.scale_up_domain, bytes_per_second / 1e9),
                if part.measured.is_some() { "yes" } else { "no" }.to_owned(),
                or_unknown(price.map(|price| format!("{:.2}", price.usd_per_gpu_hour))),
                or_unknown(price.map(|price| &price.as_of)),
            ]));
        }
        let measured = self.accelerators.iter().filter(|part| part.measured.is_some()).count();
        let count = plural(self.accelerators.len(), "accelerator");
        let days = days(self.accelerators.iter().filter_map(on_demand));
        let legend = "peaks in dense TFLOPS; link: GPUs joined, name, GB/s per direction; \
                      cheapest on demand";
        let mut document = Document::new();
        document.push(Block::Table(table));
        document.push(Block::Gap);
        document.push(Block::Line(legend.to_owned()));
        document.push(Block::Line(format!(
            "{count}, {measured} measured, prices {days}     more: flyball gpus ID"
        )));
        document
    }
}

impl Answer for OnePart {
    const KIND: &'static str = "Accelerator";

    fn view(&self, _: Detail) -> Document {
        let part = &self.accelerator;
        let mut document = Document::new();
        document.push(Block::Heading(part.id.clone()));
        document.push(Block::Facts(facts(part)));
        document.push(Block::Gap);
        match &part.measured {
            Some(measured) => show_measured(&mut document, measured),
            None => document
                .push(Block::Line("not measured: the datasheet is all that is known".to_owned())),
        }
        document.push(Block::Gap);
        show_prices(&mut document, part);
        document
    }
}

/// What the datasheet says, without lines that would be empty.
fn facts(part: &PartView) -> Vec<(String, String)> {
    let year = part.year.map(|year| year.to_string()).unwrap_or_default();
    let kind = [&part.vendor, &part.architecture, &part.form, &year];
    let kind: Vec<&str> = kind.into_iter().map(String::as_str).filter(|t| !t.is_empty()).collect();
    let memory = format!(
        "{:.0} GB, {:.1} GiB usable, {} TB/s",
        part.memory_bytes as f64 / 1e9,
        part.usable_memory_bytes as f64 / 1024f64.powi(3),
        part.bandwidth_bytes_per_second / 1e12,
    );
    let peaks = [
        ("BF16", Some(part.peak.half_flops)),
        ("FP8", part.peak.fp8_flops),
        ("FP4", part.peak.fp4_flops),
    ];
    let peaks = peaks.into_iter().filter(|(_, peak)| peak.is_some());
    let peaks: Vec<String> =
        peaks.map(|(format, peak)| format!("{format} {}", tera(peak))).collect();
    let link = |link: &LinkView| {
        format!("{}, {} GB/s per direction", link.name, link.bytes_per_second / 1e9)
    };
    let joined = plural(part.scale_up_domain as usize, "GPU");
    let power = part.tdp_watts.map_or(UNKNOWN.to_owned(), |watts| format!("{watts} W"));
    [
        ("kind", kind.join(", ")),
        ("memory", memory),
        ("peak", format!("{} TFLOPS, dense", peaks.join(", "))),
        ("scale-up", format!("{}, {joined}", link(&part.scale_up))),
        ("scale-out", link(&part.scale_out)),
        ("host", plural(part.node_gpus as usize, "GPU")),
        ("power", power),
        ("also called", part.aliases.join(", ")),
        ("notes", part.notes.clone()),
        ("source", part.source.clone()),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn show_measured(document: &mut Document, measured: &MeasuredView) {
    document.push(Block::Heading("measured".to_owned()));
    let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
    let micros = |seconds: f64| format!("{:.2} µs", seconds * 1e6);
    let mut products = Table::new(vec![
        Column::left("MATRIX-PRODUCT"),
        Column::right("P99-OF-PEAK"),
        Column::right("MEDIAN-OF-PEAK"),
    ]);
    for gemm in &measured.gemm {
        let median = or_unknown(gemm.median_fraction.map(percent));
        products.rows.push(Row::new([
            gemm.format.to_uppercase(),
            percent(gemm.p99_fraction),
            median,
        ]));
    }
    document.push(Block::Table(products));
    let decode = percent(measured.decode_bandwidth_fraction);
    document.push(Block::Facts(vec![
        ("decoding reads memory at".to_owned(), format!("{decode} of the peak bandwidth")),
        ("the smallest matrix product takes".to_owned(), micros(measured.small_gemm_seconds)),
    ]));
    if measured.all_reduce.is_empty() {
        return;
    }
    let mut reduces = Table::new(vec![
        Column::left("ALL-REDUCE"),
        Column::right("NCCL-START"),
        Column::right("NCCL-BUS"),
        Column::right("ENGINE-START"),
    ]);
    for group in &measured.all_reduce {
        reduces.rows.push(Row::new([
            plural(group.gpus as usize, "GPU"),
            micros(group.nccl_seconds),
            format!("{:.0} GB/s", group.nccl_bus_bytes_per_second / 1e9),
            or_unknown(group.custom_seconds.map(micros)),
        ]));
    }
    document.push(Block::Table(reduces));
}

fn show_prices(document: &mut Document, part: &PartView) {
    if part.cheapest.is_empty() {
        document.push(Block::Line("no price is known".to_owned()));
        return;
    }
    document.push(Block::Heading("cheapest".to_owned()));
    let mut table = Table::new(vec![
        Column::left("PURCHASE"),
        Column::right("$/GPU-H"),
        Column::left("PROVIDER"),
        Column::left("SKU"),
        Column::left("AS-OF"),
        Column::left("TRUST"),
    ]);
    for price in &part.cheapest {
        table.rows.push(Row::new([
            price.purchase.to_owned(),
            format!("{:.4}", price.usd_per_gpu_hour),
            price.provider.clone(),
            price.sku.clone(),
            price.as_of.clone(),
            price.confidence.to_owned(),
        ]));
    }
    document.push(Block::Table(table));
    document.push(Block::Gap);
    document.push(Block::Line(format!("more: flyball prices --gpu {}", part.id)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{answer_json, conforms};
    use flyball_perf::catalog::Catalog;

    #[test]
    fn json_has_the_shape_of_its_schema() {
        let file =
            "[[accelerator]]\nid = 'bare'\nmemory_gib = 9\nbandwidth_tb_s = 1\nhalf_tflops = 9";
        let catalog = Catalog::builtin().with_file(file, "mine.toml").expect("a good file");
        let view = |part| PartView::new(&catalog, part);
        let accelerators: Vec<PartView> = catalog.accelerators.iter().map(view).collect();
        for accelerator in accelerators.iter().cloned() {
            conforms("gpu", &answer_json(&OnePart { accelerator }));
        }
        conforms("gpus", &answer_json(&Parts { accelerators }));
    }
}
