//! Real engines behind real gateways, in real pods: `cluster/manifests/gateway.yaml`. A story that needs
//! llama-server has `llama` in its name: where there is none, it is left out.

use anyhow::{Context, Result, ensure};
use flyball_e2e::http::{HttpAnswer, json};
use flyball_e2e::{Story, in_namespace, kubectl, until};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const CHAT: &str = "/v1/chat/completions";

/// Only so that a story that hangs ends.
const LONG: Duration = Duration::from_secs(120);

/// Tokens of an answer that takes seconds.
const LONG_TOKENS: u32 = 7_000;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn gateway_answers_from_llama_servers_and_a_hang_up_frees_the_slot() -> Result<()> {
    in_namespace(&[], async |story| {
        let gateway = deploy(story, "nano").await?;
        // The same answer whole and as a stream.
        let whole = json(gateway.http, CHAT, Some(&chat("nano", "Name a colour.", 24))).await?;
        let text = whole["choices"][0]["message"]["content"].as_str().context("no content")?;
        let mut stream = streamed(&gateway, chat("nano", "Name a colour.", 24)).await?;
        stream.finish().await?;
        ensure!(!text.is_empty() && stream.content() == text, "{text} and {}", stream.content());
        let models = json(gateway.http, "/v1/models", None).await?;
        ensure!(models["data"][0]["id"] == "nano", "{models}");
        let unknown = Some(chat("other", "Name a colour.", 1));
        let (status, body) =
            HttpAnswer::of(gateway.http, CHAT, unknown.as_ref()).await?.whole().await?;
        ensure!(status == 404 && body.contains("model_not_found"), "{status}: {body}");

        let slowest = hang_up_ten_times(story, &gateway).await?;
        note(&format!("hang-up to free slot: {} ms at most, of 10", slowest.as_millis()));
        count_requests(story, &gateway).await
    })
    .await
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn gateway_sends_a_conversation_to_the_llama_server_that_has_read_it() -> Result<()> {
    in_namespace(&[], async |story| {
        let gateway = deploy(story, "smollm2").await?;
        // Long enough that one core needs seconds to read it.
        let history: String = (0..90).map(|line| format!("Line {line} says so. ")).collect();
        let mut cached = Vec::new();
        for question in ["What does line 7 say?", "And line 8?", "And line 9?", "And line 10?"] {
            let body = chat("smollm2", &format!("{history}{question}"), 4);
            let began = Instant::now();
            let answer = json(gateway.http, CHAT, Some(&body)).await?;
            note(&format!("answered after {:?}: {}", began.elapsed(), answer["usage"]));
            let tokens = &answer["usage"]["prompt_tokens_details"]["cached_tokens"];
            cached.push(tokens.as_u64().is_some_and(|tokens| tokens > 300));
        }
        ensure!(cached == [false, true, true, true], "what was cached: {cached:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn gateway_and_llama_servers_restart_under_load_and_lose_nothing() -> Result<()> {
    in_namespace(&[], async |story| {
        let gateway = deploy(story, "nano").await?;
        let over = AtomicBool::new(false);
        let load = join_all((0..6).map(|client| load(&gateway, client, &over)));
        let restarts = async {
            let restarted = restart_both(story).await;
            over.store(true, Ordering::Relaxed);
            restarted
        };
        let (counts, restarted) = futures::future::join(load, restarts).await;
        restarted?;
        let (mut answered, mut lost) = (0, Vec::new());
        for (count, errors) in counts {
            answered += count;
            lost.extend(errors);
        }
        ensure!(lost.is_empty(), "{} of {answered} lost: {}", lost.len(), lost.join("\n"));
        ensure!(answered > 50, "too little load to tell: {answered}");
        note(&format!("restarts of gateways and engines: {answered} answered, 0 lost"));
        Ok(())
    })
    .await
}

/// Where the gateways' Service answers.
struct Gateway {
    http: SocketAddr,
    model: String,
}

/// Deploys two engines and two gateways, and waits until an answer comes through.
async fn deploy(story: &Story, model: &str) -> Result<Gateway> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cluster/manifests/gateway.yaml");
    let manifest = std::fs::read_to_string(page)?
        .replace("NAMESPACE", &story.namespace)
        .replace("FLYBALL_IMAGE", &story.cluster.image)
        .replace("LLAMA_IMAGE", &story.cluster.llama)
        .replace("MODEL", model);
    in_kubectl(story, &["apply", "--filename", "-"], &manifest)?;
    for name in ["deployment/engine", "deployment/gateway"] {
        in_kubectl(story, &["rollout", "status", name, "--timeout=90s"], "")?;
    }
    let services: Api<Service> = Api::namespaced(story.cluster.client.clone(), &story.namespace);
    let address = services.get("gateway").await?.spec.and_then(|spec| spec.cluster_ip);
    let address: IpAddr = address.context("a Service without an address")?.parse()?;
    let gateway = Gateway { http: (address, 8080).into(), model: model.to_owned() };
    until("an answer through the gateway", Duration::from_secs(30), async || {
        let answer = json(gateway.http, CHAT, Some(&chat(model, "Hello.", 1))).await;
        Ok(answer.ok())
    })
    .await?;
    Ok(gateway)
}

/// Greedy, and exactly so many tokens.
fn chat(model: &str, content: &str, tokens: u32) -> Value {
    json!({
        "model": model, "max_tokens": tokens, "temperature": 0, "ignore_eos": true,
        "messages": [{ "role": "user", "content": content }],
    })
}

async fn streamed(gateway: &Gateway, mut body: Value) -> Result<HttpAnswer> {
    body["stream"] = true.into();
    HttpAnswer::of(gateway.http, CHAT, Some(&body)).await
}

/// The slowest of ten, from the moment at which the client hangs up.
async fn hang_up_ten_times(story: &Story, gateway: &Gateway) -> Result<Duration> {
    let engines = addresses(story, "engine", 8080).await?;
    let mut slowest = Duration::ZERO;
    for turn in 0..10 {
        let body = chat("nano", &format!("Count, {turn}."), LONG_TOKENS);
        let mut stream = streamed(gateway, body).await?;
        stream.events(5).await?;
        ensure!(busy_slots(&engines).await? == 1, "no slot is at work");
        drop(stream);
        let hung_up = Instant::now();
        // Not `until`: it asks only every 200 ms.
        while busy_slots(&engines).await? > 0 {
            ensure!(hung_up.elapsed() < LONG, "the slot is never free");
        }
        slowest = slowest.max(hung_up.elapsed());
    }
    Ok(slowest)
}

async fn busy_slots(engines: &[SocketAddr]) -> Result<usize> {
    let mut busy = 0;
    for engine in engines {
        let slots = json(*engine, "/slots", None).await?;
        let slots = slots.as_array().context("no list of slots")?;
        busy += slots.iter().filter(|slot| slot["is_processing"] == true).count();
    }
    Ok(busy)
}

/// Every gateway says that it is ready and counts what it did, and so do the engines.
async fn count_requests(story: &Story, gateway: &Gateway) -> Result<()> {
    json(gateway.http, CHAT, Some(&chat("nano", "One more.", 1))).await?;
    let (mut answered, mut cancelled) = (0.0, 0.0);
    for admin in addresses(story, "gateway", 9090).await? {
        let page = metrics(admin).await?;
        answered += sum_of(&page, &["flyball_gateway_requests_total", "outcome=\"answered\""]);
        cancelled += sum_of(&page, &["flyball_gateway_requests_total", "outcome=\"cancelled\""]);
    }
    ensure!(answered >= 3.0 && cancelled >= 10.0, "{answered} answered, {cancelled} cancelled");
    let mut predicted = 0.0;
    for engine in addresses(story, "engine", 8080).await? {
        predicted += sum_of(&metrics(engine).await?, &["llamacpp:tokens_predicted_total"]);
    }
    // Ten that were written to their end would be ten times as many.
    let few = predicted > 48.0 && predicted < f64::from(LONG_TOKENS);
    ensure!(few, "the engines count {predicted} tokens");
    Ok(())
}

async fn metrics(address: SocketAddr) -> Result<String> {
    let (status, page) = HttpAnswer::of(address, "/metrics", None).await?.whole().await?;
    ensure!(status == 200, "{page}");
    Ok(page)
}

/// The sum of the samples whose line has all these words.
fn sum_of(page: &str, words: &[&str]) -> f64 {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let named = lines.filter(|line| words.iter().all(|word| line.contains(word)));
    named.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// The addresses of an app's ready pods.
async fn addresses(story: &Story, app: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let found = pods(story, app).await?;
    let running = found.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    running
        .map(|pod| {
            let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
            let address: IpAddr = address.context("a pod without an address")?.parse()?;
            Ok(SocketAddr::new(address, port))
        })
        .collect()
}

/// Requests one after the other, whole and streamed in turn, until told to stop.
async fn load(gateway: &Gateway, client: u32, over: &AtomicBool) -> (u32, Vec<String>) {
    let (mut answered, mut errors) = (0, Vec::new());
    for turn in 0.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let body = chat(&gateway.model, &format!("Client {client}, turn {turn}."), 150);
        let answering = async {
            if turn % 2 == 0 {
                return json(gateway.http, CHAT, Some(&body)).await.map(drop);
            }
            streamed(gateway, body.clone()).await?.finish().await
        };
        match answering.await {
            Ok(()) => answered += 1,
            Err(error) => errors.push(format!("client {client}, turn {turn}: {error:#}")),
        }
        // A pause, so that six clients leave room for pods that start on the same two cores.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    (answered, errors)
}

/// Replaces every gateway, then every engine.
async fn restart_both(story: &Story) -> Result<()> {
    for app in ["gateway", "engine"] {
        let old = names(&pods(story, app).await?);
        in_kubectl(story, &["rollout", "restart", &format!("deployment/{app}")], "")?;
        // Not `kubectl rollout status`: it would hold up the load, which runs in the same thread.
        until("the end of the restart", Duration::from_secs(120), async || {
            let now = pods(story, app).await?;
            let replaced = names(&now).iter().all(|name| !old.contains(name));
            Ok((replaced && now.len() == 2 && now.iter().all(is_ready)).then_some(()))
        })
        .await
        .context(app)?;
    }
    Ok(())
}

async fn pods(story: &Story, app: &str) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(story.cluster.client.clone(), &story.namespace);
    Ok(pods.list(&ListParams::default().labels(&format!("app={app}"))).await?.items)
}

fn names(pods: &[Pod]) -> Vec<String> {
    pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
}

fn in_kubectl(story: &Story, args: &[&str], input: &str) -> Result<()> {
    let mut words = vec!["--namespace", &story.namespace];
    words.extend(args);
    kubectl(&story.cluster, &words, input)
}

#[expect(clippy::print_stderr, reason = "figures, for whoever runs the story")]
fn note(text: &str) {
    eprintln!("{text}");
}
