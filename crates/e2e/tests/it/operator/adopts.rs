//! The six lines of the guide adopt a Deployment of which nobody states or predicts anything, without a gateway:
//! what a replica carries is learnt from what its engine counts, and the desired number follows the load.

use super::rig::{self, Setup};
use anyhow::{Context, Result, ensure};
use flyball_e2e::http::HttpAnswer;
use flyball_e2e::process::{ServiceProcess, metric};
use flyball_e2e::{Story, dynamic, figure, in_namespace, is_long, kubectl, note, until};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Service as KubeService;
use kube::api::Api;
use serde_json::{Value, json};
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The name that the guide's page has.
const NAME: &str = "qwen3-32b";

/// Twice as many as engines of four places take at once, so that some always wait.
const STREAMS: usize = 8;

/// Longer than a replica is thought to take to start.
const STEADY: Duration = Duration::from_secs(240);

/// Only so that it ends.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn six_lines_adopt_an_emulated_vllm_and_follow_its_load() -> Result<()> {
    let engine_args = vec!["--max-running=4".to_owned()];
    adopt(Setup { engine_args, ..Setup::default() }, "live.adopt_minutes").await
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn six_lines_adopt_a_llama_server_and_follow_its_load() -> Result<()> {
    if !is_long() {
        note("left out: minutes of a real engine's work are for those who ask for figures");
        return Ok(());
    }
    adopt(Setup { llama: true, ..Setup::default() }, "live.adopt_minutes_llama").await
}

async fn adopt(setup: Setup, name: &str) -> Result<()> {
    in_namespace(&[], async |story| {
        let setup = Setup { prometheus: Some(rig::prometheus(story).await?), ..setup };
        let engine = Box::pin(deployed(story, &setup)).await?;
        let began = Instant::now();
        let first = async {
            // Work waits before anybody looks: no engine with little to do was ever seen.
            until("work that waits", LONG, async || {
                Ok(waiting(engine).await.is_ok_and(|all| all > 0.0).then_some(()))
            })
            .await?;
            let adopted = Adopted::new(story, &setup).await?;
            adopted.goes_up().await?;
            Ok(adopted)
        };
        let adopted = under_load(engine, Box::pin(first)).await?;
        let minutes = began.elapsed().as_secs_f64() / 60.0;
        note(&format!("more replicas were asked for after {minutes:.2} minutes of traffic"));
        figure(name, minutes, "minutes", "<=10")?;
        if is_long() {
            under_load(engine, Box::pin(adopted.is_known())).await?;
            note(&adopted.why()?);
            adopted.goes_down().await?;
            note(&adopted.why()?);
        }
        Ok(())
    })
    .await
}

/// An operator that was told six lines.
struct Adopted<'a> {
    story: &'a Story,
    operator: ServiceProcess,
    /// Whether every signal was there once.
    is_loaded: AtomicBool,
}

impl<'a> Adopted<'a> {
    async fn new(story: &'a Story, setup: &Setup) -> Result<Self> {
        kubectl(&story.cluster, &["apply", "--filename", "-"], &six_lines(story)?)?;
        let (operator, _) = rig::operator(story, setup, None)?;
        operator.ready().await?;
        Ok(Self { story, operator, is_loaded: AtomicBool::new(false) })
    }

    /// First nobody knows what a replica carries, and that is said; then more are asked for.
    async fn goes_up(&self) -> Result<()> {
        self.wait("that the capacity is not known", |status| {
            decided(status) == "CapacityUnknown" && condition(status, "CapacityKnown") == "False"
        })
        .await?;
        self.wait("more replicas to be asked for", |status| recommended(status) > 1).await
    }

    /// Work that waits shows how much a replica carries, and goes on to.
    async fn is_known(&self) -> Result<()> {
        let known = |status: &Value| {
            condition(status, "CapacityKnown").is_empty() && recommended(status) > 1
        };
        self.wait("the capacity to be known", known).await?;
        tokio::time::sleep(STEADY).await;
        self.wait("it to be known still", known).await
    }

    /// Some may stand by for a next time, so that it need not go down to one.
    async fn goes_down(&self) -> Result<()> {
        let most = Cell::new(0);
        self.wait("fewer replicas to be asked for", |status| {
            most.set(most.get().max(recommended(status)));
            recommended(status) < most.get()
        })
        .await
    }

    /// Waits until the status is so. A signal that was heard once is never missing: engines have it, or have no
    /// such signal.
    async fn wait(&self, what: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
        let models = dynamic(
            &self.story.cluster.client,
            Some(&self.story.namespace),
            "flyball.dev/v1alpha1",
            "ModelService",
        );
        let mut last = Value::Null;
        let done = until(what, LONG, async || {
            let status = models.get(NAME).await?.data["status"].clone();
            if condition(&status, "SignalsFresh") == "True" {
                self.is_loaded.store(true, Ordering::Relaxed);
            }
            let missing = decided(&status) == "SignalsMissing";
            ensure!(!missing || !self.is_loaded.load(Ordering::Relaxed), "a signal is missing");
            last = status;
            Ok(is(&last).then_some(()))
        });
        let done = done.await;
        done.with_context(|| format!("{last:#}\nthe operator's log:\n{}", self.operator.log()))
    }

    /// What a person is told who asks why.
    fn why(&self) -> Result<String> {
        let output = Command::new(&self.story.cluster.binary)
            .args(["why", NAME, "--namespace", &self.story.namespace])
            .env("KUBECONFIG", &self.story.cluster.kubeconfig)
            .env("NO_COLOR", "1")
            .output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The engine, as its owner deployed it, and where it listens.
async fn deployed(story: &Story, setup: &Setup) -> Result<SocketAddr> {
    rig::crds(story)?;
    story.apply(&engines(story, setup)?)?;
    let rollout = ["--namespace", &story.namespace, "rollout", "status", "--timeout=120s"];
    let deployment = format!("deployment/{NAME}");
    kubectl(&story.cluster, &[&rollout[..], &[&deployment]].concat(), "")?;
    let services: Api<KubeService> =
        Api::namespaced(story.cluster.client.clone(), &story.namespace);
    let address = services.get(NAME).await?.spec.and_then(|spec| spec.cluster_ip);
    let address: IpAddr = address.context("a Service without an address")?.parse()?;
    Ok((address, 8000).into())
}

/// Requests that wait in the engine, whichever of the two it is.
async fn waiting(engine: SocketAddr) -> Result<f64> {
    let names = ["vllm:num_requests_waiting", "llamacpp:requests_deferred"];
    let [vllm, llama] = names.map(|name| metric(engine, name));
    Ok(vllm.await? + llama.await?)
}

/// The engines' Deployment and Service, under the name that the guide's page has.
fn engines(story: &Story, setup: &Setup) -> Result<String> {
    let all = setup.manifest(story)?;
    let engines = all.split("---\napiVersion: flyball.dev").next().unwrap_or_default();
    Ok(engines.replace("metadata: { name: model }", &format!("metadata: {{ name: {NAME} }}")))
}

/// The guide's page, in the story's namespace.
fn six_lines(story: &Story) -> Result<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/operator/adopt.yaml");
    Ok(std::fs::read_to_string(page)?.replace("team-a", &story.namespace))
}

/// Does the work while streams ask the engine itself; whoever still asks then hangs up.
async fn under_load<T>(engine: SocketAddr, work: impl Future<Output = Result<T>>) -> Result<T> {
    let ask = |stream: usize| async move {
        for number in 0.. {
            let text = format!("Tell {} of {stream} a story.", number * STREAMS + stream);
            let body = json!({
                "model": "model", "max_tokens": 200, "stream": true,
                "messages": [{ "role": "user", "content": text }],
            });
            let response = HttpAnswer::of(engine, "/v1/chat/completions", Some(&body)).await;
            let answered = match response {
                Ok(mut answer) => answer.finish().await,
                Err(error) => Err(error),
            };
            if answered.is_err() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    };
    tokio::select! {
        done = work => done,
        _ = join_all((0..STREAMS).map(ask)) => anyhow::bail!("nobody asks any more"),
    }
}

fn decided(status: &Value) -> &str {
    status["decision"]["reason"].as_str().unwrap_or_default()
}

fn recommended(status: &Value) -> i64 {
    status["recommendedReplicas"].as_i64().unwrap_or(0)
}

/// Whether a condition is so; nothing where it is not there.
fn condition<'a>(status: &'a Value, kind: &str) -> &'a str {
    let all = status["conditions"].as_array();
    let one = all.and_then(|all| all.iter().find(|one| one["type"] == kind));
    one.and_then(|one| one["status"].as_str()).unwrap_or_default()
}
