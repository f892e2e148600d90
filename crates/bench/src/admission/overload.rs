//! Three times as many requests as the engines bear, from ten callers alike: how much of the
//! engines' work still reaches somebody, how soon the others are told no, and how soon it is over.

use super::report::{Account, Report};
use super::rig::{Gateway, Kind, Rig, keys, model, several};
use super::watch::{Most, Watch};
use crate::figures::Op;
use crate::page::{Measured, measure};
use anyhow::{Result, ensure};
use flyball_figures::quantile::quantile;
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::SocketAddr;
use std::ops::Range;

const ENGINES: usize = 4;
const CALLERS: usize = 10;
const MODEL: &str = "chat";
const TIMES_CAPACITY: f64 = 3.0;

/// The longest wait for a turn, and by when an answer must be whole to be worth something: after
/// that wait comes an answer of at most 96 tokens, which a full engine gives in 6 s.
const QUEUE_MS: u32 = 5_000;
const DEADLINE_MS: u32 = 15_000;

/// Engines with a batch that two cores can carry: 4 x 32 streams at once.
const KIND: Kind = Kind { max_running: 32, ..Kind::LARGE };

/// Lengths, in seconds.
struct Times {
    capacity: usize,
    calm: usize,
    flood: usize,
    after: usize,
}

impl Times {
    const FULL: Self = Self { capacity: 45, calm: 60, flood: 600, after: 60 };
    const QUICK: Self = Self { capacity: 15, calm: 15, flood: 30, after: 25 };

    /// A load that has just begun is not counted.
    const SETTLE: usize = 5;

    const fn calm(&self) -> Range<usize> {
        Self::SETTLE..self.calm
    }

    const fn flood(&self) -> Range<usize> {
        self.calm + Self::SETTLE..self.flood_end()
    }

    const fn flood_end(&self) -> usize {
        self.calm + self.flood
    }
}

/// What engines bear.
struct Capacity {
    requests_per_second: f64,
    tokens_per_second: f64,
}

pub(super) fn measured(rig: &mut Rig) -> Result<Measured> {
    let times = if rig.quick { Times::QUICK } else { Times::FULL };
    let engines = rig.engines(&KIND, MODEL, ENGINES)?;
    let names = several("caller", CALLERS);
    let more = format!("queue_ms = {QUEUE_MS}");
    let settings = keys(&names) + &model(MODEL, &engines.addresses, &more);
    let gateway = rig.gateway("overload-gateway", &settings)?;
    eprintln!("overload: what the engines bear");
    let direct = capacity(rig, "direct", &engines.addresses, &times)?;
    let through = capacity(rig, "through", &[gateway.listen], &times)?;
    // The better of the two ways is what could be had.
    let best =
        if direct.tokens_per_second > through.tokens_per_second { &direct } else { &through };
    eprintln!("overload: {TIMES_CAPACITY} times that for {} s", times.flood);
    let watch = Watch::start(gateway.admin);
    let plan = flood(rig.seed, &gateway, best.requests_per_second, &times);
    let report = rig.callers("overload", &plan)?;
    let most = watch.most()?;
    let mut text = format!(
        "{CALLERS} callers with equal weights and unique prompts of 500 to 1,500 tokens, answers of \
         32 to 96; {ENGINES} emulated engines ({} on {} {}, {} at once), one gateway. Asked one by \
         one in a closed loop the engines bear {:.1} requests and {:.0} tokens a second directly, \
         {:.1} and {:.0} through the gateway. Then {} s at half of that, {} s at {TIMES_CAPACITY} \
         times, and half again. An answer is good if it is whole {DEADLINE_MS} ms after it was due.\n\n",
        KIND.model,
        KIND.tensor,
        KIND.gpu,
        KIND.max_running,
        direct.requests_per_second,
        direct.tokens_per_second,
        through.requests_per_second,
        through.tokens_per_second,
        times.calm,
        times.flood,
    );
    let figures = judged(&mut text, &report, best, &times, most)?;
    Ok(Measured { text, figures })
}

/// A closed loop with twice as many requests as the engines take at once.
fn capacity(rig: &Rig, way: &str, targets: &[SocketAddr], times: &Times) -> Result<Capacity> {
    let each = 2 * ENGINES * KIND.max_running as usize / CALLERS;
    let callers = several("caller", CALLERS).into_iter().map(|name| {
        json!({
            "name": name, "key": name, "model": MODEL, "concurrency": each,
            "prompt_tokens": [500, 1500], "output_tokens": [32, 96],
        })
    });
    let plan = json!({
        "targets": targets, "seconds": times.capacity, "seed": rig.seed + 100,
        "callers": callers.collect::<Vec<_>>(),
    });
    let report = rig.callers(&format!("capacity-{way}"), &plan)?;
    let counted = Times::SETTLE..times.capacity;
    let tokens_per_second = report.all.good_tokens_per_second(counted);
    let counts = &report.all.whole;
    ensure!(counts.answered > 0, "nobody was answered: {}", counts.refusals());
    let tokens = (counts.prompt_tokens + counts.output_tokens) as f64 / counts.answered as f64;
    Ok(Capacity { requests_per_second: tokens_per_second / tokens, tokens_per_second })
}

fn flood(seed: u64, gateway: &Gateway, capacity: f64, times: &Times) -> Value {
    let rate = |share: f64| share * capacity / CALLERS as f64;
    let stage = |seconds: usize, share: f64| json!({"seconds": seconds, "rate": rate(share)});
    let stages =
        [stage(times.calm, 0.5), stage(times.flood, TIMES_CAPACITY), stage(times.after, 0.5)];
    let callers = several("caller", CALLERS).into_iter().map(|name| {
        json!({
            "name": name, "key": name, "model": MODEL, "stages": stages,
            "prompt_tokens": [500, 1500], "output_tokens": [32, 96],
            "good": {"whole_ms": DEADLINE_MS},
        })
    });
    let window = |range: Range<usize>| json!([range.start, range.end]);
    json!({
        "targets": [gateway.listen], "seconds": times.flood_end() + times.after, "seed": seed,
        "windows": {"calm": window(times.calm()), "flood": window(times.flood())},
        "callers": callers.collect::<Vec<_>>(),
    })
}

fn judged(
    text: &mut String,
    report: &Report,
    capacity: &Capacity,
    times: &Times,
    most: Most,
) -> Result<Vec<crate::page::Measure>> {
    let all = &report.all;
    ensure!(all.unsent == 0, "{} requests could not be sent at all", all.unsent);
    let good = all.good_tokens_per_second(times.flood());
    let percent = 100.0 * good / capacity.tokens_per_second;
    let (calm, flood) = (all.of("calm"), all.of("flood"));
    let recovery = recovery(all, times);
    let _ = writeln!(
        text,
        "| Load | asked | answered | good | TTFT p50 | p95 | refused and failed | refused after, p50 | p99 |\n\
         |---|---|---|---|---|---|---|---|---|"
    );
    for (name, counts) in [("half", &calm), ("three times", &flood)] {
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {:.0} ms | {:.0} ms | {} | {:.1} ms | {:.1} ms |",
            counts.sent,
            counts.answered,
            counts.good,
            counts.first_token.p50_ms,
            counts.first_token.p95_ms,
            counts.refusals(),
            counts.shed_after.p50_ms,
            counts.shed_after.p99_ms
        );
    }
    let answered = report.callers.iter().map(|account| account.of("flood").answered);
    let (least, largest) = (answered.clone().min().unwrap_or(0), answered.max().unwrap_or(0));
    let waiting = most.waiting.map_or("not told".to_owned(), |count| count.to_string());
    let _ = writeln!(
        text,
        "\nGood tokens: {good:.0} a second, {percent:.1} % of what the engines bear. Answered per \
         caller: {least} to {largest}. Most requests that waited: {waiting}; in the gateway: {}; \
         bytes held: {} ({} looks, {} without an answer). {}",
        most.in_flight,
        most.held_bytes,
        most.samples,
        most.blind,
        match recovery {
            Some(seconds) => format!("The first tokens were as before {seconds} s after."),
            None => format!("The first tokens were not as before within {} s.", times.after),
        }
    );
    let after = recovery.unwrap_or(times.after) as f64;
    let mut figures = vec![
        measure("admission.goodput_pct", percent, "%", Op::AtLeast, 95.0),
        measure("admission.recovery_s", after, "s", Op::AtMost, 10.0),
    ];
    if flood.refused() > 0 {
        let shed = flood.shed_after.p99_ms;
        figures.push(measure("admission.shed_ms", shed, "ms", Op::AtMost, 50.0));
    } else {
        let _ = writeln!(text, "\nNobody was refused, so that nothing can be said of refusals.");
    }
    Ok(figures)
}

/// Seconds after the load's end from which three seconds in a row have their p95 within 1.25 of what
/// nine of ten seconds had before. A single second has some 20 requests, so that one of ten is far
/// off by chance.
fn recovery(all: &Account, times: &Times) -> Option<usize> {
    let series = &all.series.first_token_p95_ms;
    let at = |second: usize| series.get(second).copied().flatten();
    let mut before: Vec<f64> = times.calm().filter_map(at).collect();
    if before.is_empty() {
        return None;
    }
    let usual = quantile(&mut before, 0.9);
    let end = times.flood_end();
    // A second without a request felt nothing.
    let calm = |second: usize| at(second).is_none_or(|p95| p95 <= 1.25 * usual);
    let mut after = 0..times.after.saturating_sub(2);
    after.find(|second| (0..3).all(|more| calm(end + second + more)))
}

#[cfg(test)]
mod tests {
    use super::super::report::{Counts, Series};
    use super::*;
    use std::collections::BTreeMap;

    fn account(first_token_p95_ms: Vec<Option<f64>>) -> Account {
        Account {
            name: "all".to_owned(),
            whole: Counts::default(),
            windows: BTreeMap::new(),
            series: Series { good_tokens: Vec::new(), first_token_p95_ms },
            unsent: 0,
            models: BTreeMap::new(),
            sessions: 0,
            mixed_sessions: 0,
        }
    }

    #[test]
    fn recovery_counts_from_the_end_of_the_load_and_needs_three_seconds() {
        let times = Times { capacity: 5, calm: 10, flood: 5, after: 10 };
        let before = vec![Some(100.0); 10];
        let flood = vec![Some(5_000.0); 5];
        let after = [900.0, 120.0, 400.0, 110.0, 90.0, 124.0, 100.0, 100.0, 100.0, 100.0];
        let series = [before, flood, after.map(Some).to_vec()].concat();
        assert_eq!(recovery(&account(series), &times), Some(3));
        let never = [vec![Some(100.0); 10], vec![Some(5_000.0); 15]].concat();
        assert_eq!(recovery(&account(never), &times), None);
    }
}
