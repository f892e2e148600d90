//! The real vLLM on a CPU, 27 s and more to start.

use super::process::{Engine, parts};
use super::rig::{End, Reading, Rig, chat, get};
use std::time::Duration;

const NEEDED: &[&str] = &["vllm", "nano-hf", "llama-server", "nano.gguf"];

/// While it drains it says that it is healthy and answers every new request with a 500.
#[tokio::test]
#[ignore = "starts the real vLLM: cargo xtask engines --vllm"]
async fn vllm_that_drains_and_says_healthy_loses_nothing() {
    let Some(parts) = parts(NEEDED) else { return };
    let (vllm, other) = (Engine::vllm(&parts, 30).await, Engine::llama(&parts, 4).await);
    let rig = Rig::before(&[&vllm]);
    let mut stream = Reading::of(rig.address(), &chat("count", 1_500, true)).await;
    stream.events(3).await;
    rig.list(&[&vllm, &other], &[]);
    vllm.term();
    let mut refused = 0;
    for _ in 0..20 {
        let body = chat("hello", 4, false);
        if let Some((health, _)) = get(vllm.address, "/health").await {
            let (status, _) = Reading::of(vllm.address, &body).await.json().await;
            refused += u32::from(health == 200 && status == 500);
        }
        let (status, answer) = Reading::of(rig.address(), &body).await.json().await;
        assert_eq!(status, 200, "{answer}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(stream.end(Duration::from_secs(60)).await, End::Done);
    assert!(refused > 0, "vLLM has been mended: it no longer says healthy while it refuses");
}

/// With its default, `--shutdown-timeout 0`, a stream gets no byte and no end after SIGTERM.
#[tokio::test]
#[ignore = "starts the real vLLM: cargo xtask engines --vllm"]
async fn vllm_that_stalls_on_sigterm_hangs_no_client() {
    let Some(parts) = parts(NEEDED) else { return };
    let vllm = Engine::vllm(&parts, 0).await;
    let rig = Rig::before(&[&vllm]);
    let mut stream = Reading::of(rig.address(), &chat("count", 1_500, true)).await;
    stream.events(3).await;
    vllm.term();
    assert_eq!(stream.end(Duration::from_secs(20)).await, End::Error);
}

#[tokio::test]
#[ignore = "starts the real vLLM: cargo xtask engines --vllm"]
async fn vllm_and_llama_server_give_the_same_short_answer() {
    let Some(parts) = parts(NEEDED) else { return };
    let (vllm, llama) = (Engine::vllm(&parts, 30).await, Engine::llama(&parts, 2).await);
    let mut texts = Vec::new();
    for engine in [&vllm, &llama] {
        let rig = Rig::before(&[engine]);
        let body = chat("Name three colours.", 12, false);
        let (status, answer) = Reading::of(rig.address(), &body).await.json().await;
        assert_eq!(status, 200, "{answer}");
        texts.push(answer["choices"][0]["message"]["content"].clone());
    }
    assert_eq!(texts[0], texts[1]);
}
