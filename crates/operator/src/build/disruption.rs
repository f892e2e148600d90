//! Keeps node autoscalers from emptying nodes under pods that have requests.
//!
//! Karpenter and the cluster autoscaler move pods to save nodes, and ask nobody. A pod with requests is marked
//! for both; the mark goes when the pod is seen to have none, and not before it is ten minutes old, so that
//! traffic that comes and goes costs two writes in ten minutes at most. Where requests are not known, nothing
//! changes. A pod that has such a mark from somebody else is left alone.

use super::Write;
use crate::observe::PodFacts;
use flyball_core::snapshot::Observed;
use flyball_core::units::{Micros, Requests, Timestamp};

/// A mark stays so long at least.
const PROTECTED: Micros = Micros::from_minutes(10);

/// Pods of a workload that are written at one look. The rest has its turn at the next.
const AT_ONCE: usize = 50;

pub(super) fn writes(
    pods: &[&PodFacts],
    in_flight: impl Fn(&PodFacts) -> Option<Observed<Requests>>,
    now: Timestamp,
) -> Vec<Write> {
    let there = pods.iter().filter(|pod| pod.ending.is_none() && !pod.protected_by_other);
    let write = |pod: &&PodFacts| {
        let name = || pod.name.clone();
        match (is_busy(in_flight(pod)?)?, pod.protected) {
            (true, None) => Some(Write::Protect { pod: name(), since: now }),
            (false, Some(since)) if now.since(since).is_some_and(|age| age >= PROTECTED) => {
                Some(Write::Unprotect { pod: name() })
            }
            _ => None,
        }
    };
    there.filter_map(write).take(AT_ONCE).collect()
}

/// Whether a replica has requests; nothing if that is not known. That it had some a while ago is reason enough
/// to keep it, that it had none is none to let it go.
fn is_busy(in_flight: Observed<Requests>) -> Option<bool> {
    match in_flight {
        Observed::Fresh { value, .. } => Some(!value.is_zero()),
        Observed::Stale { value, .. } => (!value.is_zero()).then_some(true),
        Observed::Missing => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::slice::from_ref;

    const MINUTE: u64 = 60_000;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn pod(name: &str) -> PodFacts {
        PodFacts { name: name.to_owned(), ready: Some(at(0)), ..PodFacts::default() }
    }

    fn fresh(requests: u64) -> Observed<Requests> {
        Observed::Fresh { value: Requests::new(requests), at: at(0) }
    }

    fn planned(pods: &[PodFacts], in_flight: Observed<Requests>, now: u64) -> Vec<Write> {
        let pods: Vec<&PodFacts> = pods.iter().collect();
        writes(&pods, |_| Some(in_flight), at(now))
    }

    #[test]
    fn a_pod_with_requests_is_protected_until_it_has_none_for_a_while() {
        let free = pod("x");
        let protected = PodFacts { protected: Some(at(MINUTE)), ..pod("x") };
        let name = || "x".to_owned();
        let protect = Write::Protect { pod: name(), since: at(MINUTE) };
        assert_eq!(planned(from_ref(&free), fresh(1), MINUTE), [protect]);
        assert_eq!(planned(from_ref(&protected), fresh(1), 99 * MINUTE), [], "it is already");
        assert_eq!(planned(from_ref(&protected), fresh(0), 10 * MINUTE), [], "too soon");
        let unprotect = Write::Unprotect { pod: name() };
        assert_eq!(planned(from_ref(&protected), fresh(0), 11 * MINUTE), [unprotect]);
        assert_eq!(planned(from_ref(&free), fresh(0), MINUTE), []);
        // What is not known changes nothing.
        let stale = Observed::Stale { value: Requests::ZERO, at: at(0) };
        assert_eq!(planned(from_ref(&protected), Observed::Missing, 99 * MINUTE), []);
        assert_eq!(planned(from_ref(&protected), stale, 99 * MINUTE), []);
    }

    #[test]
    fn what_others_set_stays_and_pods_that_end_are_left_alone() {
        let other = PodFacts { protected_by_other: true, ..pod("x") };
        let ends = PodFacts { ending: Some(at(0)), ..pod("y") };
        assert_eq!(planned(&[other, ends], fresh(1), MINUTE), []);
    }

    #[test]
    fn so_many_at_one_look_and_the_rest_at_the_next() {
        let all: Vec<PodFacts> = (0..120).map(|n| pod(&format!("x{n}"))).collect();
        assert_eq!(planned(&all, fresh(1), MINUTE).len(), AT_ONCE);
    }

    proptest! {
        /// Whatever the traffic does, the API server is asked for two writes in ten minutes at most.
        #[test]
        fn writes_are_bounded(busy in prop::collection::vec(0..3_u8, 1..400)) {
            let mut pod = pod("x");
            let mut written: Vec<u64> = Vec::new();
            for (tick, busy) in busy.into_iter().enumerate() {
                let now = tick as u64 * 15_000;
                let seen = if busy == 2 { Observed::Missing } else { fresh(u64::from(busy)) };
                for write in planned(from_ref(&pod), seen, now) {
                    pod.protected = match write {
                        Write::Protect { since, .. } => Some(since),
                        _ => None,
                    };
                    written.push(now);
                }
                prop_assert!(written.iter().filter(|at| now - **at < 10 * MINUTE).count() <= 2);
            }
        }
    }
}
