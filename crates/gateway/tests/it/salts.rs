//! Whose cache an engine uses is said by the gateway.

use crate::engine::{Does, Engine};
use crate::rig::{PLAIN, Rig, body_of, chat, chat_of, key, post};
use flyball_engines::Engine as Kind;
use flyball_gateway::settings::ModelSettings;
use serde_json::Value;

/// The salts that an engine was told, and the bodies without them.
fn salts_at(engine: &Engine) -> Vec<(Option<String>, Value)> {
    let read = |request: &String| {
        let body = body_of(request);
        assert!(body.matches("cache_salt").count() < 2, "{body}");
        let mut body: Value = serde_json::from_str(body).expect("JSON");
        let salt = body.as_object_mut().expect("an object").remove("cache_salt");
        (salt.map(|salt| salt.as_str().expect("a string").to_owned()), body)
    };
    engine.requests().iter().map(read).collect()
}

#[tokio::test]
async fn each_caller_has_a_salt_of_its_own_and_a_group_has_one() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let keys = vec![
        key("ann", None),
        key("ben", None),
        key("cat", Some("pets")),
        key("dog", Some("pets")),
    ];
    let rig = Rig::start(&[&engine], |s| s.keys = keys);
    for secret in ["ann", "ann", "ben", "cat", "dog"] {
        let answer = rig.whole(&chat_of(secret, "", PLAIN)).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let salts_at = salts_at(&engine);
    let same: Value = serde_json::from_str(PLAIN).unwrap();
    assert!(salts_at.iter().all(|(salt, body)| salt.is_some() && *body == same), "{salts_at:?}");
    let salts: Vec<_> = salts_at.into_iter().map(|(salt, _)| salt).collect();
    assert_eq!(salts[0], salts[1]);
    assert_ne!(salts[0], salts[2]);
    assert_eq!(salts[3], salts[4]);
    assert_ne!(salts[0], salts[3]);
}

#[tokio::test]
async fn a_salt_that_a_caller_says_reaches_nobody_else() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |s| s.keys = vec![key("ann", None), key("ben", None)]);
    let own = |salt: &str| {
        format!(r#"{{"messages":[],"cache_salt":{salt},"model":"m","other":{{"cache_sal":1}}}}"#)
    };
    rig.whole(&chat_of("ben", "", &own("null"))).await;
    let bens = salts_at(&engine)[0].0.clone().unwrap();
    for (secret, salt) in [("ann", "x"), ("ann", "x"), ("ann", "y"), ("ben", "x"), ("ann", &bens)] {
        rig.whole(&chat_of(secret, "", &own(&format!("\"{salt}\"")))).await;
    }
    let salts: Vec<_> = salts_at(&engine).into_iter().map(|(salt, _)| salt.unwrap()).collect();
    assert_eq!(salts[1], salts[2]);
    let different = [&salts[0], &salts[1], &salts[3], &salts[4], &salts[5]];
    let distinct: std::collections::BTreeSet<_> = different.into_iter().collect();
    assert_eq!(distinct.len(), 5, "{salts:?}");
    assert!(!salts.iter().any(|salt| salt == "x" || salt == "y"), "{salts:?}");
}

#[tokio::test]
async fn bodies_are_left_alone_where_a_salt_means_nothing() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let salted = r#"{ "model":"m", "cache_salt":"mine","messages":[]}"#;
    let alone = Rig::start(&[&engine], |_| {});
    alone.whole(&chat(salted)).await;
    let keyed = Rig::start(&[&engine], |s| s.keys = vec![key("ann", None)]);
    let headers = "connection: close\r\nx-api-key: ann\r\n";
    keyed.whole(&post("/v1/embeddings", headers, r#"{"model":"m","input":"x"}"#)).await;
    let llama = Rig::start(&[&engine], |s| {
        s.keys = vec![key("ann", None)];
        let engine = Kind::LlamaCpp;
        s.models = vec![ModelSettings { name: "m".to_owned(), engine, ..ModelSettings::default() }];
    });
    llama.whole(&chat_of("ann", "", salted)).await;
    let requests = engine.requests();
    let bodies: Vec<_> = requests.iter().map(|request| body_of(request)).collect();
    assert_eq!(bodies, [salted, r#"{"model":"m","input":"x"}"#, salted]);
}
