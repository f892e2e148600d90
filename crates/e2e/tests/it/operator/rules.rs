//! The API server refuses what our schemas forbid, in our words.

use anyhow::{Result, ensure};
use flyball_e2e::{Story, dynamic, in_namespace};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

fn object(kind: &str, spec: &Value) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": kind,
        "metadata": { "name": "m" }, "spec": spec,
    }))?)
}

fn adopted() -> Value {
    json!({ "variants": [{ "targetRef": { "kind": "Deployment", "name": "m" } }] })
}

/// A spec with something put over it.
fn with(over: &Value) -> Value {
    over_it(adopted(), over)
}

fn over_it(mut spec: Value, over: &Value) -> Value {
    for (name, value) in over.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    spec
}

/// Every rule with a spec that breaks it.
fn broken() -> Vec<(&'static str, Value)> {
    let engine = json!({ "kind": "VLLM", "image": "x" });
    vec![
        ("replicas` must be absent while", with(&json!({ "replicas": 2 }))),
        (
            "must be at most `scaling.max`",
            with(&json!({ "replicas": 20, "scaling": { "mode": "Act" } })),
        ),
        ("`model` must be set if", json!({ "variants": [{ "engine": engine }] })),
        (
            "exactly one of `targetRef` and `engine`",
            json!({ "model": "m", "variants": [{ "engine": engine,
                "targetRef": { "kind": "Deployment", "name": "m" } }] }),
        ),
        ("exactly one of `targetRef` and `engine`", json!({ "variants": [{}] })),
        ("`min` must be at most `max`", with(&json!({ "scaling": { "min": 5, "max": 2 } }))),
        (
            "exactly one of `weekly` and `once`",
            with(&json!({ "scaling": { "calendar": [{ "replicas": 2 }] } })),
        ),
        (
            "`from` must be before `until`",
            with(&json!({ "scaling": { "calendar": [{ "replicas": 2, "once": {
                "from": "2026-11-20T18:00:00Z", "until": "2026-11-20T17:00:00Z" } }] } })),
        ),
        ("Unsupported value: \"Control\"", with(&json!({ "scaling": { "mode": "Control" } }))),
        ("attainmentPercent", with(&json!({ "objectives": { "attainmentPercent": "100" } }))),
        (
            "Duplicate value",
            json!({ "variants": [
            { "targetRef": { "kind": "Deployment", "name": "a" } },
            { "targetRef": { "kind": "Deployment", "name": "b" } } ] }),
        ),
        ("must be of type integer", with(&json!({ "scaling": { "max": 2.5 } }))),
        ("spec.variants: Required value", json!({})),
    ]
}

/// The least that a Tenant can be.
fn let_in() -> Value {
    json!({ "models": ["llama-*"] })
}

/// Every rule of Tenants with a spec that breaks it.
fn broken_tenants() -> Vec<(&'static str, Value)> {
    let with = |over: Value| over_it(let_in(), &over);
    let key = |over: Value| {
        let key = json!({ "name": "app", "id": "k3J9xQ2mZa", "sha256": "0".repeat(64) });
        with(json!({ "keys": [over_it(key, &over)] }))
    };
    let member = |member: Value| with(json!({ "members": [member] }));
    let budget = |over: Value| {
        with(json!({ "budgets": [over_it(json!({ "name": "b", "period": "Month" }), &over)] }))
    };
    let accounts = json!([{ "namespace": "a", "name": "*" }]);
    let claims = json!({ "groups": ["ml"] });
    vec![
        ("spec.models: Required value", json!({})),
        ("spec.models", json!({ "models": [] })),
        ("spec.models[0]", json!({ "models": ["a*b"] })),
        (
            "`notBefore` must be before `expires`",
            key(json!({ "notBefore": "2026-11-20T18:00:00Z", "expires": "2026-11-20T17:00:00Z" })),
        ),
        ("spec.keys[0].id", key(json!({ "id": "k3J9xQ2mZ-" }))),
        ("spec.keys[0].sha256", key(json!({ "sha256": "A".repeat(64) }))),
        (
            "`serviceAccounts` must be set if",
            member(json!({ "issuer": "kubernetes", "claims": claims })),
        ),
        (
            "`claims` must be set if",
            member(json!({ "issuer": "https://id.example.com", "serviceAccounts": accounts })),
        ),
        ("`claims` must be set if", member(json!({ "issuer": "https://id.example.com" }))),
        ("issuer", member(json!({ "issuer": "http://id.example.com", "claims": claims }))),
        (
            "the name of a claim must have",
            member(
                json!({ "issuer": "https://a.example.com", "claims": { "n".repeat(129): ["x"] } }),
            ),
        ),
        ("exactly one of `amount` and `tokens`", budget(json!({}))),
        ("exactly one of `amount` and `tokens`", budget(json!({ "amount": "1", "tokens": 1 }))),
        ("amount", budget(json!({ "amount": "1.2345678" }))),
        ("Unsupported value: \"Year\"", budget(json!({ "amount": "1", "period": "Year" }))),
        ("weight", with(json!({ "weight": 0 }))),
    ]
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn the_api_server_refuses_tenants_that_the_schema_forbids() -> Result<()> {
    in_namespace(&[], async |story| {
        super::rig::crds(story)?;
        for (words, spec) in broken_tenants() {
            let refused = create(story, "Tenant", &spec, true).await;
            let problem = refused.err().map(|error| error.to_string()).unwrap_or_default();
            ensure!(problem.contains(words), "{spec}: wanted {words:?}, got {problem:?}");
        }
        let made = create(story, "Tenant", &let_in(), true).await?;
        ensure!(made.data["spec"]["weight"] == 1, "{}", made.data);
        ensure!(made.data["spec"]["priorityCeiling"] == "Normal", "{}", made.data);
        Ok(())
    })
    .await
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn the_api_server_refuses_what_the_schema_forbids() -> Result<()> {
    in_namespace(&[], async |story| {
        super::rig::crds(story)?;
        for (words, spec) in broken() {
            let refused = create(story, "ModelService", &spec, true).await;
            let problem = refused.err().map(|error| error.to_string()).unwrap_or_default();
            ensure!(problem.contains(words), "{spec}: wanted {words:?}, got {problem:?}");
        }
        let made = create(story, "ModelService", &adopted(), false).await?;
        ensure!(made.data["spec"]["scaling"]["mode"] == "Recommend", "{}", made.data);
        ensure!(made.data["spec"]["scaling"]["max"] == 10, "{}", made.data);
        // What a variant points at does not move.
        let api = api(story, "ModelService");
        let moved = json!({ "spec": { "variants": [
            { "name": "main", "targetRef": { "kind": "Deployment", "name": "other" } }] } });
        let moved = api.patch("m", &PatchParams::default(), &Patch::Merge(moved)).await;
        let problem = moved.err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(problem.contains("`targetRef` must not change"), "{problem:?}");
        api.delete("m", &DeleteParams::default()).await?;
        Ok(())
    })
    .await
}

fn api(story: &Story, kind: &str) -> kube::Api<DynamicObject> {
    let version = "flyball.dev/v1alpha1";
    dynamic(&story.cluster.client, Some(&story.namespace), version, kind)
}

async fn create(story: &Story, kind: &str, spec: &Value, dry_run: bool) -> Result<DynamicObject> {
    let params = PostParams { dry_run, ..PostParams::default() };
    Ok(api(story, kind).create(&params, &object(kind, spec)?).await?)
}
