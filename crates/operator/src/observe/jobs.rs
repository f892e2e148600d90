//! Workloads that train: JobSets, Jobs, TrainJobs, and what Kueue says about them. Three of the four kinds may not exist in
//! a cluster; then that is an answer, and it is asked again every minute.

use super::mirror::{Denied, Failures, follow};
use futures::FutureExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _};
use kube_runtime::reflector::Store;
use kube_runtime::reflector::store::Writer;
use kube_runtime::watcher;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often it is asked which kinds there are, while one is missing.
const ASK: Duration = Duration::from_secs(60);

/// For one such question.
const TIMEOUT: Duration = Duration::from_secs(5);

/// On pods of a JobSet: its name. That project's own.
const JOB_SET: &str = "jobset.sigs.k8s.io/jobset-name";

/// On pods of a Job: its name. Kubernetes' own.
const JOB: &str = "batch.kubernetes.io/job-name";

/// A kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobKind {
    /// A JobSet.
    JobSet,
    /// A Job of Kubernetes.
    Job,
    /// A TrainJob of Kubeflow Trainer.
    TrainJob,
    /// Kueue's account of one of the others.
    Workload,
    /// A question of Kueue before a Workload starts; it is in no namespace.
    AdmissionCheck,
}

impl JobKind {
    /// The name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::JobSet => "JobSet",
            Self::Job => "Job",
            Self::TrainJob => "TrainJob",
            Self::Workload => "Workload",
            Self::AdmissionCheck => "AdmissionCheck",
        }
    }

    /// The project that it comes from.
    pub const fn project(self) -> &'static str {
        match self {
            Self::JobSet => "JobSet",
            Self::Job => "Kubernetes",
            Self::TrainJob => "Kubeflow Trainer",
            Self::Workload | Self::AdmissionCheck => "Kueue",
        }
    }

    /// Its group, and the versions whose form is known, best first.
    const fn group(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::JobSet => ("jobset.x-k8s.io", &["v1alpha2"]),
            Self::Job => ("batch", &["v1"]),
            Self::TrainJob => ("trainer.kubeflow.org", &["v1alpha1"]),
            Self::Workload | Self::AdmissionCheck => ("kueue.x-k8s.io", &["v1beta2", "v1beta1"]),
        }
    }
}

/// A workload whose pods train: namespace, kind and name. Those of a TrainJob belong to its JobSet.
pub type GangKey = (String, JobKind, String);

/// The workload that a pod trains for, by its labels.
pub(super) fn gang_of(namespace: &str, labels: &BTreeMap<String, String>) -> Option<GangKey> {
    let (kind, name) = match (labels.get(JOB_SET), labels.get(JOB)) {
        (Some(set), _) => (JobKind::JobSet, set),
        (None, Some(job)) => (JobKind::Job, job),
        (None, None) => return None,
    };
    Some((namespace.to_owned(), kind, name.clone()))
}

/// Why nothing is known about objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobsUnknown {
    /// The API server does not have the kind.
    Absent,
    /// We may not read them.
    Denied,
    /// They were not listed yet.
    Pending,
}

/// What is watched of those kinds.
pub struct JobWatches {
    client: Client,
    namespaces: Vec<String>,
    failures: Failures,
    watched: BTreeMap<JobKind, Watched>,
    asked: Option<Instant>,
    /// Groups of the API server, with their versions.
    groups: Option<BTreeMap<String, Vec<String>>>,
}

struct Watched {
    resource: ApiResource,
    parts: Vec<(Store<DynamicObject>, Denied)>,
}

impl fmt::Debug for JobWatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobWatches").field("groups", &self.groups).finish_non_exhaustive()
    }
}

impl JobWatches {
    pub(super) fn new(client: Client, namespaces: Vec<String>, failures: Failures) -> Self {
        Self { client, namespaces, failures, watched: BTreeMap::new(), asked: None, groups: None }
    }

    /// Begins to watch these kinds, as far as they are there.
    pub async fn want(&mut self, kinds: impl Iterator<Item = JobKind>) {
        let missing: Vec<JobKind> = kinds.filter(|kind| !self.watched.contains_key(kind)).collect();
        if missing.is_empty() || self.asked.is_some_and(|asked| asked.elapsed() < ASK) {
            return;
        }
        self.asked = Some(Instant::now());
        match tokio::time::timeout(TIMEOUT, self.client.list_api_groups()).await {
            Ok(Ok(list)) => {
                let versions =
                    |group: &k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup| {
                        group.versions.iter().map(|one| one.version.clone()).collect()
                    };
                let groups = list.groups.iter().map(|group| (group.name.clone(), versions(group)));
                self.groups = Some(groups.collect());
            }
            // What was known stands.
            Ok(Err(error)) => tracing::warn!(%error, "cannot list the API groups of the cluster"),
            Err(_) => tracing::warn!("the API groups of the cluster were not listed in time"),
        }
        for kind in missing {
            if let Some(resource) = self.resource(kind) {
                let parts = self.follow(kind, &resource);
                self.watched.insert(kind, Watched { resource, parts });
            }
        }
    }

    /// How objects of a kind are addressed, if there are any.
    pub fn resource(&self, kind: JobKind) -> Option<ApiResource> {
        if let Some(watched) = self.watched.get(&kind) {
            return Some(watched.resource.clone());
        }
        let (group, versions) = kind.group();
        let served = self.groups.as_ref()?.get(group)?;
        let version = versions.iter().find(|version| served.iter().any(|one| one == *version))?;
        Some(ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind.name())))
    }

    fn follow(&self, kind: JobKind, resource: &ApiResource) -> Vec<(Store<DynamicObject>, Denied)> {
        let watched = |api: Api<DynamicObject>| {
            let denied = Denied::default();
            let writer = Writer::new(resource.clone());
            let config = watcher::Config::default();
            (follow(writer, api, config, (&self.failures, &denied)), denied)
        };
        let client = || self.client.clone();
        if self.namespaces.is_empty() || kind == JobKind::AdmissionCheck {
            return vec![watched(Api::all_with(client(), resource))];
        }
        let each = self.namespaces.iter();
        each.map(|one| watched(Api::namespaced_with(client(), one, resource))).collect()
    }

    /// All objects of a kind, by namespace and name.
    pub fn all(&self, kind: JobKind) -> Result<JobObjects, JobsUnknown> {
        let Some(watched) = self.watched.get(&kind) else {
            let pending = self.groups.is_none();
            return Err(if pending { JobsUnknown::Pending } else { JobsUnknown::Absent });
        };
        let mut all = JobObjects::new();
        for (store, denied) in &watched.parts {
            if denied.is_so() {
                return Err(JobsUnknown::Denied);
            }
            if store.wait_until_ready().now_or_never().is_none_or(|listed| listed.is_err()) {
                return Err(JobsUnknown::Pending);
            }
            all.extend(
                store
                    .state()
                    .into_iter()
                    .map(|one| ((one.namespace().unwrap_or_default(), one.name_any()), one)),
            );
        }
        Ok(all)
    }
}

/// Objects of one kind, by namespace and name.
pub type JobObjects = BTreeMap<(String, String), Arc<DynamicObject>>;

/// Workloads that train, of all kinds, as they are now.
#[derive(Clone, Debug, Default)]
pub struct WorkloadsOfRuns(BTreeMap<JobKind, Result<JobObjects, JobsUnknown>>);

impl WorkloadsOfRuns {
    /// What is watched.
    pub fn of_watches(watches: &JobWatches) -> Self {
        let kinds = [
            JobKind::JobSet,
            JobKind::Job,
            JobKind::TrainJob,
            JobKind::Workload,
            JobKind::AdmissionCheck,
        ];
        Self(kinds.into_iter().map(|kind| (kind, watches.all(kind))).collect())
    }

    /// These objects of one kind, beside what is there.
    #[cfg(test)]
    pub(crate) fn with(mut self, kind: JobKind, objects: Result<JobObjects, JobsUnknown>) -> Self {
        self.0.insert(kind, objects);
        self
    }

    /// Those of a kind.
    pub fn of(&self, kind: JobKind) -> Result<&JobObjects, JobsUnknown> {
        self.0
            .get(&kind)
            .map_or(Err(JobsUnknown::Pending), |all| all.as_ref().map_err(|unknown| *unknown))
    }
}
