//! A `HorizontalPodAutoscaler` as a policy.

use super::super::hpa::{HpaMetricKind, HpaSettings, HpaSource, Over};
use super::super::{RivalMetric, RivalSettings as Rival};
use super::{Findings, Metadata, PolicyFileProblems, Read, TargetRef, behaviour, quantity};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
struct Document {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    scale_target_ref: TargetRef,
    min_replicas: Option<u32>,
    max_replicas: u32,
    #[serde(default)]
    metrics: Vec<Map<String, Value>>,
    behavior: Option<behaviour::Written>,
    #[serde(flatten)]
    unused: Map<String, Value>,
}

/// The part of `pods`, `object` and `external` that matters.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Gauge {
    metric: Name,
    target: Target,
    #[serde(flatten)]
    unused: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Name {
    name: String,
    selector: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    average_value: Option<Value>,
    value: Option<Value>,
}

/// Reads a document of this kind.
pub(super) fn read(document: Value, version: &str) -> Result<Read, PolicyFileProblems> {
    let named = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("").to_owned();
    let mut findings = Findings { name: named, ..Findings::default() };
    if !matches!(version, "autoscaling/v2" | "autoscaling/v2beta2") {
        findings.problem(format_args!(
            "`{version}` scales on CPU alone, which no replay shows; hint: write autoscaling/v2"
        ));
        return findings.finish(String::new(), None);
    }
    let document: Document = match serde_json::from_value(document) {
        Ok(document) => document,
        Err(error) => {
            findings.problem(format_args!("not a HorizontalPodAutoscaler: {error}"));
            return findings.finish(String::new(), None);
        }
    };
    let Spec { scale_target_ref, min_replicas, max_replicas, metrics, behavior, unused } =
        document.spec;
    findings.unused("spec.", &unused);
    findings.annotations(&document.metadata);
    if metrics.is_empty() {
        findings.problem("spec.metrics is empty, which means CPU, and no replay shows that");
    }
    let min = min_replicas.unwrap_or(1);
    if max_replicas < min.max(1) {
        findings.problem(format_args!("maxReplicas {max_replicas} is below minReplicas {min}"));
    }
    let sources = metrics.iter().filter_map(|metric| source(metric, &mut findings)).collect();
    let behaviour = behavior.unwrap_or_default().read(&mut findings);
    let settings =
        HpaSettings { sources, min, max: max_replicas, behaviour, ..HpaSettings::default() };
    findings.finish(scale_target_ref.text(), Some(Rival::Hpa(settings)))
}

fn source(metric: &Map<String, Value>, findings: &mut Findings) -> Option<HpaSource> {
    let kind = metric.get("type").and_then(Value::as_str).unwrap_or("");
    let field = match kind {
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        "Resource" | "ContainerResource" => {
            let field = if kind == "Resource" { "resource" } else { "containerResource" };
            let name =
                metric.get(field).and_then(|inner| inner.get("name")).and_then(Value::as_str);
            findings.unknown_metric(name.unwrap_or(kind));
            return None;
        }
        other => {
            findings.problem(format_args!(
                "metric type `{other}` is none of Pods, Object, External, Resource"
            ));
            return None;
        }
    };
    let inner = metric.get(field).cloned().unwrap_or_default();
    let gauge: Gauge = match serde_json::from_value(inner) {
        Ok(gauge) => gauge,
        Err(error) => {
            findings.problem(format_args!("metric of type {kind}: {error}"));
            return None;
        }
    };
    findings.unused(&format!("metrics.{field}."), &gauge.unused);
    let Name { name, selector } = gauge.metric;
    if selector.is_some() {
        findings
            .notes
            .push(format!("the selector of `{name}` is not applied: a replay has one model"));
    }
    let Some(found) = find(&name) else {
        findings.unknown_metric(&name);
        return None;
    };
    let Target { average_value, value } = gauge.target;
    let (written, kind) = match (average_value, value, kind) {
        (Some(average), _, "Pods") => (average, HpaMetricKind::PerPod),
        (Some(average), ..) => (average, HpaMetricKind::AverageValue),
        (None, Some(value), "Object" | "External") => (value, HpaMetricKind::Value),
        _ => {
            findings.problem(format_args!("metric `{name}` has no target that its type can have"));
            return None;
        }
    };
    let Some(target) = quantity(&written).filter(|target| *target > 0.0) else {
        findings
            .problem(format_args!("the target {written} of `{name}` is not a quantity above zero"));
        return None;
    };
    // What describes a whole object has a mean already; series of an External metric are added up.
    let share = matches!(found, RivalMetric::CacheUsed)
        && kind == HpaMetricKind::Value
        && field == "object";
    let over = if share || name.contains("average") { Over::Mean } else { Over::Sum };
    Some(HpaSource { kind, over, ..HpaSource::average_value(found, target) })
}

/// The metric inside a name such as `prometheus.googleapis.com|vllm:num_requests_waiting|gauge`.
fn find(name: &str) -> Option<RivalMetric> {
    let part = |part: &str| RivalMetric::from_prometheus(part);
    RivalMetric::from_prometheus(name).or_else(|| name.split(['|', '/']).find_map(part))
}
