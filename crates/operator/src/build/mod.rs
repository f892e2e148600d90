//! From a decision to the writes that carry it out. Pure.
//!
//! `scale` works out replicas, marks and costs of a workload that is there, by the `order` in which Kubernetes
//! removes pods; `engine` makes the objects of a variant that Flyball runs itself; `disruption` marks pods that
//! node autoscalers must not move; `gate` holds back what could cut requests. Nothing is built for a model in
//! *Recommend* mode, for one that a person froze, for one whose decision broke a rule, or for one whose replicas
//! somebody else sets too, or may set as far as can be seen.

mod disruption;
mod engine;
mod gate;
mod order;
mod orders;
mod scale;
#[cfg(test)]
mod tests;

pub use orders::orders;

use crate::observe::{Facts, ObservedCluster, PodFacts, SeenModel, WorkloadKey, workload_key};
use flyball_core::decision::{Bound, Decision, ModelDecision};
use flyball_core::ids::{ModelId, ReplicaId};
use flyball_core::invariants::{Holding, Violation};
use flyball_core::snapshot::Model;
use flyball_core::units::Timestamp;
use scale::Scene;
use serde_json::Value;

/// One write. They are carried out in order: marks and costs before the number that they steer.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Nothing new is sent to the pod.
    Mark {
        /// The pod.
        pod: String,
        /// Since when.
        since: Timestamp,
    },
    /// It gets requests again: more are wanted, and it is still warm.
    Unmark {
        /// The pod.
        pod: String,
    },
    /// It goes first when its workload shrinks.
    Cost {
        /// The pod.
        pod: String,
        /// The lower the sooner.
        cost: i32,
    },
    /// Node autoscalers are to leave the pod where it is.
    Protect {
        /// The pod.
        pod: String,
        /// Since when.
        since: Timestamp,
    },
    /// They may move it again.
    Unprotect {
        /// The pod.
        pod: String,
    },
    /// It is evicted, and its workload makes another in its place.
    Replace {
        /// The pod.
        pod: String,
        /// The same pod and no other of its name.
        uid: String,
    },
    /// The workload gets another number of replicas.
    Scale {
        /// The workload.
        workload: WorkloadKey,
        /// What it had when this was worked out; if it has another now, nothing is written.
        from: u32,
        /// What it gets.
        to: u32,
    },
    /// An object of Flyball's own is made, or brought up to date.
    Make {
        /// The object.
        object: Value,
    },
}

/// What is to be written, and what was held back.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// Everything to write, by model.
    pub writes: Vec<(ModelId, Vec<Write>)>,
    /// Rules that other writes would have broken.
    pub broken: Vec<Violation>,
}

/// Everything to write.
pub fn build(facts: &Facts, seen: &ObservedCluster, decision: &Decision) -> Built {
    let mut built = Built::default();
    for decided in &decision.models {
        let model = seen.models.get(&decided.model);
        let Some(model) = model.filter(|model| may_write(seen, model, decided)) else { continue };
        let now = seen.snapshot.taken_at;
        let observed = seen.snapshot.models.get(&decided.model);
        let writes = of_model(facts, (model, observed), decided, now);
        let scene = |key: &WorkloadKey| {
            let (key, workload) = facts.workloads.get_key_value(key)?;
            let pods = facts.pods_of(&key.0, &workload.selector);
            Some(Scene::of(key, workload, pods, &model.holds, now))
        };
        let holding = |pod: &str| model.holds.get(pod).copied().unwrap_or(Holding::MayHold);
        let (writes, broken) = gate::hold_back(&decided.model, writes, holding, scene);
        built.broken.extend(broken);
        if !writes.is_empty() {
            built.writes.push((decided.model.clone(), writes));
        }
    }
    built
}

fn may_write(seen: &ObservedCluster, model: &SeenModel, decided: &ModelDecision) -> bool {
    let observed = seen.snapshot.models.get(&decided.model);
    decided.bound != Bound::Rule && model.problems.is_empty() && observed.is_some_and(Model::acts)
}

fn of_model(
    facts: &Facts,
    (model, observed): (&SeenModel, Option<&Model>),
    decided: &ModelDecision,
    now: Timestamp,
) -> Vec<Write> {
    let mut writes = Vec::new();
    for target in &decided.targets {
        let variants = &model.service.spec.variants;
        let name = target.variant.name().as_str();
        let Some(variant) = variants.iter().find(|variant| variant.name == name) else { continue };
        let key = workload_key(&model.service, variant);
        let workload = facts.workloads.get(&key);
        if let Some(engine) = &variant.engine {
            let pool = facts.pools.iter().find(|pool| pool.metadata.name == variant.pool);
            let first = workload.is_none().then(|| target.replicas.get());
            let made =
                engine::objects(&model.service, variant, engine, pool.map(AsRef::as_ref), first);
            if engine::are_new(&made, workload) {
                writes.extend(made.into_iter().map(|object| Write::Make { object }));
            }
        }
        if let Some(workload) = workload {
            let pods: Vec<&PodFacts> = facts.pods_of(&key.0, &workload.selector).collect();
            let scene = Scene::of(&key, workload, pods.iter().copied(), &model.holds, now)
                .without(&model.gone);
            writes.extend(scene.writes(target));
            let in_flight = |pod: &PodFacts| {
                let replicas = &observed?.variants.get(target.variant.name())?.replicas;
                Some(replicas.get(&ReplicaId::new(&key.0, &pod.name).ok()?)?.in_flight)
            };
            writes.extend(disruption::writes(&pods, in_flight, now));
        }
    }
    writes
}
