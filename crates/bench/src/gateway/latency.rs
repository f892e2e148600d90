//! What the gateway adds to the latency of a request, at half of the load that it can take.

use super::bench::{Bench, words};
use super::contenders::Contender;
use super::running::Running;
use crate::figures::Op;
use crate::page::{Measured, measure};
use anyhow::Result;
use flyball_figures::quantile::median;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Connections of the open loop; more than are ever in use at half load.
const CONNECTIONS: u32 = 128;

pub(super) fn measured(bench: &mut Bench) -> Result<Measured> {
    let (turns, seconds) = if bench.quick { (3, 3.0) } else { (5, 3.0) };
    let (upstream, upstreams) = bench.upstream(4, 1, 0)?;
    let all = [Contender::Ours, Contender::Nginx];
    let (started, skipped) = bench.start(&all, &upstreams, false);
    // Where that is allowed, nobody else's work is measured as our waiting.
    let hurry =
        || started.iter().map(|one| &one.running).chain([&upstream]).try_for_each(Running::hurry);
    bench.hurries = hurry().is_ok();
    let mut text = format!(
        "Load, upstream and the measured program run {}.\n\n",
        if bench.hurries { "before all other processes (SCHED_FIFO)" } else { "like all others" }
    );
    let mut figures = Vec::new();
    for one in &started {
        let name = one.contender.name();
        let full = bench.round(one, &words("--connections 64 --seconds 3 --seed 7"))?;
        let rate = full.report.answered as f64 / full.report.seconds / 2.0;
        // Direct and through it take turns at the same rate; differences are within a turn.
        let mut quantiles: BTreeMap<&str, [Vec<f64>; 3]> = BTreeMap::new();
        let mut added = Vec::new();
        for turn in 0..turns {
            let load = format!(
                "--rate {rate:.0} --connections {CONNECTIONS} --seconds {seconds} --warm-up-seconds 1 \
                 --seed {turn}"
            );
            let direct = bench.load(&upstreams, &words(&load))?;
            let through = bench.round(one, &words(&load))?.report;
            added.push((through.latency.p99_us - direct.latency.p99_us) / 1e3);
            for (way, report) in [("direct", direct), (name, through)] {
                let [p50, p99, p999] = quantiles.entry(way).or_default();
                p50.push(report.latency.p50_us / 1e3);
                p99.push(report.latency.p99_us / 1e3);
                p999.push(report.latency.p999_us / 1e3);
            }
        }
        let calmest = added.iter().copied().fold(f64::INFINITY, f64::min);
        let added = median(added);
        let _ = writeln!(
            text,
            "{name} at {rate:.0} requests/s of 1 KB, half of what it takes on one core, in an open \
             loop; median of {turns} rounds of {seconds} s:\n\n| Way | p50 | p99 | p99.9 |\n\
             |---|---|---|---|"
        );
        for (way, [p50, p99, p999]) in quantiles {
            let (p50, p99, p999) = (median(p50), median(p99), median(p999));
            let _ = writeln!(text, "| {way} | {p50:.2} ms | {p99:.2} ms | {p999:.2} ms |");
        }
        let _ = writeln!(
            text,
            "\nAdded at p99: {added:.2} ms; in the calmest round {calmest:.2} ms.\n"
        );
        if one.contender == Contender::Ours {
            figures.push(measure("gateway.added_p99_ms", added, "ms", Op::AtMost, 1.0));
        }
    }
    bench.hurries = false;
    for line in skipped {
        let _ = writeln!(text, "{line}\n");
    }
    Ok(Measured { text, figures })
}
