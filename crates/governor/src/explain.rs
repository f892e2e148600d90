//! One decision in three sentences that a person understands: what was observed, what decided, and
//! what it costs against what a plain autoscaler would have done. What no number of replicas fixes, and which replicas are slow,
//! are sentences more.

use flyball_core::decision::{Action, Bound, ModelDecision};
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Freshness, Signal};
use flyball_core::units::Replicas;

/// Three sentences about what was decided for a model, with the numbers.
pub fn explain(decided: &ModelDecision) -> String {
    let sentences = [seen(decided), why(decided), price(decided)].into_iter();
    sentences.chain(unreachable(decided)).chain(slow(decided)).collect::<Vec<_>>().join(" ")
}

fn unreachable(decided: &ModelDecision) -> Option<String> {
    let unreachable = decided.receipt.unreachable?;
    Some(format!("No number of replicas fixes this: {unreachable}."))
}

fn slow(decided: &ModelDecision) -> Option<String> {
    let (first, share) = decided.receipt.slow.first()?;
    let more = match decided.receipt.slow.len() {
        1 => String::new(),
        all => format!("; {} more are slow", all - 1),
    };
    let share = share / 10_000;
    Some(format!("Replica {} is slow and counts as {share} % of one{more}.", first.name()))
}

fn seen(decided: &ModelDecision) -> String {
    let receipt = &decided.receipt;
    let untrusted: Vec<String> = receipt
        .signals
        .iter()
        .filter(|(_, freshness)| *freshness != Freshness::Fresh)
        .map(|(signal, freshness)| format!("{signal} {freshness}").to_lowercase())
        .collect();
    let Some(work) = &receipt.work else {
        if decided.reason == Reason::CapacityUnknown {
            return format!("The capacity of a replica of {} is unknown.", decided.model);
        }
        if untrusted.is_empty() {
            return format!("The demand of {} was not evaluated.", decided.model);
        }
        return format!("The demand of {} is unknown: {}.", decided.model, untrusted.join(", "));
    };
    debug_assert!(receipt.signals.iter().all(|(signal, _)| Signal::ALL.contains(signal)));
    let coming = match work.coming.get() {
        0 => String::new(),
        1 => " and 1 more is starting".to_owned(),
        coming => format!(" and {coming} more are starting"),
    };
    let verb = if work.ready.get() == 1 { "is" } else { "are" };
    format!("{} needs {} now; {} {verb} ready{coming}.", decided.model, work.need_now, work.ready)
}

fn why(decided: &ModelDecision) -> String {
    let target: Replicas = decided.targets.iter().map(|target| target.replicas).sum();
    let change = change(decided);
    let because = match (&decided.receipt.work, decided.bound) {
        (Some(work), Bound::LookAhead) => format!(
            "a replica takes {} to start, and {} are enough until then with a probability of {} %",
            work.cold_start,
            work.look_ahead,
            percent(work.quantile_per_million),
        ),
        (Some(work), Bound::BreakEven) => {
            format!("fewer may be too few within {}, and more would not pay off", work.cold_start)
        }
        (_, Bound::Capacity | Bound::PoolLimit) if decided.reason == Reason::Recommending => {
            "it counts only free accelerators, because a recommendation reserves none".to_owned()
        }
        (_, Bound::Staleness) if decided.reason == Reason::CapacityUnknown => {
            "the capacity of a replica must be measured under traffic".to_owned()
        }
        (_, bound) => lower(bound.summary()),
    };
    let held = match decided.bound.can_starve().then(|| unconstrained(decided)) {
        Some(unconstrained) if unconstrained > target => format!(" (needed: {unconstrained})"),
        _ => String::new(),
    };
    format!("It {change} {target}{held} ({}): {because}.", decided.reason)
}

fn change(decided: &ModelDecision) -> String {
    let (mut starts, mut stops, mut replaced) = (0_u32, 0_u32, 0_u32);
    for action in decided.targets.iter().flat_map(|target| &target.actions) {
        match action {
            Action::Start { count, .. } => starts += count.get(),
            Action::Drain { .. } => stops += 1,
            Action::Replace { .. } => replaced += 1,
            Action::Delete { .. } => {}
        }
    }
    if replaced > 0 && (starts, stops) == (0, 0) {
        return format!("replaces {replaced} and stays at");
    }
    match (starts, stops) {
        (0, 0) => "stays at".to_owned(),
        (starts, 0) => format!("starts {starts} to reach"),
        (0, stops) => format!("drains {stops} to reach"),
        (starts, stops) => format!("starts {starts} and drains {stops} to reach"),
    }
}

fn price(decided: &ModelDecision) -> String {
    let cost = match decided.expected.hourly_cost {
        Some(cost) => format!("It costs {} per hour", cost.point()),
        None => "The cost is unknown".to_owned(),
    };
    let misses = match decided.expected.hourly_misses {
        Some(misses) => format!(" and is expected to miss {} in that time", misses.point()),
        None => String::new(),
    };
    let rival = match decided.receipt.hpa_would_want {
        Some(rival) => format!("an HPA at 75 % would set {rival}"),
        None => "what an HPA would do is unknown".to_owned(),
    };
    format!("{cost}{misses}; {rival}.")
}

fn unconstrained(decided: &ModelDecision) -> Replicas {
    decided.targets.iter().map(|target| target.unconstrained).sum()
}

fn lower(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// Truncated, so that 99.99 % never reads as 100 %.
fn percent(per_million: u32) -> String {
    format!("{}.{}", per_million / 10_000, per_million % 10_000 / 1_000)
}
