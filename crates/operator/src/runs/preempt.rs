//! Whom a preemption should take: places among the runs of one queue, and the mark by which Kueue goes. Pure.
//!
//! Kueue takes the lowest priority first, and a Workload may say how much is to be added to its own. Nobody's is lowered: that
//! would let everybody of the same priority take its machines. So who goes first is left as it is, and the others get more, as
//! much as their place says and less than the next priority. A run that is not admitted has none, or it would be admitted before
//! others. Where Flyball does not act for all that are admitted, nobody has: a mark would put them before those others.

use super::inputs::{RunEstimate, RunInputs};
use super::kueue::KueueWorkload;
use super::{RunKey, SeenRun, TrackedRun};
use crate::observe::JobObjects;
use flyball_core::units::{Gpus, Micros};
use flyball_resources::training_run::{RunMode, RunPreemption};
use flyball_training::victims::ranks;
use flyball_training::{VictimCandidate, deadline};
use std::collections::{BTreeMap, BTreeSet};

/// A ClusterQueue and a priority in it.
type Queue = (String, i32);

/// A run that Kueue may preempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Preemptible {
    queue: Queue,
    /// The name of its Workload.
    workload: String,
    candidate: VictimCandidate,
    /// The mark that it has.
    boost: Option<i64>,
    acts: bool,
}

/// The place of a run among those of its queue and priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptionPlace {
    /// The first to go has 0.
    pub rank: u32,
    /// How many there are.
    pub of: usize,
    /// What should be added to its priority.
    pub boost: u32,
}

/// What a preemption would take of a run; nothing while Kueue has not admitted it.
pub(super) fn preemptible(
    seen: &SeenRun,
    tracked: &TrackedRun,
    estimate: &RunEstimate,
    inputs: &RunInputs,
) -> Option<Preemptible> {
    let spec = &seen.run.spec;
    let place = &seen.workload.place;
    let interval = u64::try_from(spec.checkpoint.interval_seconds).unwrap_or(0);
    let unsaved = match &tracked.totals.last {
        Some(_) => estimate.unsaved,
        // Silence protects nobody, and costs nobody either.
        None => Micros::from_seconds(interval / 2),
    };
    let snapshot = inputs.snapshot.as_ref().ok();
    Some(Preemptible {
        queue: place.queue.clone()?,
        workload: place.workload.clone()?,
        candidate: VictimCandidate {
            gpus: Gpus::new(seen.workload.gpus.unwrap_or(0)),
            priority: place.queue.as_ref()?.1,
            unsaved,
            restart: estimate.restart,
            slack: snapshot.and_then(deadline::slack),
            // It asks again at once; how long the queue takes nobody knows.
            wait: Micros::ZERO,
            value: spec.value.as_ref().and_then(|value| value.of_core("spec.value").ok()),
        },
        boost: place.boost,
        acts: spec.mode == RunMode::Act,
    })
}

/// The places of all runs whose queue has nobody else of their priority. `workloads` are all that Kueue has.
pub fn places(
    runs: &[(RunKey, &Preemptible)],
    workloads: &JobObjects,
) -> BTreeMap<RunKey, PreemptionPlace> {
    let mut admitted: BTreeMap<Queue, BTreeSet<RunKey>> = BTreeMap::new();
    let mut priorities = BTreeSet::new();
    for (key, object) in workloads {
        let workload = KueueWorkload::of(object);
        if workload.finished {
            continue;
        }
        priorities.insert(workload.priority);
        if let Some(queue) = workload.in_queue().filter(|_| workload.admitted) {
            admitted.entry(queue).or_default().insert(key.clone());
        }
    }
    let mut groups: BTreeMap<&Queue, Vec<(&RunKey, &Preemptible)>> = BTreeMap::new();
    for (key, run) in runs.iter().filter(|(_, run)| run.acts) {
        groups.entry(&run.queue).or_default().push((key, run));
    }
    let mut places = BTreeMap::new();
    for (queue, group) in groups {
        let ours: BTreeSet<RunKey> =
            group.iter().map(|(key, run)| (key.0.clone(), run.workload.clone())).collect();
        // Two that name one workload are none of whom anything can be said.
        if admitted.get(queue) != Some(&ours) || ours.len() != group.len() {
            continue;
        }
        let above = priorities.range(queue.1.saturating_add(1)..).next();
        let most = above.map_or(u32::MAX, |above| above.abs_diff(queue.1) - 1);
        let candidates: Vec<VictimCandidate> = group.iter().map(|(_, run)| run.candidate).collect();
        let before: Vec<Option<u32>> = group
            .iter()
            .map(|(_, run)| run.boost.and_then(|boost| u32::try_from(boost).ok()))
            .collect();
        for ((key, _), rank) in group.iter().zip(ranks(&candidates, &before)) {
            let place = PreemptionPlace { rank, of: group.len(), boost: rank.min(most) };
            places.insert((*key).clone(), place);
        }
    }
    places
}

/// What a status says.
pub fn status(run: &Preemptible, place: Option<&PreemptionPlace>) -> RunPreemption {
    let seconds = run.candidate.loss().get() / 1_000_000;
    let small = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    RunPreemption {
        thrown_away_gpu_seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
        late: run.candidate.would_be_late(),
        place: place.map(|place| small(place.rank as usize + 1)),
        of: place.map(|place| small(place.of)),
    }
}

/// A number to be added to the priority of a Workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityMark {
    /// Namespace and name of the Workload.
    pub workload: RunKey,
    /// What is added; zero takes the mark away.
    pub boost: u32,
}

/// The mark that a run in Act should get, if it has another.
pub fn mark(seen: &SeenRun, place: Option<&PreemptionPlace>, frozen: bool) -> Option<PriorityMark> {
    if seen.run.spec.mode != RunMode::Act || frozen {
        return None;
    }
    let has = seen.workload.place.boost;
    let admitted = seen.workload.place.queue.is_some();
    let wanted = place.filter(|_| admitted).map_or(0, |place| place.boost);
    let workload = (super::key(&seen.run).0, seen.workload.place.workload.clone()?);
    (has.unwrap_or(0) != i64::from(wanted)).then_some(PriorityMark { workload, boost: wanted })
}
