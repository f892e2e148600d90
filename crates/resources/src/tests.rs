//! The schemas as they are installed, and their reference page.

use crate::conditions::ConditionKind;
use crate::{ModelService, Pool, Tenant, TrainingRun};
use flyball_core::ids::Namespace;
use flyball_core::reason::Reason;
use flyball_core::snapshot::Share;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The largest CRD that is pleasant to read; Karpenter's NodePool has 20 KiB. A ModelService has what NodePool and
/// NodeClaim have between them, a decision in its status, and what gateways read there.
const LARGEST: usize = 48 << 10;

fn crds() -> [CustomResourceDefinition; 4] {
    [ModelService::crd(), Pool::crd(), Tenant::crd(), TrainingRun::crd()].map(|mut crd| {
        // Uninstalling the chart must not delete what people wrote.
        let keep = ("helm.sh/resource-policy".to_owned(), "keep".to_owned());
        crd.metadata.annotations.get_or_insert_default().extend([keep]);
        crd
    })
}

fn schema(crd: &CustomResourceDefinition) -> Value {
    let schema = crd.spec.versions[0].schema.as_ref().unwrap();
    serde_json::to_value(schema.open_api_v3_schema.as_ref().unwrap()).unwrap()
}

/// Calls `see` with the path and the schema of every field.
fn walk(path: &str, schema: &Value, see: &mut impl FnMut(&str, &Value)) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        see(&path, field);
        walk(&path, field, see);
        if field["items"].is_object() {
            walk(&format!("{path}[]"), &field["items"], see);
        }
    }
}

fn is_ours(path: &str) -> bool {
    path.starts_with("spec") || path.starts_with("status")
}

#[test]
fn every_field_is_described_bounded_and_not_a_float() {
    for crd in crds() {
        walk("", &schema(&crd), &mut |path, field| {
            if !is_ours(path) || path.contains("conditions[]") {
                return;
            }
            let description = field["description"].as_str().unwrap_or_default();
            assert!(description.ends_with('.'), "{path}: {description:?}");
            assert_ne!(field["type"], "number", "{path} is a floating point number");
            assert!(!path.ends_with("phase"), "{path}");
            if !path.starts_with("spec.") {
                return;
            }
            match field["type"].as_str() {
                Some("string") => assert!(
                    field["maxLength"].is_u64() || field["enum"].is_array(),
                    "{path} has no longest length"
                ),
                Some("array") => {
                    assert!(field["maxItems"].is_u64(), "{path} has no most items");
                    assert!(field["x-kubernetes-list-type"].is_string(), "{path} has no list type");
                }
                Some("integer") => {
                    assert!(field["minimum"].is_number() && field["maximum"].is_number(), "{path}");
                }
                _ => {}
            }
        });
    }
}

#[test]
fn conditions_and_reasons_are_words() {
    for kind in ConditionKind::ALL {
        assert!(kind.name().chars().all(|c| c.is_ascii_alphabetic()));
    }
    assert!(Reason::ALL.len() < 64, "a closed list that nobody can read is none");
}

#[test]
fn the_installed_schemas_are_current_and_small() {
    for crd in crds() {
        let text = format!(
            "# Generated from crates/resources. `UPDATE=1 cargo test -p flyball-resources` writes it anew.\n{}",
            serde_saphyr::to_string(&serde_json::to_value(&crd).unwrap()).unwrap()
        );
        assert!(text.len() < LARGEST, "{}: {} bytes", crd.spec.names.kind, text.len());
        assert!(!text.contains("{{"), "Helm would read it");
        let file = format!("charts/flyball-crds/templates/{}.yaml", crd.spec.names.plural);
        current(&Path::new(ROOT).join(file), &text);
    }
}

#[test]
fn the_reference_is_current() {
    let mut text = String::from(
        "# Custom resources\n\n\
         *Generated from the code. `UPDATE=1 cargo test -p flyball-resources` writes it anew.*\n\n\
         `kubectl explain modelservices.spec` shows the same. Group and version are\n\
         `flyball.dev/v1alpha1`.\n",
    );
    for crd in crds() {
        let (kind, schema) = (&crd.spec.names.kind, schema(&crd));
        let about = schema["description"].as_str().unwrap_or_default();
        let _ = write!(text, "\n## {kind}\n\n{about}\n");
        for part in ["spec", "status"] {
            let _ = write!(
                text,
                "\n### `{part}`\n\n| Field | Type | Default | What it is |\n|---|---|---|---|\n"
            );
            walk("", &schema, &mut |path, field| {
                if path.starts_with(&format!("{part}.")) && !path.contains("conditions[]") {
                    text += &row(path, field);
                }
            });
        }
        text += &rules(&schema);
    }
    text += "\n## Conditions\n\nA Pool and a Tenant have `Ready`, a Tenant and a TrainingRun also `WithinBudget`. A TrainingRun has \
             `Ready`, `TargetFound`, `HeartbeatFresh`, `DeadlineMet`, `PlacementApplied`, `Complete`, `Reconciling` and \
             `Stalled`; a ModelService the others. \
             `flyball explain` describes the reasons.\n\n| Type | What is so |\n|---|---|\n";
    for kind in ConditionKind::ALL {
        let _ = writeln!(text, "| `{}` | {} |", kind.name(), kind.about());
    }
    current(&Path::new(ROOT).join("docs/reference/resources.md"), &text);
}

fn row(path: &str, field: &Value) -> String {
    let kind = match field["enum"].as_array() {
        Some(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        None => field["type"].as_str().unwrap_or("any").to_owned(),
    };
    let default = match &field["default"] {
        Value::Null => String::new(),
        Value::Object(_) => "see below".to_owned(),
        value => format!("`{}`", value.to_string().trim_matches('"')),
    };
    let what = field["description"].as_str().unwrap_or_default();
    let what = what.split("\n\n").next().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
    format!("| `{path}` | {kind} | {default} | {what} |\n")
}

/// Rules of the whole schema, with the sentence that whoever breaks one reads.
fn rules(schema: &Value) -> String {
    let mut rows = String::new();
    let mut see = |path: &str, field: &Value| {
        for place in [field, &field["items"]] {
            for rule in place["x-kubernetes-validations"].as_array().into_iter().flatten() {
                let message = rule["message"].as_str().unwrap_or_default();
                rows += &format!("| `{path}` | {message} |\n");
            }
        }
    };
    walk("", schema, &mut see);
    match rows.as_str() {
        "" => rows,
        _ => format!("\n### Rules\n\n| Where | What the API server says |\n|---|---|\n{rows}"),
    }
}

#[test]
fn a_spec_of_six_lines_adopts_a_deployment() {
    let file = |name: &str| {
        let path = Path::new(ROOT).join("docs/guides/operator").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    for (name, most) in [("adopt.yaml", 6), ("serve.yaml", 15)] {
        let text = file(name);
        assert!(text.lines().count() <= most, "{name}");
        let model: ModelService = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(model.spec.variants.len(), 1, "{name}");
    }
}

#[test]
fn a_spec_of_six_lines_adopts_a_job_set_and_fifteen_make_one() {
    for (name, most) in [("adopt-run.yaml", 6), ("train.yaml", 15)] {
        let path = Path::new(ROOT).join("docs/guides/operator").join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().count() <= most, "{name}");
        let run: TrainingRun = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(run.spec.workload_ref.is_some(), most == 6, "{name}");
        assert_eq!(run.spec.job.is_some(), most == 15, "{name}");
        assert!(run.spec.deadline.is_some(), "{name}");
    }
}

#[test]
fn what_is_not_written_has_the_defaults_of_the_schema() {
    let model: ModelService = serde_json::from_value(json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService", "metadata": {"name": "m"},
        "spec": {"variants": [{"targetRef": {"kind": "Deployment", "name": "m"}}]}
    }))
    .unwrap();
    assert_eq!(model.spec.scaling.mode, crate::model_service::ScalingMode::Recommend);
    let mut defaults = Vec::new();
    walk("", &schema(&ModelService::crd()), &mut |path, field| {
        if !field["default"].is_null() {
            defaults.push(path.to_owned());
        }
    });
    for path in ["spec.scaling.mode", "spec.scaling.max", "spec.objectives", "spec.scaling"] {
        assert!(defaults.iter().any(|have| have == path), "{path}: {defaults:?}");
    }
}

#[test]
fn shares_of_a_pool_are_taken_by_its_schema_and_read() {
    let text = std::fs::read_to_string(Path::new(ROOT).join("docs/guides/operator/shares.yaml"));
    let pool: Pool = serde_saphyr::from_str(&text.unwrap()).unwrap();
    let shares = pool.spec.shares_of_core();
    let shown = |(namespace, share): (&Namespace, &Share)| {
        (namespace.to_string(), share.guaranteed.get(), share.priority)
    };
    let shown: Vec<_> = shares.iter().map(shown).collect();
    assert_eq!(shown, [("chat".to_owned(), 16, 10), ("search".to_owned(), 8, 0)]);
    let schema = schema(&Pool::crd());
    let share = &schema["properties"]["spec"]["properties"]["shares"]["items"]["properties"];
    for one in serde_json::to_value(&pool.spec.shares).unwrap().as_array().unwrap() {
        for (field, value) in one.as_object().unwrap() {
            assert!(share[field].is_object(), "{field} is not in the schema");
            if let (Some(least), Some(most)) =
                (share[field]["minimum"].as_f64(), share[field]["maximum"].as_f64())
            {
                assert!((least..=most).contains(&value.as_f64().unwrap()), "{field}: {value}");
            }
        }
    }
}

/// The example stands in the documentation of the module, so that it is this text which is read.
#[test]
fn the_tenant_in_the_documentation_is_short_and_lets_its_key_in() {
    let page = include_str!("tenant/mod.rs");
    let (_, rest) = page.split_once("//! ```yaml\n").unwrap();
    let (example, _) = rest.split_once("//! ```\n").unwrap();
    let text: Vec<&str> = example.lines().map(|line| line.strip_prefix("//! ").unwrap()).collect();
    assert!(text.len() <= 8, "{} lines", text.len());
    let tenant: Tenant = serde_saphyr::from_str(&text.join("\n")).unwrap();
    let all = crate::resolve::resolve([&tenant]);
    let (_, one) = all.first_key_value().unwrap();
    assert_eq!(one.problems.first(), []);
    let access = one.access.as_ref().unwrap();
    assert_eq!((access.path.as_str(), access.keys.len()), ("ml/search", 1));
    assert!(access.allows("llama-3") && !access.allows("qwen"));
}

#[test]
fn claims_of_a_member_are_bounded_at_every_depth() {
    let schema = schema(&Tenant::crd());
    let spec = &schema["properties"]["spec"]["properties"];
    let claims = &spec["members"]["items"]["properties"]["claims"];
    assert!(claims["maxProperties"].is_u64(), "{claims}");
    let values = &claims["additionalProperties"];
    assert!(values["maxItems"].is_u64() && values["items"]["maxLength"].is_u64(), "{claims}");
    let columns = Tenant::crd().spec.versions[0].additional_printer_columns.clone().unwrap();
    let shown: Vec<&str> = columns
        .iter()
        .filter(|column| column.priority.unwrap_or(0) == 0)
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(shown, ["Ready", "Keys", "Spent", "Left", "Age"]);
}

/// Who may write Pools gives accelerators to namespaces, and who may write Tenants gives money and lets people in;
/// whoever has `edit` must not.
#[test]
fn nobody_can_write_pools_or_tenants_because_of_the_role_edit() {
    let path = Path::new(ROOT).join("charts/tests/rendered/defaults.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let documents = text.split("\n---").filter_map(|one| serde_saphyr::from_str::<Value>(one).ok());
    let label = |one: &Value| {
        one["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    };
    let mut roles = 0;
    for role in documents.filter(label) {
        roles += 1;
        for rule in role["rules"].as_array().unwrap() {
            let names = |what: &str| rule[what].as_array().cloned().unwrap_or_default();
            let guarded = ["pools", "tenants", "*"];
            let is_guarded = |one: &Value| {
                one.as_str()
                    .is_some_and(|one| guarded.iter().any(|guarded| one.starts_with(guarded)))
            };
            let of_them = names("resources").iter().any(is_guarded);
            let reads = ["get", "list", "watch"];
            let writes = names("verbs").iter().any(|one| !reads.contains(&one.as_str().unwrap()));
            assert!(!(of_them && writes), "{rule}");
        }
    }
    assert!(roles > 0, "the role of the chart is read");
}

fn current(file: &PathBuf, text: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    assert!(committed == text, "{}: run: UPDATE=1 cargo test -p flyball-resources", file.display());
}
