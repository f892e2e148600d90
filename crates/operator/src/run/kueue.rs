//! Kueue, after a look at training runs: places for preemptions, and answers to its checks.

use crate::apply::{self, ApplyError};
use crate::lead::Fence;
use crate::observe::{GangKey, JobKind, JobObjects, JobWatches, WorkloadsOfRuns};
use crate::report::Board;
use crate::runs::check::{self, CheckAnswer};
use crate::runs::gate::{self, RunGate};
use crate::runs::preempt::{self, PreemptionPlace, PriorityMark};
use crate::runs::{self, RunKey, RunReport, SeenRun, TrackedRun};
use crate::settings::KueueSettings;
use crate::time;
use flyball_resources::TrainingRun;
use futures::{StreamExt as _, stream};
use kube::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

/// Marks that are written after one round. The rest is written after the next one.
const MARKS: usize = 20;

/// Answers that are written after one round: whoever waits for one waits for the rest of the round at most.
const ANSWERS: usize = 200;

/// Writes at the same time.
const AT_ONCE: usize = 16;

/// Kinds that must be watched besides those of runs.
pub(super) fn kinds(settings: &KueueSettings) -> impl Iterator<Item = JobKind> + use<> {
    let checks = [JobKind::Workload, JobKind::AdmissionCheck];
    checks.into_iter().filter({
        let wanted = settings.admission_checks;
        move |_| wanted
    })
}

/// Adds to the statuses what preemptions would take, and says the place of each run.
pub(super) fn places(
    reports: &mut [RunReport],
    workloads: &WorkloadsOfRuns,
) -> BTreeMap<RunKey, PreemptionPlace> {
    let none = JobObjects::new();
    let all = workloads.of(JobKind::Workload).unwrap_or(&none);
    let runs: Vec<_> = reports
        .iter()
        .filter_map(|report| Some((report.key.clone(), report.preemptible.as_ref()?)))
        .collect();
    let places = preempt::places(&runs, all);
    for report in reports {
        let run = report.preemptible.as_ref();
        report.status.preemption = run.map(|run| preempt::status(run, places.get(&report.key)));
    }
    places
}

/// Whether each run may start, by the object that Kueue admits. `None` of those that were not looked at.
pub(super) fn gates(
    all: &[Arc<TrainingRun>],
    seen: &[SeenRun],
    tracked: &BTreeMap<RunKey, TrackedRun>,
    frozen: bool,
) -> BTreeMap<GangKey, Option<RunGate>> {
    let seen: BTreeMap<RunKey, &SeenRun> =
        seen.iter().map(|seen| (runs::key(&seen.run), seen)).collect();
    let mut gates = BTreeMap::new();
    for run in all {
        let key = runs::key(run);
        let known = seen.get(&key).zip(tracked.get(&key));
        let gate = known.map(|(seen, one)| gate::gate(seen, one, frozen));
        let place = gates.entry(runs::owner_key(run)).or_insert_with(|| gate.clone());
        // Of two that name one workload, one that may not start is enough.
        if matches!(gate, Some(RunGate::Shut(_))) {
            *place = gate;
        }
    }
    gates
}

/// Writes what is said to Kueue beside whether a Workload may hold machines.
pub(super) struct KueueWriter {
    pub(super) client: Client,
    pub(super) fence: Fence,
    pub(super) board: Arc<Board>,
    pub(super) settings: KueueSettings,
}

impl KueueWriter {
    /// Writes the marks of runs that have another place than before.
    pub(super) async fn mark(
        &self,
        seen: &[SeenRun],
        places: &BTreeMap<RunKey, PreemptionPlace>,
        frozen: bool,
        jobs: &JobWatches,
    ) {
        let resource = jobs.resource(JobKind::Workload);
        let Some(resource) = resource.filter(|_| self.settings.priority_boost) else { return };
        let marks = seen
            .iter()
            .filter_map(|seen| preempt::mark(seen, places.get(&runs::key(&seen.run)), frozen));
        for PriorityMark { workload, boost } in marks.take(MARKS) {
            let place = (workload.0.as_str(), workload.1.as_str());
            let done = apply::kueue::rank(&self.client, &self.fence, place, &resource, boost).await;
            match done {
                Ok(()) => self.board.change(|shown| shown.wrote("priority")),
                Err(error) => {
                    let workload = format!("{}/{}", workload.0, workload.1);
                    self.board.change(|shown| shown.failed("apply", error.name()));
                    tracing::warn!(workload, %error, "priority of a workload not written");
                }
            }
        }
    }

    /// Answers Workloads that wait for a check of ours.
    pub(super) async fn answer(
        &self,
        gates: &BTreeMap<GangKey, Option<RunGate>>,
        jobs: &JobWatches,
    ) {
        if !self.settings.admission_checks {
            return;
        }
        let (Ok(checks), Ok(workloads)) =
            (jobs.all(JobKind::AdmissionCheck), jobs.all(JobKind::Workload))
        else {
            return;
        };
        let checks = check::own_checks(&checks);
        for (name, _) in checks.iter().filter(|(_, active)| !**active) {
            self.activate_check(name, jobs).await;
        }
        let names: BTreeSet<String> = checks.into_keys().collect();
        let now = time::of_system(SystemTime::now());
        let answers = check::answers(&names, &workloads, gates, now);
        let written = stream::iter(answers.into_iter().take(ANSWERS))
            .map(|answer| async move {
                let done = self.write_answer(&answer, jobs).await;
                (answer, done)
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for (answer, done) in written {
            match done {
                Ok(()) => self.board.change(|shown| shown.wrote("check")),
                // It changed since it was read: the next round sees it as it is.
                Err(ApplyError::Moved { .. }) => {}
                Err(error) => {
                    let workload = format!("{}/{}", answer.workload.0, answer.workload.1);
                    self.board.change(|shown| shown.failed("apply", error.name()));
                    tracing::warn!(workload, %error, "admission check of a workload not answered");
                }
            }
        }
    }

    async fn write_answer(
        &self,
        answer: &CheckAnswer,
        jobs: &JobWatches,
    ) -> Result<(), ApplyError> {
        let Some(resource) = jobs.resource(JobKind::Workload) else { return Ok(()) };
        let patch = answer.patch(&resource.api_version, time::of_system(SystemTime::now()));
        let place = (Some(answer.workload.0.as_str()), answer.workload.1.as_str());
        apply::kueue::answer(&self.client, &self.fence, place, &resource, &patch).await
    }

    async fn activate_check(&self, name: &str, jobs: &JobWatches) {
        let Some(resource) = jobs.resource(JobKind::AdmissionCheck) else { return };
        let now = time::of_system(SystemTime::now());
        let patch = check::active(name, &resource.api_version, now);
        let place = (None, name);
        let done = apply::kueue::answer(&self.client, &self.fence, place, &resource, &patch).await;
        match done {
            Ok(()) => tracing::info!(check = name, "admission check activated"),
            Err(error) => tracing::warn!(check = name, %error, "admission check not activated"),
        }
    }
}
