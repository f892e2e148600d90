//! A trace played against real gateways: bodies whose beginnings are alike where the trace's are.
//!
//! A trace names the blocks of its prompts. `text` makes of every name the same 2,048 bytes each
//! time, so that whoever hashes or caches the text finds the same beginnings as the trace has.
//! `client` sends one request at its time and watches for the first token. It knows no engines: hit
//! rates are theirs to tell. `record` keeps what each request got, for whoever scores a policy.
//!
//! Start at [`run`].

mod client;
mod record;
mod text;

use anyhow::{Context, Result, bail, ensure};
use client::Answer;
use flyball_core::quantile::nearest_rank;
use flyball_simulator::traffic::Trace;
use flyball_simulator::traffic::load::{self, Traffic};
use rand::{RngExt, SeedableRng};
use record::Record;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What is played, and against whom.
#[derive(Clone, Debug, clap::Parser)]
pub struct ReplayPlan {
    /// The trace; prompts without named blocks are alike in nothing
    #[arg(long)]
    pub trace: PathBuf,
    /// Gateways; each request goes to one of them by chance
    #[arg(long, value_delimiter = ',', required = true)]
    pub target: Vec<SocketAddr>,
    /// The model that is asked for
    #[arg(long)]
    pub model: String,
    /// How many times faster than the trace was
    #[arg(long, default_value_t = 1.0)]
    pub faster: f64,
    /// Without the first so many requests; the next one comes at once
    #[arg(long, default_value_t = 0)]
    pub skip: usize,
    /// Only so many requests
    #[arg(long, default_value_t = usize::MAX)]
    pub requests: usize,
    /// Requests under way at once; one beyond these fails, and is counted
    #[arg(long, default_value_t = 4_096)]
    pub most: usize,
    /// Seconds that a request may take
    #[arg(long, default_value_t = 300.0)]
    pub deadline_seconds: f64,
    /// For the gateway that a request goes to
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write what each request got to this file, as CSV
    #[arg(long)]
    pub record: Option<PathBuf>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReplayReport {
    /// Requests sent.
    pub requests: u64,
    /// Those with a whole answer.
    pub answered: u64,
    /// The others, by reason.
    pub otherwise: BTreeMap<String, u64>,
    /// From sending to the first event.
    pub ttft_p50_ms: f64,
    /// The same, the 95th percentile.
    pub ttft_p95_ms: f64,
    /// The same, on average.
    pub ttft_mean_ms: f64,
    /// Events of all answers.
    pub events: u64,
    /// Prompt tokens sent, of four bytes each.
    pub prompt_tokens: u64,
    /// Share of them that an earlier prompt began with too: what a cache without end finds.
    pub shared_share: f64,
    /// How late requests were sent, the 99th percentile: the generator's own fault.
    pub late_p99_ms: f64,
    /// From the first request to the last answer.
    pub seconds: f64,
}

/// Plays the trace to its end.
pub async fn run(plan: ReplayPlan) -> Result<ReplayReport> {
    ensure!(plan.faster > 0.0, "--faster must be above 0");
    ensure!(!plan.target.is_empty(), "--target names no gateway");
    let trace = read(&plan)?;
    let mut report = ReplayReport {
        requests: trace.requests.len() as u64,
        prompt_tokens: trace.requests.iter().map(|request| u64::from(request.prompt)).sum(),
        shared_share: flyball_simulator::affinity::infinite_hit_share(&trace),
        ..ReplayReport::default()
    };
    let slots = Arc::new(Semaphore::new(plan.most));
    let deadline = Duration::from_secs_f64(plan.deadline_seconds);
    let mut spread = rand_pcg::Pcg64Mcg::seed_from_u64(plan.seed);
    let mut answers = JoinSet::new();
    let mut late = Vec::with_capacity(trace.requests.len());
    let begun = Instant::now();
    for request in &trace.requests {
        let target = plan.target[spread.random_range(0..plan.target.len())];
        let body = text::body(&plan.model, &trace, request);
        let due = begun + Duration::from_secs_f64(request.at.get() / plan.faster);
        tokio::time::sleep_until(due).await;
        late.push(due.elapsed().as_secs_f64() * 1e3);
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            *report.otherwise.entry("no slot".to_owned()).or_default() += 1;
            continue;
        };
        let (at, output) = (request.at.get() / plan.faster, request.output);
        answers.spawn(async move {
            let answer = client::ask(target, &body, deadline).await;
            drop(slot);
            Record { at, output, answer }
        });
    }
    let mut waits = Vec::with_capacity(trace.requests.len());
    let mut records = Vec::with_capacity(trace.requests.len());
    while let Some(answer) = answers.join_next().await {
        let record = answer.context("a request's task ended badly")?;
        match record.answer {
            Ok(Answer { first, events, .. }) => {
                report.answered += 1;
                report.events += events;
                waits.push(first.as_secs_f64() * 1e3);
            }
            // Reasons are few: the kinds of `client::Failed`.
            Err(failed) => *report.otherwise.entry(failed.to_string()).or_default() += 1,
        }
        records.push(record);
    }
    if let Some(path) = &plan.record {
        record::write(path, records)?;
    }
    report.seconds = begun.elapsed().as_secs_f64();
    waits.sort_by(f64::total_cmp);
    late.sort_by(f64::total_cmp);
    let at = |sorted: &[f64], share| nearest_rank(sorted, share).unwrap_or(0.0);
    report.ttft_p50_ms = at(&waits, 0.5);
    report.ttft_p95_ms = at(&waits, 0.95);
    report.ttft_mean_ms = waits.iter().sum::<f64>() / waits.len().max(1) as f64;
    report.late_p99_ms = at(&late, 0.99);
    Ok(report)
}

fn read(plan: &ReplayPlan) -> Result<Trace> {
    let mut loaded = load::open(&plan.trace)?;
    ensure!(loaded.parts.len() == 1, "{} holds several models", plan.trace.display());
    let Some(Traffic::Trace(mut trace)) = loaded.parts.pop().map(|part| part.traffic) else {
        bail!("{} holds rates and not requests", plan.trace.display());
    };
    trace.requests.drain(..plan.skip.min(trace.requests.len()));
    trace.requests.truncate(plan.requests);
    if let Some(begin) = trace.requests.first().map(|first| first.at) {
        trace.requests.iter_mut().for_each(|request| request.at = request.at - begin);
    }
    Ok(trace)
}
