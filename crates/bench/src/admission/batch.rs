//! Interactive callers alone, beside batch work of the class batch, and beside the same work sent as any other: what the
//! interactive ones feel of it, and how much batch work is done.
//!
//! One run, one gateway, the same engines: the three follow each other with pauses in which what is under way ends.

use super::report::{Account, Counts, Report};
use super::rig::{Kind, Rig, keys, model, several};
use crate::figures::Op;
use crate::page::{Measured, measure};
use crate::programs::page::total;
use crate::programs::running::get;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::SocketAddr;
use std::ops::Range;

const MODEL: &str = "chat";
const ENGINES: usize = 2;
const CALLERS: usize = 4;

/// As many as an engine bears at once: few enough that two cores carry the streams of all.
const KIND: Kind = Kind { max_running: 64, ..Kind::LARGE };

/// Batch requests at once: twice as many as both engines bear, so that some always wait.
const BATCH: usize = 256;

/// Requests a second of each interactive caller, and in a burst.
const RATES: [f64; 2] = [1.0, 5.0];

/// Of each 15 seconds, two are a burst.
const STAGES: [f64; 2] = [13.0, 2.0];

/// Lengths in seconds. What is under way when an arm ends has the pause to end.
struct Times {
    pause: usize,
    arm: usize,
}

const FULL: Times = Times { pause: 30, arm: 300 };
const QUICK: Times = Times { pause: 15, arm: 45 };

const ARMS: [&str; 3] = ["alone", "batch", "ungated"];

impl Times {
    const fn arm(&self, place: usize) -> Range<usize> {
        let from = self.pause + place * (self.arm + self.pause);
        from..from + self.arm
    }

    const fn end(&self) -> usize {
        self.arm(ARMS.len() - 1).end
    }
}

/// What one arm gave.
struct Arm {
    name: &'static str,
    interactive: Counts,
    /// Tokens of prompts and answers of batch requests that ended in it, per second.
    batch_tokens: f64,
    batch: String,
}

pub(super) fn measured(rig: &mut Rig) -> Result<Measured> {
    let times = if rig.quick { QUICK } else { FULL };
    let engines = rig.engines(&KIND, MODEL, ENGINES)?;
    let mut names = several("interactive", CALLERS);
    names.push("batch".to_owned());
    let settings = keys(&names) + &model(MODEL, &engines.addresses, "queue_ms = 60000");
    let gateway = rig.gateway("batch-gateway", &settings)?;
    let report = rig.callers("batch", &plan(rig.seed, gateway.listen, &times))?;
    let preempted = total(&get(gateway.admin, "/metrics")?, "flyball_gateway_preempted_total");
    let sample = gateway.sample()?;
    ensure!(sample.invariants == 0.0, "broken invariants: {}", sample.invariants);
    let arms = arms(&report, &times)?;
    let [alone, batch, ungated] = &arms;
    let ttft = batch.interactive.first_token.p99_ms / alone.interactive.first_token.p99_ms;
    let throughput = batch.batch_tokens / ungated.batch_tokens;
    let figures = vec![
        measure("tenants.batch_ttft_ratio", ttft, "ratio", Op::AtMost, 1.1),
        measure("tenants.batch_throughput_ratio", throughput, "ratio", Op::AtLeast, 0.85),
    ];
    Ok(Measured { text: text(&arms, &times, preempted.unwrap_or(0.0)), figures })
}

fn text(arms: &[Arm; 3], times: &Times, preempted: f64) -> String {
    let [[rate, burst], [quiet, long]] = [RATES, STAGES];
    let mut text = format!(
        "{CALLERS} interactive callers at {rate} requests/s each, and {burst} for {long} of every {} s, in conversations of \
         five turns of 600 to 3,000 tokens with answers of 100; {BATCH} batch requests at once, streams with unique prompts \
         of 400 to 800 tokens and answers of 200 to 400. {ENGINES} emulated engines ({} on {} {}, {} at once), one \
         gateway. `alone` is without batch, `batch` with all batch requests of the class batch (`service_tier: \"flex\"`), \
         `ungated` with the same requests sent without: as urgent as the interactive ones. {} s each, in one run, in this \
         order, with pauses of {} s. The ratio of first tokens is p99 of `batch` over `alone`; that of throughput is batch tokens \
         of `batch` over `ungated`, both beside the interactive callers.\n\n\
         | Arm | interactive answered | TTFT p50 | p95 | p99 | refused and failed | batch tokens/s | batch refused and failed |\n\
         |---|---|---|---|---|---|---|---|\n",
        quiet + long,
        KIND.model,
        KIND.tensor,
        KIND.gpu,
        KIND.max_running,
        times.arm,
        times.pause
    );
    for arm in arms {
        let Counts { answered, sent, first_token, .. } = &arm.interactive;
        let _ = writeln!(
            text,
            "| {} | {answered} of {sent} | {:.0} ms | {:.0} ms | {:.0} ms | {} | {:.0} | {} |",
            arm.name,
            first_token.p50_ms,
            first_token.p95_ms,
            first_token.p99_ms,
            arm.interactive.refusals(),
            arm.batch_tokens,
            arm.batch
        );
    }
    let _ = writeln!(
        text,
        "\nBatch requests made room {preempted:.0} times; all of them were continued or began again."
    );
    text
}

fn plan(seed: u64, target: SocketAddr, times: &Times) -> Value {
    let cycle =
        STAGES.iter().zip(RATES).map(|(seconds, rate)| json!({"seconds": seconds, "rate": rate}));
    let cycle: Vec<Value> = cycle.collect();
    let cycles = times.end() as f64 / STAGES.iter().sum::<f64>();
    let stages: Vec<Value> =
        cycle.iter().cycle().take(2 * cycles.ceil() as usize).cloned().collect();
    let interactive = several("interactive", CALLERS).into_iter().map(|name| {
        json!({
            "name": name, "key": name, "group": "interactive", "model": MODEL, "stages": stages,
            "prompt_tokens": [600, 1080], "output_tokens": [100, 100],
            "conversations": {"open": 40, "turns": 5, "grow_tokens": 480, "shared_tokens": 120},
        })
    });
    let batch = |place: usize, fields: Value| {
        let Range { start, end } = times.arm(place);
        json!({
            "name": ARMS[place], "key": "batch", "model": MODEL, "concurrency": BATCH, "fields": fields,
            // Half of the pause before it, so that it is under way when it counts.
            "from_seconds": start - times.pause / 2, "until_seconds": end,
            "prompt_tokens": [400, 800], "output_tokens": [200, 400],
        })
    };
    let batches = [batch(1, json!({"service_tier": "flex"})), batch(2, json!({}))];
    let windows = (0..ARMS.len()).map(|place| {
        let Range { start, end } = times.arm(place);
        (ARMS[place].to_owned(), json!([start, end]))
    });
    json!({
        "targets": [target], "seconds": times.end(), "seed": seed, "deadline_seconds": 600,
        "windows": windows.collect::<serde_json::Map<_, _>>(),
        "callers": interactive.chain(batches).collect::<Vec<_>>(),
    })
}

fn arms(report: &Report, times: &Times) -> Result<[Arm; 3]> {
    let interactive = report.groups.get("interactive").context("no interactive callers")?;
    let batch = |name: &str| report.callers.iter().find(|account| account.name == name);
    let arm = |place: usize| {
        let name = ARMS[place];
        let batch: Option<&Account> = batch(name);
        let tokens = batch.map_or(0.0, |batch| batch.good_tokens_per_second(times.arm(place)));
        let batch = batch.map_or_else(|| "-".to_owned(), |batch| batch.whole.refusals());
        Arm { name, interactive: interactive.of(name), batch_tokens: tokens, batch }
    };
    let arms = [0, 1, 2].map(arm);
    for Arm { name, interactive, .. } in &arms[..2] {
        ensure!(
            interactive.answered * 100 >= interactive.sent * 99
                && interactive.first_token.count > 0,
            "{name}: interactive callers were answered {} of {} times ({})",
            interactive.answered,
            interactive.sent,
            interactive.refusals()
        );
    }
    ensure!(arms[2].batch_tokens > 0.0, "no batch work was done without a gate");
    Ok(arms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_follow_each_other_with_pauses_between() {
        for times in [FULL, QUICK] {
            assert_eq!(times.arm(0).start, times.pause);
            assert_eq!(times.arm(1).start, times.arm(0).end + times.pause);
            assert_eq!(times.end(), times.arm(2).end);
        }
    }
}
