//! Accelerators of pools that pods use which are no replicas of a model on that pool and no borrowed ones: other training,
//! notebooks, models that nothing can be decided about. Pure.
//!
//! Only pods that are on a node count. One that waits holds nothing, and may never come.

use super::borrowed::is_of;
use super::facts::{Facts, PodFacts};
use super::seen::{SeenModel, workload_key};
use flyball_core::ids::{ModelId, PoolId};
use flyball_core::units::Gpus;
use flyball_resources::model_service::TargetKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use std::collections::BTreeMap;

/// By pool, what others use of the nodes that can be used.
pub(super) fn held_by_others(
    facts: &Facts,
    models: &BTreeMap<ModelId, SeenModel>,
) -> BTreeMap<PoolId, Gpus> {
    let ours = ours(facts, models);
    let mut held = BTreeMap::new();
    for pool in &facts.pools {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let Ok(id) = PoolId::new(name) else { continue };
        let borrowers = facts.borrowers().filter(|(_, one, _)| one.acts && one.pool == id);
        let borrowers: Vec<_> = borrowers.map(|(_, one, _)| &one.gang).collect();
        let mut sum = 0_u32;
        for (namespace, pods) in &facts.pods {
            for pod in pods.iter().filter(|pod| !pod.over && !pod.asks.is_empty()) {
                let node = pod.node.as_ref().and_then(|node| facts.nodes.get(node));
                let of_pool =
                    node.is_some_and(|node| node.usable && node.gpus_of(&pool.spec).is_some());
                let lent = || borrowers.iter().any(|gang| is_of(pod, gang));
                let is_ours = || ours.get(&(namespace.as_str(), pod.name.as_str())) == Some(&id);
                if of_pool && !is_ours() && !lent() {
                    let asks = pod.asks.get(&pool.spec.resource_name).copied().unwrap_or(0);
                    sum = sum.saturating_add(asks);
                }
            }
        }
        held.insert(id, Gpus::new(sum));
    }
    held
}

/// Pods of models that are decided about, with the pool in which they are counted.
fn ours<'a>(
    facts: &'a Facts,
    models: &'a BTreeMap<ModelId, SeenModel>,
) -> BTreeMap<(&'a str, &'a str), PoolId> {
    let mut ours = BTreeMap::new();
    for (id, model) in models.iter().filter(|(_, model)| model.problems.is_empty()) {
        let namespace = id.namespace().as_str();
        for variant in &model.service.spec.variants {
            let Ok(pool) = variant.pool() else { continue };
            let key = workload_key(&model.service, variant);
            let Some(workload) = facts.workloads.get(&key) else { continue };
            let group = group(key.1, &key.2);
            let selector = group.as_ref().unwrap_or(&workload.selector);
            let pods = facts.pods_of(namespace, selector);
            ours.extend(pods.map(|pod: &PodFacts| ((namespace, pod.name.as_str()), pool.clone())));
        }
    }
    ours
}

/// A replica of a LeaderWorkerSet is known by its leader; its workers hold accelerators too.
fn group(kind: TargetKind, name: &str) -> Option<LabelSelector> {
    let label = ("leaderworkerset.sigs.k8s.io/name".to_owned(), name.to_owned());
    (kind == TargetKind::LeaderWorkerSet)
        .then(|| LabelSelector { match_labels: Some([label].into()), ..LabelSelector::default() })
}

#[cfg(test)]
mod tests {
    use crate::observe::demand::Signals;
    use crate::observe::{Facts, NodeFacts, ObservedMemory, PodFacts, Workload, observe};
    use flyball_core::units::{Micros, Timestamp};
    use flyball_resources::model_service::TargetKind;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn pod(name: &str, node: Option<&str>, own: &[(&str, &str)]) -> PodFacts {
        PodFacts {
            name: name.to_owned(),
            labels: labels(own),
            node: node.map(str::to_owned),
            asks: [("nvidia.com/gpu".to_owned(), 2)].into(),
            ..PodFacts::default()
        }
    }

    /// A pool `h100` of eight on node `n`, and a node `gone` that cannot be used. One workload in `a`.
    fn held(kind: TargetKind, selector: &[(&str, &str)], spec: &Value, pods: Vec<PodFacts>) -> u32 {
        let object = |kind: &str, meta: Value, spec: &Value| json!({"apiVersion": "flyball.dev/v1alpha1", "kind": kind, "metadata": meta, "spec": spec});
        let read = |object: Value| serde_json::from_value(object).unwrap();
        let model = object("ModelService", json!({"name": "m", "namespace": "a"}), spec);
        let pool = json!({"accelerator": "h100-sxm-80gb", "nodeSelector": {"gpu": "h100"}});
        let pool = object("Pool", json!({"name": "h100"}), &pool);
        let node = |usable| NodeFacts {
            labels: labels(&[("gpu", "h100")]),
            allocatable: [("nvidia.com/gpu".to_owned(), 8)].into(),
            usable,
            ..NodeFacts::default()
        };
        let elsewhere = NodeFacts { labels: BTreeMap::new(), ..node(true) };
        let selector =
            LabelSelector { match_labels: Some(labels(selector)), ..LabelSelector::default() };
        let workload = Workload { selector, ..Workload::default() };
        let nodes = [("n", node(true)), ("gone", node(false)), ("elsewhere", elsewhere)];
        let facts = Facts {
            models: vec![Arc::new(read(model))],
            pools: vec![Arc::new(serde_json::from_value(pool).unwrap())],
            workloads: [(("a".to_owned(), kind, "m".to_owned()), workload)].into(),
            pods: [("a".to_owned(), pods)].into(),
            nodes: nodes.map(|(name, node)| (name.to_owned(), node)).into(),
            ..Facts::default()
        };
        let time = (Timestamp::from_millis(1), Micros::from_seconds(60));
        let seen = observe(&facts, &Signals::default(), &mut ObservedMemory::default(), time);
        seen.snapshot.pools.values().next().unwrap().held_by_others.get()
    }

    fn adopted(kind: &str, pool: &Value) -> Value {
        json!({"variants": [{"pool": pool, "targetRef": {"kind": kind, "name": "m"}}]})
    }

    #[test]
    fn pods_that_are_no_replicas_hold_what_they_ask_for_once_they_have_a_node() {
        let mine = [("app", "m")];
        let held = |spec: &Value, pods| held(TargetKind::Deployment, &mine, spec, pods);
        let spec = adopted("Deployment", &json!("h100"));
        assert_eq!(held(&spec, vec![pod("x", Some("n"), &mine)]), 0);
        assert_eq!(held(&spec, vec![pod("train", Some("n"), &[]), pod("y", Some("n"), &[])]), 4);
        assert_eq!(held(&spec, vec![pod("train", None, &[])]), 0, "it waits");
        assert_eq!(
            held(&spec, vec![pod("train", Some("gone"), &[])]),
            0,
            "nor are its node's counted"
        );
        assert_eq!(held(&spec, vec![pod("train", Some("elsewhere"), &[])]), 0);
        let over = PodFacts { over: true, ..pod("train", Some("n"), &[]) };
        assert_eq!(held(&spec, vec![over]), 0);
        // It runs there, and is counted nowhere else.
        let unpooled = adopted("Deployment", &Value::Null);
        assert_eq!(held(&unpooled, vec![pod("x", Some("n"), &mine)]), 2);
        // Nothing is decided about a model whose spec is refused.
        let mut refused = spec;
        refused["objectives"] = json!({"attainmentPercent": "all"});
        assert_eq!(held(&refused, vec![pod("x", Some("n"), &mine)]), 2);
    }

    #[test]
    fn workers_of_a_group_belong_to_the_replica_of_their_leader() {
        let name = "leaderworkerset.sigs.k8s.io/name";
        let index = "leaderworkerset.sigs.k8s.io/worker-index";
        let leader = [(name, "m"), (index, "0")];
        let pods = vec![
            pod("m-0", Some("n"), &leader),
            pod("m-0-1", Some("n"), &[(name, "m"), (index, "1")]),
            pod("o-0-1", Some("n"), &[(name, "o"), (index, "1")]),
        ];
        let spec = adopted("LeaderWorkerSet", &json!("h100"));
        assert_eq!(held(TargetKind::LeaderWorkerSet, &leader, &spec, pods), 2);
    }
}
