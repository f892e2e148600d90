//! Limits that held: what policies would have done beyond `--max` is not in the answer, and has to be said.

use super::answer::{Backtest, PolicyView};
use super::words;

/// What `--max` held back, and whom.
pub(super) fn notes(answer: &Backtest, max: u32) -> Vec<String> {
    let most = f64::from(max);
    let mut notes = Vec::new();
    let peaks = answer.models.iter().enumerate().map(|(index, model)| {
        let policy = answer.policies.first().and_then(|policy| policy.models.get(index));
        let demand = policy.map_or(&[][..], |one| &one.timeline.demand);
        (model, demand.iter().flatten().copied().fold(0.0, f64::max))
    });
    for (model, peak) in peaks.filter(|(_, peak)| *peak > most) {
        notes.push(format!(
            "{}: demand reaches {} replicas, and --max allows {}",
            model.name,
            words::count(peak.ceil()),
            words::count(most)
        ));
    }
    let policies = answer.policies.iter().filter(|policy| !policy.clairvoyant);
    let held: Vec<String> = policies
        .filter_map(|policy| {
            let seconds = held_seconds(policy, most);
            (seconds > 0.0).then(|| format!("{} for {}", policy.name, words::span(seconds)))
        })
        .collect();
    if !held.is_empty() {
        let (most, held) = (words::count(most), held.join(", "));
        notes.push(format!("--max {most} held back {held}; a larger one may show other numbers"));
    }
    notes
}

/// How long a model had as many replicas as it may have, of the one that had for longest.
fn held_seconds(policy: &PolicyView, most: f64) -> f64 {
    let of_model = |timeline: &super::answer::TimelineView| {
        let both = timeline.ready.iter().zip(&timeline.starting);
        let full = both.filter(|(ready, starting)| {
            ready.zip(**starting).is_some_and(|(ready, starting)| ready + starting >= most)
        });
        full.count() as f64 * timeline.step_seconds
    };
    policy.models.iter().map(|model| of_model(&model.timeline)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::tests::made_up;
    use super::*;

    #[test]
    fn a_limit_that_held_is_said_and_one_that_did_not_is_not() {
        assert_eq!(notes(&made_up(), 1_000), Vec::<String>::new());
        let notes = notes(&made_up(), 5);
        assert_eq!(notes[0], "qwen3-32b: demand reaches 6 replicas, and --max allows 5");
        assert!(notes[1].starts_with("--max 5 held back hpa for 7 h"), "{notes:?}");
        assert_eq!(notes.len(), 2);
    }
}
