//! `flyball gpus`: which accelerators the catalog knows, and all about one of them.

use std::fmt;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::prices::days;
use crate::catalog::{self, CatalogArgs, LinkView, MeasuredView, PartView, PriceView};
use crate::output::{Answer, BOLD, Detail, Exit, Failure, Grid, Printer, Side, Text, plural};

/// Show the accelerators that Flyball knows, or all about one
///
/// From the built-in catalog and your own files, without a network. Peaks are dense, links count
/// one direction, prices have the day they held.
#[derive(Debug, Args)]
pub(crate) struct GpusArgs {
    /// Show all about this one: an id, an alias or the product label of a node
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

    fn table(&self, _: Detail) -> Text {
        let mut grid = Grid::new([
            ("ID", Side::Left),
            ("GB", Side::Right),
            ("TB/S", Side::Right),
            ("BF16", Side::Right),
            ("FP8", Side::Right),
            ("FP4", Side::Right),
            ("LINK", Side::Left),
            ("MEASURED", Side::Left),
            ("$/GPU-H", Side::Right),
            ("AS-OF", Side::Left),
        ])
        .elastic("LINK");
        for part in &self.accelerators {
            let price = on_demand(part);
            let LinkView { name, bytes_per_second } = &part.scale_up;
            grid.row([
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
            ]);
        }
        let mut text = Text::new();
        grid.write(&mut text, "");
        text.blank();
        text.line(format_args!(
            "peaks in dense TFLOPS; link: GPUs joined, name, GB/s per direction; cheapest on demand"
        ));
        let measured = self.accelerators.iter().filter(|part| part.measured.is_some()).count();
        let count = plural(self.accelerators.len(), "accelerator");
        let days = days(self.accelerators.iter().filter_map(on_demand));
        text.line(format_args!(
            "{count}, {measured} measured, prices {days}     more: flyball gpus ID"
        ));
        text
    }
}

impl Answer for OnePart {
    const KIND: &'static str = "Accelerator";

    fn table(&self, _: Detail) -> Text {
        let part = &self.accelerator;
        let mut text = Text::new();
        text.line(format_args!("{BOLD}{}{BOLD:#}", part.id));
        let year = part.year.map(|year| year.to_string()).unwrap_or_default();
        let kind = [&part.vendor, &part.architecture, &part.form, &year];
        let kind: Vec<&str> =
            kind.into_iter().map(String::as_str).filter(|t| !t.is_empty()).collect();
        fact(&mut text, "kind", &kind.join(", "));
        let memory = format!(
            "{:.0} GB, {:.1} GiB usable, {} TB/s",
            part.memory_bytes as f64 / 1e9,
            part.usable_memory_bytes as f64 / 1024f64.powi(3),
            part.bandwidth_bytes_per_second / 1e12,
        );
        fact(&mut text, "memory", &memory);
        let peaks = [
            ("BF16", Some(part.peak.half_flops)),
            ("FP8", part.peak.fp8_flops),
            ("FP4", part.peak.fp4_flops),
        ];
        let peaks = peaks.into_iter().filter(|(_, peak)| peak.is_some());
        let peaks: Vec<String> =
            peaks.map(|(format, peak)| format!("{format} {}", tera(peak))).collect();
        fact(&mut text, "peak", &format!("{} TFLOPS, dense", peaks.join(", ")));
        let link = |link: &LinkView| {
            format!("{}, {} GB/s per direction", link.name, link.bytes_per_second / 1e9)
        };
        let joined = plural(part.scale_up_domain as usize, "GPU");
        fact(&mut text, "scale-up", &format!("{}, {joined}", link(&part.scale_up)));
        fact(&mut text, "scale-out", &link(&part.scale_out));
        fact(&mut text, "host", &plural(part.node_gpus as usize, "GPU"));
        fact(
            &mut text,
            "power",
            &part.tdp_watts.map_or(UNKNOWN.to_owned(), |watts| format!("{watts} W")),
        );
        fact(&mut text, "also called", &part.aliases.join(", "));
        fact(&mut text, "notes", &part.notes);
        fact(&mut text, "source", &part.source);
        text.blank();
        match &part.measured {
            Some(measured) => write_measured(&mut text, measured),
            None => text.line(format_args!("not measured: the datasheet is all that is known")),
        }
        text.blank();
        write_prices(&mut text, part);
        text
    }
}

/// One line under its name; nothing where there is nothing to say.
fn fact(text: &mut Text, name: &str, value: &str) {
    if !value.is_empty() {
        text.wrapped("  ", &format!("{name}: {value}"));
    }
}

fn write_measured(text: &mut Text, measured: &MeasuredView) {
    text.line(format_args!("{BOLD}measured{BOLD:#}"));
    let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
    let mut grid = Grid::new([
        ("MATRIX-PRODUCT", Side::Left),
        ("P99-OF-PEAK", Side::Right),
        ("MEDIAN-OF-PEAK", Side::Right),
    ]);
    for gemm in &measured.gemm {
        let median = or_unknown(gemm.median_fraction.map(percent));
        grid.row([gemm.format.to_uppercase(), percent(gemm.p99_fraction), median]);
    }
    grid.write(text, "  ");
    let micros = |seconds: f64| format!("{:.2} µs", seconds * 1e6);
    let decode = percent(measured.decode_bandwidth_fraction);
    fact(text, "decoding reads memory at", &format!("{decode} of the peak bandwidth"));
    fact(text, "the smallest matrix product takes", &micros(measured.small_gemm_seconds));
    let mut grid = Grid::new([
        ("ALL-REDUCE", Side::Left),
        ("NCCL-START", Side::Right),
        ("NCCL-BUS", Side::Right),
        ("ENGINE-START", Side::Right),
    ]);
    for group in &measured.all_reduce {
        grid.row([
            plural(group.gpus as usize, "GPU"),
            micros(group.nccl_seconds),
            format!("{:.0} GB/s", group.nccl_bus_bytes_per_second / 1e9),
            or_unknown(group.custom_seconds.map(micros)),
        ]);
    }
    grid.write(text, "  ");
}

fn write_prices(text: &mut Text, part: &PartView) {
    if part.cheapest.is_empty() {
        text.line(format_args!("no price is known"));
        return;
    }
    text.line(format_args!("{BOLD}cheapest{BOLD:#}"));
    let mut grid = Grid::new([
        ("PURCHASE", Side::Left),
        ("$/GPU-H", Side::Right),
        ("PROVIDER", Side::Left),
        ("SKU", Side::Left),
        ("AS-OF", Side::Left),
        ("TRUST", Side::Left),
    ]);
    for price in &part.cheapest {
        grid.row([
            price.purchase.to_owned(),
            format!("{:.4}", price.usd_per_gpu_hour),
            price.provider.clone(),
            price.sku.clone(),
            price.as_of.clone(),
            price.confidence.to_owned(),
        ]);
    }
    grid.write(text, "  ");
    text.blank();
    text.line(format_args!("more: flyball prices --accelerator {}", part.id));
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
