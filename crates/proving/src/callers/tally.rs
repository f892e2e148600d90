//! Counting: what became of requests, by window and by second.

use super::plan::{CallersPlan, Good};
use super::prompts::Request;
use crate::history::End;
use crate::load::{ClientOutcome, Histogram};
use flyball_core::quantile::nearest_rank;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Seconds that a series has at most: two hours. What comes later counts in the last.
const MOST_SECONDS: usize = 7_200;

/// First-token times kept of one second: p95 of more would not differ.
const MOST_FIRSTS: usize = 10_000;

/// Different reasons, and different models, that are told apart.
const MOST_NAMES: usize = 64;

/// What one caller, or all, did.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    whole: Counted,
    windows: BTreeMap<String, ([f64; 2], Counted)>,
    seconds: Vec<Second>,
    /// The first model that each session saw.
    sessions: BTreeMap<u64, String>,
    mixed: std::collections::BTreeSet<u64>,
    models: BTreeMap<String, u64>,
    unsent: u64,
}

/// One request that is over.
pub(super) struct Done<'a> {
    pub(super) request: &'a Request,
    pub(super) outcome: &'a ClientOutcome,
    pub(super) good: Good,
    pub(super) started: Instant,
    pub(super) due: Instant,
    pub(super) ended: Instant,
}

#[derive(Clone, Debug, Default)]
struct Counted {
    sent: u64,
    answered: u64,
    good: u64,
    cancelled: u64,
    shed: BTreeMap<String, u64>,
    otherwise: BTreeMap<&'static str, u64>,
    prompt_tokens: u64,
    output_tokens: u64,
    first_token: Histogram,
    latency: Histogram,
    shed_after: Histogram,
}

#[derive(Clone, Debug, Default)]
struct Second {
    sent: u32,
    answered: u32,
    shed: u32,
    otherwise: u32,
    good_tokens: u64,
    firsts: Vec<f32>,
}

/// What a caller, or all together, found.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    pub name: String,
    /// Of the whole run.
    pub whole: CallerCounts,
    /// Of requests that were due in each window.
    pub windows: BTreeMap<String, CallerCounts>,
    pub series: CallerSeries,
    /// Requests that were due and not sent, because too many were open.
    pub unsent: u64,
    /// Answers by the model that they named.
    pub models: BTreeMap<String, u64>,
    pub sessions: usize,
    /// Sessions that were answered by more than one model.
    pub mixed_sessions: usize,
}

/// Counts of requests.
#[derive(Clone, Debug, Serialize)]
pub struct CallerCounts {
    pub sent: u64,
    /// To the end.
    pub answered: u64,
    /// Those within the caller's limits.
    pub good: u64,
    /// Clients that hung up, as they meant to.
    pub cancelled: u64,
    /// Refused, by status and `x-flyball-reason`.
    pub shed: BTreeMap<String, u64>,
    /// All others, by how they ended.
    pub otherwise: BTreeMap<&'static str, u64>,
    /// Of answered requests, four bytes each.
    pub prompt_tokens: u64,
    /// Of answered requests, as many as were asked for.
    pub output_tokens: u64,
    /// From due to the first event of a stream.
    pub first_token: LatencyQuantiles,
    /// From due to the last byte.
    pub latency: LatencyQuantiles,
    /// From the request's last byte to the end of a refusal.
    pub shed_after: LatencyQuantiles,
}

/// Of times, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LatencyQuantiles {
    pub count: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// One number for each second of the run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CallerSeries {
    /// By when they were due.
    pub sent: Vec<u32>,
    /// By when they ended, as the next three.
    pub answered: Vec<u32>,
    pub shed: Vec<u32>,
    pub otherwise: Vec<u32>,
    /// Tokens of prompts and answers of good ones.
    pub good_tokens: Vec<u64>,
    /// 95th percentile of the first token of those due in this second; none without one.
    pub first_token_p95_ms: Vec<Option<f32>>,
}

impl Tally {
    pub(super) fn new(plan: &CallersPlan) -> Self {
        let windows = plan.windows.iter();
        let windows = windows.map(|(name, range)| (name.clone(), (*range, Counted::default())));
        Self { windows: windows.collect(), ..Self::default() }
    }

    pub(super) fn unsent(&mut self) {
        self.unsent += 1;
    }

    pub(super) fn count(&mut self, done: &Done<'_>) {
        let due = done.due.saturating_duration_since(done.started).as_secs_f64();
        let ended = done.ended.saturating_duration_since(done.started).as_secs_f64();
        let good = is_good(done);
        self.whole.count(done, good);
        for (range, counted) in self.windows.values_mut() {
            if (range[0]..range[1]).contains(&due) {
                counted.count(done, good);
            }
        }
        let second = self.second(due);
        second.sent += 1;
        if let Some(first) = first_token(done)
            && second.firsts.len() < MOST_FIRSTS
        {
            second.firsts.push(first.as_secs_f32() * 1e3);
        }
        let second = self.second(ended);
        match done.outcome.end {
            End::Whole => second.answered += 1,
            End::Status => second.shed += 1,
            _ => second.otherwise += 1,
        }
        if good {
            let Request { prompt_tokens, output_tokens, .. } = done.request;
            second.good_tokens += u64::from(prompt_tokens + output_tokens);
        }
        self.name(done);
    }

    /// Which model answered, and whether that is the one that its session knows.
    fn name(&mut self, done: &Done<'_>) {
        let Some(model) = &done.outcome.model else { return };
        if self.models.len() < MOST_NAMES || self.models.contains_key(model) {
            *self.models.entry(model.clone()).or_default() += 1;
        }
        if let Some(session) = done.request.session {
            let first = self.sessions.entry(session).or_insert_with(|| model.clone());
            if first != model {
                self.mixed.insert(session);
            }
        }
    }

    fn second(&mut self, at: f64) -> &mut Second {
        let index = (at.max(0.0) as usize).min(MOST_SECONDS - 1);
        if self.seconds.len() <= index {
            self.seconds.resize_with(index + 1, Second::default);
        }
        &mut self.seconds[index]
    }

    /// Adds another caller's. Sessions are each caller's own.
    pub(super) fn add(&mut self, other: &Self) {
        self.whole.add(&other.whole);
        for (name, (range, counted)) in &other.windows {
            let own = self.windows.entry(name.clone());
            own.or_insert_with(|| (*range, Counted::default())).1.add(counted);
        }
        for (index, second) in other.seconds.iter().enumerate() {
            self.second(index as f64).add(second);
        }
        for (model, count) in &other.models {
            *self.models.entry(model.clone()).or_default() += count;
        }
        self.unsent += other.unsent;
    }

    pub(super) fn account(&self, name: &str) -> Account {
        let windows = self.windows.iter();
        Account {
            name: name.to_owned(),
            whole: self.whole.counts(),
            windows: windows.map(|(name, (_, some))| (name.clone(), some.counts())).collect(),
            series: self.series(),
            unsent: self.unsent,
            models: self.models.clone(),
            sessions: self.sessions.len(),
            mixed_sessions: self.mixed.len(),
        }
    }

    fn series(&self) -> CallerSeries {
        let mut series = CallerSeries::default();
        for second in &self.seconds {
            series.sent.push(second.sent);
            series.answered.push(second.answered);
            series.shed.push(second.shed);
            series.otherwise.push(second.otherwise);
            series.good_tokens.push(second.good_tokens);
            series.first_token_p95_ms.push(p95(&second.firsts));
        }
        series
    }
}

impl Counted {
    fn count(&mut self, done: &Done<'_>, good: bool) {
        let Done { request, outcome, due, ended, .. } = done;
        self.sent += 1;
        match outcome.end {
            End::Whole => {
                self.answered += 1;
                self.good += u64::from(good);
                self.prompt_tokens += u64::from(request.prompt_tokens);
                self.output_tokens += u64::from(request.output_tokens);
                self.latency.record(nanos(ended.saturating_duration_since(*due)));
            }
            End::Cancelled => self.cancelled += 1,
            End::Status => {
                let reason = outcome.reason.as_deref().unwrap_or("no reason");
                let name = format!("{} {reason}", outcome.status);
                if self.shed.len() < MOST_NAMES || self.shed.contains_key(&name) {
                    *self.shed.entry(name).or_default() += 1;
                }
                let sent = outcome.sent.unwrap_or(*due);
                self.shed_after.record(nanos(ended.saturating_duration_since(sent)));
            }
            other => *self.otherwise.entry(other.name()).or_default() += 1,
        }
        if let Some(first) = first_token(done) {
            self.first_token.record(nanos(first));
        }
    }

    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.good += other.good;
        self.cancelled += other.cancelled;
        for (name, count) in &other.shed {
            *self.shed.entry(name.clone()).or_default() += count;
        }
        for (name, count) in &other.otherwise {
            *self.otherwise.entry(name).or_default() += count;
        }
        self.prompt_tokens += other.prompt_tokens;
        self.output_tokens += other.output_tokens;
        self.first_token.add(&other.first_token);
        self.latency.add(&other.latency);
        self.shed_after.add(&other.shed_after);
    }

    fn counts(&self) -> CallerCounts {
        CallerCounts {
            sent: self.sent,
            answered: self.answered,
            good: self.good,
            cancelled: self.cancelled,
            shed: self.shed.clone(),
            otherwise: self.otherwise.clone(),
            prompt_tokens: self.prompt_tokens,
            output_tokens: self.output_tokens,
            first_token: quantiles(&self.first_token),
            latency: quantiles(&self.latency),
            shed_after: quantiles(&self.shed_after),
        }
    }
}

impl Second {
    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.shed += other.shed;
        self.otherwise += other.otherwise;
        self.good_tokens += other.good_tokens;
        let room = MOST_FIRSTS.saturating_sub(self.firsts.len());
        self.firsts.extend(other.firsts.iter().take(room));
    }
}

/// Of a stream that began and was not refused in its first event.
fn first_token(done: &Done<'_>) -> Option<Duration> {
    let counts = matches!(done.outcome.end, End::Whole | End::Cancelled | End::Broken);
    let first = done.outcome.first_event.filter(|_| counts)?;
    Some(first.saturating_duration_since(done.due))
}

fn is_good(done: &Done<'_>) -> bool {
    let within = |time: Option<Duration>, most: Option<f64>| match (time, most) {
        (Some(time), Some(most)) => time.as_secs_f64() * 1e3 <= most,
        _ => true,
    };
    done.outcome.end == End::Whole
        && within(first_token(done), done.good.first_token_ms)
        && within(Some(done.ended.saturating_duration_since(done.due)), done.good.whole_ms)
}

fn quantiles(histogram: &Histogram) -> LatencyQuantiles {
    let at = |share| histogram.quantile(share) as f64 / 1e6;
    let summary = histogram.summary();
    LatencyQuantiles {
        count: summary.count,
        mean_ms: summary.mean_us / 1e3,
        p50_ms: at(0.5),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        max_ms: summary.max_us / 1e3,
    }
}

fn p95(values: &[f32]) -> Option<f32> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f32::total_cmp);
    nearest_rank(&sorted, 0.95)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
