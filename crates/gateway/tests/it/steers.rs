//! What steers engines stops here, in bodies as in headers, unless the model's settings pass it on.

use crate::engine::{Does, Engine};
use crate::rig::{Rig, body_of, chat};
use flyball_gateway::settings::{GatewaySettingsFile, ModelSettings};

/// Written down apart from the gateway's own list.
const STEERING: [&str; 16] = [
    "priority",
    "kv_transfer_params",
    "ec_transfer_params",
    "vllm_xargs",
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "bootstrap_pair_key",
    "data_parallel_rank",
    "routed_dp_rank",
    "disagg_prefill_dp_rank",
    "rid",
    "session_params",
    "custom_logit_processor",
    "return_hidden_states",
    "id_slot",
];

fn body(key: &str, value: &str) -> String {
    format!(r#"{{"{key}":{value},"messages":[],"model":"m"}}"#)
}

fn allow(settings: &mut GatewaySettingsFile, keys: &[&str]) {
    let engine_keys = keys.iter().map(|key| (*key).to_owned()).collect();
    settings.models.push(ModelSettings {
        name: "m".to_owned(),
        engine_keys,
        ..ModelSettings::default()
    });
}

#[tokio::test]
async fn a_key_that_steers_engines_is_refused_and_named() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |s| allow(s, &[]));
    for key in STEERING {
        for value in ["-1", r#"{"remote_host":"10.0.0.1"}"#, r#""x""#, "true"] {
            let answer = rig.whole(&chat(&body(key, value))).await;
            assert!(answer.starts_with("HTTP/1.1 400"), "{key} {value}: {answer}");
            assert!(answer.contains(&format!("`{key}` steers the engine")), "{answer}");
        }
    }
    assert_eq!(engine.requests().len(), 0, "no engine heard of it");
    // What says nothing, and what only looks like it, goes on as it came.
    for (index, (key, value)) in [
        ("priority", "null"),
        ("kv_transfer_params", "null"),
        ("Priority", "1"),
        ("prioritys", "1"),
    ]
    .into_iter()
    .enumerate()
    {
        let sent = body(key, value);
        assert!(rig.whole(&chat(&sent)).await.starts_with("HTTP/1.1 200"), "{sent}");
        assert_eq!(body_of(&engine.requests()[index]), sent);
    }
}

#[tokio::test]
async fn a_model_passes_on_what_its_settings_allow_and_nothing_else() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |s| allow(s, &["priority"]));
    let sent = body("priority", "-5");
    assert!(rig.whole(&chat(&sent)).await.starts_with("HTTP/1.1 200"));
    assert_eq!(body_of(&engine.requests()[0]), sent);
    let both = r#"{"priority":1,"messages":[],"model":"m","rid":"another's"}"#;
    let answer = rig.whole(&chat(both)).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("`rid` steers"), "{answer}");
    assert_eq!(engine.requests().len(), 1);
}
