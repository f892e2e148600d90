//! What a trial has to say.

use super::learner::LearningRates;
use crate::policy::RoutingPolicy;

/// Which policy would have been better.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowReport {
    /// The live policy first.
    pub policies: Vec<ShadowStatus>,
    /// Requests that it speaks of.
    pub requests: u64,
    /// Seconds that it speaks of.
    pub seconds: f64,
    /// Mean seconds to the first token as measured; `None` if none was. To be held against what is
    /// predicted of the live policy.
    pub measured_seconds: Option<f64>,
    /// How far predictions of the live policy are off: the median of `|predicted - measured| /
    /// measured`. `None` if nothing was measured.
    pub error: Option<f64>,
    /// What engines are taken to be like.
    pub rates: LearningRates,
}

/// How one policy stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShadowStatus {
    /// Which.
    pub policy: RoutingPolicy,
    /// Mean seconds to the first token, as predicted.
    pub first_seconds: f64,
    /// Share of prompt tokens found cached, as predicted.
    pub hit_share: f64,
    /// Mean seconds by which requests waited longer with the live policy than they would have with
    /// this one; negative if the live one is better.
    pub regret_seconds: f64,
    /// How far that may be off, 19 times of 20, by chance alone; `None` if it is too early to say.
    pub regret_off: Option<f64>,
}

impl ShadowReport {
    /// The policy with the shortest mean wait, as predicted.
    pub fn best(&self) -> Option<RoutingPolicy> {
        let by_wait =
            |a: &&ShadowStatus, b: &&ShadowStatus| a.first_seconds.total_cmp(&b.first_seconds);
        self.policies.iter().min_by(by_wait).map(|standing| standing.policy)
    }
}

impl ShadowStatus {
    /// Whether the difference to the live policy is more than chance.
    pub fn is_sure(&self) -> bool {
        self.regret_off.is_some_and(|off| self.regret_seconds.abs() > off)
    }
}
