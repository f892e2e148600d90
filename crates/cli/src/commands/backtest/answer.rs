//! What `flyball backtest` answers, as `-o json` prints it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::clock::Clock;

/// What each policy would have cost and missed on this traffic.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Backtest {
    /// Length of the replayed traffic.
    pub(in crate::commands) span_seconds: f64,
    /// Start time of the replay, if the traffic has dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) begins_at: Option<String>,
    /// How it was replayed: `fluid` (rates, for weeks) or `requests` (each one, step by step).
    pub(in crate::commands) method: &'static str,
    /// Random seeds, one replay of each policy per seed.
    pub(in crate::commands) seeds: Vec<u64>,
    /// Cold start: time from requesting a replica until it is ready.
    pub(in crate::commands) cold_start_seconds: f64,
    /// Objective for the time to first token (TTFT).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) ttft_seconds: Option<f64>,
    /// Objective for the mean time per output token (TPOT).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) tpot_seconds: Option<f64>,
    /// Accelerators that the models share; absent if unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) pool_gpus: Option<u32>,
    /// Hourly price of an accelerator, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) usd_per_gpu_hour: Option<f64>,
    /// Share of requests that may miss, for the verdict.
    pub(in crate::commands) allowed_missed: f64,
    /// Assumptions about values that were not given.
    pub(in crate::commands) assumed: Vec<String>,
    /// Settings in policy files that have no effect in a replay.
    pub(in crate::commands) notes: Vec<String>,
    pub(in crate::commands) models: Vec<ModelView>,
    /// The clairvoyant first, then in the requested order.
    pub(in crate::commands) policies: Vec<PolicyView>,
    /// The least that any policy could have paid, by how much it may miss: cheapest first.
    pub(in crate::commands) hull: Vec<HullView>,
    /// Causal bound: the cost of a policy that knows how demand moves, but not the future, at the allowed share
    /// of misses or the smallest possible one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) causal: Option<HullView>,
    /// Each policy compared with that of `--against`.
    pub(in crate::commands) comparisons: Vec<ComparisonView>,
    /// The rules of `--fail-if`.
    pub(in crate::commands) gates: Vec<GateView>,
    /// How long the replay took. Not in the document, which is the same for the same seeds.
    #[serde(skip)]
    pub(in crate::commands) took: Duration,
    /// File and size of the page that was written.
    #[serde(skip)]
    pub(in crate::commands) page: Option<(String, usize)>,
    #[serde(skip)]
    pub(in crate::commands) clock: Clock,
}

/// One model and its traffic.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelView {
    pub(in crate::commands) name: String,
    /// Where the traffic comes from.
    pub(in crate::commands) traffic: String,
    /// Requests in the scored part.
    pub(in crate::commands) requests: f64,
    /// Capacity of one replica within the objectives, in requests per second.
    pub(in crate::commands) replica_capacity: f64,
    /// The same of each of eight replicas, among which requests are shared out by what each has to do.
    pub(in crate::commands) each_of_eight: f64,
    /// Source of that number.
    pub(in crate::commands) capacity_from: String,
    pub(in crate::commands) gpus_per_replica: u32,
}

/// Result of one policy, over all models and seeds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyView {
    pub(in crate::commands) name: String,
    /// The clairvoyant: it knows the future, and no policy can do better.
    pub(in crate::commands) clairvoyant: bool,
    /// Accelerator time paid for.
    pub(in crate::commands) gpu_hours: Spread,
    /// The same over what the clairvoyant would have paid that misses as many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) times_optimum: Option<Spread>,
    /// Share of requests that missed a target, were refused or never finished; 0 to 1.
    pub(in crate::commands) missed: Spread,
    /// 99th percentile of the time to the first token, of the worst model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) ttft_p99_seconds: Option<Spread>,
    /// 99th percentile of the mean time per output token of a request, of the worst model; absent where traffic is
    /// replayed as rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) tpot_p99_seconds: Option<Spread>,
    /// Desired replicas.
    pub(in crate::commands) starts: Spread,
    /// Reversals: starts soon after a removal, and removals soon after a start.
    pub(in crate::commands) reversals: Spread,
    /// Requests cut off by the removal of their replica.
    pub(in crate::commands) killed: Spread,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) usd: Option<Spread>,
    pub(in crate::commands) worst: WorstView,
    /// Mean over the seeds.
    pub(in crate::commands) gpu_hours_by_cause: CausesView,
    /// Of the first seed.
    pub(in crate::commands) models: Vec<PolicyModelView>,
    /// Every change of a number of replicas, of the first seed.
    pub(in crate::commands) decisions: Vec<DecisionView>,
}

/// The worst five minutes of the first seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorstView {
    /// Share of requests missed in them; 0 to 1.
    pub(in crate::commands) missed: f64,
    /// Their begin, counted from the start of the replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) at_seconds: Option<f64>,
}

/// Where the accelerator time went, in GPU-hours. They add up to what was paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CausesView {
    /// Work done, at full load.
    pub(in crate::commands) useful: f64,
    /// Serving below full load, or held and unused.
    pub(in crate::commands) idle: f64,
    /// Starting, from the request until a replica is ready.
    pub(in crate::commands) starting: f64,
    /// From the end of new requests until a replica is gone.
    pub(in crate::commands) draining: f64,
    /// Lent to training.
    pub(in crate::commands) lent: f64,
}

/// Result of one policy and one model, first seed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyModelView {
    pub(in crate::commands) model: String,
    pub(in crate::commands) gpu_hours: f64,
    pub(in crate::commands) missed: f64,
    pub(in crate::commands) timeline: TimelineView,
}

/// How it went over time: columns of equal length, one entry per step. Entries in a gap of the
/// data are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TimelineView {
    /// Start of the first step, counted from the start of the replay.
    pub(in crate::commands) begins_seconds: f64,
    pub(in crate::commands) step_seconds: f64,
    /// Work that arrived, in replicas at capacity; mean.
    pub(in crate::commands) demand: Vec<Option<f64>>,
    /// Replicas that serve; mean.
    pub(in crate::commands) ready: Vec<Option<f64>>,
    /// Replicas that start; mean.
    pub(in crate::commands) starting: Vec<Option<f64>>,
    /// Replicas that drain; mean.
    pub(in crate::commands) draining: Vec<Option<f64>>,
    /// Requests that wait; most.
    pub(in crate::commands) waiting: Vec<Option<f64>>,
    /// Requests that arrived.
    pub(in crate::commands) requests: Vec<Option<f64>>,
    /// Requests of them that missed.
    pub(in crate::commands) missed: Vec<Option<f64>>,
}

/// A change of the number of replicas.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionView {
    pub(in crate::commands) at_seconds: f64,
    /// Index of the model.
    pub(in crate::commands) model: usize,
    pub(in crate::commands) from: u32,
    pub(in crate::commands) to: u32,
    pub(in crate::commands) because: String,
}

/// A point of the clairvoyant's trade between money and misses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HullView {
    pub(in crate::commands) gpu_hours: f64,
    /// Share of requests, 0 to 1.
    pub(in crate::commands) missed: f64,
}

/// Result of one rule.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GateView {
    /// The rule as typed.
    pub(super) rule: String,
    /// Whether the command fails because of it.
    pub(super) broken: bool,
    /// Policies that broke it, with the value.
    pub(super) because: Vec<String>,
}

/// One policy against another, seed by seed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ComparisonView {
    pub(in crate::commands) policy: String,
    pub(in crate::commands) against: String,
    /// Relative change of the cost; -0.07 is 7 % less.
    pub(in crate::commands) cost: Spread,
    /// Change of the share of requests missed.
    pub(in crate::commands) missed: Spread,
}

/// A mean over the seeds and its 95 % interval; all the same with one seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Spread {
    pub(in crate::commands) mean: f64,
    pub(in crate::commands) low: f64,
    pub(in crate::commands) high: f64,
}

impl Spread {
    /// Student's t over so few seeds: with three, 4.3 standard errors, not 2.
    pub(in crate::commands) fn of(values: &[f64]) -> Spread {
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        if values.len() < 2 {
            return Spread { mean: tidy(mean), low: tidy(mean), high: tidy(mean) };
        }
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let half = student(values.len() - 1) * (variance / count).sqrt();
        Spread { mean: tidy(mean), low: tidy(mean - half), high: tidy(mean + half) }
    }

    /// Half the width of the interval, where there is one.
    pub(in crate::commands) fn half(self) -> Option<f64> {
        let half = (self.high - self.low) / 2.0;
        (half > 0.0).then_some(half)
    }
}

/// Six digits: what lies beyond is noise, and would differ between machines.
pub(in crate::commands) fn tidy(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = 5 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits.clamp(-12, 12));
    (value * scale).round() / scale
}

/// The 97.5 % quantile of Student's t by degrees of freedom, from any table of it.
fn student(freedom: usize) -> f64 {
    const T: [f64; 10] = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    T.get(freedom - 1).copied().unwrap_or(1.96 + 2.6 / freedom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_over_three_seeds_is_wide() {
        let spread = Spread::of(&[1.0, 2.0, 3.0]);
        // Standard deviation 1, standard error 1/sqrt 3, times 4.303.
        assert_eq!(spread.mean, 2.0);
        assert!((spread.half().expect("an interval") - 2.48434).abs() < 1e-4, "{spread:?}");
        assert_eq!(Spread::of(&[5.0]).half(), None);
        assert_eq!(Spread::of(&[5.0, 5.0]).half(), None);
    }
}
