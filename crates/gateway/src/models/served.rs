//! What a ModelService offers to clients. Pure.
//!
//! What Flyball starts is found by the labels that it gives its pods, so that the spec alone is enough. Of a
//! workload that was adopted only the operator knows the pods and their port; it says so in the status.

use crate::settings::{
    ModelServicePods, ModelSettings, NAME_BYTES, RoutingSetting, VariantPods, is_name,
};
use flyball_engines::{Engine, LaunchRequest};
use flyball_fleet::discover::selector;
use flyball_resources::model_service::{AdoptedStatus, EngineSpec, RoutingSpec, VariantSpec};
use flyball_resources::{ModelService, labels};
use kube::ResourceExt as _;
use std::collections::BTreeSet;
use std::fmt;

/// What a ModelService offers.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedModel {
    /// When it was made: of two that claim one name the older has it. One that does not say it is the youngest.
    pub created: jiff::Timestamp,
    /// Its public names.
    pub names: Vec<String>,
    /// Names that a gateway cannot serve.
    pub refused: Vec<String>,
    /// How it is served, under any of its names.
    pub settings: ModelSettings,
    /// What is not known of it yet, or wrong with it.
    pub notes: Vec<String>,
    /// Whether this version cannot read the object.
    pub unreadable: bool,
}

impl OfferedModel {
    /// Of an object that this version cannot read: nothing.
    pub(super) fn unreadable(error: &dyn fmt::Display) -> Self {
        Self {
            created: jiff::Timestamp::MAX,
            names: Vec::new(),
            refused: Vec::new(),
            settings: ModelSettings::default(),
            notes: vec![format!("this version cannot read it: {error}")],
            unreadable: true,
        }
    }

    /// What was offered last by an object that cannot be read any more: a field that is new in the middle of an
    /// upgrade must not stop a model that works.
    pub(super) fn or_last(&self, last: Option<&Self>) -> Self {
        match last {
            Some(last) if self.unreadable => Self { notes: self.notes.clone(), ..last.clone() },
            _ => self.clone(),
        }
    }
}

/// What this object offers.
pub fn served_of(object: &ModelService) -> OfferedModel {
    let mut seen = BTreeSet::new();
    let names = object.public_names().into_iter().filter(|name| seen.insert(name.clone()));
    let (names, refused): (Vec<_>, Vec<_>) = names.partition(|name| is_name(name, NAME_BYTES));
    let mut notes = Vec::new();
    let variants = object.spec.variants.iter().filter_map(|variant| {
        let found = match &variant.engine {
            Some(engine) => started(object, variant, engine),
            None => adopted(object, variant),
        };
        found.map_err(|note| notes.push(format!("variant {}: {note}", variant.name))).ok()
    });
    let variants: Vec<VariantPods> = variants.collect();
    let created = object.metadata.creation_timestamp.as_ref();
    let known_as = known_as(object, &names, &mut notes);
    OfferedModel {
        created: created.map_or(jiff::Timestamp::MAX, |at| at.0),
        names,
        refused,
        settings: ModelSettings { known_as, ..settings(object, variants) },
        notes,
        unreadable: false,
    }
}

fn settings(object: &ModelService, variants: Vec<VariantPods>) -> ModelSettings {
    let (spec, usual) = (&object.spec, ModelSettings::default());
    let millis = |value: Option<i32>| value.and_then(|value| u64::try_from(value).ok());
    ModelSettings {
        // Salts and the like go by it; each engine is read as what it is itself.
        engine: variants.first().map_or(usual.engine, |first| first.engine),
        queue_ms: millis(spec.gateway.queue_milliseconds).unwrap_or(usual.queue_ms),
        hold_ms: millis(spec.gateway.hold_milliseconds).unwrap_or(usual.hold_ms),
        policy: spec.gateway.routing.map_or(usual.policy, policy),
        cache_responses: spec.gateway.cache_responses.unwrap_or(usual.cache_responses),
        first_token_ms: millis(spec.objectives.first_token_milliseconds),
        between_tokens_ms: millis(spec.objectives.between_tokens_milliseconds),
        // The operator says what is wrong with prices that cannot be read; nobody is served by them meanwhile.
        prices: spec.token_prices().unwrap_or_default(),
        model_service: Some(ModelServicePods {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            variants,
        }),
        ..usual
    }
}

/// The name to say to engines that do not know all of these names: one that those of all variants know, of ours
/// if there is one. Whoever is not known to know any is taken to know ours.
fn known_as(object: &ModelService, names: &[String], notes: &mut Vec<String>) -> Option<String> {
    let variants = object.spec.variants.iter().map(|variant| engine_names(object, variant));
    let engine_names: Vec<Vec<String>> =
        variants.filter(|engine_names| !engine_names.is_empty()).collect();
    let all_know =
        |name: &&String| engine_names.iter().all(|engine_names| engine_names.contains(name));
    if names.iter().all(|name| all_know(&name)) {
        return None;
    }
    let theirs = engine_names.first()?;
    let shared = names.iter().chain(theirs).find(all_know);
    if shared.is_none() {
        notes.push(format!(
            "its variants serve the model under different names ({}): start them with the same \
             name",
            engine_names
                .iter()
                .map(|engine_names| engine_names.join(" "))
                .collect::<Vec<_>>()
                .join("; ")
        ));
    }
    shared.or(theirs.first()).filter(|name| is_name(name, NAME_BYTES)).cloned()
}

/// The names by which the engines of a variant know the model: what Flyball tells those that it starts, or what the
/// operator read of others. None if that is not known, or if any name will do.
fn engine_names(object: &ModelService, variant: &VariantSpec) -> Vec<String> {
    let Some(engine) = &variant.engine else {
        return adopted_status(object, variant)
            .map(|adopted_status| adopted_status.served_as.clone())
            .unwrap_or_default();
    };
    let launch = &engine.kind.facts().launch;
    let request = LaunchRequest {
        model: object.spec.model.as_deref().unwrap_or_default(),
        names: &object.public_names(),
        gpus: 1,
        port: engine.port,
        drain_seconds: engine.drain_seconds,
    };
    // Who names a program gives all of its arguments.
    let mut args = match engine.command.is_empty() {
        true => (launch.write)(&request).args,
        false => Vec::new(),
    };
    args.extend(engine.args.iter().cloned());
    launch.names_in(&args)
}

const fn policy(spec: RoutingSpec) -> RoutingSetting {
    match spec {
        RoutingSpec::Prefix => RoutingSetting::Prefix,
        RoutingSpec::LeastLoad => RoutingSetting::LeastLoad,
        RoutingSpec::RoundRobin => RoutingSetting::RoundRobin,
    }
}

/// The pods of an engine that Flyball starts.
fn started(
    object: &ModelService,
    variant: &VariantSpec,
    engine: &EngineSpec,
) -> Result<VariantPods, String> {
    let (model, own) = (object.name_any(), &variant.name);
    let selector = format!("{}={model},{}={own}", labels::MODEL, labels::VARIANT);
    let port = port(Some(engine.port)).ok_or("its port is invalid")?;
    readable(VariantPods {
        variant: own.clone(),
        selector,
        port,
        // In the middle of a rollout to another port, each pod has its own.
        named_port: true,
        engine: engine.kind,
    })
}

/// What the operator says of a workload that was there before.
fn adopted_status<'a>(
    object: &'a ModelService,
    variant: &VariantSpec,
) -> Option<&'a AdoptedStatus> {
    let mut adopted_status = object.status.iter().flat_map(|status| &status.adopted);
    adopted_status.find(|adopted_status| adopted_status.variant == variant.name)
}

/// The pods of such a workload.
fn adopted(object: &ModelService, variant: &VariantSpec) -> Result<VariantPods, String> {
    let adopted_status = adopted_status(object, variant).ok_or(
        "the operator has not published the address of its workload; hint: is an operator running, \
         and is the chart flyball-crds of the same version?",
    )?;
    let port = port(adopted_status.port).ok_or(
        "the port of its workload is unknown: declare it as containerPort, named http if there are \
         several",
    )?;
    // An engine that nobody knows is read as one that speaks like vLLM.
    let engine = adopted_status.engine.as_deref().and_then(Engine::of_kind).unwrap_or_default();
    let (selector, variant) = (adopted_status.selector.clone(), variant.name.clone());
    readable(VariantPods { variant, selector, port, named_port: false, engine })
}

fn readable(pods: VariantPods) -> Result<VariantPods, String> {
    match selector::read(&pods.selector) {
        Some(_) => Ok(pods),
        None => Err(format!("its selector {:?} cannot be read", pods.selector)),
    }
}

fn port(number: Option<i32>) -> Option<u16> {
    number.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(spec: Value, status: Value) -> OfferedModel {
        let object = json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
            "metadata": {
                "name": "qwen", "namespace": "team",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": spec, "status": status,
        });
        served_of(&serde_json::from_value(object).unwrap())
    }

    fn pods_of(offered: &OfferedModel) -> Vec<(&str, &str, u16, Engine)> {
        let from = offered.settings.model_service.as_ref().unwrap();
        assert_eq!((from.namespace.as_str(), from.name.as_str()), ("team", "qwen"));
        let variants = from.variants.iter();
        variants.map(|v| (&*v.variant, &*v.selector, v.port, v.engine)).collect()
    }

    #[test]
    fn what_flyball_starts_is_known_by_the_spec_alone() {
        let spec = json!({
            "model": "Qwen/Qwen3-32B", "names": ["Qwen/Qwen3-32B", "chat", "chat"],
            "objectives": {"firstTokenMilliseconds": 500, "betweenTokensMilliseconds": 40},
            "gateway": {"queueMilliseconds": 60000, "routing": "LeastLoad"},
            "variants": [
                {"name": "h100", "engine": {"kind": "SGLang", "image": "i", "port": 8001}},
                {"name": "l4", "engine": {"kind": "VLLM", "image": "i"}},
            ],
        });
        let offered = of(spec, json!(null));
        assert_eq!(offered.names, ["Qwen/Qwen3-32B", "chat"]);
        assert_eq!(
            pods_of(&offered),
            [
                ("h100", "flyball.dev/model=qwen,flyball.dev/variant=h100", 8001, Engine::Sglang),
                ("l4", "flyball.dev/model=qwen,flyball.dev/variant=l4", 8000, Engine::Vllm),
            ]
        );
        let settings = &offered.settings;
        assert_eq!((settings.engine, settings.namespace()), (Engine::Sglang, Some("team")));
        assert_eq!((settings.first_token_ms, settings.between_tokens_ms), (Some(500), Some(40)));
        assert_eq!((settings.queue_ms, settings.hold_ms), (60_000, 300_000));
        assert_eq!(settings.policy, RoutingSetting::LeastLoad);
        assert!(offered.notes.is_empty() && offered.refused.is_empty());
    }

    #[test]
    fn an_adopted_workload_is_found_where_the_operator_says_even_while_it_sleeps() {
        let spec = json!({"variants": [{"targetRef": {"kind": "Deployment", "name": "vllm"}}]});
        let asleep = json!({
            "replicas": 0, "readyReplicas": 0,
            "adopted": [{"variant": "main", "selector": "app=vllm", "port": 9000, "engine": "LlamaCpp"}],
        });
        let offered = of(spec.clone(), asleep);
        assert_eq!(offered.names, ["qwen"], "the object's own name");
        assert_eq!(pods_of(&offered), [("main", "app=vllm", 9000, Engine::LlamaCpp)]);
        // Whatever cannot be found out is served without engines, so that it can be waited for.
        for (status, note) in [
            (json!(null), "the operator has not published the address of its workload"),
            (
                json!({"adopted": [{"variant": "main", "selector": "app=vllm"}]}),
                "the port of its workload is unknown",
            ),
            (
                json!({"adopted": [{"variant": "main", "selector": "", "port": 1}]}),
                "cannot be read",
            ),
        ] {
            let offered = of(spec.clone(), status);
            assert_eq!((offered.names.len(), pods_of(&offered).len()), (1, 0));
            assert!(offered.notes[0].contains(note), "{:?}", offered.notes);
        }
        let unknown = json!({"adopted": [
            {"variant": "main", "selector": "app=vllm", "port": 1, "engine": "Other"},
        ]});
        assert_eq!(pods_of(&of(spec, unknown))[0].3, Engine::Vllm);
    }

    #[test]
    fn an_adopted_engine_is_asked_by_the_name_that_it_knows() {
        let known_as = |names: &[&str], theirs: &[&str]| {
            let variants = json!([{"targetRef": {"kind": "Deployment", "name": "vllm"}}]);
            let adopted = json!([
                {"variant": "main", "selector": "app=vllm", "port": 1, "servedAs": theirs},
                {"variant": "gone", "selector": "app=old", "port": 1, "servedAs": ["other"]},
            ]);
            let spec = json!({"names": names, "variants": variants});
            of(spec, json!({"adopted": adopted})).settings.known_as
        };
        assert_eq!(known_as(&[], &["Qwen/Qwen3-32B"]).as_deref(), Some("Qwen/Qwen3-32B"));
        assert_eq!(known_as(&["a", "b"], &["b", "a", "c"]), None, "it knows all of them");
        assert_eq!(known_as(&["a", "x"], &["a"]).as_deref(), Some("a"));
        assert_eq!(known_as(&["a"], &[]), None, "nobody knows what it knows");
    }

    #[test]
    fn an_engine_that_takes_one_name_is_asked_by_it_whichever_is_said() {
        let known_as = |engine: Value| {
            let spec = json!({"names": ["a", "b"], "model": "m", "variants": [{"engine": engine}]});
            of(spec, json!(null)).settings.known_as
        };
        assert_eq!(known_as(json!({"kind": "VLLM", "image": "i"})), None, "it takes several");
        assert_eq!(known_as(json!({"kind": "SGLang", "image": "i"})).as_deref(), Some("a"));
        assert_eq!(known_as(json!({"kind": "LlamaCpp", "image": "i"})), None, "it takes any");
        let own = json!({"kind": "VLLM", "image": "i", "command": ["run"], "args": ["serve", "x"]});
        assert_eq!(known_as(own).as_deref(), Some("x"));
        let own = json!({"kind": "VLLM", "image": "i", "command": ["run"], "args": ["it"]});
        assert_eq!(known_as(own), None, "nobody knows what it knows");
    }

    #[test]
    fn variants_that_know_different_names_are_asked_by_one_that_all_know() {
        let known_as = |names: &[&str], theirs: &[&str]| {
            let spec = json!({"names": names, "model": "m", "variants": [
                {"name": "own", "engine": {"kind": "VLLM", "image": "i"}},
                {"name": "old", "targetRef": {"kind": "Deployment", "name": "vllm"}},
            ]});
            let adopted = json!([
                {"variant": "old", "selector": "app=vllm", "port": 1, "servedAs": theirs},
            ]);
            let offered = of(spec, json!({"adopted": adopted}));
            (offered.settings.known_as, offered.notes.len())
        };
        assert_eq!(known_as(&["a", "b"], &["org/m", "b"]), (Some("b".to_owned()), 0));
        assert_eq!(known_as(&["a"], &["a", "org/m"]), (None, 0));
        // No name will do for both; whoever reads the notes can mend it.
        assert_eq!(known_as(&["a"], &["org/m"]), (Some("a".to_owned()), 1));
    }

    #[test]
    fn what_cannot_be_read_any_more_is_served_as_it_was() {
        let spec = json!({"model": "m", "variants": [{"engine": {"kind": "VLLM", "image": "i"}}]});
        let before = of(spec, json!(null));
        let now = OfferedModel::unreadable(&"unknown engine");
        let last = now.or_last(Some(&before));
        assert_eq!((&last.names, &last.settings), (&before.names, &before.settings));
        assert_eq!(last.notes, ["this version cannot read it: unknown engine"]);
        assert_eq!(now.or_last(Some(&last)), last, "however often it is told");
        assert_eq!(before.or_last(Some(&last)), before, "and as it is once it can be read");
        assert!(now.or_last(None).unreadable);
    }

    #[test]
    fn a_name_that_would_break_a_line_is_left_out_and_the_others_are_served() {
        let spec = json!({"names": ["good", "a\nb", " c"], "variants": []});
        let offered = of(spec, json!(null));
        assert_eq!(offered.names, ["good"]);
        assert_eq!(offered.refused, ["a\nb", " c"]);
    }

    #[test]
    fn a_status_that_only_counts_changes_nothing() {
        let spec =
            || json!({"variants": [{"engine": {"kind": "VLLM", "image": "i"}}], "model": "m"});
        let counts =
            json!({"replicas": 3, "readyReplicas": 3, "selector": "flyball.dev/model=qwen"});
        assert_eq!(of(spec(), json!(null)), of(spec(), counts));
    }
}
