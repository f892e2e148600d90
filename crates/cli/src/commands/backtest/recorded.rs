//! Watches a policy while it decides, and keeps every change with its reason.

use flyball_core::decision::ModelDecision;
use flyball_estimator::Estimator;
use flyball_simulator::policy::{PolicyView, Reading, ScaleOrder, ScalingPolicy};
use flyball_simulator::seconds::Seconds;

use super::answer::DecisionView;
use super::words;

/// A policy and what it changed.
pub(in crate::commands) struct Recorded {
    policy: Box<dyn ScalingPolicy>,
    /// What each model was last told to have.
    last: Vec<Option<u32>>,
    pub(in crate::commands) decisions: Vec<DecisionView>,
    /// Up to when the last whole decision of each model is kept.
    watched: f64,
    /// When it was made, and what it was.
    pub(in crate::commands) seen: Vec<(f64, ModelDecision)>,
}

impl Recorded {
    pub(in crate::commands) fn new(policy: Box<dyn ScalingPolicy>) -> Recorded {
        let (last, decisions, seen) = (Vec::new(), Vec::new(), Vec::new());
        Recorded { policy, last, decisions, watched: f64::NEG_INFINITY, seen }
    }

    /// Keeps what was decided last before a moment.
    pub(in crate::commands) fn watching(mut self, at: f64) -> Recorded {
        self.watched = at;
        self
    }

    fn note(&mut self, now: Seconds, model: usize, reading: &Reading, to: u32, because: String) {
        if self.last.len() <= model {
            self.last.resize(model + 1, None);
        }
        let from = self.last[model].unwrap_or(reading.ready + reading.starting);
        self.last[model] = Some(to);
        if from != to {
            self.decisions.push(DecisionView { at_seconds: now.get(), model, from, to, because });
        }
    }
}

impl ScalingPolicy for Recorded {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn interval(&self) -> Seconds {
        self.policy.interval()
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        let order = self.policy.decide(sight);
        match &order {
            ScaleOrder::Scale(counts) => {
                for (model, (count, reading)) in counts.iter().zip(sight.readings).enumerate() {
                    self.note(sight.now, model, reading, count.get(), saw(reading));
                }
            }
            ScaleOrder::Decision(decision) => {
                for entry in &decision.models {
                    let place = sight.snapshot.models.keys().position(|id| *id == entry.model);
                    let Some(model) = place else { continue };
                    let Some(reading) = sight.readings.get(model) else { continue };
                    if sight.now.get() <= self.watched {
                        self.seen.retain(|(_, known)| known.model != entry.model);
                        self.seen.push((sight.now.get(), entry.clone()));
                    }
                    let to = entry.targets.iter().map(|target| target.replicas.get()).sum();
                    self.note(sight.now, model, reading, to, reason(entry));
                }
            }
        }
        order
    }

    fn restart(&mut self, estimator: &mut Estimator) {
        self.policy.restart(estimator);
    }
}

/// What a rival saw: its law says nothing, but its numbers do.
fn saw(reading: &Reading) -> String {
    let mut parts = Vec::new();
    let mut add = |words: Option<String>| parts.extend(words);
    add(reading.arrivals_per_second.map(|rate| format!("{} requests/s", words::grouped(rate))));
    add(reading.waiting.map(|waiting| format!("{} waiting", words::many(waiting))));
    add(reading.running.map(|running| format!("{} running", words::many(running))));
    add(reading.cache_used.map(|used| format!("cache {} full", words::percent(used))));
    add(reading.first_token_p90.map(|p90| format!("TTFT p90 {}", words::seconds(p90.get()))));
    if parts.is_empty() { "no metric was known".to_owned() } else { parts.join(", ") }
}

/// The bound that won, and what the others alone would have given.
fn reason(entry: &ModelDecision) -> String {
    let others: Vec<String> = entry
        .receipt
        .candidates
        .iter()
        .map(|(bound, replicas)| format!("{bound} {}", replicas.get()))
        .collect();
    let summary = entry.bound.summary().trim_end_matches('.');
    match others.is_empty() {
        true => format!("{}: {summary}", entry.reason),
        false => format!("{}: {summary} ({})", entry.reason, others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::snapshot::Snapshot;
    use flyball_core::units::{Replicas, Timestamp};

    struct Ladder;

    impl ScalingPolicy for Ladder {
        fn name(&self) -> &str {
            "ladder"
        }

        fn interval(&self) -> Seconds {
            Seconds(15.0)
        }

        fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
            ScaleOrder::Scale(vec![Replicas::new(1 + (sight.now.get() / 60.0) as u32)])
        }
    }

    #[test]
    fn only_changes_are_kept_and_each_says_what_was_seen() {
        let mut recorded = Recorded::new(Box::new(Ladder));
        let snapshot = Snapshot::empty(Timestamp::from_millis(0), 0);
        for step in 0..12 {
            let now = Seconds(15.0 * f64::from(step));
            let reading = Reading { ready: 1, waiting: Some(12.0), ..Reading::default() };
            recorded.decide(&PolicyView { now, snapshot: &snapshot, readings: &[reading] });
        }
        let seen: Vec<(f64, u32, u32)> =
            recorded.decisions.iter().map(|one| (one.at_seconds, one.from, one.to)).collect();
        assert_eq!(seen, [(60.0, 1, 2), (120.0, 2, 3)]);
        assert_eq!(recorded.decisions[0].because, "12 waiting");
    }
}
