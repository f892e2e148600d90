//! The API server refuses what our schemas forbid, in our words.

use anyhow::{Result, ensure};
use flyball_e2e::{Story, dynamic, in_namespace};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

fn model(spec: &Value) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": { "name": "m" }, "spec": spec,
    }))?)
}

fn adopted() -> Value {
    json!({ "variants": [{ "targetRef": { "kind": "Deployment", "name": "m" } }] })
}

/// A spec with something put over it.
fn with(over: &Value) -> Value {
    let mut spec = adopted();
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
        ("`model` must be set where", json!({ "variants": [{ "engine": engine }] })),
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

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn the_api_server_refuses_what_the_schema_forbids() -> Result<()> {
    in_namespace(&[], async |story| {
        super::rig::crds(story)?;
        for (words, spec) in broken() {
            let refused = create(story, &spec).await;
            let said = refused.err().map(|error| error.to_string()).unwrap_or_default();
            ensure!(said.contains(words), "{spec}: wanted {words:?}, got {said:?}");
        }
        let made = create(story, &adopted()).await?;
        ensure!(made.data["spec"]["scaling"]["mode"] == "Recommend", "{}", made.data);
        ensure!(made.data["spec"]["scaling"]["max"] == 10, "{}", made.data);
        // What a variant points at does not move.
        let api = models(story);
        let moved = json!({ "spec": { "variants": [
            { "name": "main", "targetRef": { "kind": "Deployment", "name": "other" } }] } });
        let moved = api.patch("m", &PatchParams::default(), &Patch::Merge(moved)).await;
        let said = moved.err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(said.contains("`targetRef` must not change"), "{said:?}");
        api.delete("m", &DeleteParams::default()).await?;
        Ok(())
    })
    .await
}

fn models(story: &Story) -> kube::Api<DynamicObject> {
    let version = "flyball.dev/v1alpha1";
    dynamic(&story.cluster.client, Some(&story.namespace), version, "ModelService")
}

async fn create(story: &Story, spec: &Value) -> Result<DynamicObject> {
    let dry = PostParams { dry_run: *spec != adopted(), ..PostParams::default() };
    Ok(models(story).create(&dry, &model(spec)?).await?)
}
