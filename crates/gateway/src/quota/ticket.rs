//! What one request has of budgets and limits, until it is over.

use super::state::{Held, Lacks};
use super::{GatewayQuota, QuotaRefusal};
use flyball_quota::{Amount, BudgetUnit, LeaseKey, RateKind, TokenPrices, TokenUsage};
use std::sync::Arc;

/// Output tokens that are paid ahead at a time.
pub const AHEAD: u64 = 256;

/// What is known of a request before it goes to an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaEstimate {
    /// Tokens of its prompt.
    pub input: u64,
    /// Output tokens that are paid before it begins: [`AHEAD`] of a stream, which is stopped when its money ends, and
    /// all that may come of an answer that cannot be.
    pub output: u64,
    /// What a token of its model costs, if its owner says. Without prices nothing is served on a budget of money.
    pub prices: Option<TokenPrices>,
}

/// What one request has of budgets and limits. Settled once, by [`QuotaTicket::settle`] or when it is dropped.
#[derive(Debug)]
pub struct QuotaTicket {
    quota: Option<Arc<GatewayQuota>>,
    held: Held,
    /// Each lease that it pays from, and whether its stream ends with the money.
    leases: Vec<(LeaseKey, bool)>,
    estimate: QuotaEstimate,
    /// Output tokens that are paid.
    paid: u64,
    /// What has come so far.
    usage: TokenUsage,
    began: bool,
}

impl QuotaTicket {
    /// That of a request to which nothing applies.
    pub(super) fn free() -> Self {
        Self {
            quota: None,
            held: Held::default(),
            leases: Vec::new(),
            estimate: QuotaEstimate::default(),
            paid: u64::MAX,
            usage: TokenUsage::default(),
            began: false,
        }
    }

    pub(super) fn new(
        quota: Arc<GatewayQuota>,
        held: Held,
        leases: Vec<(LeaseKey, bool)>,
        estimate: QuotaEstimate,
    ) -> Self {
        let paid = if leases.is_empty() { u64::MAX } else { estimate.output };
        let usage = TokenUsage { input: estimate.input, ..TokenUsage::default() };
        Self { quota: Some(quota), held, leases, estimate, paid, usage, began: false }
    }

    /// It goes to an engine: from here on its prompt is spent, whatever becomes of it.
    pub const fn begin(&mut self) {
        self.began = true;
    }

    /// Output tokens that may be passed on.
    pub const fn paid(&self) -> u64 {
        self.paid
    }

    /// So many output tokens have come. Pays [`AHEAD`] more before the last that is paid is passed on: half of them are
    /// asked for early, so that a stream seldom waits. `false` if they are not paid, and are to be waited for with
    /// [`QuotaTicket::pay`].
    pub fn has_written(&mut self, output: u64) -> bool {
        self.began = true;
        self.usage.output = self.usage.output.max(output);
        while self.paid < u64::MAX && self.paid.saturating_sub(output) <= AHEAD / 2 {
            if !self.try_pay(&mut None) {
                break;
            }
        }
        output <= self.paid
    }

    /// Waits until so many output tokens are paid. If there is no money for them: the answer ends after the last that is
    /// paid. An answer that may be finished beyond the budget goes on.
    pub async fn pay(&mut self, output: u64) -> Result<(), QuotaRefusal> {
        while self.paid < output {
            let amounts = self.amounts(AHEAD);
            let Some(quota) = self.quota.clone() else { return Ok(()) };
            match quota.wait_to_pay(&amounts, &mut self.held).await {
                Ok(()) => self.paid = self.paid.saturating_add(AHEAD),
                // One of its budgets ends streams.
                Err(refusal) if self.leases.iter().any(|(_, ends)| *ends) => return Err(refusal),
                Err(_) => self.paid = u64::MAX,
            }
        }
        Ok(())
    }

    /// It is over, and an engine says that it came to this.
    pub fn settle(mut self, usage: TokenUsage) {
        self.began = true;
        self.usage = usage;
    }

    fn try_pay(&mut self, waiter: &mut Option<u64>) -> bool {
        let amounts = self.amounts(AHEAD);
        let Some(quota) = &self.quota else { return true };
        match quota.try_to_pay(&amounts, &mut self.held, waiter) {
            Ok(()) => {
                self.paid = self.paid.saturating_add(AHEAD);
                true
            }
            Err(Lacks::Empty(_) | Lacks::Amount(_) | Lacks::Room) => false,
            Err(Lacks::Permits { .. } | Lacks::TooMuch { .. }) => true,
        }
    }

    fn amounts(&self, output: u64) -> Vec<(LeaseKey, Amount)> {
        let usage = TokenUsage { output, ..TokenUsage::default() };
        let amount = |(key, _): &(LeaseKey, bool)| (key.clone(), self.amount(key.unit, &usage));
        self.leases.iter().map(amount).collect()
    }

    fn amount(&self, unit: BudgetUnit, usage: &TokenUsage) -> Amount {
        usage.amount(unit, &self.estimate.prices.unwrap_or_default())
    }
}

impl Drop for QuotaTicket {
    fn drop(&mut self) {
        let Some(quota) = self.quota.take() else { return };
        // What never went to an engine costs nothing.
        let usage = if self.began { self.usage } else { TokenUsage::default() };
        let used = |kind| match kind {
            RateKind::InputTokens => usage.input,
            RateKind::OutputTokens => usage.output,
            RateKind::Requests | RateKind::Concurrency => 1,
        };
        quota.settle(&self.held, |key| self.amount(key.unit, &usage), used);
    }
}
