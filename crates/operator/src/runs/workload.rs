//! The workload of a run: whether it is there, waits, runs or has ended, and how large it is. Pure.

use super::kueue::{KueueWorkload, condition, since, text};
use super::marks::{PLACED, SAVE_EVERY};
use crate::observe::{GangKey, JobKind, JobsUnknown, WorkloadsOfRuns};
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::TrainingRun;
use flyball_resources::training_run::RunWorkloadKind;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;

/// Where a workload is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// The cluster has no such kind, or we may not read it.
    KindMissing,
    /// It does not exist.
    Missing,
    /// Flyball would make it, and only recommends.
    NotMade,
    /// It is suspended: Kueue has not admitted it, or a person stopped it.
    Suspended,
    /// It may have pods.
    Active,
    /// It has ended with success.
    Complete,
    /// It has failed.
    Failed,
}

/// A workload that trains.
#[derive(Clone, Debug, PartialEq)]
pub struct RunWorkload {
    /// Where it is in its life.
    pub phase: RunPhase,
    /// What its own project, or Kueue, says about that.
    pub message: String,
    /// Pods that it needs, one per node.
    pub nodes: u32,
    /// Accelerators of all its pods, if its form shows them.
    pub gpus: Option<u32>,
    /// Whether Kueue has admitted it; `None` without Kueue.
    pub admitted: Option<bool>,
    /// When Kueue took its machines away last, and its word for why.
    pub evicted: Option<(Timestamp, String)>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Where it was placed, and how that can be changed.
    pub place: RunPlace,
}

/// Where a workload was placed, and how that can be changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPlace {
    /// The choice for which its node selector was written, if Flyball made it.
    pub placed: Option<String>,
    /// That node selector.
    pub selector: Value,
    /// How often its processes were told to save when it was made.
    pub save_every: Option<Micros>,
    /// Kueue's Workload.
    pub workload: Option<String>,
    /// Whether that was told to hold no machines.
    pub inactive: bool,
    /// The ClusterQueue that has admitted it, and its priority there.
    pub queue: Option<(String, i32)>,
    /// What somebody added to that priority.
    pub boost: Option<i64>,
}

/// The workload whose pods are the run's.
pub fn gang_key(run: &TrainingRun) -> GangKey {
    let namespace = run.namespace().unwrap_or_default();
    let (kind, name) = match &run.spec.workload_ref {
        Some(to) if to.kind == RunWorkloadKind::Job => (JobKind::Job, to.name.clone()),
        Some(to) => (JobKind::JobSet, to.name.clone()),
        None => (JobKind::JobSet, run.name_any()),
    };
    (namespace, kind, name)
}

/// The workload that Kueue admits for a run.
pub fn owner_key(run: &TrainingRun) -> GangKey {
    let (namespace, kind, name) = gang_key(run);
    match run.spec.workload_ref.as_ref().map(|to| to.kind) {
        Some(RunWorkloadKind::TrainJob) => (namespace, JobKind::TrainJob, name),
        _ => (namespace, kind, name),
    }
}

/// Kinds that must be watched for a run.
pub fn kinds(run: &TrainingRun) -> impl Iterator<Item = JobKind> + use<> {
    let of = match run.spec.workload_ref.as_ref().map(|to| to.kind) {
        Some(RunWorkloadKind::Job) => [Some(JobKind::Job), None],
        Some(RunWorkloadKind::TrainJob) => [Some(JobKind::TrainJob), Some(JobKind::JobSet)],
        Some(RunWorkloadKind::JobSet) | None => [Some(JobKind::JobSet), None],
    };
    of.into_iter().flatten().chain([JobKind::Workload])
}

/// The workload of a run; `None` while it was not listed.
pub fn workload(run: &TrainingRun, all: &WorkloadsOfRuns, resource: &str) -> Option<RunWorkload> {
    let (namespace, kind, name) = owner_key(run);
    let place = (namespace, name);
    let objects = match all.of(kind) {
        Ok(objects) => objects,
        Err(JobsUnknown::Pending) => return None,
        Err(why) => {
            let what =
                if why == JobsUnknown::Absent { "is not installed" } else { "may not be read" };
            let message = format!("{} {what}", kind.project());
            return Some(RunWorkload::none(run, RunPhase::KindMissing, message));
        }
    };
    let Some(object) = objects.get(&place) else {
        let made = run.spec.job.is_some();
        let phase = if made { RunPhase::NotMade } else { RunPhase::Missing };
        let message = format!("{} {} does not exist", kind.name(), place.1);
        return Some(RunWorkload::none(run, phase, message));
    };
    let template = match kind {
        // It has no template of its own.
        JobKind::TrainJob => {
            all.of(JobKind::JobSet).ok().and_then(|sets| sets.get(&place)).map(AsRef::as_ref)
        }
        _ => Some(object.as_ref()),
    };
    let (nodes, gpus) = template.map_or((1, None), |object| size(object, resource));
    let admission = all.of(JobKind::Workload).ok();
    let admission = admission.and_then(|all| KueueWorkload::owned(all, kind, &place));
    let (phase, message, ended) = phase(object);
    let queued = admission.as_ref().filter(|one| !one.admitted && phase == RunPhase::Suspended);
    Some(RunWorkload {
        phase,
        message: queued.map_or(message, KueueWorkload::waits_for),
        nodes,
        gpus,
        admitted: admission.as_ref().map(|one| one.admitted),
        place: place_of(object, admission.as_ref()),
        evicted: admission.and_then(|one| one.evicted),
        ended,
    })
}

impl RunWorkload {
    fn none(run: &TrainingRun, phase: RunPhase, message: String) -> Self {
        let job = run.spec.job.as_ref();
        let count = |count: i32| u32::try_from(count).unwrap_or(0);
        Self {
            phase,
            message,
            nodes: job.map_or(0, |job| count(job.nodes)),
            gpus: job.map(|job| count(job.nodes) * count(job.gpus_per_node)),
            admitted: None,
            evicted: None,
            ended: None,
            place: RunPlace::default(),
        }
    }
}

/// Pods of a workload, and the accelerators of all of them.
fn size(object: &DynamicObject, resource: &str) -> (u32, Option<u32>) {
    let spec = &object.data["spec"];
    let Some(jobs) = spec["replicatedJobs"].as_array() else { return of_job(spec, 1, resource) };
    let each = jobs.iter().map(|job| {
        let times = job["replicas"].as_u64().unwrap_or(1);
        of_job(&job["template"]["spec"], times, resource)
    });
    each.fold((0, Some(0)), |(nodes, gpus), (more, further)| {
        (nodes + more, gpus.zip(further).map(|(gpus, further)| gpus + further))
    })
}

fn of_job(spec: &Value, times: u64, resource: &str) -> (u32, Option<u32>) {
    let pods = times * spec["parallelism"].as_u64().unwrap_or(1);
    let containers = spec["template"]["spec"]["containers"].as_array();
    let requested = |container: &Value| match &container["resources"]["limits"][resource] {
        Value::Null => Some(0),
        Value::String(text) => text.parse().ok(),
        number => number.as_u64(),
    };
    let per_pod = containers.into_iter().flatten().map(requested).sum::<Option<u64>>();
    let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    (small(pods), per_pod.map(|gpus| small(gpus.saturating_mul(pods))))
}

fn phase(object: &DynamicObject) -> (RunPhase, String, Option<Timestamp>) {
    let status = &object.data["status"];
    for (types, phase) in [
        (["Complete", "Completed"], RunPhase::Complete),
        (["Failed", "FailureTarget"], RunPhase::Failed),
    ] {
        if let Some(found) = types.iter().find_map(|name| condition(status, name)) {
            return (phase, text(&found["message"]), since(found));
        }
    }
    let suspended = object.data["spec"]["suspend"] == true;
    let phase = if suspended { RunPhase::Suspended } else { RunPhase::Active };
    let message = if suspended { "it is suspended" } else { "" };
    (phase, message.to_owned(), None)
}

fn place_of(object: &DynamicObject, admission: Option<&KueueWorkload>) -> RunPlace {
    let template = &object.data["spec"]["replicatedJobs"][0]["template"]["spec"]["template"];
    RunPlace {
        placed: object.annotations().get(PLACED).cloned(),
        selector: template["spec"]["nodeSelector"].clone(),
        save_every: save_every(&template["spec"]["containers"][0]["env"]),
        workload: admission.map(|one| one.name.clone()),
        inactive: admission.is_some_and(|one| one.inactive),
        queue: admission.filter(|one| one.admitted).and_then(KueueWorkload::in_queue),
        boost: admission.and_then(|one| one.boost),
    }
}

fn save_every(environment: &Value) -> Option<Micros> {
    let mut all = environment.as_array()?.iter();
    let value = all.find(|one| one["name"] == SAVE_EVERY)?["value"].as_str()?;
    value.parse().ok().map(Micros::from_seconds)
}
