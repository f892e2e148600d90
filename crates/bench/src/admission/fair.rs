//! Nine callers chat, a tenth floods with long prompts: what the nine feel of it, here and with
//! routers that know no callers.
//!
//! One run per way through: the flood alone, then the nine alone, then both. In this order, because
//! engines that were asked for too much by both need long to work it off.

use super::report::{Account, Report};
use super::rig::{Kind, Rig, keys, model, several};
use crate::figures::Op;
use crate::page::{Measured, measure};
use crate::programs::running::{Cores, Running};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

const ENGINES: usize = 8;
const NINE: usize = 9;
const MODEL: &str = "chat";

/// Of each of the nine. A turn brings some 480 new tokens, and an engine reads 21,000 a second: the
/// nine use 30 % of eight engines.
const RATE: f64 = 11.0;

/// Requests of the flood at once: eight for each engine.
const FLOOD: usize = 64;

/// Lengths of the phases, in seconds. After a change of load comes a pause that is not counted.
struct Times {
    pause: usize,
    flood: usize,
    alone: usize,
    with: usize,
}

impl Times {
    const FULL: Self = Self { pause: 15, flood: 30, alone: 60, with: 90 };
    const QUICK: Self = Self { pause: 8, flood: 8, alone: 15, with: 20 };

    const fn flood(&self) -> Range<usize> {
        self.pause..self.pause + self.flood
    }

    const fn alone(&self) -> Range<usize> {
        let from = self.flood().end + self.pause;
        from..from + self.alone
    }

    const fn with(&self) -> Range<usize> {
        let from = self.alone().end + self.pause;
        from..from + self.with
    }
}

/// A way from callers to engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Ours,
    Peer(&'static str),
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Ours => "flyball",
            Self::Peer(name) => name,
        }
    }
}

/// What one way gave.
struct Found {
    way: Way,
    alone_p95_ms: f64,
    with_p95_ms: f64,
    /// The worst of the nine, each against itself.
    worst_ratio: f64,
    /// Not answered, of the nine's while there was a flood.
    refused: String,
    flood_tokens: [f64; 2],
    flood_refused: String,
}

impl Found {
    fn ratio(&self) -> f64 {
        self.with_p95_ms / self.alone_p95_ms
    }
}

pub(super) fn measured(rig: &mut Rig, peers: bool) -> Result<Measured> {
    let times = if rig.quick { Times::QUICK } else { Times::FULL };
    let kind = Kind::LARGE;
    let mut text = format!(
        "{NINE} callers chat at {RATE} requests/s each, in conversations of five turns of 600 to \
         3,000 tokens, with answers of 100; one keeps {FLOOD} unique prompts of 16,000 tokens in the \
         air. {ENGINES} emulated engines ({} on {} {}), two gateways or routers; peers route by \
         `cache_aware`. The nine are counted for {} s alone and \
         for {} s with the flood.\n\n\
         | Way | TTFT p95 of the nine alone | with the flood | ratio | worst of the nine | the nine's \
         refused and failed | flood, tokens/s alone | with the nine | its refused |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        kind.model, kind.tensor, kind.gpu, times.alone, times.with
    );
    let mut figures = Vec::new();
    let others = ["vllm-router", "sglang-router"].map(Way::Peer);
    for way in [Way::Ours].into_iter().chain(others.into_iter().filter(|_| peers)) {
        eprintln!("fair: {}", way.name());
        let found = match (way, run(rig, way, &times)) {
            (_, Ok(found)) => found,
            (Way::Ours, Err(error)) => return Err(error),
            (Way::Peer(name), Err(error)) => {
                let _ = writeln!(text, "| {name} | skipped: {error:#} | | | | | | | |");
                continue;
            }
        };
        line(&mut text, &found);
        if way == Way::Ours {
            let name = "admission.fair_p95_ratio";
            figures.push(measure(name, found.ratio(), "ratio", Op::AtMost, 1.25));
        }
    }
    Ok(Measured { text, figures })
}

fn line(text: &mut String, found: &Found) {
    let [alone, with] = found.flood_tokens;
    let _ = writeln!(
        text,
        "| {} | {:.0} ms | {:.0} ms | {:.2} | {:.2} | {} | {alone:.0} | {with:.0} ({:.0} %) | {} |",
        found.way.name(),
        found.alone_p95_ms,
        found.with_p95_ms,
        found.ratio(),
        found.worst_ratio,
        found.refused,
        100.0 * with / alone.max(1.0),
        found.flood_refused
    );
}

fn run(rig: &mut Rig, way: Way, times: &Times) -> Result<Found> {
    let engines = rig.engines(&Kind::LARGE, MODEL, ENGINES)?;
    let mut names = several("chat", NINE);
    names.push("flood".to_owned());
    let mut doors = Vec::new();
    let mut targets = Vec::new();
    for number in 1..=2 {
        let (running, listen) = match way {
            Way::Ours => {
                let settings = keys(&names) + &model(MODEL, &engines.addresses, "queue_ms = 30000");
                let gateway = rig.gateway(&format!("fair-gateway-{number}"), &settings)?;
                (gateway.running, gateway.listen)
            }
            Way::Peer(name) => router(rig, name, number, &engines.addresses)?,
        };
        doors.push(running);
        targets.push(listen);
    }
    let plan = plan(rig.seed, &targets, times);
    let report = rig.callers(&format!("fair-{}", way.name()), &plan)?;
    judged(way, times, &report)
}

fn router(
    rig: &mut Rig,
    name: &str,
    number: usize,
    engines: &[SocketAddr],
) -> Result<(Running, SocketAddr)> {
    let (listen, spare) = (rig.ports.next()?, rig.ports.next()?);
    let command = rig.peers.router(name, listen, spare, "cache_aware", engines)?;
    let name = format!("fair-{name}-{number}");
    let mut running = Running::start(&name, &command, Cores::All, &rig.folder)?;
    running.ready(listen, "/v1/models", Duration::from_secs(120))?;
    Ok((running, listen))
}

fn plan(seed: u64, targets: &[SocketAddr], times: &Times) -> Value {
    let nine = several("chat", NINE).into_iter().map(|name| {
        json!({
            "name": name, "key": name, "group": "nine", "model": MODEL, "rate": RATE,
            "from_seconds": times.flood().end,
            "prompt_tokens": [600, 1080], "output_tokens": [100, 100],
            "conversations": {"open": 40, "turns": 5, "grow_tokens": 480, "shared_tokens": 120},
        })
    });
    let flood = |name: &str, from: usize, until: usize| {
        json!({
            "name": name, "key": "flood", "model": MODEL, "concurrency": FLOOD,
            "from_seconds": from, "until_seconds": until, "prompt_tokens": [16_000, 16_000],
            "output_tokens": [32, 32],
        })
    };
    let floods = [
        flood("flood-alone", 0, times.flood().end),
        flood("flood", times.alone().end, times.with().end),
    ];
    let window = |range: Range<usize>| json!([range.start, range.end]);
    json!({
        "targets": targets, "seconds": times.with().end, "seed": seed,
        "windows": {"alone": window(times.alone()), "with": window(times.with())},
        "callers": nine.chain(floods).collect::<Vec<_>>(),
    })
}

fn judged(way: Way, times: &Times, report: &Report) -> Result<Found> {
    let nine = report.groups.get("nine").context("no group of nine")?;
    let (alone, with) = (nine.of("alone"), nine.of("with"));
    ensure!(
        alone.answered * 100 >= alone.sent * 99 && alone.first_token.count > 0,
        "the nine alone were answered {} of {} times ({})",
        alone.answered,
        alone.sent,
        alone.refusals()
    );
    let one = |account: &Account| {
        let p95 = |window| account.of(window).first_token.p95_ms;
        p95("with") / p95("alone")
    };
    let own = report.callers.iter().filter(|account| account.name.starts_with("chat"));
    let worst_ratio = own.map(one).fold(0.0, f64::max);
    let flood = |name: &str| {
        let found = report.callers.iter().find(|account| account.name == name);
        found.with_context(|| format!("no caller {name}"))
    };
    Ok(Found {
        way,
        alone_p95_ms: alone.first_token.p95_ms,
        with_p95_ms: with.first_token.p95_ms,
        worst_ratio,
        refused: with.refusals(),
        flood_tokens: [
            flood("flood-alone")?.good_tokens_per_second(times.flood()),
            flood("flood")?.good_tokens_per_second(times.with()),
        ],
        flood_refused: flood("flood")?.whole.refusals(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_each_other_with_pauses_between() {
        for times in [Times::FULL, Times::QUICK] {
            assert_eq!(times.flood().start, times.pause);
            assert_eq!(times.alone().start, times.flood().end + times.pause);
            assert_eq!(times.with().start, times.alone().end + times.pause);
        }
    }
}
