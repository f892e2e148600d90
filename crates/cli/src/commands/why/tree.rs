//! The same for people: a tree of reasons.

use flyball_core::decision::Bound;
use flyball_core::reason::Reason;
use flyball_resources::model_service::{ChosenLawStatus, ReceiptStatus, SpanStatus, VariantStatus};

use super::answer::{Bounds, Waiting, Why};
use super::numbers::{rate, span};
use crate::commands::decisions::past;
use crate::moment::{ago, clock_and_age, clock_of};
use crate::output::document::tree::flat;
use crate::output::document::{Block, Node};
use crate::output::{Answer, Detail, Document, age, plural};

/// What is not known.
const UNKNOWN: &str = "unknown";

impl Answer for Why {
    const KIND: &'static str = "Why";

    fn view(&self, _: Detail) -> Document {
        view(self)
    }
}

fn view(why: &Why) -> Document {
    let now = why.asked_at.parse().unwrap_or(jiff::Timestamp::MAX);
    let nodes = nodes(why, now);
    let mut document = Document::new();
    document.push(Block::Line(head(why, now)));
    if why.flat {
        // Never wrapped: whoever greps wants the whole line.
        let line = |(path, words): (String, String)| Block::Line(format!("{path}   {words}"));
        document.blocks.extend(flat(&nodes).into_iter().map(line));
    } else {
        document.push(Block::Tree(nodes));
    }
    if !why.earlier.is_empty() {
        document.push(Block::Gap);
        document.push(past(&why.earlier, now, false));
    }
    document
}

fn head(why: &Why, now: jiff::Timestamp) -> String {
    let count = |count: Option<i32>| count.map_or(UNKNOWN.to_owned(), |count| count.to_string());
    let when = why.decision.as_ref().map(|decision| match why.past {
        true => format!(" at {}", clock_and_age(&decision.at, now).replace(')', " ago)")),
        false => format!(" since {}", clock_and_age(&decision.at, now)),
    });
    let ready = if why.past { "were ready" } else { "ready" };
    let desired = if why.past { "were desired" } else { "desired" };
    format!(
        "{}   {} {ready}, {} {desired}{}   {}",
        why.model,
        count(why.ready),
        count(why.wants),
        when.unwrap_or_default(),
        why.mode,
    )
}

fn nodes(why: &Why, now: jiff::Timestamp) -> Vec<Node> {
    let Some(decision) = &why.decision else {
        let mut nodes = trouble(why);
        let (value, note) = match nodes.is_empty() {
            true => ("none yet", "is an operator running? flyball check"),
            false => ("none", "nothing changes until that is corrected"),
        };
        nodes.push(Node::new("decision", value, note));
        return nodes;
    };
    let count = why.wants.map_or(UNKNOWN.to_owned(), |count| count.to_string());
    let desired = format!("desired {count} because");
    let mut nodes = vec![Node::of(desired, decision_nodes(why, decision, now))];
    if !why.past {
        nodes.push(has(why, now));
        nodes.push(price(why));
    }
    if let Some(misses) = &decision.expected_hourly_misses {
        nodes.push(Node::new(
            "misses",
            format!("{} requests/h expected", span(misses)),
            misses.origin.to_lowercase(),
        ));
    }
    if !why.past {
        nodes.push(objectives(why));
        nodes.extend(drains(why));
    }
    nodes.extend(decision.law.as_ref().map(|chosen| law(chosen, now)));
    nodes.push(instead(decision));
    let hint = format!("flyball explain {}", decision.reason);
    nodes.push(Node::new("reason", decision.reason.clone(), hint));
    nodes
}

fn decision_nodes(why: &Why, decision: &ReceiptStatus, now: jiff::Timestamp) -> Vec<Node> {
    let mut nodes = Vec::new();
    if !why.past {
        nodes.extend(demand(why));
        let several = why.variants.len() > 1;
        nodes.extend(why.variants.iter().flat_map(|variant| speed(variant, several)));
    }
    if let Some(bounds) = &why.bounds {
        nodes.push(allowed(bounds, now));
    }
    nodes.push(signals(decision));
    nodes.push(Node::new("winner", decision.bound.clone(), lower(won(decision))));
    let candidates: Vec<String> = decision
        .candidates
        .iter()
        .map(|candidate| format!("{} {}", candidate.bound, candidate.replicas))
        .collect();
    let candidates = if candidates.is_empty() { UNKNOWN.to_owned() } else { candidates.join(", ") };
    nodes.push(Node::new("each", candidates, "what each alone would allow"));
    nodes
}

/// Why the bound that won did. Where nobody knows what a replica carries, it is no signal that is in doubt.
fn won(decision: &ReceiptStatus) -> &'static str {
    if decision.reason == Reason::CapacityUnknown.name() {
        return Reason::CapacityUnknown.summary();
    }
    Bound::from_name(&decision.bound).map_or("", Bound::summary)
}

fn demand(why: &Why) -> Vec<Node> {
    let Some(band) = &why.forecast else {
        return vec![Node::new("demand", UNKNOWN, ""), Node::new("forecast", UNKNOWN, "")];
    };
    let ahead = age(std::time::Duration::from_secs(band.horizon_seconds.unsigned_abs()));
    let chance = match band.quantile_percent.as_str() {
        // Rounded; nothing that comes is certain.
        "100.0" => ">99.9",
        percent => percent,
    };
    vec![
        Node::new("demand", format!("{} replicas now", band.need_now), "including queued work"),
        Node::new(
            "forecast",
            format!("{} replicas at most", band.look_ahead),
            format!("{chance} % quantile, {ahead} ahead"),
        ),
    ]
}

fn speed(variant: &VariantStatus, several: bool) -> Vec<Node> {
    let name = |what: &str| match several {
        true => format!("{what} {}", variant.name),
        false => what.to_owned(),
    };
    let origin = |one: Option<&SpanStatus>| one.map(|span| span.origin.to_lowercase());
    let (reads, writes) = (&variant.prefill_tokens_per_second, &variant.decode_tokens_per_second);
    let capacity = match (reads, writes) {
        (None, None) => Node::new(name("capacity"), UNKNOWN, "of one replica"),
        _ => Node::new(
            name("capacity"),
            format!("prompt {}, output {} tokens/s", rate(reads.as_ref()), rate(writes.as_ref())),
            format!(
                "of one replica, {}",
                origin(reads.as_ref().or(writes.as_ref())).unwrap_or_default()
            ),
        ),
    };
    let start = match &variant.cold_start_seconds {
        None => Node::new(name("start"), UNKNOWN, "no start was measured or stated"),
        Some(start) => {
            let measured = match usize::try_from(variant.starts_measured).unwrap_or(0) {
                0 => start.origin.to_lowercase(),
                count => format!("{} measured", plural(count, "start")),
            };
            Node::new(name("start"), format!("{} s until ready", span(start)), measured)
        }
    };
    vec![capacity, start]
}

fn allowed(bounds: &Bounds, now: jiff::Timestamp) -> Node {
    let sleep = if bounds.may_sleep { ", may sleep" } else { "" };
    let pinned = bounds.pinned.map(|count| format!("a person set {count} (spec.replicas)"));
    let frozen = bounds.frozen_until.as_ref().map(|until| {
        let because = bounds.frozen_because.as_deref().unwrap_or("no reason given");
        format!("frozen until {} UTC: {because}", clock_of(until, now))
    });
    let note: Vec<String> = pinned.into_iter().chain(frozen).collect();
    Node::new("bounds", format!("min {}, max {}{sleep}", bounds.min, bounds.max), note.join("; "))
}

fn signals(decision: &ReceiptStatus) -> Node {
    if decision.signals.is_empty() {
        return Node::new("signals", UNKNOWN, "");
    }
    let doubtful: Vec<String> = decision
        .signals
        .iter()
        .filter(|seen| seen.freshness != "Fresh")
        .map(|seen| format!("{} {}", seen.signal, seen.freshness).to_lowercase())
        .collect();
    let all: Vec<String> = decision.signals.iter().map(|seen| seen.signal.to_lowercase()).collect();
    match doubtful.as_slice() {
        [] => Node::new("signals", "all fresh", all.join(", ")),
        doubtful => Node::new("signals", doubtful.join(", "), "scale-down is paused"),
    }
}

fn has(why: &Why, now: jiff::Timestamp) -> Node {
    let Some(ready) = why.ready else { return Node::new("ready", UNKNOWN, "") };
    let mut nodes = waiting(&why.waiting, now);
    if let Some(unknown) = &why.waiting_unknown {
        nodes.push(counts(why, unknown));
    }
    nodes.extend(trouble(why));
    let differs = why.wants.is_some_and(|wants| wants != ready);
    if differs && why.mode == "Recommend" {
        nodes.push(Node::new("mode", "Recommend", "decisions are shown, not applied"));
    }
    match (nodes.is_empty(), differs) {
        (true, false) => Node::new(format!("ready {ready}"), "as many as desired", ""),
        (true, true) => Node::new(format!("ready {ready}"), "the change has not started", ""),
        (false, _) => Node::of(format!("ready {ready} because"), nodes),
    }
}

fn counts(why: &Why, unknown: &str) -> Node {
    let sum = |of: fn(&VariantStatus) -> i32| why.variants.iter().map(of).sum::<i32>();
    let (pending, starting) = (sum(|one| one.pending), sum(|one| one.starting));
    let (failing, draining) = (sum(|one| one.failing), sum(|one| one.draining));
    let mut value = format!("{pending} pending, {starting} starting, {draining} draining");
    if failing > 0 {
        value.push_str(&format!(", {failing} failing"));
    }
    Node::new("pods", value, format!("since when is unknown: {unknown}"))
}

/// One line for all that wait for the same reason.
fn waiting(all: &[Waiting], now: jiff::Timestamp) -> Vec<Node> {
    let mut nodes = Vec::new();
    for state in ["Pending", "Starting", "Draining"] {
        let same: Vec<&Waiting> = all.iter().filter(|one| one.state == state).collect();
        let Some(oldest) = same.iter().min_by_key(|one| &one.since) else { continue };
        let time = ago(&oldest.since, now).map_or(UNKNOWN.to_owned(), age);
        let time = if same.len() > 1 { format!("up to {time}") } else { time };
        let value = format!("{} for {time}", plural(same.len(), "pod"));
        let note = oldest.why.clone().unwrap_or_else(|| oldest.pod.clone());
        nodes.push(Node::new(state.to_lowercase(), value, note));
    }
    nodes
}

/// What stands in the way of replicas.
fn trouble(why: &Why) -> Vec<Node> {
    let node = |one: &super::answer::Trouble| {
        Node::new(one.kind.clone(), one.reason.clone(), one.message.clone())
    };
    let others = ["ObjectivesMet", "DrainsSafely"];
    why.troubles.iter().filter(|one| !others.contains(&one.kind.as_str())).map(node).collect()
}

/// What would cut requests when a pod ends without Flyball being asked.
fn drains(why: &Why) -> Option<Node> {
    let found = why.troubles.iter().find(|one| one.kind == "DrainsSafely")?;
    Some(Node::new("drains", found.reason.clone(), found.message.clone()))
}

fn price(why: &Why) -> Node {
    let currency = why.currency.as_deref().unwrap_or_default();
    let money = |cost: &Option<String>| {
        cost.as_ref().map_or(UNKNOWN.to_owned(), |cost| format!("{cost} {currency}/h"))
    };
    let note = match (&why.hourly_cost, &why.recommended_hourly_cost) {
        (None, None) => "no price of the pool is known".to_owned(),
        _ => format!("{} as desired", money(&why.recommended_hourly_cost)),
    };
    Node::new("price", format!("{} now", money(&why.hourly_cost)), note)
}

fn objectives(why: &Why) -> Node {
    let required = why.wanted_percent.as_deref().unwrap_or("99");
    match &why.attainment_percent {
        None => Node::new("objectives", UNKNOWN, "no request was checked in the last hour"),
        Some(met) => Node::new(
            "objectives",
            format!("{met} % met them"),
            format!("of the last hour's requests; the objective is {required} %"),
        ),
    }
}

fn instead(decision: &ReceiptStatus) -> Node {
    match decision.hpa_would_want {
        Some(count) => {
            let count = usize::try_from(count).unwrap_or(0);
            Node::new("instead", format!("an HPA would set {count}"), "at a target of 75 %")
        }
        None => Node::new("instead", UNKNOWN, "what an HPA would do is unknown"),
    }
}

/// The law that decides, and what each would have cost.
fn law(chosen: &ChosenLawStatus, now: jiff::Timestamp) -> Node {
    let since = chosen.since.as_ref().map(|since| format!(", since {} UTC", clock_of(since, now)));
    let since = since.unwrap_or_default();
    let note = match chosen.tried.is_empty() {
        true => "as before the operator started; no traffic was replayed since".to_owned(),
        false => format!("chosen by replaying {} h{since}", chosen.replayed_hours),
    };
    let tried = chosen.tried.iter().map(|one| {
        let cost = format!("{} replica-hours", one.replica_hours);
        Node::new(one.name.clone(), cost, format!("{} % missed", one.missed_percent))
    });
    Node { children: tried.collect(), ..Node::new("law", chosen.name.clone(), note) }
}

/// A sentence as a part of another.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
