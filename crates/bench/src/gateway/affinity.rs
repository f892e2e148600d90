//! Whether prompts find their beginnings cached: Mooncake's conversations over 16 emulated engines.
//!
//! First in virtual time, all policies beside each other; then in real time, through real gateways
//! and sglang-router, with hits and work read from the engines' own counters.
//!
//! The engines are Llama-3.1-70B on eight H200, the node that has room: the trace names 94 million
//! different prompt tokens, and even one cache for all engines needs 16 million to find 0.9 of what
//! an endless one would. Eight H100 have 1.4 million for each engine, eight H200 2.8. The trace is
//! played 6 times faster than it was, which is 55 % of what the engines bear: at 10 times they keep
//! up, at 12 they do not.

use super::bench::Bench;
use super::running::{Cores, Running, get};
use crate::figures::Op;
use crate::page::{Measured, measure};
use crate::process;
use crate::programs::page::total;
use crate::sources;
use anyhow::{Context, Result, ensure};
use flyball_simulator::affinity::{
    AffinityEngine, AffinityOutcome, AffinitySetup, CacheAware, LeastLoad, Others, Ours, Random,
    RoundRobin, infinite_hit_share, play,
};
use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::Trace;
use flyball_simulator::traffic::load::{self, Traffic};
use serde::Deserialize;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(super) const MODEL: &str = "llama-3.1-70b";
const ACCELERATOR: &str = "h200";
const TENSOR: u32 = 8;
pub(super) const ENGINES: usize = 16;
const GATEWAYS: usize = 8;

/// Times faster than the trace was, as the engines see it.
const FASTER: f64 = 6.0;

/// Times faster than its own time that everything runs in real time: 12,000 requests in five
/// minutes.
const SPEED_UP: f64 = 2.0;

/// Requests of the short form.
pub(super) const QUICK: usize = 2_000;

/// What `proving-replay` prints.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    pub(super) requests: u64,
    pub(super) answered: u64,
    ttft_p50_ms: f64,
    pub(super) ttft_p95_ms: f64,
    pub(super) ttft_mean_ms: f64,
    shared_share: f64,
    pub(super) late_p99_ms: f64,
}

/// Which requests of the trace are played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) skip: usize,
    pub(super) requests: usize,
    /// Times faster than it was, by the clock.
    pub(super) faster: f64,
}

/// One way through real programs.
pub(super) struct Real {
    name: &'static str,
    pub(super) report: Report,
    /// Share of prompt tokens that engines found cached.
    pub(super) hit_share: f64,
    /// Tokens computed by the busiest engine over the mean.
    max_over_mean: f64,
}

pub(super) fn measured(bench: &mut Bench, root: &Path) -> Result<Measured> {
    let path = sources::shared(root)?.join("traces/mooncake_conversation.jsonl.gz");
    let mut text = virtual_time(&path)?;
    let mut figures = Vec::new();
    let one =
        run(bench, &path, "flyball, 1 gateway", &|bench, engines| gateways(bench, 1, engines))?;
    let eight = run(bench, &path, "flyball, 8 gateways", &|bench, engines| {
        gateways(bench, GATEWAYS, engines)
    })?;
    let sglang = run(bench, &path, "sglang-router cache_aware", &sglang);
    let _ = writeln!(
        text,
        "\nIn real time, {SPEED_UP} times as fast as the engines' own:\n\n\
         | Way | hit | of endless | max/mean work | TTFT p50 | p95 | answered | sent late p99 |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for real in [Some(&one), Some(&eight), sglang.as_ref().ok()].into_iter().flatten() {
        let Report { requests, answered, ttft_p50_ms, ttft_p95_ms, .. } = real.report;
        let _ = writeln!(
            text,
            "| {} | {:.3} | {:.3} | {:.2} | {:.0} ms | {:.0} ms | {answered} of {requests} | {:.1} ms |",
            real.name,
            real.hit_share,
            real.hit_share / real.report.shared_share,
            real.max_over_mean,
            ttft_p50_ms * SPEED_UP,
            ttft_p95_ms * SPEED_UP,
            real.report.late_p99_ms
        );
    }
    let ratio = |name, value| measure(name, value, "ratio", Op::AtLeast, 0.95);
    figures.push(ratio("gateway.affinity_8_vs_1", eight.hit_share / one.hit_share));
    let endless = eight.hit_share / eight.report.shared_share;
    figures.push(measure("gateway.affinity_vs_infinite", endless, "ratio", Op::AtLeast, 0.9));
    let most = one.max_over_mean.max(eight.max_over_mean);
    figures.push(measure("gateway.max_over_mean_load", most, "ratio", Op::AtMost, 1.5));
    match sglang {
        Ok(peer) => {
            let ratio = one.report.ttft_p95_ms / peer.report.ttft_p95_ms;
            figures.push(measure("gateway.ttft_p95_vs_sglang", ratio, "ratio", Op::AtMost, 0.9));
            let eight = eight.report.ttft_p95_ms / peer.report.ttft_p95_ms;
            let _ = writeln!(
                text,
                "\np95 TTFT against one sglang-router: {ratio:.2} with one gateway, {eight:.2} with 8."
            );
        }
        Err(error) => {
            let _ = writeln!(text, "\nsglang-router is skipped: {error:#}");
        }
    }
    Ok(Measured { text, figures })
}

/// The table of all policies in virtual time.
fn virtual_time(path: &Path) -> Result<String> {
    let trace = trace(path)?;
    let kind = kind()?;
    let infinite = infinite_hit_share(&trace);
    let mut text = format!(
        "Mooncake's conversation trace ({} requests), {FASTER} times faster, over {ENGINES} engines: \
         {MODEL} on {TENSOR} {ACCELERATOR}, {:.1} million tokens of cache each. Engines report every \
         half second. An endless shared cache would find {infinite:.3} of the prompt tokens.\n\n\
         In virtual time. `told`: gateways tell each other what is unread, as often as engines \
         report.\n\n\
         | Policy | gateways | hit | of endless | max/mean work | in a minute, p95 | TTFT p50 | p95 | mean |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        trace.requests.len(),
        kind.cache_tokens() as f64 / 1e6
    );
    let setup = AffinitySetup {
        trace: &trace,
        faster: FASTER,
        kind: &kind,
        engines: ENGINES,
        report_every: Seconds(0.5),
        seed: 1,
    };
    let ours = |others| move || Ours::new(ENGINES, others);
    for count in [1, GATEWAYS] {
        let random = (0..count as u64).map(Random::new).collect::<Vec<_>>();
        let outcomes = [
            ("round robin", play(&setup, &mut vec![RoundRobin::default(); count])),
            ("random", play(&setup, &mut { random })),
            ("least requests", play(&setup, &mut vec![LeastLoad; count])),
            ("cache_aware", play(&setup, &mut vec![CacheAware::default(); count])),
            ("ours", play(&setup, &mut several(count, ours(Others::Reported)))),
            ("ours, told", play(&setup, &mut several(count, ours(Others::Shared)))),
        ];
        for (name, outcome) in outcomes {
            line(&mut text, name, count, &outcome, infinite);
        }
    }
    Ok(text)
}

/// What the engines are.
pub(super) fn kind() -> Result<AffinityEngine> {
    AffinityEngine::vllm(MODEL, ACCELERATOR, TENSOR).context("the catalogue lacks the engine")
}

fn several<R>(count: usize, make: impl Fn() -> R) -> Vec<R> {
    (0..count).map(|_| make()).collect()
}

fn line(text: &mut String, name: &str, gateways: usize, outcome: &AffinityOutcome, infinite: f64) {
    let [p50, p95, mean] = outcome.ttft;
    let _ = writeln!(
        text,
        "| {name} | {gateways} | {:.3} | {:.3} | {:.2} | {:.2} | {p50:.2} s | {p95:.2} s | {mean:.2} s |",
        outcome.hit_share,
        outcome.hit_share / infinite,
        outcome.max_over_mean,
        outcome.max_over_mean_minute_p95
    );
}

pub(super) fn trace(path: &Path) -> Result<Trace> {
    let mut loaded = load::open(path)?;
    match loaded.parts.pop().map(|part| part.traffic) {
        Some(Traffic::Trace(trace)) => Ok(trace),
        _ => anyhow::bail!("{} holds no requests", path.display()),
    }
}

/// Gateways or routers that listen, and where.
type Doors = (Vec<Running>, Vec<SocketAddr>);

/// Plays the trace through fresh engines and what `start` puts before them.
fn run(
    bench: &mut Bench,
    path: &Path,
    name: &'static str,
    start: &dyn Fn(&mut Bench, &[SocketAddr]) -> Result<Doors>,
) -> Result<Real> {
    let (_engines, addresses) = engines(bench, SPEED_UP)?;
    let (_doors, targets) = start(bench, &addresses)?;
    let requests = if bench.quick { QUICK } else { usize::MAX };
    let part = Part { skip: 0, requests, faster: FASTER * SPEED_UP };
    played(bench, path, name, part, &addresses, &targets)
}

/// Plays a part of the trace against doors that stand before fresh engines.
pub(super) fn played(
    bench: &Bench,
    path: &Path,
    name: &'static str,
    part: Part,
    addresses: &[SocketAddr],
    targets: &[SocketAddr],
) -> Result<Real> {
    let mut command = Command::new(bench.program("proving-replay"));
    command.arg("--trace").arg(path).args(["--model", MODEL]);
    command.args(["--faster", &part.faster.to_string()]);
    let joined: Vec<String> = targets.iter().map(ToString::to_string).collect();
    command.arg("--target").arg(joined.join(","));
    command.args(["--skip", &part.skip.to_string(), "--requests", &part.requests.to_string()]);
    let report: Report = serde_json::from_str(&process::read(&mut command)?)
        .context("reading the report of the replay")?;
    ensure!(
        report.answered * 100 >= report.requests * 99,
        "{name} answered {} of {} requests",
        report.answered,
        report.requests
    );
    let counts = addresses.iter().map(|engine| counts(*engine)).collect::<Result<Vec<_>>>()?;
    let hits: f64 = counts.iter().map(|count| count.hits).sum();
    let queries: f64 = counts.iter().map(|count| count.queries).sum();
    let work = counts.iter().map(|count| count.queries - count.hits + count.generated);
    let work: Vec<f64> = work.collect();
    let mean = work.iter().sum::<f64>() / work.len() as f64;
    let most = work.iter().copied().fold(0.0, f64::max);
    Ok(Real { name, report, hit_share: hits / queries.max(1.0), max_over_mean: most / mean })
}

/// Starts engines whose time goes so many times faster than the clock.
pub(super) fn engines(bench: &mut Bench, speed_up: f64) -> Result<(Running, Vec<SocketAddr>)> {
    let ours = bench.ours().clone().map_err(anyhow::Error::msg)?;
    let addresses = bench.ports.row(ENGINES)?;
    let mut command = Command::new(ours);
    command.args(["emulate", "--model", MODEL, "--gpu", ACCELERATOR]);
    command.args(["--tp", &TENSOR.to_string(), "--engines", &ENGINES.to_string()]);
    command.args(["--port", &addresses[0].port().to_string(), "--speed-up", &speed_up.to_string()]);
    let mut running = Running::start("engines", &command, Cores::All, &bench.folder)?;
    running.ready(addresses[ENGINES - 1], "/health", Duration::from_secs(60))?;
    Ok((running, addresses))
}

fn gateways(bench: &mut Bench, count: usize, engines: &[SocketAddr]) -> Result<Doors> {
    let mut doors = (Vec::new(), Vec::new());
    for number in 0..count {
        let door = gateway(bench, &format!("gateway-{number}"), engines, "")?;
        doors.0.push(door.running);
        doors.1.push(door.listen);
    }
    Ok(doors)
}

/// A gateway that listens.
pub(super) struct Door {
    running: Running,
    pub(super) listen: SocketAddr,
    pub(super) admin: SocketAddr,
}

/// Starts a gateway before these engines, with more settings of the model.
pub(super) fn gateway(
    bench: &mut Bench,
    name: &str,
    engines: &[SocketAddr],
    more: &str,
) -> Result<Door> {
    let ours = bench.ours().clone().map_err(anyhow::Error::msg)?;
    let quoted: Vec<String> = engines.iter().map(|engine| format!("\"{engine}\"")).collect();
    let (listen, admin) = (bench.ports.next()?, bench.ports.next()?);
    let config = format!(
        "listen = \"{listen}\"\nadmin = \"{admin}\"\nthreads = 1\n\n[[models]]\nname = \
         \"{MODEL}\"\nendpoints = [{}]\n{more}",
        quoted.join(", ")
    );
    let file: PathBuf = bench.folder.join(format!("{name}.toml"));
    std::fs::write(&file, config)?;
    let mut command = Command::new(&ours);
    command.arg("gateway").arg("--config").arg(file);
    let mut running = Running::start(name, &command, Cores::All, &bench.folder)?;
    running.ready(admin, "/readyz", Duration::from_secs(60))?;
    Ok(Door { running, listen, admin })
}

/// One router with its own defaults on the command line: 0.3, 64, 1.5.
fn sglang(bench: &mut Bench, engines: &[SocketAddr]) -> Result<Doors> {
    let (listen, spare) = (bench.ports.next()?, bench.ports.next()?);
    let name = "sglang-router";
    let command = bench.peers.router(name, listen, spare, "cache_aware", engines)?;
    let mut running = Running::start("sglang-affinity", &command, Cores::All, &bench.folder)?;
    running.ready(listen, "/v1/models", Duration::from_secs(120))?;
    Ok((vec![running], vec![listen]))
}

/// What an engine counted since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    queries: f64,
    hits: f64,
    generated: f64,
}

fn counts(engine: SocketAddr) -> Result<Counts> {
    let page = get(engine, "/metrics")?;
    let sum = |name: &str| total(&page, name).with_context(|| format!("{engine} has no {name}"));
    Ok(Counts {
        queries: sum("vllm:prefix_cache_queries_total")?,
        hits: sum("vllm:prefix_cache_hits_total")?,
        generated: sum("vllm:generation_tokens_total")?,
    })
}
