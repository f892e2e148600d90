//! A Tenant that pays: slices of its budget are granted here, by nobody but the test.

use crate::engine::{Does, Engine};
use crate::rig::{LONG, Rig, STREAM, body_of, chat_of, post};
use flyball_fleet::FleetReport;
use flyball_gateway::meter::RequestOutcome;
use flyball_gateway::tenants::TenantReading;
use flyball_resources::Tenant;
use flyball_resources::stream::{
    EmptyBudget, LeaseAsk, LeaseGrant, LeaseUnit, QuotaOrders, WideAmount,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::ops::Range;
use std::time::Duration;

/// The prompt of [`STREAM`] comes to fewer tokens.
const PROMPT: u64 = 10;

/// What pays for that prompt and 256 tokens of its answer, and not for 256 more.
const SLICE: u64 = 400;

/// A gateway before these engines, and a Tenant with a budget of which so much is granted.
fn rig(engines: &[&Engine], granted: u64) -> Rig {
    let sha256: String = Sha256::digest("app").iter().map(|byte| format!("{byte:02x}")).collect();
    let object = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": { "namespace": "ml", "name": "team" },
        "spec": {
            "models": ["*"],
            "keys": [{ "name": "app", "id": "k3J9xQ2mZa", "sha256": sha256 }],
            "budgets": [{ "name": "month", "tokens": 1_000_000, "period": "Month" }],
        },
    });
    let tenant: Tenant = serde_json::from_value(object).expect("a Tenant");
    let rig = Rig::start(engines, |settings| settings.tenants.watch = true);
    rig.gateway.admit(&[("ml/team".to_owned(), TenantReading::of(&tenant))].into());
    grant(&rig, granted);
    rig
}

fn grant(rig: &Rig, granted: u64) {
    let granted = Some(WideAmount { high: 0, low: granted });
    let unit = LeaseUnit::Tokens.into();
    let lease = LeaseGrant { scope: "ml/team".to_owned(), unit, granted, unlimited: false };
    let orders = QuotaOrders { term: 1, grants: vec![lease], ..QuotaOrders::default() };
    rig.gateway.quota().follow(&orders).expect("an order");
}

/// The next ask for what a request lacks.
async fn next_ask(rig: &Rig) -> LeaseAsk {
    let quota = rig.gateway.quota();
    let asking = async {
        loop {
            quota.due().await;
            let asks = quota.report(false).map(|report| report.asks).unwrap_or_default();
            let lacks = |ask: &LeaseAsk| ask.lacking.is_some_and(|lacking| lacking.low > 0);
            if let Some(ask) = asks.into_iter().find(lacks) {
                return ask;
            }
        }
    };
    tokio::time::timeout(LONG, asking).await.expect("an ask")
}

/// The whole answer, with money as soon as some is lacking.
async fn paid(rig: &Rig, request: &str) -> String {
    let paying = async {
        next_ask(rig).await;
        grant(rig, 10_000);
        std::future::pending::<String>().await
    };
    tokio::select! {
        answer = rig.whole(request) => answer,
        answer = paying => answer,
    }
}

/// The whole answer, if nothing is left whenever somebody asks.
async fn unpaid(rig: &Rig, request: &str) -> String {
    tokio::select! {
        answer = rig.whole(request) => answer,
        answer = refuse(rig) => answer,
    }
}

/// Refuses for ever.
async fn refuse(rig: &Rig) -> String {
    loop {
        let LeaseAsk { scope, unit, number, .. } = next_ask(rig).await;
        let amount = Some(WideAmount { high: 0, low: 1_000_000 });
        let empty = EmptyBudget {
            budget_scope: scope.clone(),
            scope,
            unit,
            number,
            budget: "month".to_owned(),
            limit: amount,
            spent: amount,
            resets_at_ms: None,
        };
        let orders = QuotaOrders { term: 1, empty: vec![empty], ..QuotaOrders::default() };
        rig.gateway.quota().follow(&orders).expect("an order");
    }
}

/// What the operator is told that is spent.
fn spent(rig: &Rig) -> u64 {
    let quota = rig.gateway.quota();
    quota.report_anew();
    let report = quota.report(true).expect("a budget applies");
    report.leases[0].spent.map_or(0, |spent| spent.low)
}

/// Events with these tokens of an answer.
fn tokens(numbers: Range<u64>) -> String {
    let event = |number: u64| {
        let delta = json!({ "content": format!(" w{number}") });
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
        format!("data: {}\n\n", json!({ "id": "a", "choices": [choice] }))
    };
    numbers.map(event).collect()
}

#[tokio::test]
async fn a_stream_that_is_stopped_costs_what_its_client_got() {
    let all: &'static str = tokens(0..1_000).leak();
    let engine = Engine::start(Does::Stalls(vec![all])).await;
    let rig = rig(&[&engine], SLICE);
    let answer = unpaid(&rig, &chat_of("app", "", STREAM)).await;
    assert!(answer.contains("insufficient_quota"), "{answer}");
    let got = answer.matches("\" w").count() as u64;
    assert_eq!(rig.finished(1).await[0].outcome, RequestOutcome::Broken);
    assert!((256..SLICE).contains(&got), "{got} tokens");
    assert!((got..=got + PROMPT).contains(&spent(&rig)), "{} for {got} tokens", spent(&rig));
}

#[tokio::test]
async fn an_engine_that_fails_while_its_stream_waits_for_money_has_not_ended_well() {
    let failed = "data: {\"error\":{\"code\":500}}\n\ndata: [DONE]\n\n";
    let end: &'static str = format!("{}{failed}", tokens(256..258)).leak();
    let begin: &'static str = tokens(0..256).leak();
    let engine = Engine::start(Does::Streams(vec![begin, end], Duration::from_millis(20))).await;
    let rig = rig(&[&engine], SLICE);
    let answer = paid(&rig, &chat_of("app", "", STREAM)).await;
    assert!(answer.contains("\" w257\"") && answer.contains("\"error\""), "{answer}");
    assert_eq!(rig.finished(1).await[0].outcome, RequestOutcome::Broken);
}

#[tokio::test]
async fn what_waited_for_money_becomes_a_part_of_one_answer_once() {
    let begin: &'static str = tokens(0..200).leak();
    let finish =
        json!({"id": "b", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let usage = json!({"prompt_tokens": 210, "completion_tokens": 58, "total_tokens": 268});
    let usage = json!({ "id": "b", "choices": [], "usage": usage });
    let end = format!("data: {finish}\n\ndata: {usage}\n\ndata: [DONE]\n\n");
    let end: &'static str = format!("{}{end}", tokens(200..258)).leak();
    for _ in 0..20 {
        let bad = Engine::start(Does::Cuts(vec![begin])).await;
        let good = Engine::start(Does::Streams(vec![end], Duration::ZERO)).await;
        let rig = rig(&[&bad, &good], SLICE);
        let asks = STREAM.replacen('{', r#"{"stream_options":{"include_usage":true},"#, 1);
        let answer = paid(&rig, &chat_of("app", "", &asks)).await;
        if bad.requests().is_empty() {
            continue;
        }
        let events = answer.lines().filter_map(|line| line.strip_prefix("data: "));
        let mut events = events.filter_map(|json| serde_json::from_str::<Value>(json).ok());
        let events = events.find(|event| event["usage"].is_object()).expect("usage");
        let whole = json!({"prompt_tokens": 10, "completion_tokens": 258, "total_tokens": 268});
        assert_eq!(events["usage"], whole, "{answer}");
        assert_eq!(rig.finished(1).await[0].continued, 1);
        assert_eq!(spent(&rig), 268);
        return;
    }
    panic!("the one that breaks was never asked");
}

#[tokio::test]
async fn an_answer_that_is_only_one_as_a_whole_costs_nothing_if_it_breaks_off() {
    let one: &'static str = tokens(0..1).leak();
    let engine = Engine::start(Does::Cuts(vec![one])).await;
    let rig = rig(&[&engine], 10_000);
    let body = r#"{"model":"m","max_tokens":300,"messages":[{"role":"user","content":"hi"}]}"#;
    rig.whole(&chat_of("app", "", body)).await;
    assert_eq!(rig.finished(1).await[0].outcome, RequestOutcome::Broken);
    assert_eq!(spent(&rig), 0);
}

#[tokio::test]
async fn an_answer_that_cannot_be_stopped_says_once_how_long_it_may_be() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = rig(&[&engine], 500_000);
    let (chat, hi) = ("/v1/chat/completions", json!([{"role": "user", "content": "hi"}]));
    let (completions, responses) = ("/v1/completions", "/v1/responses");
    for (path, body, key, most) in [
        (chat, json!({"messages": hi}), "max_tokens", 16_384),
        (chat, json!({"messages": hi, "max_tokens": null}), "max_tokens", 16_384),
        // Engines pass this key over.
        (chat, json!({"messages": hi, "max_output_tokens": 1}), "max_tokens", 16_384),
        (chat, json!({"messages": hi, "max_completion_tokens": 7}), "max_completion_tokens", 7),
        (responses, json!({"input": "hi", "max_output_tokens": null}), "max_output_tokens", 16_384),
        (completions, json!({"prompt": "hi"}), "max_tokens", 16),
    ] {
        let mut body = body;
        body["model"] = json!("m");
        let headers = "connection: close\r\nx-api-key: app\r\n";
        let answer = rig.whole(&post(path, headers, &body.to_string())).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let sent = engine.requests().pop().expect("a request");
        let sent = body_of(&sent);
        assert_eq!(sent.matches(&format!("\"{key}\"")).count(), 1, "{sent}");
        let sent: Value = serde_json::from_str(sent).expect("JSON");
        assert_eq!(sent[key], most, "{path} {body}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_stopped_fits_into_the_shortest_context_of_its_engines() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = rig(&[&engine], 500_000);
    let sent = async |content: &str| {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": content}]});
        let headers = "connection: close\r\nx-api-key: app\r\n";
        let answer = rig.whole(&post("/v1/chat/completions", headers, &body.to_string())).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let sent = engine.requests().pop().expect("a request");
        let sent: Value = serde_json::from_str(body_of(&sent)).expect("JSON");
        sent["max_tokens"].as_u64().expect("a number")
    };
    assert_eq!(sent("hi").await, 16_384, "not known yet");
    let endpoint = rig.gateway.fleet().endpoints().next().cloned().expect("an engine");
    endpoint.report(&FleetReport { context_tokens: Some(4_096), ..FleetReport::default() });
    let most = sent("hi").await;
    assert!((4_000..4_096).contains(&most), "{most}");
    let most = sent(&"word ".repeat(1_000)).await;
    assert!((512..4_096 - 1_000).contains(&most), "{most}");
    assert_eq!(
        sent(&"word ".repeat(5_000)).await,
        512,
        "too long for its context, as far as bytes tell"
    );
    endpoint.report(&FleetReport { context_tokens: Some(131_072), ..FleetReport::default() });
    assert_eq!(sent("hi").await, 16_384);
}
