//! What a run of several callers is told: one JSON file.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallersPlan {
    /// Gateways, over which each caller deals its requests one by one.
    pub targets: Vec<SocketAddr>,
    #[serde(default = "chat")]
    pub path: String,
    /// How long new requests are made.
    pub seconds: f64,
    #[serde(default = "one")]
    pub seed: u64,
    /// A request that has not ended so long after it began has hung.
    #[serde(default = "two_minutes")]
    pub deadline_seconds: f64,
    /// Times whose requests are counted by themselves, by name: seconds from the start.
    #[serde(default)]
    pub windows: BTreeMap<String, [f64; 2]>,
    /// Look for the model's name in every answer.
    #[serde(default)]
    pub names_models: bool,
    pub callers: Vec<CallerPlan>,
}

/// Who asks, how often and for what.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallerPlan {
    pub name: String,
    /// Callers whose accounts are also given together.
    #[serde(default)]
    pub group: Option<String>,
    /// Sent as a bearer token.
    #[serde(default)]
    pub key: Option<String>,
    pub model: String,
    /// Open loop: requests per second, at exponential distances.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Open loop whose rate changes; the first stage begins with the run.
    #[serde(default)]
    pub stages: Vec<LoadStage>,
    /// Closed loop: requests at once.
    #[serde(default)]
    pub concurrency: Option<usize>,
    /// Closed loop: before whoever was not answered asks again.
    #[serde(default = "fifth")]
    pub again_ms: u64,
    /// When it begins and ends, in seconds from the start.
    #[serde(default)]
    pub from_seconds: f64,
    #[serde(default)]
    pub until_seconds: Option<f64>,
    /// Ends after so many requests.
    #[serde(default)]
    pub requests: Option<u64>,
    /// Requests at once in an open loop; those beyond are counted as not sent.
    #[serde(default = "most_open")]
    pub most_open: usize,
    /// Tokens of a prompt, of four bytes each; of a conversation's first one.
    pub prompt_tokens: PlannedTokens,
    pub output_tokens: PlannedTokens,
    /// Share of requests that ask for a stream.
    #[serde(default = "all")]
    pub streams: f64,
    #[serde(default)]
    pub cancels: Cancels,
    /// Without, no two prompts begin alike.
    #[serde(default)]
    pub conversations: Option<Conversations>,
    /// Only so many different requests, over and over.
    #[serde(default)]
    pub distinct: Option<u64>,
    #[serde(default)]
    pub sessions: Option<Sessions>,
    /// What makes an answer a good one.
    #[serde(default)]
    pub good: Good,
    /// More headers of each request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// More fields of each body.
    #[serde(default)]
    pub fields: serde_json::Map<String, serde_json::Value>,
}

/// A rate for a time.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadStage {
    pub seconds: f64,
    /// Requests per second.
    pub rate: f64,
}

/// From and to, drawn evenly.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct PlannedTokens(pub u32, pub u32);

/// Shares of requests whose client hangs up.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancels {
    /// Up to `within_ms` after it asked, most likely before the first token.
    #[serde(default)]
    pub early: f64,
    #[serde(default)]
    pub within_ms: u64,
    /// After 1 to 16 events of a stream.
    #[serde(default)]
    pub late: f64,
}

/// Prompts that grow turn by turn, and begin as they did the turn before.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversations {
    /// Under way at once; a request is the next turn of the one that waited longest.
    pub open: usize,
    pub turns: u32,
    /// Tokens that a turn adds.
    pub grow_tokens: u32,
    /// Tokens that all of this caller's begin with.
    #[serde(default)]
    pub shared_tokens: u32,
}

/// Requests that say whom they belong to, one after the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    pub count: u64,
    /// The header that says it; the body's `user` without.
    #[serde(default)]
    pub header: Option<String>,
}

/// Limits of a good answer, from the moment at which its request was due.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Good {
    /// To the first token of a stream.
    #[serde(default)]
    pub first_token_ms: Option<f64>,
    /// To the last byte.
    #[serde(default)]
    pub whole_ms: Option<f64>,
}

impl CallersPlan {
    /// Everything that cannot be.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.targets.is_empty() {
            problems.push("targets: names no gateway".to_owned());
        }
        for caller in &self.callers {
            let ways = [caller.rate.is_some(), caller.concurrency.is_some()];
            let ways = ways.into_iter().chain([!caller.stages.is_empty()]);
            if ways.filter(|given| *given).count() != 1 {
                let name = &caller.name;
                problems.push(format!("{name}: needs one of rate, stages and concurrency"));
            }
            let rates = caller.rate.into_iter().chain(caller.stages.iter().map(|stage| stage.rate));
            if rates.into_iter().any(|rate| !rate.is_finite() || rate < 0.0) {
                problems.push(format!("{}: a rate is no number of at least 0", caller.name));
            }
            for PlannedTokens(from, to) in [caller.prompt_tokens, caller.output_tokens] {
                if from == 0 || from > to {
                    problems.push(format!("{}: {from} to {to} tokens cannot be", caller.name));
                }
            }
            if caller.conversations.is_some_and(|some| some.open == 0 || some.turns == 0) {
                problems.push(format!("{}: conversations without turns", caller.name));
            }
            if caller.sessions.as_ref().is_some_and(|some| some.count == 0) {
                problems.push(format!("{}: sessions without one", caller.name));
            }
        }
        problems
    }
}

impl CallerPlan {
    /// When it asks, and how often then: from, to and the rate of each stage.
    pub(super) fn rates(&self, seconds: f64) -> Vec<(f64, f64, f64)> {
        let end = self.until_seconds.unwrap_or(seconds).min(seconds);
        if let Some(rate) = self.rate {
            return vec![(self.from_seconds, end, rate)];
        }
        let mut at = self.from_seconds;
        let mut rates = Vec::new();
        for stage in &self.stages {
            rates.push((at, (at + stage.seconds).min(end), stage.rate));
            at += stage.seconds;
        }
        rates
    }
}

fn chat() -> String {
    "/v1/chat/completions".to_owned()
}

const fn one() -> u64 {
    1
}

const fn two_minutes() -> f64 {
    120.0
}

const fn fifth() -> u64 {
    200
}

const fn most_open() -> usize {
    4_096
}

const fn all() -> f64 {
    1.0
}
