//! A model and two training runs on one Pool: what the model does not need is lent, comes back when requests come, and is
//! lent again.
//!
//! The Pool has the eight emulated GPUs of the test cluster. A run is a shell loop that keeps its step in a volume, which is a
//! folder of this machine; its log is where heartbeats are read.

mod day;
mod place;

use super::faults::under_load;
use super::rig::{Rig, Setup};
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Story, dynamic, in_namespace, kubectl_output, note, until};
use place::{Place, adopted, job_set, made};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

/// Only so that it ends.
const LONG: Duration = Duration::from_secs(240);

/// The governor holds the replicas of a load that has just ended for some three minutes.
const QUIET: Duration = Duration::from_secs(480);

/// Steps of a run, of a second each, with a save every five.
const STEPS: i64 = 40;

/// Replicas that requests are enough for. With one GPU that stays free, two are left of eight.
const MOST: i32 = 5;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn loans_go_to_training_and_come_back_for_requests() -> Result<()> {
    in_namespace(&[], async |story| {
        super::rig::crds(story)?;
        let place = Place::new(story).await?;
        let played = play(story).await;
        place.remove(story).await?;
        played
    })
    .await
}

async fn play(story: &Story) -> Result<()> {
    let setup = Setup {
        start_seconds: 2,
        scaling: json!({ "mode": "Act", "min": 1, "max": MOST }),
        // Eight streams of some 60 tokens a second want more than five.
        decode: Some(40),
        pool: Some(story.namespace.clone()),
        serves: true,
        ..Setup::default()
    };
    let rig = Box::pin(Rig::of(story, setup)).await?;
    let told = lent_and_taken_back(story, &rig).await;
    told.with_context(|| format!("the operator's log:\n{}", rig.operator.log()))
}

async fn lent_and_taken_back(story: &Story, rig: &Rig<'_>) -> Result<()> {
    let began = Instant::now();
    story.apply(&made(story, "large", (2, 2), STEPS).to_string())?;
    story.apply(&job_set(story).to_string())?;
    story.apply(&adopted(story).to_string())?;
    let is_lent = |run: &Value| run["loan"]["reason"] == "Lent" && step(run) > 5;
    until("both runs to take steps on what is lent", LONG, async || {
        let (large, small) = (run(story, "large").await?, run(story, "small").await?);
        Ok((is_lent(&large) && is_lent(&small)).then_some(()))
    })
    .await
    .with_context(|| account(story))?;
    let lending = pool(story).await?["lending"].clone();
    ensure!(lending["lentGpus"] == 6, "four and two are lent: {lending:#}");
    note(&format!("{:.0} s: six GPUs are lent: {lending}", began.elapsed().as_secs_f64()));
    note(&flyball(story, &["why", "run/large"])?);

    let back = async {
        rig.settled(MOST as usize, LONG).await?;
        until("the take-back to be told of", LONG, async || {
            let lending = pool(story).await?["lending"].clone();
            Ok((lending["takeBacks"].as_i64() > Some(0)).then_some(lending))
        })
        .await
    };
    let (lending, load) = Box::pin(under_load(rig, 200, back)).await?;
    ensure!(load.errors.is_empty(), "{:?}", load.errors.first());
    let large = run(story, "large").await?;
    note(&format!(
        "{:.0} s: {MOST} replicas serve, {} requests were answered; {}; {lending}",
        began.elapsed().as_secs_f64(),
        load.answered,
        large["loan"]
    ));
    ensure!(lending["lateTakeBacks"] == 0, "a promise was broken: {lending:#}");
    ensure!(large["loan"]["reason"] == "TakenBack", "{large:#}");
    ensure!(run(story, "small").await?["attemptCount"] == 1, "two are still there for it");

    until("what is not needed any more to be lent again", QUIET, async || {
        let large = run(story, "large").await?;
        Ok((large["attemptCount"] == 2 && large["loan"]["reason"] == "Lent").then_some(()))
    })
    .await
    .with_context(|| account(story))?;
    note(&format!("{:.0} s: lent again", began.elapsed().as_secs_f64()));
    for name in ["small", "large"] {
        let ended = until("the run to end", LONG, async || {
            let status = run(story, name).await?;
            let all = status["conditions"].as_array();
            let complete = all.is_some_and(|all| all.iter().any(|one| one["type"] == "Complete"));
            Ok(complete.then_some(status))
        });
        let status = ended.await.with_context(|| account(story))?;
        ensure!(step(&status) == STEPS, "{status:#}");
    }
    let large = run(story, "large").await?;
    let (from, saved) = (&large["attempts"][1]["fromStep"], &large["attempts"][0]["lastStep"]);
    note(&format!("{:.0} s: both ended: {}", began.elapsed().as_secs_f64(), large["attempts"]));
    let (from, last) = (from.as_i64().unwrap_or(0), saved.as_i64().unwrap_or(i64::MAX));
    ensure!(from > 0 && last - from < 10, "from {from} on, after {last}");
    ensure!(get(story, &["events"])?.contains("TakenBack"), "no event says that it was taken back");
    Ok(())
}

fn step(status: &Value) -> i64 {
    status["progress"]["step"].as_i64().unwrap_or(0)
}

/// Everything that a person would look at.
fn account(story: &Story) -> String {
    let kinds = ["trainingruns", "workloads.kueue.x-k8s.io", "pools.flyball.dev"];
    let all = kinds.map(|kind| get(story, &[kind, "--output", "yaml"]));
    all.map(|one| one.unwrap_or_else(|error| error.to_string())).join("\n")
}

fn get(story: &Story, what: &[&str]) -> Result<String> {
    let all = [&["--namespace", &story.namespace, "get"], what].concat();
    kubectl_output(&story.cluster, &all, "")
}

fn flyball(story: &Story, args: &[&str]) -> Result<String> {
    let mut command = Command::new(&story.cluster.binary);
    let command = command.args(args).args(["--namespace", &story.namespace]);
    let command = command.env("KUBECONFIG", &story.cluster.kubeconfig).env("NO_COLOR", "1");
    Ok(String::from_utf8_lossy(&command.output()?.stdout).into_owned())
}

/// The status of a run.
async fn run(story: &Story, name: &str) -> Result<Value> {
    let (client, namespace) = (&story.cluster.client, Some(story.namespace.as_str()));
    let runs = dynamic(client, namespace, "flyball.dev/v1alpha1", "TrainingRun");
    Ok(runs.get(name).await?.data["status"].clone())
}

/// The status of the Pool.
async fn pool(story: &Story) -> Result<Value> {
    let pools = dynamic(&story.cluster.client, None, "flyball.dev/v1alpha1", "Pool");
    Ok(pools.get(&story.namespace).await?.data["status"].clone())
}
