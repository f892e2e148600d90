//! What nobody knows yet, what no number of replicas reaches, and who is slow.

use super::*;
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{Capacity, Model, Objective, Unreachable};
use flyball_core::units::TokensPerSecond;

/// The status where the model is so.
fn published_after(change: impl FnOnce(&mut Model)) -> ModelServiceStatus {
    let facts = facts(service(json!({}), None), true);
    let mut seen = seen(&facts, &mut ObservedMemory::default(), 1_000, 1_010);
    change(seen.snapshot.models.values_mut().next().unwrap());
    let decided = Brain::default().decide(&seen);
    published(&seen, &decided)
}

fn with_capacity(capacity: impl FnOnce(Capacity) -> Capacity) -> ModelServiceStatus {
    published_after(|model| {
        let variant = model.variants.values_mut().next().unwrap();
        variant.capacity = capacity(variant.capacity);
    })
}

fn message(status: &ModelServiceStatus, kind: &str) -> String {
    let one = status.conditions.iter().find(|one| one.type_ == kind);
    one.map(|one| one.message.clone()).unwrap_or_default()
}

#[test]
fn a_capacity_that_is_not_known_is_said_with_what_is() {
    let nothing = with_capacity(|_| Capacity::UNKNOWN);
    assert_eq!(condition(&nothing, "CapacityKnown"), is("False", "CapacityUnknown"));
    assert!(message(&nothing, "CapacityKnown").starts_with("the capacity of a replica is unknown"));
    assert_eq!(nothing.decision.as_ref().unwrap().reason, "CapacityUnknown");
    assert_eq!(condition(&nothing, "SignalsFresh"), is("True", "Steady"));

    let rate = |rate| Interval::exact(TokensPerSecond::new(rate), Origin::Assumed).ok();
    let at_least =
        with_capacity(|known| Capacity { prefill: rate(800), decode: rate(90), ..known });
    assert_eq!(condition(&at_least, "CapacityKnown"), is("False", "CapacityUnknown"));
    let text = "a replica was observed at 800 prompt and 90 output tokens per second; its capacity is at least";
    assert!(message(&at_least, "CapacityKnown").starts_with(text));
    let reason = at_least.decision.unwrap().reason;
    assert_eq!(reason, "CapacityUnknown", "nobody waits, so that nothing is added on a guess");

    assert_eq!(condition(&with_capacity(|known| known), "CapacityKnown"), None);
}

#[test]
fn an_objective_that_none_reaches_is_said_once() {
    let out_of_reach = |takes| {
        let limit = Micros::from_millis(500);
        let takes = Micros::from_millis(takes);
        let objective = Objective::FirstToken;
        published_after(|model| model.unreachable = Some(Unreachable { objective, limit, takes }))
    };
    let first = out_of_reach(900);
    let expected = is("False", "ObjectiveUnreachable");
    assert_eq!(condition(&first, "ObjectivesReachable"), expected);
    let text =
        "a long prompt alone on a replica takes 900 ms to its first token; the objective is 500 ms";
    assert!(message(&first, "ObjectivesReachable").starts_with(text));
    assert_eq!(condition(&first, "Ready"), is("True", "Steady"), "it serves");

    let fine = published_after(|_| {});
    assert_eq!(condition(&fine, "ObjectivesReachable"), None);
    let news = |before| turned_bad(before, &first).map(|(reason, _)| reason.name());
    assert_eq!(news(Some(&fine)), Some("ObjectiveUnreachable"));
    assert_eq!(news(Some(&out_of_reach(910))), None, "a number that moves is no news");
}
