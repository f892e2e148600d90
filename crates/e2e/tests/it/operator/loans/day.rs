//! A recorded day at speed, with lending and without: what training makes of what the model leaves idle, whether loans
//! come back in time, and whether requests miss more.
//!
//! The day is one of ServeGen's, ten minutes of it in five seconds. Engines, pods and take-backs have their own time, so that a
//! minute of theirs is two hours of the day: nothing here is easier than in a day that takes a day.

use super::place::{Place, made};
use super::{LONG, Rig, Setup, pool, run, step};
use anyhow::{Context, Result, ensure};
use flyball_e2e::http::HttpAnswer;
use flyball_e2e::{Story, figure, in_namespace, is_long, note, until};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Ten minutes of the recording.
const BIN: Duration = Duration::from_secs(5);

/// Seconds of the recording at which the day begins: its second one.
const FROM: u64 = 86_400;

/// Bins of a day.
const BINS: usize = 144;

/// Requests per second in the fullest bin. An engine has two at a time, each of some second.
const PEAK: f64 = 8.0;

/// Tokens of an answer.
const TOKENS: u32 = 60;

/// The objective of the ModelService.
const FIRST_TOKEN: Duration = Duration::from_secs(2);

/// Accelerators of the test cluster.
const GPUS: usize = 8;

/// Runs that borrow, by their pods and the GPUs of each.
const RUNS: [(&str, u32, u32); 4] = [("four", 2, 2), ("two", 1, 2), ("one", 1, 1), ("other", 1, 1)];

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn loans_use_what_a_recorded_day_leaves_idle() -> Result<()> {
    if !is_long() {
        note("left out: it takes half an hour; only with --figure");
        return Ok(());
    }
    let rates = rates()?;
    let without = day(&rates, false).await?;
    let with = day(&rates, true).await?;
    let used = 100.0 * with.trained / with.idle.max(1.0);
    let in_promise = 100.0 * with.in_promise();
    let extra = 100.0 * (with.missed_share() - without.missed_share());
    note(&format!("without: {without:?}\nwith: {with:?}"));
    note(&format!(
        "{used:.1} % of idle GPU time trained, {in_promise:.1} % of take-backs in time, {extra:+.2} points missed"
    ));
    figure("training.idle_used_pct", used, "%", ">=40")?;
    figure("training.takeback_in_promise_pct", in_promise, "%", ">=99")?;
    figure("training.loan_extra_missed_points", extra, "points", "<=0")
}

/// What came of a day.
#[derive(Debug, Default)]
struct Day {
    requests: usize,
    missed: usize,
    /// GPU seconds that no pod of the model had.
    idle: f64,
    /// GPU seconds of steps that were not lost.
    trained: f64,
    take_backs: i64,
    late: i64,
    longest: i64,
}

impl Day {
    fn missed_share(&self) -> f64 {
        self.missed as f64 / self.requests.max(1) as f64
    }

    fn in_promise(&self) -> f64 {
        1.0 - self.late as f64 / self.take_backs.max(1) as f64
    }
}

async fn day(rates: &[f64], lends: bool) -> Result<Day> {
    let mut told = Day::default();
    in_namespace(&[], async |story| {
        super::super::rig::crds(story)?;
        let place = Place::new(story).await?;
        let played = play(story, rates, lends).await;
        place.remove(story).await?;
        told = played?;
        Ok(())
    })
    .await?;
    Ok(told)
}

async fn play(story: &Story, rates: &[f64], lends: bool) -> Result<Day> {
    let setup = Setup {
        start_seconds: 2,
        scaling: json!({ "mode": "Act", "min": 1, "max": 6 }),
        decode: Some(100),
        pool: Some(story.namespace.clone()),
        engine_args: vec!["--max-running=2".to_owned()],
        serves: true,
        ..Setup::default()
    };
    let rig = Box::pin(Rig::of(story, setup)).await?;
    if lends {
        for (name, nodes, gpus) in RUNS {
            story.apply(&made(story, name, (nodes, gpus), 1_000_000).to_string())?;
        }
        until("something to be lent", LONG, async || {
            Ok((pool(story).await?["lending"]["lentGpus"].as_i64() > Some(0)).then_some(()))
        })
        .await
        .with_context(|| rig.operator.log())?;
    }
    let before = trained(story, lends).await?;
    let (asked, idle) = tokio::join!(ask(rig.http, rates), idle(story, BIN * BINS as u32));
    let mut day = Day { idle: idle?, ..asked };
    if lends {
        day.trained = trained(story, lends).await? - before;
        let lending = pool(story).await?["lending"].clone();
        day.take_backs = lending["takeBacks"].as_i64().context("no take-backs")?;
        day.late = lending["lateTakeBacks"].as_i64().unwrap_or(0);
        let last = lending["lastSeconds"].as_array().into_iter().flatten();
        day.longest = last.filter_map(serde_json::Value::as_i64).max().unwrap_or(0);
        note(&format!("{lending}"));
        ensure!(day.take_backs > 0, "nothing was taken back: {lending}");
    }
    Ok(day)
}

/// GPU seconds of the steps of all runs that are not lost, of a second each.
async fn trained(story: &Story, lends: bool) -> Result<f64> {
    let mut sum = 0.0;
    for (name, nodes, gpus) in RUNS.iter().filter(|_| lends) {
        sum += step(&run(story, name).await?) as f64 * f64::from(nodes * gpus);
    }
    Ok(sum)
}

/// GPU seconds that no pod of the model has, while the day lasts.
async fn idle(story: &Story, length: Duration) -> Result<f64> {
    let pods: Api<Pod> = Api::namespaced(story.cluster.client.clone(), &story.namespace);
    let (began, mut sum) = (Instant::now(), 0.0);
    let mut last = began;
    while began.elapsed() < length {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let all = pods.list(&ListParams::default().labels("app=model")).await?.items;
        let idle = GPUS.saturating_sub(all.len());
        sum += idle as f64 * last.elapsed().as_secs_f64();
        last = Instant::now();
    }
    Ok(sum)
}

/// Sends the day's requests, evenly within each bin, and judges them.
async fn ask(http: SocketAddr, rates: &[f64]) -> Day {
    let (began, mut sent) = (Instant::now(), JoinSet::new());
    let mut due = 0.0;
    for (bin, rate) in rates.iter().enumerate() {
        let (start, count) = (BIN * bin as u32, rate * BIN.as_secs_f64() + due);
        due = count.fract();
        let whole = count as u32;
        for number in 0..whole {
            let at = start + BIN.mul_f64(f64::from(number) / f64::from(whole));
            tokio::time::sleep(at.saturating_sub(began.elapsed())).await;
            let salt = bin * 1_000 + number as usize;
            sent.spawn(async move { is_met(http, salt).await.unwrap_or(false) });
        }
    }
    let rest = (BIN * rates.len() as u32).saturating_sub(began.elapsed());
    tokio::time::sleep(rest).await;
    let met = join_all(std::iter::from_fn(|| sent.try_join_next()).map(std::future::ready)).await;
    let late = sent.join_all().await;
    let all: Vec<bool> = met.into_iter().map(|one| one.unwrap_or(false)).chain(late).collect();
    Day { requests: all.len(), missed: all.iter().filter(|met| !**met).count(), ..Day::default() }
}

/// Whether a request got its first token in time and all of the rest.
async fn is_met(http: SocketAddr, salt: usize) -> Result<bool> {
    let body = json!({
        "model": "model", "max_tokens": TOKENS, "stream": true,
        "messages": [{ "role": "user", "content": format!("Tell {salt} a story.") }],
    });
    let mut answer = HttpAnswer::of(http, "/v1/chat/completions", Some(&body)).await?;
    let first = answer.events(2).await?;
    answer.finish().await?;
    Ok(first <= FIRST_TOKEN)
}

/// Requests per second of each bin, with the peak that is wanted.
fn rates() -> Result<Vec<f64>> {
    let shared = std::env::var_os("FLYBALL_SHARED").map(PathBuf::from);
    let shared =
        shared.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let file = shared.join("traces/servegen_rates.tar.gz");
    let all = ["--wildcards", "./language/m-large/*.csv"];
    let read = Command::new("tar").args(["-xzO", "-f"]).arg(&file).args(all).output()?;
    ensure!(read.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&read.stderr));
    let mut rates = vec![0.0; BINS];
    // Each line is ten minutes of one client: when, and its requests per second.
    for line in String::from_utf8_lossy(&read.stdout).lines() {
        let mut cells = line.split(',');
        let (Some(at), Some(rate)) = (cells.next(), cells.next()) else { continue };
        let (Ok(at), Ok(rate)) = (at.parse::<f64>(), rate.parse::<f64>()) else { continue };
        let bin = (at as u64).checked_sub(FROM).map(|at| at as usize / 600);
        if let Some(sum) = bin.and_then(|bin| rates.get_mut(bin)) {
            *sum += rate;
        }
    }
    let most = rates.iter().copied().fold(0.0, f64::max);
    ensure!(most > 0.0, "no requests in the recording");
    Ok(rates.into_iter().map(|rate| rate / most * PEAK).collect())
}
