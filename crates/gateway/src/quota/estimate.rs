//! What is known of a request before it goes to an engine, and what it needs.

use super::state::Needs;
use super::table::Applies;
use flyball_quota::{Amount, LeaseKey, RateKind, Scope, TokenPrices, TokenUsage};

/// What is known of a request before it goes to an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaEstimate {
    /// Tokens of its prompt, as far as its bytes tell.
    pub input: u64,
    /// So many it seldom exceeds: what is paid before it begins, so that a hard budget is not exceeded by a prompt that
    /// turns out longer.
    pub input_at_most: u64,
    /// Output tokens that are paid before it begins: [`AHEAD`](super::AHEAD) of a stream, which is stopped when its money
    /// ends, and all that may come of an answer that cannot be.
    pub output: u64,
    /// Whether the answer can be stopped, so that less than that may be paid where no more is left.
    pub can_stop: bool,
    /// What a token of its model costs, if its owner says. Without prices nothing is served on a budget of money.
    pub prices: Option<TokenPrices>,
}

impl QuotaEstimate {
    /// What a Tenant of this path must have before such a request goes on, with the leases that it pays from.
    pub(super) fn needs(&self, applies: &Applies, path: &Scope) -> Needs {
        let permits = applies.limits.iter().map(|applied| {
            let permits = match applied.key.kind {
                RateKind::InputTokens => self.input,
                RateKind::Requests | RateKind::OutputTokens | RateKind::Concurrency => 1,
            };
            (applied.slot, permits, applied.limit)
        });
        let input = self.input_at_most.max(self.input);
        let usage = TokenUsage { input, output: self.output, ..TokenUsage::default() };
        let prices = self.prices.unwrap_or_default();
        let amounts = applies.units.iter().map(|(unit, end)| {
            // What only counts is not paid ahead, so that it waits for nobody.
            let amount = if end.holds { usage.amount(*unit, &prices) } else { Amount::ZERO };
            (LeaseKey { scope: path.clone(), unit: *unit }, amount)
        });
        Needs { scope: path.clone(), permits: permits.collect(), amounts: amounts.collect() }
    }
}
