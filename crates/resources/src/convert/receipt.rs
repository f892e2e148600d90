//! Decisions as they are stored.

use crate::decimal;
use crate::model_service::{
    Band, CandidateStatus, CapacityStatus, ChosenLawStatus, ReceiptStatus, SignalSeen, SpanStatus,
    TriedLawStatus,
};
use flyball_core::decision::{self, Action, ModelDecision, Work};
use flyball_core::ids::DecisionId;
use flyball_core::interval::Interval;
use flyball_core::units::{Micros, Timestamp};

impl ReceiptStatus {
    /// The receipt of a decision; `message` is its sentence.
    pub fn of(id: DecisionId, decision: &ModelDecision, message: String) -> Self {
        let candidates = decision.receipt.candidates.iter();
        let signals = decision.receipt.signals.iter();
        Self {
            id: id.to_string(),
            at: rfc3339(id.at()),
            reason: decision.reason.name().to_owned(),
            bound: decision.bound.name().to_owned(),
            message,
            candidates: candidates
                .map(|(bound, replicas)| CandidateStatus {
                    bound: bound.name().to_owned(),
                    replicas: small(replicas.get()),
                })
                .collect(),
            signals: signals
                .map(|(signal, freshness)| SignalSeen {
                    signal: signal.name().to_owned(),
                    freshness: freshness.name().to_owned(),
                })
                .collect(),
            hpa_would_want: decision.receipt.hpa_would_want.map(|count| small(count.get())),
            expected_hourly_misses: decision
                .expected
                .hourly_misses
                .map(|misses| SpanStatus::of(&misses, |requests| requests.get())),
            law: decision.receipt.law.as_ref().map(ChosenLawStatus::of),
            steps: decision.targets.iter().flat_map(steps).collect(),
        }
    }
}

impl ChosenLawStatus {
    fn of(law: &decision::ChosenLaw) -> Self {
        let tried = law.tried.iter().map(|one| TriedLawStatus {
            name: one.name.clone(),
            replica_hours: hours(one.replica_time, 2),
            missed_percent: decimal::text(i64::from(one.missed_per_million) * 100, 2),
        });
        Self {
            name: law.name.clone(),
            since: law.since.map(rfc3339),
            replayed_hours: hours(law.replayed, 1),
            tried: tried.collect(),
        }
    }
}

fn hours(length: Micros, digits: u32) -> String {
    decimal::text(i64::try_from(length.get() / 3_600).unwrap_or(i64::MAX), digits)
}

impl Band {
    /// What is expected, in text.
    pub fn of(work: &Work) -> Self {
        let milli =
            |value: u64| decimal::text(i64::try_from(value).unwrap_or(i64::MAX / 1_000) * 1_000, 2);
        Self {
            need_now: milli(work.need_now.get()),
            look_ahead: milli(work.look_ahead.get()),
            quantile_percent: decimal::text(i64::from(work.quantile_per_million) * 100, 1),
            horizon_seconds: seconds(work.cold_start.saturating_add(work.hold)),
        }
    }
}

impl SpanStatus {
    /// An interval in the unit that `number` gives.
    pub fn of<T: Copy>(interval: &Interval<T>, number: impl Fn(T) -> u64) -> Self {
        let number = |value| i64::try_from(number(value)).unwrap_or(i64::MAX);
        Self {
            low: number(interval.low()),
            point: number(interval.point()),
            high: number(interval.high()),
            origin: interval.origin().name().to_owned(),
        }
    }
}

fn steps(target: &decision::Target) -> impl Iterator<Item = CapacityStatus> {
    let variant = target.variant.name().as_str();
    target.actions.iter().map(move |action| {
        let (step, what) = match action {
            Action::Start { count, purchase } => ("Start", format!("{count} {purchase}")),
            Action::Drain { replica } => ("Drain", replica.name().to_owned()),
            Action::Delete { replica } => ("Delete", replica.name().to_owned()),
            Action::Replace { replica } => ("Replace", replica.name().to_owned()),
        };
        CapacityStatus { variant: variant.to_owned(), step: step.to_owned(), what }
    })
}

/// A moment as the API writes it.
pub fn rfc3339(at: Timestamp) -> String {
    let micros = i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_microsecond(micros).map_or_else(|_| String::new(), |at| at.to_string())
}

fn seconds(length: Micros) -> i64 {
    i64::try_from(length.whole_seconds()).unwrap_or(i64::MAX)
}

fn small(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
