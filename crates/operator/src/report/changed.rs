//! What is worth a write: a status that says something new at once, one whose numbers moved once a minute.
//!
//! With 10,000 models and a decision every 15 s, writing each time would be 700 writes a second of
//! numbers that nobody watches; series are for those.

use flyball_core::reason::Reason;
use flyball_resources::conditions::ConditionKind;
use flyball_resources::model_service::{ModelServiceStatus, ReceiptStatus};
use std::time::Duration;

/// Numbers alone are written this often.
const NUMBERS: Duration = Duration::from_secs(60);

/// Whether a status is worth a write, `since` the last one.
pub fn is_worth_writing(
    before: Option<&ModelServiceStatus>,
    now: &ModelServiceStatus,
    since: Option<Duration>,
) -> bool {
    let Some(before) = before else { return true };
    if essence(before) != essence(now) {
        return true;
    }
    before != now && since.is_none_or(|since| since >= NUMBERS)
}

/// What a person should hear of at once that is no decision: nothing can be done any more, requests may be
/// cut, or what is asked for cannot be had.
pub fn turned_bad(
    before: Option<&ModelServiceStatus>,
    now: &ModelServiceStatus,
) -> Option<(Reason, String)> {
    let bad = |status: &ModelServiceStatus, kind: ConditionKind, so: &str| {
        let mut conditions = status.conditions.iter();
        let found = conditions.find(|one| one.type_ == kind.name() && one.status == so)?;
        Some((Reason::from_name(&found.reason)?, found.message.clone()))
    };
    let new = |(kind, so)| {
        let now = bad(now, kind, so)?;
        let before = before.and_then(|before| bad(before, kind, so));
        // A number in the words that moves a little is no news.
        let moves = kind == ConditionKind::ObjectivesReachable;
        let same = |before: (Reason, String)| before.0 == now.0 && (moves || before.1 == now.1);
        (!before.is_some_and(same)).then_some(now)
    };
    let bad = [
        (ConditionKind::Stalled, "True"),
        (ConditionKind::ReplicasHealthy, "False"),
        (ConditionKind::DrainsSafely, "False"),
        (ConditionKind::ObjectivesReachable, "False"),
    ];
    bad.into_iter().find_map(new)
}

/// A status without the numbers that always move.
fn essence(status: &ModelServiceStatus) -> ModelServiceStatus {
    let mut status = status.clone();
    status.attainment_percent = None;
    status.forecast = None;
    status.learnt = None;
    for variant in &mut status.variants {
        variant.prefill_tokens_per_second = None;
        variant.decode_tokens_per_second = None;
        variant.cold_start_seconds = None;
        variant.starts_measured = 0;
    }
    for condition in &mut status.conditions {
        condition.message.clear();
    }
    status.decision = status.decision.map(|receipt| ReceiptStatus {
        message: String::new(),
        candidates: Vec::new(),
        hpa_would_want: None,
        expected_hourly_misses: None,
        ..receipt
    });
    status
}
