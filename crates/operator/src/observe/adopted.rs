//! Where the engines of adopted workloads answer, for gateways. Pure.
//!
//! A gateway reads it in the status: it may not read workloads, and a workload that has no pods, because its
//! model sleeps, still says where they will be.

use super::facts::{Facts, Workload};
use super::seen::workload_key;
use flyball_resources::ModelService;
use flyball_resources::model_service::{AdoptedStatus, VariantSpec};
use kube::core::Selector;

/// Of every variant with a `targetRef`, also where the spec is refused: its engines serve all the same. Of a
/// workload that is not there, what was known last.
pub(super) fn adopted(facts: &Facts, service: &ModelService) -> Vec<AdoptedStatus> {
    let before: Vec<&AdoptedStatus> =
        service.status.iter().flat_map(|status| &status.adopted).collect();
    let variants = service.spec.variants.iter().filter(|one| one.target_ref.is_some());
    let known = |variant: &VariantSpec| {
        let workload = facts.workloads.get(&workload_key(service, variant));
        let last = || before.iter().find(|one| one.variant == variant.name).copied().cloned();
        workload.and_then(|workload| of(variant, workload)).or_else(last)
    };
    variants.filter_map(known).collect()
}

fn of(variant: &VariantSpec, workload: &Workload) -> Option<AdoptedStatus> {
    let selector = Selector::try_from(workload.selector.clone()).ok()?;
    // One that chooses everything is one that was not read.
    (!selector.selects_all()).then(|| AdoptedStatus {
        variant: variant.name.clone(),
        selector: selector.to_string(),
        port: workload.answers.port.map(i32::from),
        engine: workload.answers.engine.map(|engine| engine.facts().kind.to_owned()),
        served_as: workload.answers.names.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::facts::AnswersAt;
    use super::*;
    use flyball_engines::Engine;
    use flyball_resources::model_service::TargetKind;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn service(status: Value) -> ModelService {
        serde_json::from_value(json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
            "metadata": {"name": "m", "namespace": "a"},
            "spec": {"model": "org/m", "variants": [
                {"name": "old", "targetRef": {"kind": "Deployment", "name": "vllm"}},
                {"name": "own", "engine": {"kind": "VLLM", "image": "i"}},
            ]},
            "status": status,
        }))
        .unwrap()
    }

    fn facts(selector: Value) -> Facts {
        let workload = Workload {
            selector: serde_json::from_value(selector).unwrap(),
            answers: AnswersAt {
                port: Some(8000),
                engine: Some(Engine::Vllm),
                names: vec!["org/m".to_owned()],
            },
            ..Workload::default()
        };
        let key = ("a".to_owned(), TargetKind::Deployment, "vllm".to_owned());
        Facts { workloads: [(key, workload)].into(), ..Facts::default() }
    }

    #[test]
    fn a_workload_says_where_its_engines_are_whether_it_has_pods_or_not() {
        let selector = json!({
            "matchLabels": {"app": "vllm"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
        });
        let adopted_ones = adopted(&facts(selector), &service(json!(null)));
        let expected = AdoptedStatus {
            variant: "old".to_owned(),
            selector: "app=vllm,tier in (a,b)".to_owned(),
            port: Some(8000),
            engine: Some("VLLM".to_owned()),
            served_as: vec!["org/m".to_owned()],
        };
        assert_eq!(adopted_ones, [expected], "what Flyball starts is in the spec");
    }

    #[test]
    fn a_workload_that_is_gone_for_a_while_leaves_what_was_known() {
        let before = json!({"adopted": [
            {"variant": "old", "selector": "app=vllm", "port": 8000},
            {"variant": "removed", "selector": "app=other"},
        ]});
        let adopted_ones = adopted(&Facts::default(), &service(before.clone()));
        assert_eq!(adopted_ones.len(), 1, "{adopted_ones:?}");
        assert_eq!(
            (adopted_ones[0].selector.as_str(), adopted_ones[0].port),
            ("app=vllm", Some(8000))
        );
        assert_eq!(adopted(&facts(json!({})), &service(before)).len(), 1, "everything is nothing");
        assert!(adopted(&Facts::default(), &service(json!(null))).is_empty());
    }

    #[test]
    fn a_spec_that_is_refused_keeps_its_engines_in_the_status() {
        let mut wrong = service(json!(null));
        wrong.spec.objectives.attainment_percent = "none".to_owned();
        let labels = json!({"matchLabels": {"app": "vllm"}});
        let facts = Facts { models: vec![Arc::new(wrong)], ..facts(labels) };
        let seen = crate::observe::observe(
            &facts,
            &crate::observe::demand::Signals::default(),
            &mut crate::observe::ObservedMemory::default(),
            (
                flyball_core::units::Timestamp::from_millis(1_000),
                flyball_core::units::Micros::from_seconds(60),
            ),
        );
        let model = seen.models.values().next().unwrap();
        assert!(!model.problems.is_empty());
        assert_eq!(model.adopted.len(), 1);
    }
}
