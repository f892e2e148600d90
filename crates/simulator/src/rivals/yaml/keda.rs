//! A KEDA `ScaledObject` as a policy.

use super::super::RivalSettings as Rival;
use super::super::calendar::Cron;
use super::super::hpa::{HpaMetricKind, HpaSource};
use super::super::keda::{CronTrigger, Fallback, FallbackKind, KedaSettings, Trigger};
use super::{Findings, Metadata, PolicyFileProblems, Read, TargetRef, behaviour, promql, quantity};
use crate::seconds::Seconds;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What a `prometheus` trigger says about where the metric comes from, which a replay knows.
const WHERE: [&str; 12] = [
    "serverAddress",
    "namespace",
    "metricName",
    "authModes",
    "unsafeSsl",
    "customHeaders",
    "queryParameters",
    "timeout",
    "cortexOrgID",
    "awsRegion",
    "azureManagedPrometheus",
    "identityOwner",
];

#[derive(Debug, Deserialize)]
struct Document {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    scale_target_ref: TargetRef,
    polling_interval: Option<f64>,
    cooldown_period: Option<f64>,
    idle_replica_count: Option<u32>,
    min_replica_count: Option<u32>,
    max_replica_count: Option<u32>,
    fallback: Option<WrittenFallback>,
    #[serde(default)]
    advanced: Advanced,
    #[serde(default)]
    triggers: Vec<WrittenTrigger>,
    #[serde(flatten)]
    unused: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Advanced {
    horizontal_pod_autoscaler_config: Option<HpaConfig>,
    scaling_modifiers: Option<Value>,
    #[serde(flatten)]
    unused: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct HpaConfig {
    behavior: Option<behaviour::Written>,
    #[serde(flatten)]
    unused: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenFallback {
    failure_threshold: u32,
    replicas: u32,
    behavior: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenTrigger {
    r#type: String,
    metric_type: Option<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(flatten)]
    unused: Map<String, Value>,
}

/// Reads a document of this kind.
pub(super) fn read(document: Value) -> Result<Read, PolicyFileProblems> {
    let named = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("").to_owned();
    let mut findings = Findings { name: named, ..Findings::default() };
    let Document { metadata, spec } = match serde_json::from_value(document) {
        Ok(document) => document,
        Err(error) => {
            findings.problem(format_args!("not a ScaledObject: {error}"));
            return findings.finish(String::new(), None);
        }
    };
    findings.unused("spec.", &spec.unused);
    findings.unused("spec.advanced.", &spec.advanced.unused);
    findings.annotations(&metadata);
    if spec.advanced.scaling_modifiers.is_some() {
        findings.problem(
            "spec.advanced.scalingModifiers has a formula, which is not followed; hint: llm-d's \
             formula is the policy llm-d-slo",
        );
    }
    let default = KedaSettings::default();
    let behaviour = spec.advanced.horizontal_pod_autoscaler_config.map_or_else(
        || default.behaviour.clone(),
        |config| {
            findings.unused("spec.advanced.horizontalPodAutoscalerConfig.", &config.unused);
            config.behavior.unwrap_or_default().read(&mut findings)
        },
    );
    let (mut triggers, mut crons) = (Vec::new(), Vec::new());
    if spec.triggers.is_empty() {
        findings.problem("spec.triggers is empty");
    }
    for trigger in spec.triggers {
        let fields = trigger.unused.keys().filter(|field| *field != "name");
        let unused = fields.map(|field| format!("triggers.{field} is not simulated"));
        findings.notes.extend(unused);
        match trigger.r#type.as_str() {
            "prometheus" => triggers.extend(prometheus(trigger, &mut findings)),
            "cron" => crons.extend(cron(&trigger.metadata, &mut findings)),
            "cpu" | "memory" => findings.unknown_metric(&trigger.r#type),
            other => findings.problem(format_args!(
                "no replay shows what a trigger of type `{other}` reads; prometheus and cron are known"
            )),
        }
    }
    let settings = KedaSettings {
        triggers,
        crons,
        polling: spec.polling_interval.map_or(default.polling, Seconds),
        cooldown: spec.cooldown_period.map_or(default.cooldown, Seconds),
        min: spec.min_replica_count.unwrap_or(default.min),
        max: spec.max_replica_count.unwrap_or(default.max),
        idle: spec.idle_replica_count,
        fallback: spec.fallback.and_then(|written| fallback(&written, &mut findings)),
        behaviour,
        starts_at: Seconds::ZERO,
    };
    if settings.max < settings.min.max(1) {
        findings.problem(format_args!(
            "maxReplicaCount {} is below minReplicaCount {}",
            settings.max, settings.min
        ));
    }
    findings.finish(spec.scale_target_ref.text(), Some(Rival::Keda(settings)))
}

fn prometheus(trigger: WrittenTrigger, findings: &mut Findings) -> Option<Trigger> {
    let mut metadata = trigger.metadata;
    let known = WHERE.iter().filter(|key| metadata.remove(**key).is_some());
    let known: Vec<&str> = known.copied().collect();
    if !known.is_empty() {
        findings.notes.push(format!(
            "{} say where the metric comes from, which a replay knows",
            known.join(", ")
        ));
    }
    let query = metadata.remove("query");
    let query = query.as_ref().and_then(Value::as_str).unwrap_or("");
    let mut number = |key: &str| metadata.remove(key).map(|value| quantity(&value).ok_or(value));
    let (threshold, activation) = (number("threshold"), number("activationThreshold"));
    let null_is_zero = metadata.remove("ignoreNullValues").is_none_or(|value| !is_false(&value));
    findings.unused("triggers.metadata.", &metadata);
    let Some(Ok(threshold)) =
        threshold.filter(|threshold| threshold.as_ref().is_ok_and(|number| *number > 0.0))
    else {
        findings.problem("a prometheus trigger has no threshold above zero");
        return None;
    };
    let activation = match activation {
        None => 0.0,
        Some(Ok(activation)) => activation,
        Some(Err(written)) => {
            findings.problem(format_args!("activationThreshold {written} is not a number"));
            return None;
        }
    };
    let found = match promql::read(query) {
        Ok(found) => found,
        Err(promql::Bad::Metric(name)) => {
            findings.unknown_metric(&name);
            return None;
        }
        Err(promql::Bad::Shape(why)) => {
            findings.problem(format_args!("the query `{}` is not followed: {why}", query.trim()));
            return None;
        }
    };
    findings.notes.extend(found.notes);
    let kind = match trigger.metric_type.as_deref() {
        None | Some("AverageValue") => HpaMetricKind::AverageValue,
        Some("Value") => HpaMetricKind::Value,
        Some(other) => {
            findings
                .problem(format_args!("metricType `{other}` is neither AverageValue nor Value"));
            return None;
        }
    };
    let source = HpaSource {
        metric: found.metric,
        kind,
        over: found.over,
        target: threshold,
        factor: found.factor,
        missing: found.missing,
    };
    Some(Trigger { source, activation, null_is_zero })
}

fn cron(metadata: &Map<String, Value>, findings: &mut Findings) -> Option<CronTrigger> {
    let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or("");
    let mut read = |key: &str| match Cron::read(text(key)) {
        Ok(cron) => Some(cron),
        Err(error) => {
            findings.problem(format_args!("cron {key}: {error}"));
            None
        }
    };
    let (start, end) = (read("start"), read("end"));
    let zone = text("timezone");
    findings
        .notes
        .push(format!("the timezone {zone} of a cron trigger is taken to be that of the traffic"));
    let Some(replicas) = metadata.get("desiredReplicas").and_then(quantity) else {
        findings.problem("a cron trigger has no desiredReplicas");
        return None;
    };
    Some(CronTrigger { start: start?, end: end?, replicas: replicas.max(0.0) as u32 })
}

fn fallback(written: &WrittenFallback, findings: &mut Findings) -> Option<Fallback> {
    let kind = match written.behavior.as_deref() {
        None | Some("static") => FallbackKind::Static,
        Some("currentReplicas") => FallbackKind::Current,
        Some("currentReplicasIfHigher") => FallbackKind::Higher,
        Some("currentReplicasIfLower") => FallbackKind::Lower,
        Some(other) => {
            findings.problem(format_args!("fallback.behavior `{other}` is not known"));
            return None;
        }
    };
    Some(Fallback { failures: written.failure_threshold, replicas: written.replicas, kind })
}

fn is_false(value: &Value) -> bool {
    value.as_bool() == Some(false) || value.as_str() == Some("false")
}
