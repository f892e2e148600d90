//! What the operator is told that prompts are: what engines must read, in their own count.

use crate::engine::{Does, Engine};
use crate::rig::{Rig, chat};
use flyball_gateway::AdmittedDemand;

fn saying(content: &str) -> String {
    chat(&format!(r#"{{"model":"m","messages":[{{"role":"user","content":{content}}}]}}"#))
}

async fn demand(engine: &Engine, requests: impl Iterator<Item = String>) -> AdmittedDemand {
    let rig = Rig::start(&[engine], |_| {});
    let mut many = 0;
    for request in requests {
        assert!(rig.whole(&request).await.starts_with("HTTP/1.1 200"));
        many += 1;
        rig.finished(many).await;
    }
    rig.gateway.demand().remove(0)
}

/// An agent's conversation: each turn is all turns before and a little more.
fn turns() -> impl Iterator<Item = String> {
    let text =
        |bytes: usize| "all work and no play ".chars().cycle().take(bytes).collect::<String>();
    (0..20).map(move |turn| saying(&format!("{:?}", text(40_000 + 1_000 * turn))))
}

#[tokio::test]
async fn a_conversation_counts_for_what_is_new_in_it() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let demand = demand(&engine, turns()).await;
    assert!(demand.arrived_tokens > 200_000, "{demand:?}");
    // 10,000 once; then 250 in each turn, and what stands behind the last depth that is remembered,
    // up to a fifth.
    assert!((10_000..60_000).contains(&demand.uncached_tokens), "{demand:?}");
}

#[tokio::test]
async fn caches_that_have_nothing_are_believed_over_hope() {
    let usage = r#"{"usage":{"prompt_tokens":12000,"completion_tokens":1,
        "prompt_tokens_details":{"cached_tokens":0}}}"#;
    let engine = Engine::start(Does::Answers(200, usage)).await;
    let demand = demand(&engine, turns()).await;
    // Learned from the first few on.
    assert!(demand.uncached_tokens > demand.arrived_tokens / 3, "{demand:?}");
}

#[tokio::test]
async fn a_picture_counts_for_what_an_engine_makes_of_it() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let picture = format!("data:image/png;base64,{}", "iVBORw0KGgoA/+".repeat(30_000));
    let part = format!(r#"[{{"type":"image_url","image_url":{{"url":"{picture}"}}}}]"#);
    let demand = demand(&engine, std::iter::once(saying(&part))).await;
    assert!((1_000..1_200).contains(&demand.arrived_tokens), "{demand:?}");
    assert_eq!(demand.uncached_tokens, demand.arrived_tokens);
}
