//! What a gateway says about itself in one look: the form of the admin address's `/state`.
//!
//! Whoever reads it (`flyball top`, the operator) looks at `State::version` first. Times are in
//! seconds, shares are between 0 and 1, and what is not known is `null`, never 0. `State::join`
//! adds several gateways up.

mod join;

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The form that this program writes and reads.
pub const VERSION: u32 = 1;

/// One look at a gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayStateView {
    /// Of this form: [`VERSION`].
    pub version: u32,
    /// When it was written, RFC 3339.
    pub time: String,
    /// Gateways that are added up here.
    pub gateways: usize,
    /// Connections of clients.
    pub connections: usize,
    /// Requests under way.
    pub requests: usize,
    /// Bytes of bodies in memory.
    pub held_bytes: usize,
    /// What is wrong with the gateway itself, from a closed list of words.
    pub troubles: Vec<TroubleView>,
    /// Models, by name.
    pub models: Vec<ModelView>,
    /// The slowest and the heaviest callers of the last minute, by name; at most 20.
    pub callers: Vec<CallerView>,
    /// Requests refused or failed in the last minute, by reason, most first.
    pub refusals: Vec<Refusal>,
    /// Tenants; absent if they are not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenants: Option<TenantsView>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TroubleView {
    /// One of `draining`, `zombies`, `silent-engines`, `collector-unreachable`,
    /// `operator-unreachable`, `failing-watches`, `unconfirmed-empty-models`, `name-conflicts`,
    /// `refused-tenants`, `reload-failed`.
    pub what: String,
    /// How many; 1 if it is not a matter of number.
    pub count: usize,
}

/// One model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelView {
    /// Model name in client requests.
    pub name: String,
    /// Its engines, by name.
    pub engines: Vec<EngineView>,
    /// Who waits.
    pub queue: QueueView,
    /// Requests per second that ended in the last ten seconds.
    pub requests_per_second: f64,
    /// What happened in the last minute.
    pub last_minute: Minute,
    /// Why its engines cannot be looked for, and what to do; absent while they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// One engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineView {
    /// The same on every gateway.
    pub name: String,
    /// Where it answers.
    pub address: String,
    /// `open`, `draining`, `quarantined`, `broken` or `gone` (not listed any more, with requests under
    /// way).
    pub state: String,
    /// Requests that gateways have under way at it.
    pub in_flight: u64,
    /// Requests that it says it works on.
    pub running: Option<u32>,
    /// Requests that it says wait in it.
    pub waiting: Option<u32>,
    /// Share of its KV cache in use.
    pub kv_used: Option<f64>,
}

/// Who waits for a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueView {
    /// Requests in the queue.
    pub waiting: usize,
    /// Requests that wait for a model without an engine.
    pub held: usize,
    /// Prompt tokens of all that wait.
    pub backlog_tokens: u64,
    /// What all that wait will cost, in the queue's own unit.
    pub backlog_cost: u64,
    /// How long the oldest of them has waited.
    pub oldest_seconds: f64,
    /// How long whoever comes now would wait.
    pub wait_seconds: Option<f64>,
    /// When a model that is being woken should be there.
    pub eta_seconds: Option<f64>,
}

/// What happened in the last minute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Minute {
    /// Requests that got a whole answer.
    pub answered: u64,
    /// Requests that were refused before an engine saw them.
    pub refused: u64,
    /// Requests that no engine answered.
    pub failed: u64,
    /// Answers that broke off.
    pub broken: u64,
    /// Requests whose client hung up.
    pub cancelled: u64,
    /// Prompt tokens.
    pub input_tokens: u64,
    /// Prompt tokens that were found in a cache.
    pub cached_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// To the first token.
    pub first_token: Times,
    /// For each further token.
    pub per_token: Times,
}

/// How times are spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Times {
    /// Half are not above this.
    pub p50_seconds: Option<f64>,
    /// 95 of 100 are not above this.
    pub p95_seconds: Option<f64>,
    /// Pairs of an upper end in microseconds and how many there are below it and above the end
    /// before. The same ends in every gateway.
    pub buckets: Vec<(u64, u64)>,
}

/// One caller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallerView {
    /// The name of its key; `none` for those that nobody asked for one.
    pub name: String,
    /// Requests per second that ended in the last ten seconds.
    pub requests_per_second: f64,
    /// What happened in the last minute.
    pub last_minute: Minute,
}

/// Tenants, as this gateway knows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantsView {
    /// Those whose keys are accepted.
    pub accepted: usize,
    /// Those that let nobody in.
    pub refused: usize,
    /// Keys that are accepted, whatever the time.
    pub keys: usize,
    /// Since the API server confirmed the list; `null` if that is unknown.
    pub age_seconds: Option<f64>,
    /// Those that let nobody in, by name; at most 20.
    pub troubles: Vec<RefusedTenantView>,
}

/// A Tenant that lets nobody in.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RefusedTenantView {
    /// `namespace/name`.
    pub tenant: String,
    /// The reason, as its condition `Ready` has it.
    pub reason: String,
}

/// Requests that got no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason that `x-flyball-reason` says.
    pub reason: String,
    /// How many in the last minute.
    pub count: u64,
}

impl Minute {
    /// All tokens.
    pub const fn tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }

    /// All requests.
    pub const fn requests(&self) -> u64 {
        self.answered + self.refused + self.failed + self.broken + self.cancelled
    }

    /// Share of prompt tokens that were found in a cache; unknown without prompts.
    pub fn hit_rate(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "tokens of a minute are below 2^53")]
        let share = || self.cached_tokens as f64 / self.input_tokens as f64;
        (self.input_tokens > 0).then(share)
    }
}

impl Times {
    /// From buckets by rising ends.
    pub fn of(buckets: Vec<(u64, u64)>) -> Self {
        let at = |per_thousand| quantile(&buckets, per_thousand).map(|time| time.as_secs_f64());
        Self { p50_seconds: at(500), p95_seconds: at(950), buckets }
    }
}

/// The time below which this many of a thousand are, from buckets by rising upper ends; `None` of
/// nothing. Within a bucket the truth is anywhere, so its upper end is said: at most a quarter too
/// much, never too little.
pub(crate) fn quantile(buckets: &[(u64, u64)], per_thousand: u64) -> Option<Duration> {
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let rank = (all * per_thousand).div_ceil(1_000).max(1);
    let mut so_far = 0;
    let found = buckets.iter().find(|(_, count)| {
        so_far += count;
        so_far >= rank
    });
    found.map(|(upper, _)| Duration::from_micros(*upper))
}

#[cfg(test)]
#[test]
fn a_quantile_of_nothing_is_unknown() {
    assert_eq!(quantile(&[], 500), None);
}
