//! Faults under load: 200 streams at once through two gateways to engines without a GPU.
//!
//! Each drill breaks one thing, by a signal or by the fault proxies before the engines. What came of
//! it is judged from the history that the clients wrote, and from nothing else; when slots were free
//! again, from the engines' own logs. Start at `drills.rs`.

mod drills;
mod world;

use super::bench::{Bench, words};
use crate::figures::Op;
use crate::page::{Measured, measure};
use crate::process;
use anyhow::{Context, Result, ensure};
use drills::{Bite, DRILLS, Drill};
use flyball_figures::quantile::quantile;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use world::{SPEED, World};

const STREAMS: u32 = 200;
/// Nothing may take longer, whatever is broken: three waits of the gateway, and a slow client.
const DEADLINE_SECONDS: u32 = 20;

/// What `proving-check` prints.
#[derive(Debug, Deserialize)]
struct Verdict {
    requests: u64,
    ends: BTreeMap<String, u64>,
    lost: u64,
    silently_short: u64,
    not_retryable: u64,
    broken_openly: u64,
    hung: u64,
    tried_again: u64,
    examples: Vec<serde_json::Value>,
}

/// A line of the history, as far as it is needed here.
#[derive(Deserialize)]
struct Line {
    number: u64,
    end: String,
    habit: String,
    ended_unix: f64,
}

pub(super) fn measured(bench: &mut Bench, seed: u64) -> Result<Measured> {
    let flyball = match bench.ours() {
        Err(reason) => return Ok(skipped(reason)),
        Ok(flyball) => flyball.clone(),
    };
    if process::read(Command::new(&flyball).args(["emulate", "--help"])).is_err() {
        return Ok(skipped("`flyball emulate` does not exist yet"));
    }
    let mut text = format!(
        "{STREAMS} streams at once through two gateways to four emulated engines, a fault proxy \
         before each; seed {seed}. Lost: no answer although nothing of one had come. Short: ended \
         without `[DONE]` and without an error. Openly: ended with an error that may be retried, or \
         a broken connection.\n\n\
         | Drill | what breaks | requests | lost | short | wrong error | hung | broken openly | asked again |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    let (mut lost, mut frees) = (0, Vec::new());
    for drill in &DRILLS {
        eprintln!("faults: {}", drill.name);
        let folder = bench.folder.join(format!("faults-{}", drill.name));
        let (verdict, free) = play(bench, drill, &folder, seed).with_context(|| {
            format!("drill {} (its files are in {})", drill.name, folder.display())
        })?;
        lost += verdict.lost;
        frees.extend(free);
        let Verdict { requests, silently_short, not_retryable, hung, broken_openly, .. } = verdict;
        let _ = writeln!(
            text,
            "| {} | {} | {requests} | {} | {silently_short} | {not_retryable} | {hung} | \
             {broken_openly} | {} |",
            drill.name, drill.about, verdict.lost, verdict.tried_again
        );
        for example in &verdict.examples {
            eprintln!("faults: {}: {example}", drill.name);
        }
        eprintln!("faults: {}: {:?}", drill.name, verdict.ends);
    }
    let mut figures =
        vec![measure("gateway.lost_requests", lost as f64, "requests", Op::Exactly, 0.0)];
    if !frees.is_empty() {
        let [p50, p99, most] = [0.5, 0.99, 1.0].map(|share| 1e3 * quantile(&mut frees, share));
        let _ = writeln!(
            text,
            "\nFrom the moment a client hung up to the free slot in its engine, {} times: p50 {p50:.0} \
             ms, p99 {p99:.0} ms, most {most:.0} ms.",
            frees.len(),
        );
        figures.push(measure("gateway.cancel_to_free_p99_ms", p99, "ms", Op::AtMost, 250.0));
    }
    Ok(Measured { text, figures })
}

fn skipped(reason: &str) -> Measured {
    Measured { text: format!("Skipped: {reason}."), figures: Vec::new() }
}

/// Plays one drill; says what its history shows, and how long slots took to be free.
fn play(bench: &mut Bench, drill: &Drill, folder: &Path, seed: u64) -> Result<(Verdict, Vec<f64>)> {
    let mut world = World::start(bench, folder, drill.rules, drill.proxies, seed)?;
    let history = folder.join("history.jsonl");
    let seconds = if bench.quick { 12 } else { 20 };
    let load = format!(
        "--stream --connections {STREAMS} --seconds {seconds} --ramp-seconds 1 --seed {seed} \
         --deadline-seconds {DEADLINE_SECONDS} --history {} {}",
        history.display(),
        drill.load
    );
    let (load, targets) = (words(&load), world.gateway_addresses.clone());
    let bench = &*bench;
    let report = std::thread::scope(|scope| -> Result<_> {
        let asking = scope.spawn(|| bench.load(&targets, &load));
        let acted = (drill.act)(&mut world);
        let report = asking.join().map_err(|_| anyhow::anyhow!("the load panicked"))?;
        acted?;
        report
    })?;
    let mut check = Command::new(bench.program("proving-check"));
    let verdict: Verdict = serde_json::from_str(&process::read(check.arg(&history))?)?;
    ensure!(
        verdict.requests == report.answered + report.otherwise.values().sum::<u64>(),
        "the history has {} requests, the load counted others: {report:?}",
        verdict.requests
    );
    let lines: Vec<Line> = std::fs::read_to_string(&history)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let whole = verdict.ends.get("whole").copied().unwrap_or(0);
    ensure!(2 * whole > verdict.requests, "most requests were not answered: {:?}", verdict.ends);
    let felt = match drill.bite {
        Bite::Streams => verdict.broken_openly > 0,
        Bite::Proxies => world.hit() > 0,
        Bite::Habit(habit) => lines.iter().any(|line| line.habit == habit),
        Bite::Restarts => world.restarted == 2,
    };
    ensure!(felt, "the fault was not felt, so that this proves nothing: {:?}", verdict.ends);
    Ok((verdict, frees(&world, &lines)?))
}

/// Seconds from each hang-up to the free slot, by the clients' clock and the engines'.
fn frees(world: &World, lines: &[Line]) -> Result<Vec<f64>> {
    let mut gone = BTreeMap::new();
    for line in lines.iter().filter(|line| line.end == "cancelled") {
        gone.insert(format!("proving-{:016x}", line.number), line.ended_unix);
    }
    let mut frees = Vec::new();
    for (began_unix, records) in world.engine_logs()? {
        for record in &records {
            let Some(at) = record["request_id"].as_str().and_then(|id| gone.get(id)) else {
                continue;
            };
            let ended = began_unix + record["ended"].as_f64().unwrap_or(0.0) / SPEED;
            // One that was done before its client left needed no freeing.
            if record["outcome"] != "finished" || ended > *at {
                frees.push((ended - at).max(0.0));
            }
        }
    }
    Ok(frees)
}
