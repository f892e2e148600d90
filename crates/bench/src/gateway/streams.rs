//! Memory with 10,000 streams at once.

use super::bench::{Bench, words};
use super::contenders::Contender;
use super::kernel;
use super::running::open_files;
use crate::figures::Op;
use crate::page::{Measured, measure};
use anyhow::{Result, ensure};
use std::fmt::Write;

const TARGET: u64 = 10_000;
/// Files of a proxy that are no streams.
const OTHER_FILES: u32 = 100;
/// A gateway learns in some seconds how many requests an engine takes at once: of four they would be too few.
const ENGINES: usize = 16;
/// 60 chunks, half a second apart: a stream lives for 30 s, all are there after 10, and 20,000
/// chunks a second are what two busy cores can pass on.
const CHUNKS: u32 = 60;
const PACE_US: u64 = 500_000;

pub(super) fn measured(bench: &mut Bench) -> Result<Measured> {
    // Each stream is two sockets, and some machines give no more than 20,000 files to anybody.
    let possible = u64::from(open_files().saturating_sub(OTHER_FILES) / 2);
    let streams = TARGET.min(possible);
    let mut text = "Peak resident memory of the whole process tree. Each stream has a connection of \
                    its own on both sides and 60 chunks, half a second apart.\n\n\
                    | Program | streams at once | answered | otherwise | peak memory | between chunks p99 |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    let per_target = TARGET as f64 / streams as f64;
    let mut figures = Vec::new();
    let mut skips = Vec::new();
    for contender in [Contender::Ours, Contender::Nginx] {
        let (_upstream, upstreams) = bench.upstream(ENGINES, CHUNKS, PACE_US)?;
        let (started, skipped) = bench.start(&[contender], &upstreams, true);
        skips.extend(skipped);
        for one in &started {
            kernel::reset_peak(one.running.pid())?;
            let load = format!(
                "--stream --connections {streams} --seconds 12 --ramp-seconds 10 --sources 2 \
                 --deadline-seconds 180"
            );
            let report = bench.load(&[one.address], &words(&load))?;
            let megabytes = kernel::peak_memory(one.running.pid())? as f64 / 1e6;
            let name = contender.name();
            ensure!(
                report.most_open >= streams,
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
                figures.push(measure(
                    "gateway.streams_10k_mb",
                    megabytes * per_target,
                    "MB",
                    Op::AtMost,
                    600.0,
                ));
            }
        }
    }
    if streams < TARGET {
        let _ = writeln!(
            text,
            "\nThis machine allows {} open files, so that {streams} streams were held; the figure \
             is scaled up to {TARGET}.",
            open_files()
        );
    }
    for line in skips {
        let _ = writeln!(text, "\n{line}");
    }
    Ok(Measured { text, figures })
}
