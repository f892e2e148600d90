//! Engines are chosen by the policy of their model, and others are scored beside it.

use crate::engine::{Does, Engine};
use crate::rig::{LONG, Rig, STREAM, chat};
use flyball_gateway::settings::{GatewaySettingsFile, ModelSettings, Recovery, RoutingSetting};
use std::time::Duration;

fn streams() -> Does {
    let pieces = vec!["data: {\"a\":1}\n\n", "data: {\"a\":2}\n\n", "data: [DONE]\n\n"];
    Does::Streams(pieces, Duration::ZERO)
}

fn model(policy: RoutingSetting, shadow: &[RoutingSetting]) -> ModelSettings {
    ModelSettings {
        name: "m".to_owned(),
        policy,
        shadow: shadow.to_vec(),
        ..ModelSettings::default()
    }
}

#[tokio::test]
async fn engines_take_turns_where_the_settings_say_so_and_others_are_scored() {
    let engines = [Engine::start(streams()).await, Engine::start(streams()).await];
    let all: Vec<&Engine> = engines.iter().collect();
    let rig = Rig::start(&all, |settings| {
        settings.models = vec![model(RoutingSetting::RoundRobin, &[RoutingSetting::Prefix])];
    });
    for _ in 0..40 {
        assert!(rig.whole(&chat(STREAM)).await.contains("[DONE]"));
    }
    assert_eq!(engines.each_ref().map(|engine| engine.requests().len()), [20, 20]);
    // Scored: those after the 32 whose first tokens say what engines are like.
    let scored = async {
        loop {
            let report: serde_json::Value =
                serde_json::from_str(&rig.gateway.shadows().json()).expect("JSON");
            if report["models"][0]["requests"].as_u64() > Some(0) {
                return report;
            }
            assert!(rig.whole(&chat(STREAM)).await.contains("[DONE]"));
        }
    };
    let report = tokio::time::timeout(LONG, scored).await.expect("a report");
    assert_eq!(report["models"][0]["policies"][1]["policy"], "prefix", "{report}");
    assert_eq!(report["dropped"], 0);
}

#[tokio::test]
async fn a_changed_policy_holds_from_the_next_request_on() {
    let engines = [Engine::start(streams()).await, Engine::start(streams()).await];
    let all: Vec<&Engine> = engines.iter().collect();
    let rig = Rig::start(&all, |settings| {
        settings.models = vec![model(RoutingSetting::Prefix, &[])];
    });
    let long = format!(
        r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "word ".repeat(2_000)
    );
    // More of them at once would make the prompt a popular one, which gets a second home.
    for _ in 0..4 {
        rig.whole(&chat(&long)).await;
        // The client has its answer a moment before the engine counts as free again, and a prompt does
        // not wait behind another where an engine is idle.
        while rig.gateway.inside().requests > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let mut counts = engines.each_ref().map(|engine| engine.requests().len());
    counts.sort_unstable();
    assert_eq!(counts, [0, 4], "a prompt stays where it is");
    let models = vec![model(RoutingSetting::RoundRobin, &[])];
    let recovery = Recovery { hedge_per_thousand: 0, ..Recovery::default() };
    rig.gateway.change(&GatewaySettingsFile { models, recovery, ..GatewaySettingsFile::default() });
    for _ in 0..4 {
        rig.whole(&chat(&long)).await;
    }
    let mut counts = engines.each_ref().map(|engine| engine.requests().len());
    counts.sort_unstable();
    assert_eq!(counts, [2, 6]);
}
