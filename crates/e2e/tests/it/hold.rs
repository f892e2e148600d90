//! A model at zero replicas, a thousand requests at once, one call to wake it.
//!
//! The engine is a real pod that takes a while from its start to its readiness. The gateway runs on
//! this machine, where its memory can be read, and watches the Service's EndpointSlices. The hook
//! that it calls is in this file: it counts and scales the Deployment up.

use anyhow::{Context, Result, ensure};
use flyball_e2e::http::HttpAnswer;
use flyball_e2e::process::{ServiceProcess, free};
use flyball_e2e::{Story, figure, in_namespace, is_long, note, until};
use futures::future::join_all;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const CHAT: &str = "/v1/chat/completions";

/// All at once, half of them streams.
const REQUESTS: usize = 1_000;
/// Of these, whole and as a stream, by the official client.
const OFFICIAL_EACH: usize = 5;
/// From the pod's start to its readiness, in seconds: a minute where figures are asked for.
fn asleep() -> u64 {
    if is_long() { 60 } else { 20 }
}

/// What a gateway may grow by for a thousand held requests of less than a kilobyte: 64 KB for each
/// with its connection, three times what was measured for a stream.
const MOST_GROWTH_BYTES: u64 = 64 << 20;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn gateway_holds_a_thousand_requests_while_a_model_wakes() -> Result<()> {
    in_namespace(&[], async |story| {
        deploy(story)?;
        let hook = Hook::start(story).await?;
        let gateway = Gateway::start(story, &hook)?;
        gateway.service.ready().await?;
        let before = gateway.service.resident()?;
        let began = Instant::now();
        let official = official(&gateway)?;
        let peak = AtomicU64::new(before);
        let over = AtomicUsize::new(0);
        let watch = async {
            while over.load(Ordering::Relaxed) == 0 {
                peak.fetch_max(gateway.service.resident()?, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            anyhow::Ok(())
        };
        let asking = async {
            let ours = REQUESTS - 2 * OFFICIAL_EACH;
            let outcomes = join_all((0..ours).map(|number| ask(&gateway, number))).await;
            over.store(1, Ordering::Relaxed);
            outcomes
        };
        let (outcomes, watched) = futures::future::join(asking, watch).await;
        watched?;
        let took = began.elapsed();
        let official = official.wait().await?;
        judge(&outcomes, &official, &hook, took)?;
        let growth = peak.load(Ordering::Relaxed).saturating_sub(before);
        note(&format!(
            "memory: {:.1} MB before, {:.1} MB at most",
            before as f64 / 1e6,
            peak.load(Ordering::Relaxed) as f64 / 1e6
        ));
        ensure!(growth < MOST_GROWTH_BYTES, "the gateway grew by {growth} bytes");
        Ok(())
    })
    .await
}

/// One request that was answered.
struct Answered {
    stream: bool,
    /// Comments that came before the first event.
    comments: usize,
    took: Duration,
}

/// Asks with a body like no other's, on a connection of its own.
async fn ask(gateway: &Gateway, number: usize) -> Result<Answered> {
    let stream = number.is_multiple_of(2);
    let body = json!({
        "model": "sleeper", "max_tokens": 8, "stream": stream,
        "messages": [{ "role": "user", "content": format!("Good morning, says {number}.") }],
    });
    let began = Instant::now();
    let mut answer = HttpAnswer::of(gateway.http, CHAT, Some(&body)).await?;
    let mut comments = 0;
    if stream {
        answer.finish().await?;
        comments = answer.comments_before_events();
        ensure!(!answer.content().is_empty(), "a stream without text");
    } else {
        let (status, text) = answer.whole().await?;
        ensure!(status == 200, "status {status}: {text}");
        let json: Value = serde_json::from_str(text.trim())
            .with_context(|| format!("an answer that is no JSON: {text}"))?;
        ensure!(json["choices"][0]["message"]["content"].is_string(), "no content: {text}");
    }
    Ok(Answered { stream, comments, took: began.elapsed() })
}

fn judge(
    outcomes: &[Result<Answered>],
    official: &Value,
    hook: &Hook,
    took: Duration,
) -> Result<()> {
    let answered: Vec<&Answered> =
        outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    let by_official = official["answered"].as_u64().unwrap_or(0) as usize;
    let percent = 100.0 * (answered.len() + by_official) as f64 / REQUESTS as f64;
    let calls = hook.calls.load(Ordering::Relaxed);
    let longest = answered.iter().map(|one| one.took).max().unwrap_or_default();
    let streams: Vec<&&Answered> = answered.iter().filter(|one| one.stream).collect();
    let silent = streams.iter().filter(|one| one.comments == 0).count();
    note(&format!(
        "{percent} % of {REQUESTS} answered in {:.1} s, the longest in {:.1} s; {calls} wake calls; \
         {silent} of {} streams without a comment; official client: {official}",
        took.as_secs_f64(),
        longest.as_secs_f64(),
        streams.len()
    ));
    figure("admission.held_answered_pct", percent, "%", "=100")?;
    figure("admission.wake_calls", calls as f64, "calls", "=1")?;
    let failed: Vec<String> = outcomes
        .iter()
        .filter_map(|outcome| outcome.as_ref().err())
        .map(|error| format!("{error:#}"))
        .take(5)
        .collect();
    ensure!(failed.is_empty(), "{percent} % answered; the first that were not: {failed:#?}");
    ensure!(by_official == 2 * OFFICIAL_EACH, "the official client was not answered: {official}");
    ensure!(calls == 1, "{calls} wake calls");
    ensure!(took > Duration::from_secs(asleep()), "the model was not asleep: {took:?}");
    ensure!(silent == 0, "{silent} of {} streams heard nothing while they waited", streams.len());
    Ok(())
}

fn deploy(story: &Story) -> Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cluster/manifests/sleeper.yaml");
    let manifest = std::fs::read_to_string(page)?
        .replace("FLYBALL_IMAGE", &story.cluster.image)
        .replace("SECONDS", &asleep().to_string());
    story.apply(&manifest)
}

/// What the gateway calls to have the model woken.
struct Hook {
    address: SocketAddr,
    calls: Arc<AtomicUsize>,
    server: tokio::task::JoinHandle<()>,
}

impl Hook {
    async fn start(story: &Story) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let deployments: Api<Deployment> =
            Api::namespaced(story.cluster.client.clone(), &story.namespace);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Err(error) = called(stream, &deployments, &counted).await {
                    note(&format!("the hook failed: {error:#}"));
                }
            }
        });
        Ok(Self { address, calls, server })
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// One call: a POST whose body names the model.
async fn called(
    mut stream: tokio::net::TcpStream,
    deployments: &Api<Deployment>,
    calls: &AtomicUsize,
) -> Result<()> {
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.contains("sleeper") {
        let read = stream.read(&mut piece).await?;
        ensure!(read > 0, "a call that names no model: {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    ensure!(text.starts_with("POST "), "not a POST: {text}");
    calls.fetch_add(1, Ordering::Relaxed);
    let patch = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
    deployments.patch("sleeper", &PatchParams::default(), &patch).await?;
    let answer = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    Ok(stream.write_all(answer.as_bytes()).await?)
}

/// A gateway on this machine.
struct Gateway {
    service: ServiceProcess,
    http: SocketAddr,
}

impl Gateway {
    fn start(story: &Story, hook: &Hook) -> Result<Self> {
        let (http, admin) = (free()?, free()?);
        let settings = format!(
            "listen = \"{http}\"\nadmin = \"{admin}\"\nthreads = 1\n\n\
             [telemetry]\naccess_log = false\n\n[waker]\nurl = \"http://{}\"\n\n\
             [[models]]\nname = \"sleeper\"\nservice = \"{}/sleeper:8000\"\n\
             hold_ms = 240000\nqueue_ms = 120000\n",
            hook.address, story.namespace
        );
        Ok(Self { service: ServiceProcess::start(story, "gateway", &settings, admin)?, http })
    }
}

/// The official client at work, in a process of its own.
struct Official(Child);

fn official(gateway: &Gateway) -> Result<Official> {
    let python = std::env::var("FLYBALL_E2E_PYTHON");
    let python = python.context("FLYBALL_E2E_PYTHON is not set; run it with `cargo xtask e2e`")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cluster/engines/hold.py");
    let child = Command::new(python)
        .arg(script)
        .arg(format!("http://{}", gateway.http))
        .args(["--model", "sleeper", "--each", &OFFICIAL_EACH.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("could not start the official client")?;
    Ok(Official(child))
}

impl Official {
    /// What it found.
    async fn wait(mut self) -> Result<Value> {
        until("the end of the official client", Duration::from_secs(300), async || {
            Ok(self.0.try_wait()?)
        })
        .await?;
        let mut text = String::new();
        let mut out = self.0.stdout.take().context("no standard output")?;
        std::io::Read::read_to_string(&mut out, &mut text)?;
        serde_json::from_str(&text).with_context(|| format!("the official client said: {text}"))
    }
}
