//! One model as it was seen: what is needed of it beside the picture. Pure.

use super::drain::Drain;
use super::facts::WorkloadKey;
use super::names::SharedName;
use super::replicas::ReplicaTrouble;
use flyball_core::ids::VariantName;
use flyball_core::invariants::Holding;
use flyball_resources::model_service::{AdoptedStatus, TargetKind, VariantSpec};
use flyball_resources::{ConversionProblem, ModelService};
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One model.
#[derive(Clone, Debug)]
pub struct SeenModel {
    /// As it is stored.
    pub service: Arc<ModelService>,
    /// What is wrong with its spec.
    pub problems: Vec<ConversionProblem>,
    /// The workload of each variant, by the variant's name.
    pub workloads: BTreeMap<String, WorkloadKey>,
    /// Where the engines of adopted workloads answer.
    pub adopted: Vec<AdoptedStatus>,
    /// Workloads that it names and that do not exist.
    pub absent: Vec<WorkloadKey>,
    /// Who else sets replicas of one of its workloads.
    pub rival: Option<String>,
    /// Whether nobody can tell who else does.
    pub owners_unseen: bool,
    /// Gateways and engines that should tell of it and do not, the first few.
    pub silent: Vec<String>,
    /// Public names of it that other models have too.
    pub shared_names: Vec<SharedName>,
    /// Whether pods of its workloads get the time to finish.
    pub drains: Vec<(WorkloadKey, Drain)>,
    /// Whether each of its pods may be taken away, by name.
    pub holds: BTreeMap<String, Holding>,
    /// What a pod waits for that drains for long.
    pub waits: Option<String>,
    /// What is wrong with its pods.
    pub troubles: Vec<ReplicaTrouble>,
    /// Pods whose node is lost or will be taken away.
    pub gone: BTreeSet<String>,
    /// Starts that were measured, by variant.
    pub starts: BTreeMap<VariantName, usize>,
}

/// The workload that a variant is, or will be once Flyball has made it.
pub(crate) fn workload_key(service: &ModelService, variant: &VariantSpec) -> WorkloadKey {
    let namespace = service.namespace().unwrap_or_default();
    match &variant.target_ref {
        Some(to) => (namespace, to.kind, to.name.clone()),
        None => {
            let name = format!("{}-{}", service.name_any(), variant.name);
            (namespace, TargetKind::Deployment, name)
        }
    }
}
