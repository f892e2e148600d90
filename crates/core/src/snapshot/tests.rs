use super::*;
use crate::testing::{at, model, pool, snapshot, variant};
use crate::units::{Gpus, Micros, Replicas, Requests, Tokens};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn no_reading_is_missing_and_never_zero() {
    let nan = Tokens::from_sample(f64::NAN);
    let signal = Observed::judge(nan, at(10), at(10), Micros::from_seconds(60));
    assert_eq!(signal, Observed::Missing);
    assert_eq!(signal.last_seen(), None);
}

#[test]
fn a_reading_ages_and_a_clock_far_ahead_is_not_trusted() {
    let max_age = Micros::from_seconds(60);
    let judged = |seen, now| Observed::judge(Some(1), at(seen), at(now), max_age).freshness();
    assert_eq!(judged(100, 160), Freshness::Fresh);
    assert_eq!(judged(100, 161), Freshness::Stale);
    assert_eq!(judged(160, 100), Freshness::Fresh);
    assert_eq!(judged(161, 100), Freshness::Stale);
}

#[test]
fn demand_is_trusted_as_far_as_its_worst_signal() {
    let fresh = model("a/m").build().demand;
    assert_eq!(fresh.freshness(), Freshness::Fresh);
    let stale = Demand { backlog: Observed::Stale { value: Tokens::ZERO, at: at(0) }, ..fresh };
    assert_eq!(stale.freshness(), Freshness::Stale);
    assert_eq!(Demand { decode: Observed::Missing, ..stale }.freshness(), Freshness::Missing);
    assert_eq!(Demand::UNKNOWN.freshness(), Freshness::Missing);
}

#[test]
fn demand_is_stale_while_a_source_is_silent_however_recent_its_signals_are() {
    let fresh = model("a/m").build().demand;
    let from_sources =
        |reporting, silent| Demand { sources: Sources { reporting, silent }, ..fresh };
    assert_eq!(from_sources(2, 0).freshness(), Freshness::Fresh);
    assert_eq!(from_sources(1, 1).freshness(), Freshness::Stale);
    assert_eq!(from_sources(0, 1).freshness(), Freshness::Stale);
    let missing = Demand { decode: Observed::Missing, ..from_sources(1, 1) };
    assert_eq!(missing.freshness(), Freshness::Missing);
    assert!(from_sources(1, 1).sources.is_partial());
    assert!(!from_sources(0, 1).sources.is_partial() && !from_sources(2, 0).sources.is_partial());
}

#[test]
fn replicas_are_counted_by_state() {
    let variant = variant("h100", "pool").ready(3).starting(2).draining(1).build("a/m");
    assert_eq!(variant.count(ReplicaState::Ready), Replicas::new(3));
    assert_eq!(variant.count(ReplicaState::Draining), Replicas::new(1));
    assert_eq!(variant.live(), Replicas::new(5));
}

#[test]
fn a_replica_that_may_hold_requests_is_not_safe_to_delete() {
    let replica = |state, in_flight| {
        let nodes = BTreeSet::new();
        Replica { state, since: at(0), in_flight, nodes, purchase: None }
    };
    let fresh = |count| Observed::Fresh { value: Requests::new(count), at: at(0) };
    assert!(replica(ReplicaState::Draining, fresh(0)).is_safe_to_delete());
    assert!(!replica(ReplicaState::Draining, fresh(1)).is_safe_to_delete());
    assert!(!replica(ReplicaState::Draining, Observed::Missing).is_safe_to_delete());
    assert!(!replica(ReplicaState::Ready, fresh(0)).is_safe_to_delete());
    assert!(replica(ReplicaState::Pending, Observed::Missing).is_safe_to_delete());
}

#[test]
fn a_capacity_is_known_when_all_of_it_is() {
    let known = variant("h100", "pool").build("a/m").capacity;
    assert!(known.is_known());
    assert!(!Capacity::UNKNOWN.is_known());
    assert!(!Capacity { prefill: None, ..known }.is_known());
    assert!(!Capacity { decode: None, ..known }.is_known());
    assert!(!Capacity { resident: None, ..known }.is_known());
}

#[test]
fn a_pool_has_what_its_parts_have_and_is_trusted_as_far_as_the_worst() {
    let gpus = |count| Observed::Fresh { value: Gpus::new(count), at: at(9) };
    let stale = |count| Observed::Stale { value: Gpus::new(count), at: at(5) };
    let total = |parts: &[(Purchase, Observed<Gpus>)]| {
        let allocatable = parts.iter().copied().collect();
        Pool { allocatable, ..pool("p").build() }.total_allocatable()
    };
    let (reserved, spot) = (Purchase::Reserved, Purchase::Spot);
    assert_eq!(total(&[(reserved, gpus(8)), (spot, gpus(4))]), gpus(12));
    assert_eq!(total(&[(reserved, stale(8)), (spot, gpus(4))]), stale(12));
    assert_eq!(total(&[(reserved, gpus(8)), (spot, stale(4))]), stale(12));
    assert_eq!(total(&[(reserved, gpus(8)), (spot, Observed::Missing)]), Observed::Missing);
    assert_eq!(total(&[]), Observed::Missing);
}

#[test]
fn variants_are_found_by_their_full_name() {
    let snapshot = snapshot()
        .pool(pool("h100").gpus(8))
        .model(model("a/m").variant(variant("x", "h100")).variant(variant("y", "h100")))
        .build();
    let ids: Vec<_> = snapshot.variants().map(|(id, _)| id.to_string()).collect();
    assert_eq!(ids, ["a/m/x", "a/m/y"]);
    assert!(snapshot.variant(&"a/m/x".parse().unwrap()).is_some());
    assert!(snapshot.variant(&"a/m/z".parse().unwrap()).is_none());
    assert!(snapshot.variant(&"b/m/x".parse().unwrap()).is_none());
}

proptest! {
    #[test]
    fn only_a_fresh_value_is_fresh(value: u8, seen: u64, now: u64, max_age: u64) {
        let [seen, now] = [seen, now].map(Timestamp::from_micros);
        let signal = Observed::judge(Some(value), seen, now, Micros::new(max_age));
        prop_assert_eq!(signal.fresh().is_some(), signal.freshness() == Freshness::Fresh);
        prop_assert_eq!(signal.last_seen(), Some(&value));
        prop_assert_eq!(signal.at(), Some(seen));
        prop_assert_eq!(signal.map(u16::from).freshness(), signal.freshness());
    }
}
