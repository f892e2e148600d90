//! What gateways are to go by: objectives, pods that drain, and when a model will be up. Pure.

use super::Write;
use crate::observe::{Facts, Names, ObservedCluster, PodFacts, workload_key};
use flyball_core::decision::Decision;
use flyball_core::ids::ModelId;
use flyball_core::snapshot::{Model, Objectives, ReplicaState};
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::stream::{DrainMark, ModelOrders, Orders, PublicName};
use std::collections::BTreeMap;

/// The orders of this moment. What was `made` just now is not on the pods yet as far as they are seen.
pub fn orders(
    facts: &Facts,
    seen: &ObservedCluster,
    decision: &Decision,
    made: &[(ModelId, Write)],
) -> Orders {
    let now = seen.snapshot.taken_at;
    let mut orders = Orders::default();
    let mut drains = BTreeMap::new();
    let names = Names::of(&facts.models);
    for (id, model) in &seen.snapshot.models {
        let Some(service) = seen.models.get(id).map(|model| &model.service) else { continue };
        let eta = eta(id, model, decision, now);
        for name in service.public_names() {
            let public = PublicName { namespace: id.namespace().to_string(), name };
            if names.owner(&public) == Some(id) {
                orders.models.push(of_model(public, &model.objectives, eta));
            }
        }
        for variant in &service.spec.variants {
            let Some(workload) = facts.workloads.get(&workload_key(service, variant)) else {
                continue;
            };
            let namespace = id.namespace().as_str();
            for pod in facts.pods_of(namespace, &workload.selector) {
                let made = made.iter().filter(|(model, _)| model == id);
                if let Some(since) = marked(pod, made.map(|(_, write)| write)) {
                    let names = pod.members.iter().map(|member| &member.name);
                    let names = names.chain([&pod.name]);
                    drains.extend(names.map(|name| (format!("{namespace}/{name}"), since)));
                }
            }
        }
    }
    let mark = |(name, since): (String, Timestamp)| DrainMark {
        name,
        address: String::new(),
        since_ms: since.as_millis(),
    };
    orders.drains = drains.into_iter().map(mark).collect();
    orders
}

/// Since when a pod drains, with what was written just now.
fn marked<'a>(pod: &PodFacts, mut made: impl Iterator<Item = &'a Write>) -> Option<Timestamp> {
    let written = made.find_map(|write| match write {
        Write::Mark { pod: name, since } if *name == pod.name => Some(Some(*since)),
        Write::Unmark { pod: name } if *name == pod.name => Some(None),
        _ => None,
    });
    written.unwrap_or(pod.draining)
}

fn of_model(public: PublicName, objectives: &Objectives, eta: Option<Micros>) -> ModelOrders {
    let millis = |length: Option<Micros>| {
        length.map(|length| u32::try_from(length.get() / 1_000).unwrap_or(u32::MAX))
    };
    ModelOrders {
        model: public.name,
        namespace: public.namespace,
        first_token_ms: millis(objectives.first_token),
        between_tokens_ms: millis(objectives.between_tokens),
        wake_eta_ms: eta.map(|eta| eta.get() / 1_000),
    }
}

/// When the first replica will be up, where none serves and one is on its way: what is left of a usual
/// start, and a tenth of one where it takes longer than usual.
fn eta(id: &ModelId, model: &Model, decision: &Decision, now: Timestamp) -> Option<Micros> {
    let serves = model.variants.values().any(|one| !one.count(ReplicaState::Ready).is_zero());
    if serves {
        return None;
    }
    let left = |start: Micros, since: Timestamp| {
        let age = now.since(since).unwrap_or(Micros::ZERO);
        start.saturating_sub(age).max(Micros::new(start.get() / 10))
    };
    let coming = model.variants.values().flat_map(|variant| {
        let start = variant.cold_start.map(|start| start.point());
        let coming = variant.replicas.values().filter(|replica| {
            matches!(replica.state, ReplicaState::Pending | ReplicaState::Starting)
        });
        coming.filter_map(move |replica| Some(left(start?, replica.since)))
    });
    let planned = || {
        let decided = decision.models.iter().find(|decided| decided.model == *id)?;
        let desired = decided.targets.iter().filter(|target| !target.replicas.is_zero());
        desired
            .filter_map(|target| model.variants.get(target.variant.name())?.cold_start)
            .map(|start| start.point())
            .min()
    };
    coming.min().or_else(planned)
}
