//! The pods of a LeaderWorkerSet's group as one. Pure.
//!
//! A replica of a LeaderWorkerSet is a group of pods. Where a model is only split over them, the leader alone is
//! asked; with hybrid or external balancing of data-parallel ranks each of them is. So the leader stands for
//! the group, and what holds for the group is what holds for the worst of its pods.

use super::facts::{Member, PodFacts};
use std::collections::BTreeMap;

/// On the pods of a LeaderWorkerSet: its name. This and the next are that project's own.
const NAME: &str = "leaderworkerset.sigs.k8s.io/name";

/// Which group of the set.
const GROUP: &str = "leaderworkerset.sigs.k8s.io/group-index";

/// Which pod of the group; the leader is 0.
const WORKER: &str = "leaderworkerset.sigs.k8s.io/worker-index";

/// Makes the leaders among the pods of a namespace stand for their groups. The others stay in the list.
pub(super) fn join(pods: &mut [PodFacts]) {
    let place =
        |pod: &PodFacts| Some((pod.labels.get(NAME)?.clone(), pod.labels.get(GROUP)?.clone()));
    let leads = |pod: &PodFacts| pod.labels.get(WORKER).is_some_and(|index| index == "0");
    let mut groups: BTreeMap<(String, String), Vec<PodFacts>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !leads(pod) && !pod.over) {
        if let Some(place) = place(pod) {
            groups.entry(place).or_default().push(pod.clone());
        }
    }
    for leader in pods.iter_mut().filter(|pod| leads(pod)) {
        let workers = place(leader).and_then(|place| groups.remove(&place)).unwrap_or_default();
        stand_for(leader, &workers);
    }
}

fn stand_for(leader: &mut PodFacts, workers: &[PodFacts]) {
    let missing = leader.group_size.is_some_and(|size| workers.len() + 1 < size);
    let served = leader.ready.is_some();
    for worker in workers {
        leader.ready = leader.ready.zip(worker.ready).map(|(one, other)| one.max(other));
        leader.lapsed = [leader.lapsed, worker.lapsed].into_iter().flatten().min();
        leader.ending = [leader.ending, worker.ending].into_iter().flatten().min();
        leader.crashed = leader.crashed.max(worker.crashed);
        leader.unready = leader.unready.max(worker.unready);
        leader.restarts = leader.restarts.saturating_add(worker.restarts);
        leader.pending |= worker.pending;
        leader.stopped &= worker.stopped;
        if leader.waits_for.is_none() {
            leader.waits_for.clone_from(&worker.waits_for);
        }
        if worker.node.is_none() {
            leader.node = None;
        }
        let (name, ip, node) = (worker.name.clone(), worker.ip.clone(), worker.node.clone());
        leader.members.push(Member { name, ip, node });
    }
    if missing {
        leader.ready = None;
    }
    // Its leader was asked before this worker failed, or it is not told that it was not.
    if served && leader.ready.is_none() && leader.lapsed.is_none() {
        leader.lapsed = leader.unready.or(Some(leader.created));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::units::Timestamp;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn pod(group: &str, worker: &str) -> PodFacts {
        let labels = [(NAME, "m"), (GROUP, group), (WORKER, worker)];
        PodFacts {
            name: format!("m-{group}-{worker}"),
            ip: Some(format!("10.0.{group}.{worker}")),
            node: Some(format!("n{worker}")),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            created: at(1),
            ready: Some(at(10)),
            group_size: Some(2),
            ..PodFacts::default()
        }
    }

    /// The leader of a group whose worker is this.
    fn led(worker: PodFacts) -> PodFacts {
        let mut pods = [pod("0", "0"), worker, pod("1", "1"), pod("1", "0")];
        join(&mut pods);
        pods[0].clone()
    }

    #[test]
    fn a_group_is_as_ready_as_the_last_of_its_pods() {
        let late = PodFacts { ready: Some(at(50)), ..pod("0", "1") };
        let leader = led(late);
        assert_eq!(leader.ready, Some(at(50)));
        assert_eq!(leader.members.len(), 1);
        assert_eq!(leader.members[0].name, "m-0-1");
        assert_eq!(leader.nodes().collect::<Vec<_>>(), ["n0", "n1"]);
    }

    #[test]
    fn a_worker_that_is_not_ready_makes_the_group_unready_and_it_may_have_served() {
        let unready = PodFacts { ready: None, lapsed: Some(at(70)), ..pod("0", "1") };
        assert_eq!((led(unready.clone()).ready, led(unready).lapsed), (None, Some(at(70))));
        let new = PodFacts { ready: None, unready: Some(at(80)), ..pod("0", "1") };
        assert_eq!((led(new.clone()).ready, led(new).lapsed), (None, Some(at(80))));
        // One is not there: it is of another group.
        assert_eq!(led(pod("7", "1")).ready, None);
        assert_eq!(led(PodFacts { ending: Some(at(90)), ..pod("0", "1") }).ending, Some(at(90)));
    }

    #[test]
    fn nothing_runs_in_a_group_only_if_nothing_runs_in_any_of_it() {
        let stopped = |pod: PodFacts| PodFacts { stopped: true, ready: None, ..pod };
        let mut pods = [stopped(pod("0", "0")), pod("0", "1")];
        join(&mut pods);
        assert!(!pods[0].stopped);
        let mut pods = [stopped(pod("0", "0")), stopped(pod("0", "1"))];
        join(&mut pods);
        assert!(pods[0].stopped);
    }
}
