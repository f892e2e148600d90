//! The JSON schemas of the answers: generated, committed, and held against real answers.
//!
//! `UPDATE=1 cargo test -p flyball-cli` rewrites the files in docs/reference/schemas.

use std::path::Path;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use super::{API_VERSION, Envelope, Failure, failure::ErrorDocument};
use crate::commands::{
    audit, backtest, check, decisions, emulate, explain, fit, freeze, gateway, gpus, help, key,
    models, plan, prices, run, simulate, status, tenants, top, trace, version, whatif, why,
};

/// The schema of one answer. `apiVersion` and `kind` are fixed, so that a program can tell the
/// answers apart by schema alone.
fn schema<T: JsonSchema + 'static>(kind: &'static str) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Envelope<'static, T>>().to_value();
    schema["title"] = kind.into();
    schema["properties"]["apiVersion"]["const"] = API_VERSION.into();
    schema["properties"]["kind"]["const"] = kind.into();
    schema
}

fn all() -> Vec<(&'static str, Value)> {
    use super::Answer;
    vec![
        ("audit", schema::<audit::AuditList>(audit::AuditList::KIND)),
        ("backtest", schema::<backtest::Backtest>(backtest::Backtest::KIND)),
        ("backtest-train", schema::<backtest::TrainReplay>(backtest::TrainReplay::KIND)),
        ("backtest-tune", schema::<backtest::TuneAnswer>(backtest::TuneAnswer::KIND)),
        ("backtest-why", schema::<backtest::WhyAnswer>(backtest::WhyAnswer::KIND)),
        ("brake", schema::<freeze::Brake>(freeze::Brake::KIND)),
        ("check", schema::<check::CheckAnswer>(check::CheckAnswer::KIND)),
        ("decisions", schema::<decisions::DecisionList>(decisions::DecisionList::KIND)),
        ("emulation", schema::<emulate::Emulation>(emulate::Emulation::KIND)),
        ("error", schema::<ErrorDocument<'static>>(Failure::KIND)),
        ("explain", schema::<explain::Explanation>(explain::Explanation::KIND)),
        ("explain-list", schema::<explain::Listing>(explain::Listing::KIND)),
        ("engine-command", schema::<plan::EngineCommand>(plan::EngineCommand::KIND)),
        ("fit", schema::<fit::FitReport>(fit::FitReport::KIND)),
        ("plan-fleet", schema::<plan::FleetAnswer>(plan::FleetAnswer::KIND)),
        ("plan-serve", schema::<plan::ServeAnswer>(plan::ServeAnswer::KIND)),
        ("plan-train", schema::<plan::TrainAnswer>(plan::TrainAnswer::KIND)),
        ("training-command", schema::<plan::TrainingCommand>(plan::TrainingCommand::KIND)),
        (
            "training-run-manifest",
            schema::<plan::TrainingRunManifest>(plan::TrainingRunManifest::KIND),
        ),
        ("gateway-settings", schema::<gateway::GatewaySettings>(gateway::GatewaySettings::KIND)),
        ("gpu", schema::<gpus::OnePart>(gpus::OnePart::KIND)),
        ("gpus", schema::<gpus::Parts>(gpus::Parts::KIND)),
        ("help", schema::<help::HelpAnswer>(help::HelpAnswer::KIND)),
        ("key-change", schema::<key::KeyChange>(key::KeyChange::KIND)),
        ("keys", schema::<key::KeyList>(key::KeyList::KIND)),
        ("models", schema::<models::ModelList>(models::ModelList::KIND)),
        ("prices", schema::<prices::PriceList>(prices::PriceList::KIND)),
        ("runs", schema::<run::RunList>(run::RunList::KIND)),
        ("simulation", schema::<simulate::Simulation>(simulate::Simulation::KIND)),
        ("status", schema::<status::StatusAnswer>(status::StatusAnswer::KIND)),
        ("tenants", schema::<tenants::TenantList>(tenants::TenantList::KIND)),
        ("top", schema::<top::Top>(top::Top::KIND)),
        ("trace", schema::<trace::TraceReport>(trace::TraceReport::KIND)),
        ("trace-conversion", schema::<trace::Converted>(trace::Converted::KIND)),
        ("version", schema::<version::VersionAnswer>(version::VersionAnswer::KIND)),
        ("what-if", schema::<whatif::WhatIf>(whatif::WhatIf::KIND)),
        ("why", schema::<why::Why>(why::Why::KIND)),
        ("why-run", schema::<why::WhyRun>(why::WhyRun::KIND)),
        ("why-tenant", schema::<why::WhyTenant>(why::WhyTenant::KIND)),
    ]
}

/// Panics unless the JSON text has the shape of the named committed schema.
pub(crate) fn conforms(name: &str, text: &str) {
    let (_, root) = all().into_iter().find(|(known, _)| *known == name).expect("a known schema");
    let value: Value = serde_json::from_str(text).expect("an answer is JSON");
    let mut problems = Vec::new();
    hold(&root, &root, &value, "$", &mut problems);
    assert!(problems.is_empty(), "{name}: {problems:#?}\n{text}");
}

/// The part of JSON Schema that schemars writes for our types: types, required and known keys,
/// constants, enumerations, items, references and choices. A full validator is a large tree of
/// dependencies for the same answer.
fn hold(root: &Value, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.trim_start_matches('#')).expect("references resolve");
        return hold(root, target, value, at, problems);
    }
    for key in ["anyOf", "oneOf"] {
        let Some(options) = schema[key].as_array() else { continue };
        let fits = options.iter().any(|option| {
            let mut inner = Vec::new();
            hold(root, option, value, at, &mut inner);
            inner.is_empty()
        });
        if !fits {
            problems.push(format!("{at}: {value} fits no {key}"));
        }
    }
    if let Some(expected) = schema.get("const").filter(|expected| *expected != value) {
        problems.push(format!("{at}: {value} is not {expected}"));
    }
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        problems.push(format!("{at}: {value} is not in the enumeration"));
    }
    if !has_type(&schema["type"], value) {
        problems.push(format!("{at}: {value} is not a {}", schema["type"]));
    }
    if let (Some(properties), Some(object)) = (schema["properties"].as_object(), value.as_object())
    {
        for required in schema["required"].as_array().into_iter().flatten() {
            if !object.contains_key(required.as_str().expect("keys are strings")) {
                problems.push(format!("{at}: {required} is missing"));
            }
        }
        for (key, inner) in object {
            match properties.get(key) {
                Some(schema) => hold(root, schema, inner, &format!("{at}.{key}"), problems),
                None => problems.push(format!("{at}: {key} is not in the schema")),
            }
        }
    }
    if let (Some(items), Some(array)) = (schema.get("items"), value.as_array()) {
        for (index, inner) in array.iter().enumerate() {
            hold(root, items, inner, &format!("{at}[{index}]"), problems);
        }
    }
}

fn has_type(expected: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    match expected {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

#[test]
fn committed_schemas_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
    for (name, schema) in all() {
        let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
        text.push('\n');
        crate::reference::current(&folder.join(format!("{name}.json")), &text);
    }
}

#[test]
fn a_wrong_answer_does_not_conform() {
    let (_, root) = all().remove(0);
    let mut problems = Vec::new();
    hold(&root, &root, &serde_json::json!({"apiVersion": "v0", "extra": 1}), "$", &mut problems);
    assert!(problems.iter().any(|problem| problem.contains("\"kind\" is missing")), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("extra is not in")), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("\"v0\" is not")), "{problems:?}");
}
