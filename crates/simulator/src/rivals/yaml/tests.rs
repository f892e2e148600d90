//! Manifests as people write them.

use super::super::hpa::{HpaMetricKind, Over, Rate, Select};
use super::super::{RivalMetric, RivalSettings};
use super::{PolicyFileProblems, Read, quantity, read};
use crate::policy::Reading;
use crate::seconds::Seconds;
use proptest::prelude::*;
use serde_json::json;

const HPA: &str = r#"
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: chat}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat-vllm}
  minReplicas: 2
  maxReplicas: 12
  metrics:
  - type: Pods
    pods:
      metric: {name: vllm_num_requests_waiting}
      target: {type: AverageValue, averageValue: "2500m"}
  - type: External
    external:
      metric: {name: "prometheus.googleapis.com|vllm:num_requests_running|gauge", selector: {matchLabels: {a: b}}}
      target: {type: AverageValue, averageValue: 40}
  behavior:
    scaleUp: {tolerance: "0.05"}
    scaleDown:
      stabilizationWindowSeconds: 600
      selectPolicy: Min
      policies:
      - {type: Pods, value: 1, periodSeconds: 120}
      - {type: Percent, value: 10, periodSeconds: 60}
"#;

const SCALED_OBJECT: &str = r#"
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: code
spec:
  scaleTargetRef: {name: code-vllm}
  pollingInterval: 15
  cooldownPeriod: 360
  idleReplicaCount: 0
  minReplicaCount: 1
  maxReplicaCount: 6
  fallback: {failureThreshold: 3, replicas: 4, behavior: currentReplicasIfHigher}
  advanced:
    restoreToOriginalReplicaCount: true
    horizontalPodAutoscalerConfig:
      behavior:
        scaleUp: {stabilizationWindowSeconds: 30}
  triggers:
  - type: prometheus
    metadata:
      serverAddress: http://prometheus:9090
      query: sum(vllm:num_requests_waiting{model="code"})
      threshold: "5"
      activationThreshold: "2"
      ignoreNullValues: "false"
    authenticationRef: {name: secret}
  - type: cron
    metadata: {timezone: Europe/Berlin, start: 0 8 * * 1-5, end: 0 20 * * 1-5, desiredReplicas: "3"}
"#;

fn one(text: &str) -> Read {
    read(text).expect("a manifest").pop().expect("one")
}

fn problems(text: &str) -> String {
    let PolicyFileProblems(problems) = read(text).expect_err("problems");
    problems.join("\n")
}

#[test]
fn an_hpa_becomes_a_policy() {
    let found = one(HPA);
    assert_eq!((found.name.as_str(), found.target.as_str()), ("chat", "Deployment/chat-vllm"));
    let RivalSettings::Hpa(hpa) = found.settings else { panic!("an HPA") };
    assert_eq!((hpa.min, hpa.max), (2, 12));
    assert_eq!(hpa.sources[0].kind, HpaMetricKind::PerPod);
    assert_eq!((hpa.sources[0].metric, hpa.sources[0].target), (RivalMetric::Waiting, 2.5));
    assert_eq!(hpa.sources[1].kind, HpaMetricKind::AverageValue);
    assert_eq!((hpa.sources[1].metric, hpa.sources[1].target), (RivalMetric::Running, 40.0));
    assert_eq!((hpa.behaviour.up.tolerance, hpa.behaviour.down.tolerance), (0.05, 0.1));
    assert_eq!(hpa.behaviour.up.rates.len(), 2, "the default pace up stays");
    assert_eq!(hpa.behaviour.down.stabilisation, Seconds(600.0));
    assert_eq!(hpa.behaviour.down.select, Select::Min);
    let slow = Rate::Pods { value: 1, period: Seconds(120.0) };
    assert_eq!(hpa.behaviour.down.rates[0], slow);
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
}

#[test]
fn a_policy_from_a_manifest_scales() {
    let mut law = one(HPA).settings.law();
    let busy = Reading { ready: 2, waiting: Some(12.0), running: Some(20.0), ..Reading::default() };
    // Six waiting per replica at 2.5: 2.4 times two replicas.
    assert_eq!(law.desired(Seconds::ZERO, &busy, 2), 5);
}

#[test]
fn a_scaled_object_becomes_a_policy() {
    let found = one(SCALED_OBJECT).starting_at(Seconds(3600.0));
    assert_eq!(found.target, "Deployment/code-vllm");
    let RivalSettings::Keda(keda) = &found.settings else { panic!("KEDA") };
    assert_eq!((keda.polling, keda.cooldown), (Seconds(15.0), Seconds(360.0)));
    assert_eq!((keda.idle, keda.min, keda.max), (Some(0), 1, 6));
    assert_eq!(keda.starts_at, Seconds(3600.0));
    let trigger = keda.triggers[0];
    assert_eq!((trigger.source.metric, trigger.source.target), (RivalMetric::Waiting, 5.0));
    assert_eq!((trigger.activation, trigger.null_is_zero), (2.0, false));
    assert_eq!(keda.crons[0].replicas, 3);
    assert_eq!(keda.behaviour.up.stabilisation, Seconds(30.0));
    assert_eq!(keda.fallback.map(|fallback| fallback.replicas), Some(4));
    let notes = found.notes.join("\n");
    for text in
        ["restoreToOriginalReplicaCount", "authenticationRef", "serverAddress", "Europe/Berlin"]
    {
        assert!(notes.contains(text), "{text} is missing in {notes}");
    }
}

#[test]
fn a_file_may_hold_several_documents_and_a_list() {
    let both = format!("{HPA}\n---\nkind: Service\n---\n{SCALED_OBJECT}");
    let found = read(&both).expect("two");
    assert_eq!(found.len(), 2);
    assert!(found[0].notes.iter().any(|note| note.contains("Service")));
    let indented = HPA.trim().replace('\n', "\n  ");
    let list = format!("kind: List\nitems:\n- {indented}\n");
    assert_eq!(read(&list).expect("a list").len(), 1);
}

#[test]
fn an_unknown_metric_is_named_with_those_known() {
    let text = problems(&HPA.replace("vllm_num_requests_waiting", "my_queue"));
    assert!(text.contains("`my_queue`") && text.contains("vllm_num_requests_waiting"), "{text}");
    let text = problems(&SCALED_OBJECT.replace("vllm:num_requests_waiting", "my_queue"));
    assert!(text.contains("`my_queue`") && text.contains("vllm_kv_cache_usage_perc"), "{text}");
}

#[test]
fn cpu_is_refused_wherever_it_is_written() {
    let resource = "metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]";
    let head = HPA.split("  metrics:").next().expect("a head");
    assert!(problems(&format!("{head}  {resource}\n")).contains("`cpu`"));
    assert!(problems(head).contains("CPU"));
    assert!(problems(&HPA.replace("autoscaling/v2", "autoscaling/v1")).contains("autoscaling/v1"));
    assert!(problems(&SCALED_OBJECT.replace("type: cron", "type: cpu")).contains("`cpu`"));
}

#[test]
fn all_problems_are_told_at_once() {
    let text = SCALED_OBJECT
        .replace("sum(vllm:num_requests_waiting{model=\"code\"})", "sum(a) / sum(b)")
        .replace("0 20 * * 1-5", "0 20 1 * *")
        .replace("maxReplicaCount: 6", "maxReplicaCount: 0")
        .replace("currentReplicasIfHigher", "guess");
    let PolicyFileProblems(problems) = read(&text).expect_err("problems");
    assert_eq!(problems.len(), 4, "{problems:?}");
}

#[test]
fn a_formula_is_refused_and_not_dropped() {
    let modified = "  advanced:\n    scalingModifiers: {formula: a + 1}\n";
    let text = problems(&SCALED_OBJECT.replace("  advanced:\n", modified));
    assert!(text.contains("scalingModifiers"), "{text}");
}

#[test]
fn a_value_of_an_object_is_compared_as_a_whole() {
    let object = HPA
        .replace(
            "type: External\n    external:",
            "type: Object\n    object:\n      describedObject: {kind: InferencePool, name: p}",
        )
        .replace(
            "prometheus.googleapis.com|vllm:num_requests_running|gauge",
            "inference_pool_average_kv_cache_utilization",
        )
        .replace("{type: AverageValue, averageValue: 40}", "{type: Value, value: 600m}");
    let found = one(&object);
    let RivalSettings::Hpa(hpa) = found.settings else { panic!("an HPA") };
    assert_eq!((hpa.sources[1].kind, hpa.sources[1].over), (HpaMetricKind::Value, Over::Mean));
    assert_eq!(hpa.sources[1].target, 0.6);
    assert!(found.notes.iter().any(|note| note.contains("describedObject")));
}

#[test]
fn quantities_are_read_as_kubernetes_writes_them() {
    for (written, number) in [
        (json!("500m"), 0.5),
        (json!(3), 3.0),
        (json!("0.8"), 0.8),
        (json!("2k"), 2000.0),
        (json!("1Ki"), 1024.0),
    ] {
        assert_eq!(quantity(&written), Some(number), "{written}");
    }
    for written in [json!("m"), json!("fast"), json!(null), json!("inf")] {
        assert_eq!(quantity(&written), None, "{written}");
    }
}

#[test]
fn what_is_no_autoscaler_is_a_problem() {
    assert!(problems("kind: Deployment").contains("Deployment"));
    assert!(problems("a: [").contains("not YAML"));
    assert!(problems("").contains("no HorizontalPodAutoscaler"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(cut in 0..1400_usize, put in "[ -~\n]{0,12}") {
        let mut text = format!("{HPA}---{SCALED_OBJECT}");
        let cut = cut.min(text.len());
        text.insert_str(cut, &put);
        let _ = read(&text);
        let _ = super::promql::read(&text[cut..]);
    }
}
