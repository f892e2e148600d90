//! Memory with 10,000 streams at once.

use super::bench::{Bench, words};
use super::contenders::Contender;
use super::kernel;
use crate::bench::{Measured, measure};
use crate::figures::Op;
use anyhow::{Result, ensure};
use std::fmt::Write;

const STREAMS: u64 = 10_000;
/// 60 chunks, half a second apart: a stream lives for 30 s, all are there after 10, and 20,000
/// chunks a second are what two busy cores can pass on.
const CHUNKS: u32 = 60;
const PACE_US: u64 = 500_000;

pub(super) fn measured(bench: &mut Bench) -> Result<Measured> {
    let mut text = "Peak resident memory of the whole process tree. Each stream has a connection of \
                    its own on both sides and 60 chunks, half a second apart.\n\n\
                    | Program | streams at once | answered | otherwise | peak memory | between chunks p99 |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    let mut figures = Vec::new();
    let mut skips = Vec::new();
    for contender in [Contender::Ours, Contender::Nginx] {
        let (_upstream, upstreams) = bench.upstream(CHUNKS, PACE_US)?;
        let (started, skipped) = bench.start(&[contender], &upstreams, true);
        skips.extend(skipped);
        for one in &started {
            kernel::reset_peak(one.running.pid())?;
            let load = format!(
                "--stream --connections {STREAMS} --seconds 12 --ramp-seconds 10 --sources 2 \
                 --deadline-seconds 180"
            );
            let report = bench.load(&[one.address], &words(&load))?;
            let megabytes = kernel::peak_memory(one.running.pid())? as f64 / 1e6;
            let name = contender.name();
            ensure!(
                report.most_open >= STREAMS,
                "{name}: only {} streams were open at once, so this is no measurement",
                report.most_open
            );
            let _ = writeln!(
                text,
                "| {name} | {} | {} | {:?} | {megabytes:.0} MB | {:.0} ms |",
                report.most_open,
                report.answered,
                report.otherwise,
                report.between.p99_us / 1e3
            );
            if contender == Contender::Ours {
                let failed: u64 = report.otherwise.values().sum();
                ensure!(failed == 0, "{failed} streams were not answered: {:?}", report.otherwise);
                figures.push(measure("gateway.streams_10k_mb", megabytes, "MB", Op::AtMost, 600.0));
            }
        }
    }
    for line in skips {
        let _ = writeln!(text, "\n{line}");
    }
    Ok(Measured { text, figures })
}
