//! Everything at once for an hour: chat, long prompts, whole answers and kept ones, a split with a
//! mirror, shadow policies, half of the clients hanging up, and a fault a minute. Memory must stay
//! flat, and nothing may be left over when the load has ended.
//!
//! `world` starts what takes part, `faults` breaks it minute by minute. The series is written anew
//! every minute, so that a run that is ended early has its numbers too.

mod faults;
mod world;

use super::report::Report;
use super::rig::{Rig, several};
use super::watch::GatewaySample;
use crate::figures::Op;
use crate::page::{Measured, measure};
use crate::programs::kernel;
use anyhow::{Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use world::World;

/// Between two samples.
const EVERY: Duration = Duration::from_secs(10);

/// Memory counts from here: until then pools, tables and the allocator's own stores fill. A shorter
/// run counts its second half.
const WARM_SECONDS: f64 = 600.0;

/// From the load's end to the look at what is left.
const REST: Duration = Duration::from_secs(5);

/// What a gateway was at a moment.
#[derive(Clone, Debug, Serialize)]
struct Sample {
    seconds: f64,
    gateway: usize,
    resident_bytes: u64,
    open_files: usize,
    cpu_seconds: f64,
    state: Option<GatewaySample>,
}

pub(super) fn measured(rig: &mut Rig, minutes: f64) -> Result<Measured> {
    let seconds = minutes * 60.0;
    let mut world = World::start(rig, seconds)?;
    let plan = plan(rig.seed, &world, seconds);
    let file = rig.folder.join("soak-series.json");
    eprintln!("soak: {minutes} minutes; the series is in {}", file.display());
    let rig = &*rig;
    let (report, samples) = std::thread::scope(|scope| -> Result<_> {
        let asking = scope.spawn(|| rig.callers("soak", &plan));
        let samples = sampled(rig, &mut world, &|| asking.is_finished(), &file);
        let report = asking.join().map_err(|_| anyhow::anyhow!("the callers panicked"))??;
        Ok((report, samples?))
    })?;
    world.mend(rig)?;
    std::thread::sleep(REST);
    let leaks = leaks(&world)?;
    write(&file, &samples)?;
    judged(&world, &report, &samples, &leaks, minutes)
}

/// Breaks and mends by the minute and looks every ten seconds, until the load is over.
fn sampled(
    rig: &Rig,
    world: &mut World,
    over: &dyn Fn() -> bool,
    file: &Path,
) -> Result<Vec<Sample>> {
    let began = Instant::now();
    let (mut samples, mut printed, mut next) = (Vec::new(), 0, began);
    while !over() {
        world.follow(rig, began.elapsed())?;
        if Instant::now() >= next {
            next += EVERY;
            sample(world, began, &mut samples)?;
        }
        let minute = began.elapsed().as_secs() / 60;
        if minute > printed {
            printed = minute;
            progress(world, minute, &samples);
            write(file, &samples)?;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    sample(world, began, &mut samples)?;
    Ok(samples)
}

fn sample(world: &World, began: Instant, samples: &mut Vec<Sample>) -> Result<()> {
    for (index, gateway) in world.gateways.iter().enumerate() {
        let pid = gateway.running.pid();
        samples.push(Sample {
            seconds: began.elapsed().as_secs_f64(),
            gateway: index,
            resident_bytes: kernel::resident_memory(pid)?,
            open_files: kernel::open_files(pid),
            cpu_seconds: kernel::cpu(pid)?.scheduler_nanos as f64 / 1e9,
            state: gateway.sample().ok(),
        });
    }
    Ok(())
}

fn progress(world: &World, minute: u64, samples: &[Sample]) {
    let last = samples.iter().rev().take(world.gateways.len()).rev();
    let words: Vec<String> = last
        .map(|sample| {
            let flight = sample.state.map_or("?".to_owned(), |state| state.in_flight.to_string());
            let megabytes = sample.resident_bytes as f64 / 1e6;
            format!("{megabytes:.1} MB, {flight} in flight, {} files", sample.open_files)
        })
        .collect();
    eprintln!("soak: minute {minute}: {}; {}", words.join("; "), world.broken());
}

fn write(file: &Path, samples: &[Sample]) -> Result<()> {
    Ok(std::fs::write(file, serde_json::to_string(samples)?)?)
}

fn plan(seed: u64, world: &World, seconds: f64) -> Value {
    // Half of all: some who mean to leave are answered before.
    let cancels = json!({"early": 0.3, "within_ms": 250, "late": 0.35});
    let callers = json!([
        {"name": "chat-1", "key": "chat-1", "model": "chat", "rate": 20, "prompt_tokens": [200, 900],
         "output_tokens": [20, 80], "cancels": cancels,
         "conversations": {"open": 40, "turns": 6, "grow_tokens": 200, "shared_tokens": 100}},
        {"name": "chat-2", "key": "chat-2", "model": "chat", "rate": 10, "prompt_tokens": [50, 400],
         "output_tokens": [10, 60], "streams": 0.5, "cancels": cancels},
        {"name": "long", "key": "long", "model": "chat", "rate": 0.8,
         "prompt_tokens": [6000, 12000], "output_tokens": [20, 60], "streams": 0.7,
         "cancels": cancels},
        {"name": "again", "key": "again", "model": "chat", "rate": 10, "prompt_tokens": [50, 300],
         "output_tokens": [20, 20], "streams": 0.3, "distinct": 200, "cancels": cancels,
         "fields": {"temperature": 0}},
        {"name": "canary", "key": "canary", "model": "next", "rate": 6, "prompt_tokens": [50, 400],
         "output_tokens": [10, 40], "streams": 0.5, "cancels": cancels,
         "sessions": {"count": 300}},
    ]);
    let targets: Vec<_> = world.gateways.iter().map(|gateway| gateway.listen).collect();
    json!({
        "targets": targets, "seconds": seconds, "seed": seed, "deadline_seconds": 90,
        "callers": callers,
    })
}

/// Names of all callers.
fn names() -> Vec<String> {
    let mut names = several("chat", 2);
    names.extend(["long", "again", "canary"].map(str::to_owned));
    names
}

/// What is left over, by place.
fn leaks(world: &World) -> Result<Vec<String>> {
    let mut leaks = Vec::new();
    for (index, gateway) in world.gateways.iter().enumerate() {
        let state = gateway.sample()?;
        for (name, count) in state.left_over() {
            leaks.push(format!("gateway {index}: {count} {name}"));
        }
        if state.waiting.is_none() {
            leaks.push(format!("gateway {index}: /state does not tell who waits"));
        }
    }
    for (index, requests) in world.under_way()?.into_iter().enumerate() {
        if requests > 0 {
            leaks.push(format!("engine {index}: {requests} requests"));
        }
    }
    Ok(leaks)
}

fn judged(
    world: &World,
    report: &Report,
    samples: &[Sample],
    leaks: &[String],
    minutes: f64,
) -> Result<Measured> {
    let whole = &report.all.whole;
    ensure!(whole.answered > 0, "nobody was answered: {}", whole.refusals());
    let mut text = format!(
        "{minutes} minutes, {} requests through two gateways to four engines, a canary and a \
         mirror; {} answered, {} hung up by their clients ({:.0} %); refused and failed: {}. {}\n\n\
         | Gateway | MB at first | when warm | at the end | MB/hour | open files, most | at the end | CPU |\n\
         |---|---|---|---|---|---|---|---|\n",
        whole.sent,
        whole.answered,
        whole.cancelled,
        100.0 * whole.cancelled as f64 / whole.sent.max(1) as f64,
        whole.refusals(),
        world.broken(),
    );
    let warm = WARM_SECONDS.min(minutes * 30.0);
    let mut worst = f64::NEG_INFINITY;
    for gateway in 0..world.gateways.len() {
        let own: Vec<&Sample> = samples.iter().filter(|one| one.gateway == gateway).collect();
        let points = own.iter().filter(|one| one.seconds >= warm);
        let points: Vec<(f64, f64)> =
            points.map(|one| (one.seconds / 3600.0, one.resident_bytes as f64 / 1e6)).collect();
        let slope = slope(&points);
        worst = worst.max(slope);
        let (Some(first), Some(last)) = (own.first(), own.last()) else { continue };
        let most = own.iter().map(|one| one.open_files).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "| {gateway} | {:.1} | {:.1} | {:.1} | {slope:+.2} | {most} | {} | {:.1} % |",
            first.resident_bytes as f64 / 1e6,
            points.first().map_or(f64::NAN, |point| point.1),
            last.resident_bytes as f64 / 1e6,
            last.open_files,
            100.0 * last.cpu_seconds / last.seconds,
        );
    }
    let left = if leaks.is_empty() { "nothing".to_owned() } else { leaks.join("; ") };
    let _ = writeln!(
        text,
        "\nThe slope is of least squares from {:.0} minutes on. {} s after the load's end there was \
         left over: {left}.",
        warm / 60.0,
        REST.as_secs(),
    );
    Ok(Measured {
        text,
        figures: vec![
            measure("admission.soak_mb_per_hour", worst, "MB/h", Op::AtMost, 5.0),
            measure("admission.leaks", leaks.len() as f64, "leaks", Op::Exactly, 0.0),
        ],
    })
}

/// The rise of the straight line through points, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let across: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    across / spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_the_line_and_not_of_its_noise() {
        let noisy = |at: i32| f64::from(at) / 10.0 * 3.0 + f64::from(at % 2) - 0.5;
        let points: Vec<(f64, f64)> =
            (0..100).map(|at| (f64::from(at) / 10.0, noisy(at))).collect();
        assert!((slope(&points) - 3.0).abs() < 0.05, "{}", slope(&points));
        assert_eq!(slope(&[(0.0, 5.0), (1.0, 5.0), (2.0, 5.0)]), 0.0);
    }
}
