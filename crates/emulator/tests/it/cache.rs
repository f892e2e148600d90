//! The cache, the metrics page and the log.

use crate::client::{get, post};
use flyball_emulator::{Emulator, EmulatorSettings, LoggedOutcome};
use serde_json::json;

#[tokio::test]
async fn the_second_prompt_that_begins_alike_finds_its_blocks() {
    let running = Emulator::start(EmulatorSettings::quick()).unwrap();
    let to = running.address;
    // 40 blocks of 64 bytes alike, then something of its own.
    let ask = |own: &str| {
        let prompt = "x".repeat(40 * 64) + own;
        json!({"model": "emulated", "prompt": prompt, "max_tokens": 2})
    };
    let cached = |answer: &crate::client::Answer| {
        answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    let first = post(to, "/v1/completions", &ask("one")).await;
    let second = post(to, "/v1/completions", &ask("other")).await;
    assert_eq!((cached(&first), cached(&second)), (0, 40 * 16));

    let log = running.log(10);
    assert_eq!(log.len(), 2);
    assert_eq!(log[1].cached_tokens, 640);
    assert_eq!(log[1].outcome, LoggedOutcome::Finished);
    assert_eq!(log[1].request_id.as_deref(), Some("the-one"));
    // A step takes 5 ms, and 640 prompt tokens 12.8 ms more.
    let ttft = |index: usize| log[index].first_token.unwrap() - log[index].arrived;
    assert!((ttft(0) - 0.005 - 641.0 * 20e-6).abs() < 1e-9, "{}", ttft(0));
    assert!((ttft(1) - 0.005 - 2.0 * 20e-6).abs() < 1e-9, "{}", ttft(1));

    let page = get(to, "/metrics").await.text();
    let label = r#"{engine="0",model_name="emulated"}"#;
    for line in [
        format!("vllm:prefix_cache_hits_total{label} 640"),
        format!("vllm:prefix_cache_queries_total{label} 1283"),
        format!("vllm:prompt_tokens_total{label} 1283"),
        format!("vllm:generation_tokens_total{label} 4"),
        format!("vllm:num_requests_running{label} 0"),
        format!("vllm:time_to_first_token_seconds_count{label} 2"),
        format!("vllm:inter_token_latency_seconds_count{label} 2"),
        r#"vllm:request_success_total{engine="0",model_name="emulated",finished_reason="length"} 2"#
            .to_owned(),
    ] {
        assert!(page.lines().any(|found| found == line), "no {line} in\n{page}");
    }
    let log = get(to, "/emulator/log?last=1").await.json();
    assert_eq!(log.as_array().unwrap().len(), 1);
    assert_eq!(log[0]["cached_tokens"], 640);
    running.stop().await;
}

#[tokio::test]
async fn a_small_cache_preempts_and_every_request_still_gets_all_tokens() {
    let mut settings = EmulatorSettings::quick();
    // Room for four requests of 16 + 240 tokens at their end, and 16 come.
    settings.speed.settings.blocks = 64;
    settings.speed_up = 4.0;
    let running = Emulator::start(settings).unwrap();
    let to = running.address;
    let requests: Vec<_> = (0..16)
        .map(|index| {
            tokio::spawn(async move {
                let prompt = format!("{index:064}");
                let body = json!({"model": "emulated", "prompt": prompt, "max_tokens": 240,
                                  "stream": true});
                post(to, "/v1/completions", &body).await.events().len()
            })
        })
        .collect();
    for request in requests {
        // Tokens, the reason, [DONE].
        assert_eq!(request.await.unwrap(), 242);
    }
    let state = running.state();
    assert!(state.preemptions > 0);
    assert_eq!((state.running, state.waiting, state.finished), (0, 0, 16));
    assert_eq!(state.generated_tokens, 16 * 240);
    running.stop().await;
}
