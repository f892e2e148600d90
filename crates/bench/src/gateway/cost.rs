//! CPU time per request and per streamed chunk, contender beside contender.
//!
//! Rounds are short and take turns, because the machine is shared and its speed drifts: each round
//! of one stands beside a round of every other, ratios are taken within such a turn, and the median
//! turn counts.

use super::bench::{Bench, Round, words};
use super::contenders::Contender;
use crate::figures::Op;
use crate::page::{Measure, Measured, measure};
use anyhow::{Result, ensure};
use flyball_figures::quantile::median;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What is asked, and what its cost is divided by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Bodies of 1 KB, answered whole.
    Small,
    /// Bodies of 400 KB: 100,000 tokens of context.
    Large,
    /// Streams; per chunk.
    Stream,
}

/// Chunks of a stream: the request itself is a hundredth of what is measured.
const CHUNKS: u32 = 200;
/// 100 streams of 100 chunks a second: 10,000 chunks a second, which every peer but the slowest
/// keeps up with, so that chunks do not pile up and get cheaper by that.
const STREAMS: u32 = 100;
const PACE_US: u64 = 10_000;

impl Shape {
    fn load(self, seconds: f64, seed: u64) -> Vec<String> {
        let what = match self {
            Self::Small => "--body-bytes 1024 --connections 32".to_owned(),
            Self::Large => "--body-bytes 400000 --connections 8".to_owned(),
            Self::Stream => format!("--body-bytes 1024 --stream --connections {STREAMS}"),
        };
        words(&format!("{what} --seconds {seconds} --seed {seed}"))
    }

    fn each(self, round: &Round) -> f64 {
        let count = match self {
            Self::Stream => round.report.events,
            _ => round.report.answered,
        };
        round.cpu_nanos as f64 / 1e3 / count.max(1) as f64
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Small => "request of 1 KB",
            Self::Large => "request of 400 KB",
            Self::Stream => "streamed chunk",
        }
    }
}

/// What the rounds of one contender showed.
#[derive(Default)]
struct Row {
    micros: Vec<f64>,
    rates: Vec<f64>,
    p50_us: Vec<f64>,
    busy: Vec<f64>,
}

pub(super) fn measured(bench: &mut Bench, shape: Shape) -> Result<Measured> {
    let (turns, seconds) = if bench.quick { (3, 2.0) } else { (5, 3.0) };
    let (_upstream, upstreams) = bench.upstream(4, CHUNKS, PACE_US)?;
    let streams = shape == Shape::Stream;
    let (mut started, mut skipped) = bench.start(&Contender::ALL, &upstreams, streams);
    // Connections, allocators and Python's caches warm up before anything counts; who cannot carry
    // this load at all is left out.
    started.retain(|one| match bench.round(one, &shape.load(1.0, 999)) {
        Ok(_) => true,
        Err(error) => {
            skipped.push(format!("{} is left out: {error:#}", one.contender.name()));
            false
        }
    });
    ensure!(!started.is_empty(), "nothing to measure:\n{}", skipped.join("\n"));
    let mut rows: BTreeMap<Contender, Row> = BTreeMap::new();
    let mut turn_ratios: BTreeMap<Contender, Vec<f64>> = BTreeMap::new();
    for turn in 0..turns {
        let mut ours = None;
        let mut others = Vec::new();
        for one in &started {
            let round = bench.round(one, &shape.load(seconds, turn + 1))?;
            let micros = shape.each(&round);
            let row = rows.entry(one.contender).or_default();
            row.micros.push(micros);
            row.rates.push(round.report.answered as f64 / round.report.seconds);
            row.p50_us.push(round.report.latency.p50_us);
            row.busy.push(round.cpu_nanos as f64 / 1e9 / round.report.seconds);
            match one.contender {
                Contender::Ours => ours = Some(micros),
                contender => others.push((contender, micros)),
            }
        }
        eprintln!("{}: turn {} of {turns}", shape.unit(), turn + 1);
        for (contender, micros) in others {
            if let Some(ours) = ours {
                turn_ratios.entry(contender).or_default().push(ours / micros);
            }
        }
    }
    let ratios: BTreeMap<Contender, f64> =
        turn_ratios.into_iter().map(|(contender, all)| (contender, median(all))).collect();
    let mut text = table(bench, shape, &rows, &ratios, turns, seconds);
    for line in skipped {
        let _ = writeln!(text, "\n{line}");
    }
    Ok(Measured { text, figures: figures(shape, &ratios) })
}

fn table(
    bench: &Bench,
    shape: Shape,
    rows: &BTreeMap<Contender, Row>,
    ratios: &BTreeMap<Contender, f64>,
    turns: u64,
    seconds: f64,
) -> String {
    let mut text = format!(
        "CPU time per {}, of the whole process tree, as the scheduler counted it: median of {turns} \
         rounds of {seconds} s that took turns. Load and upstream on one core, the measured program \
         alone on another.\n\n\
         | Program | Version | CPU per {} | lowest to highest | answers/s | p50 | core in use | ours / it |\n\
         |---|---|---|---|---|---|---|---|\n",
        shape.unit(),
        shape.unit(),
    );
    for (contender, row) in rows {
        let name = contender.name();
        let version = match contender {
            Contender::Ours => "this one".to_owned(),
            Contender::With => "this one, with the settings of --with".to_owned(),
            Contender::Before => "the one named by --before".to_owned(),
            _ => bench.peers.version_of(name),
        };
        let least = row.micros.iter().copied().fold(f64::INFINITY, f64::min);
        let most = row.micros.iter().copied().fold(0.0, f64::max);
        let ratio = ratios.get(contender).map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let _ = writeln!(
            text,
            "| {name} | {version} | {:.1} µs | {least:.1} to {most:.1} | {:.0} | {:.2} ms | {:.0} % | {ratio} |",
            median(row.micros.iter().copied()),
            median(row.rates.iter().copied()),
            median(row.p50_us.iter().copied()) / 1e3,
            100.0 * median(row.busy.iter().copied()),
        );
    }
    text
}

fn figures(shape: Shape, ratios: &BTreeMap<Contender, f64>) -> Vec<Measure> {
    let (nginx, best) = match shape {
        Shape::Small => ("gateway.cpu_vs_nginx_1kb", Some("gateway.cpu_vs_best_peer_1kb")),
        Shape::Large => ("gateway.cpu_vs_nginx_400kb", Some("gateway.cpu_vs_best_peer_400kb")),
        Shape::Stream => ("gateway.chunk_cpu_vs_nginx", None),
    };
    let mut figures = Vec::new();
    if let Some(ratio) = ratios.get(&Contender::Nginx) {
        figures.push(measure(nginx, *ratio, "x nginx", Op::AtMost, 1.8));
    }
    if let (Shape::Small, Some(ratio)) = (shape, ratios.get(&Contender::Before)) {
        figures.push(measure("gateway.cpu_vs_before_1kb", *ratio, "x before", Op::AtMost, 1.03));
    }
    if let (Shape::Small, Some(nginx), Some(with)) =
        (shape, ratios.get(&Contender::Nginx), ratios.get(&Contender::With))
    {
        let name = "gateway.cpu_with_vs_nginx_1kb";
        figures.push(measure(name, nginx / with, "x nginx", Op::AtMost, 1.8));
    }
    // The cheapest peer is the one beside which we look worst.
    let is_peer =
        |one: &Contender| !matches!(one, Contender::Nginx | Contender::With | Contender::Before);
    let peers = ratios.iter().filter(|(contender, _)| is_peer(contender));
    let worst = peers.map(|(_, ratio)| *ratio).max_by(f64::total_cmp);
    if let (Some(name), Some(worst)) = (best, worst) {
        figures.push(measure(name, worst, "x the cheapest peer", Op::AtMost, 0.5));
    }
    figures
}
