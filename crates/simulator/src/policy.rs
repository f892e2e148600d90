//! What a policy can see, and what it may order.
//!
//! A policy sees what its metrics would show it in production and nothing else: the state of the
//! virtual world, its queue and its future are out of reach.

use crate::seconds::Seconds;
use flyball_core::decision::Decision;
use flyball_core::snapshot::Snapshot;
use flyball_core::units::Replicas;
use flyball_estimator::Estimator;

/// Something that decides how many replicas there should be.
pub trait ScalingPolicy {
    /// Its name in tables and pictures.
    fn name(&self) -> &str;

    /// How often it is asked.
    fn interval(&self) -> Seconds;

    /// Whether it looks at the snapshot. Who goes by readings alone is shown an empty one: to draw it is most of the work
    /// of a replay.
    fn reads_snapshot(&self) -> bool {
        true
    }

    /// What should be done now.
    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder;

    /// The process that decides is replaced by another one, which has only what was handed on. The estimator is what
    /// that process knew beside the policy; of one that hands nothing on, nothing is left.
    fn restart(&mut self, estimator: &mut Estimator) {
        *estimator = Estimator::default();
    }
}

/// What a policy can see.
#[derive(Clone, Copy, Debug)]
pub struct PolicyView<'a> {
    /// The moment, counted from the start of the replay.
    pub now: Seconds,
    /// The cluster as the operator would see it.
    pub snapshot: &'a Snapshot,
    /// What metrics say of each model, in the order of the snapshot's models.
    pub readings: &'a [Reading],
}

/// What the metrics of one model say, as last scraped. `None` is "not known", never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// When it was scraped. Policies that judge age look here.
    pub at: Seconds,
    /// Replicas that serve.
    pub ready: u32,
    /// Replicas that were asked for and do not serve yet.
    pub starting: u32,
    /// Replicas that get no new requests and finish those they have.
    pub draining: u32,
    /// Requests that arrive per second.
    pub arrivals_per_second: Option<f64>,
    /// Prompt tokens that arrive per second.
    pub prompt_tokens_per_second: Option<f64>,
    /// Tokens generated per second.
    pub output_tokens_per_second: Option<f64>,
    /// Requests that wait, in the router and in engines.
    pub waiting: Option<f64>,
    /// Prompt tokens of the requests that wait.
    pub waiting_tokens: Option<f64>,
    /// Requests that engines work on.
    pub running: Option<f64>,
    /// Share of the cache that is used, mean over the replicas that serve; 0 to 1.
    pub cache_used: Option<f64>,
    /// 90th percentile of the time to the first token, of requests since the last scrape.
    pub first_token_p90: Option<Seconds>,
    /// 90th percentile of the time between tokens, of requests since the last scrape.
    pub between_tokens_p90: Option<Seconds>,
}

/// What a policy orders.
#[derive(Clone, Debug, PartialEq)]
pub enum ScaleOrder {
    /// Replicas per model, as the `scale` subresource takes them: whoever carries it out picks the
    /// pods to remove and gives each its grace period. In the order of the snapshot's models; the
    /// first variant of each is scaled.
    Scale(Vec<Replicas>),
    /// A decision that names replicas and how they are removed.
    Decision(Box<Decision>),
}
