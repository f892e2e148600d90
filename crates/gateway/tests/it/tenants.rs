//! Callers that come from Tenants: who is let in, and what there is for whom.

use crate::engine::{Does, Engine};
use crate::rig::{PLAIN, Rig, body_of, chat, chat_of, key, post};
use flyball_gateway::UnauthorizedReason;
use flyball_gateway::settings::{Arm, GatewaySettingsFile, Mirror, ModelSettings, Split};
use flyball_gateway::tenants::{TenantReading, TenantReadings};
use flyball_resources::Tenant;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The key of a Tenant whose secret is this.
fn tenant_key(secret: &str, number: u32) -> Value {
    let sha256: String = Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "name": format!("k{number}"), "id": format!("{number:010}"), "sha256": sha256 })
}

/// A Tenant of the namespace `ml`.
fn tenant(name: &str, spec: Value) -> (String, TenantReading) {
    let object = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": { "namespace": "ml", "name": name }, "spec": spec,
    });
    let tenant: Tenant = serde_json::from_value(object).expect("a Tenant");
    (format!("ml/{name}"), TenantReading::of(&tenant))
}

/// One with the secret `app` that may use these models.
fn app(models: &[&str]) -> TenantReadings {
    [tenant("search", json!({ "models": models, "keys": [tenant_key("app", 1)] }))].into()
}

fn watching(settings: &mut GatewaySettingsFile) {
    settings.tenants.watch = true;
}

/// An answer without what is different in each: the id of its request and its time.
fn same(answer: &str) -> String {
    let differs = |line: &&str| !line.starts_with("x-request-id:") && !line.starts_with("date:");
    answer.lines().filter(differs).collect::<Vec<_>>().join("\n")
}

fn get(path: &str, secret: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {secret}\r\n\r\n")
}

#[tokio::test]
async fn a_gateway_that_watches_tenants_is_closed_while_there_is_none() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], watching);
    for request in [chat(PLAIN), chat_of("app", "", PLAIN), get("/v1/models", "app")] {
        assert!(rig.whole(&request).await.starts_with("HTTP/1.1 401"), "{request}");
    }
    rig.gateway.admit(&app(&["m"]));
    assert!(rig.whole(&chat_of("app", "", PLAIN)).await.starts_with("HTTP/1.1 200"));
    assert!(rig.whole(&chat(PLAIN)).await.starts_with("HTTP/1.1 401"));
    // A settings file that says less opens nothing, and a Tenant that is deleted is gone at once.
    rig.gateway.change(&GatewaySettingsFile::default());
    rig.gateway.admit(&TenantReadings::new());
    for request in [chat(PLAIN), chat_of("app", "", PLAIN)] {
        assert!(rig.whole(&request).await.starts_with("HTTP/1.1 401"), "{request}");
    }
}

#[tokio::test]
async fn keys_of_the_settings_stay_beside_those_of_tenants_and_one_in_both_is_nobodys() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |settings| {
        watching(settings);
        settings.keys = vec![key("own", None), key("both", None)];
    });
    let keys = json!([tenant_key("app", 1), tenant_key("both", 2)]);
    let readings = [tenant("search", json!({ "models": ["*"], "keys": keys }))].into();
    rig.gateway.admit(&readings);
    for (secret, status) in [("own", 200), ("app", 200), ("both", 401)] {
        let answer = rig.whole(&chat_of(secret, "", PLAIN)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{secret}: {answer}");
    }
    let lines = rig.finished(3).await;
    let logged: Vec<_> =
        lines.iter().map(|line| (line.caller.as_str(), line.key.as_deref())).collect();
    assert_eq!(logged, [("own", None), ("ml/search", Some("0000000001")), ("", None)]);
    assert_eq!(rig.keys_refused(), [(UnauthorizedReason::Refused, "0000000002".to_owned())]);
}

#[tokio::test]
async fn why_a_key_is_refused_is_for_us_to_know() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], watching);
    let mut keys = ["disabled", "expired", "pending"].map(|secret| tenant_key(secret, 0));
    for (number, key) in keys.iter_mut().enumerate() {
        key["name"] = json!(format!("k{number}"));
        key["id"] = json!(format!("{number:010}"));
    }
    keys[0]["disabled"] = json!(true);
    keys[1]["expires"] = json!("2020-01-01T00:00:00Z");
    keys[2]["notBefore"] = json!("2220-01-01T00:00:00Z");
    let deep = json!({ "models": ["*"], "parent": "nobody", "keys": [tenant_key("refused", 9)] });
    let search = tenant("search", json!({ "models": ["*"], "keys": keys }));
    rig.gateway.admit(&[search, tenant("deep", deep)].into());
    let unknown = same(&rig.whole(&chat_of("unknown", "", PLAIN)).await);
    for secret in ["disabled", "expired", "pending", "refused"] {
        assert_eq!(same(&rig.whole(&chat_of(secret, "", PLAIN)).await), unknown, "{secret}");
    }
    assert_eq!(same(&rig.whole(&chat(PLAIN)).await), unknown);
    let refused = rig.keys_refused();
    let refused: Vec<_> = refused.iter().map(|(why, id)| (*why, id.as_str())).collect();
    let expected = [
        (UnauthorizedReason::Unknown, ""),
        (UnauthorizedReason::Disabled, "0000000000"),
        (UnauthorizedReason::Expired, "0000000001"),
        (UnauthorizedReason::Pending, "0000000002"),
        (UnauthorizedReason::Refused, "0000000009"),
        (UnauthorizedReason::Missing, ""),
    ];
    assert_eq!(refused, expected);
}

#[tokio::test]
async fn a_model_that_may_not_be_used_is_as_one_that_does_not_exist() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let here = [engine.address];
    let rig = Rig::of(&[("secret", &here), ("hidden", &here), ("mine", &here)], |settings| {
        watching(settings);
        // One that is known and has no engine is not known to everybody either.
        let model = ModelSettings { name: "absent".to_owned(), ..ModelSettings::default() };
        settings.models = vec![model];
        let arm = |model: &str| Arm { model: model.to_owned(), weight: 1, known_as: None };
        let arms = vec![arm("hidden")];
        settings.splits = vec![Split { name: "split".to_owned(), arms, ..Split::default() }];
    });
    rig.gateway.admit(&app(&["mine"]));
    let surfaces = [
        ("/v1/chat/completions", "messages"),
        ("/v1/completions", "prompt"),
        ("/v1/embeddings", "input"),
        ("/v1/responses", "input"),
        ("/v1/messages", "messages"),
    ];
    for (path, field) in surfaces {
        let ask = async |model: &str| {
            let body = json!({ "model": model, field: [], "max_tokens": 5 }).to_string();
            let request = post(path, "connection: close\r\nx-api-key: app\r\n", &body);
            same(&rig.whole(&request).await).replace(model, "MODEL")
        };
        let nothing = ask("nobody").await;
        assert!(nothing.starts_with("HTTP/1.1 404") && nothing.contains("MODEL"), "{nothing}");
        for model in ["secret", "absent", "splits", "split", "hidden"] {
            let name_of_same_length = &"nobody-at-all"[..model.len()];
            assert_eq!(ask(model).await, ask(name_of_same_length).await, "{path} {model}");
        }
    }
    assert_eq!(engine.requests().len(), 0, "nothing came through");
    let list = rig.whole(&get("/v1/models", "app")).await;
    let list: Value = serde_json::from_str(body_of(&list)).expect("JSON");
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["data"][0]["id"], "mine");
    let one = async |name: &str| same(&rig.whole(&get(&format!("/v1/models/{name}"), "app")).await);
    assert!(one("mine").await.starts_with("HTTP/1.1 200"));
    let nobody = one("nobody").await;
    assert!(nobody.starts_with("HTTP/1.1 404"), "{nobody}");
    for name in ["secret", "hidden", "absent"] {
        assert_eq!(one(name).await, nobody.replace("nobody", name));
    }
}

#[tokio::test]
async fn who_may_use_a_split_may_use_its_arms_by_its_name_and_a_copy_goes_where_it_may() {
    let old = Engine::start(Does::Answers(200, r#"{"old":1}"#)).await;
    let next = Engine::start(Does::Answers(200, r#"{"next":1}"#)).await;
    let (here, there) = ([old.address], [next.address]);
    let rig = Rig::of(&[("old", &here), ("next", &there)], |settings| {
        watching(settings);
        let arms = vec![Arm { model: "old".to_owned(), weight: 1, known_as: None }];
        let model = "next".to_owned();
        let mirror = Some(Mirror { model, per_thousand: 1_000, known_as: None });
        settings.splits = vec![Split { name: "m".to_owned(), arms, mirror, ..Split::default() }];
    });
    rig.gateway.admit(&app(&["m"]));
    let answer = rig.whole(&chat_of("app", "", PLAIN)).await;
    assert_eq!(body_of(&answer), r#"{"old":1}"#);
    let direct = PLAIN.replace("\"m\"", "\"old\"");
    assert!(rig.whole(&chat_of("app", "", &direct)).await.starts_with("HTTP/1.1 404"));
    // Both are over, and there was no copy; with the right to use the other there is one.
    assert_eq!((rig.finished(2).await.len(), rig.copies_dropped()), (2, 0));
    rig.gateway.admit(&app(&["m", "next"]));
    rig.whole(&chat_of("app", "", PLAIN)).await;
    let lines = rig.finished(4).await;
    assert_eq!(lines.iter().filter(|line| line.mirrored).count(), 1);
    assert_eq!(next.requests().len(), 1);
}

#[tokio::test]
async fn tenants_share_caches_with_their_group_only() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], watching);
    let of = |name: &str, number: u32, group: Option<&str>| {
        let keys = [tenant_key(name, number)];
        tenant(name, json!({ "models": ["*"], "keys": keys, "cacheGroup": group }))
    };
    let all = [of("a", 1, Some("g")), of("b", 2, Some("g")), of("c", 3, None), of("d", 4, None)];
    rig.gateway.admit(&all.into());
    let mut salts = Vec::new();
    for secret in ["a", "b", "c", "d"] {
        rig.whole(&chat_of(secret, "", PLAIN)).await;
        let request = engine.requests().pop().expect("it came");
        let body: Value = serde_json::from_str(body_of(&request)).expect("JSON");
        salts.push(body["cache_salt"].as_str().expect("a salt").to_owned());
    }
    assert_eq!(salts[0], salts[1]);
    assert!(salts[1] != salts[2] && salts[2] != salts[3] && salts[0] != salts[3]);
}
