//! What keeps a replica from carrying more: the targets over their intervals, memory, prompts, requests at once.

use super::question::Targets;
use crate::evidence::Spread;
use crate::serving::steady::{EngineLimits, Operating, RequestShape};
use std::fmt;

/// A replica is not planned fuller than this, in prompts or in requests at once, whatever the
/// latencies: near 1 the queue explodes.
const FULLEST: f64 = 0.9;

/// What a replica runs into first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundBy {
    /// The target of the time to the first token.
    FirstToken,
    /// The target of the time between tokens, or per token.
    BetweenTokens,
    /// The cache is full.
    Memory,
    /// As many requests as the engine runs at once.
    Sequences,
    /// Prompts take all of the steps.
    Prompts,
}

impl BoundBy {
    /// One word for tables and programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::FirstToken => "TTFT",
            Self::BetweenTokens => "ITL",
            Self::Memory => "memory",
            Self::Sequences => "batch",
            Self::Prompts => "prompts",
        }
    }
}

impl fmt::Display for BoundBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How a replica at work is judged. Both latencies by the same rule: the whole interval inside the target.
pub(super) struct Rule<'a> {
    pub(super) targets: Targets,
    pub(super) first_token: Spread,
    pub(super) between_tokens: Spread,
    pub(super) limits: &'a EngineLimits,
    pub(super) shape: &'a RequestShape,
}

impl Rule<'_> {
    /// What it runs into, if anything.
    pub(super) fn broken(&self, at: &Operating) -> Option<BoundBy> {
        let Targets { ttft_p95, itl_p95, tpot } = self.targets;
        let over = |target: Option<f64>, time: f64| target.is_some_and(|target| time > target);
        let cache = self.limits.cache_tokens
            / (self.shape.input + self.limits.output_held * self.shape.output);
        let full = if cache < self.limits.sequences { BoundBy::Memory } else { BoundBy::Sequences };
        [
            (over(tpot, at.tpot), BoundBy::BetweenTokens),
            (over(itl_p95, at.itl_p95(self.between_tokens.high)), BoundBy::BetweenTokens),
            (over(ttft_p95, at.ttft_p95 * self.first_token.high), BoundBy::FirstToken),
            (at.prompt_load > FULLEST, BoundBy::Prompts),
            (at.slots > FULLEST, full),
        ]
        .into_iter()
        .find_map(|(broken, bound)| broken.then_some(bound))
    }
}
