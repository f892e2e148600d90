//! What one request has of budgets and limits, until it is over.

use super::state::{Held, Lacks};
use super::table::Applies;
use super::{GatewayQuota, QuotaEstimate, QuotaRefusal};
use flyball_quota::{Amount, BudgetUnit, LeaseKey, RateKind, TokenUsage};
use flyball_resources::tenant::WhenExhausted;
use std::sync::Arc;

/// Output tokens that are paid ahead at a time.
pub const AHEAD: u64 = 256;

/// Towards the end of a budget fewer are, down to so many: otherwise every stream would leave up to [`AHEAD`] of it unused.
pub(super) const LEAST_AHEAD: u64 = 4;

/// What one request has of budgets and limits. Settled once, by [`QuotaTicket::settle`] or when it is dropped.
#[derive(Debug)]
pub struct QuotaTicket {
    quota: Arc<GatewayQuota>,
    applies: Arc<Applies>,
    held: Held,
    /// The leases that it pays ahead from.
    leases: Vec<LeaseKey>,
    estimate: QuotaEstimate,
    /// Output tokens that are paid.
    paid: u64,
    /// How many are paid at a time.
    ahead: u64,
    /// What has come so far.
    usage: TokenUsage,
    began: bool,
    /// Whether a budget is exhausted and it runs on what nobody else wants.
    is_idle: bool,
}

impl QuotaTicket {
    pub(super) fn new(
        quota: Arc<GatewayQuota>,
        applies: Arc<Applies>,
        held: Held,
        estimate: QuotaEstimate,
    ) -> Self {
        let holds = |key: &&LeaseKey| applies.units.get(&key.unit).is_some_and(|end| end.holds);
        let leases: Vec<LeaseKey> = held.amounts.keys().filter(holds).cloned().collect();
        let paid = if leases.is_empty() { u64::MAX } else { estimate.output };
        let usage = TokenUsage { input: estimate.input, ..TokenUsage::default() };
        Self {
            quota,
            applies,
            held,
            leases,
            estimate,
            paid,
            ahead: AHEAD,
            usage,
            began: false,
            is_idle: false,
        }
    }

    /// That of a request which a budget does not pay for, and which costs nothing.
    pub(super) fn idle(
        quota: Arc<GatewayQuota>,
        applies: Arc<Applies>,
        held: Held,
        estimate: QuotaEstimate,
    ) -> Self {
        let mut ticket = Self::new(quota, applies, held, estimate);
        ticket.is_idle = true;
        ticket
    }

    /// Whether it may run only on what nobody else wants.
    pub const fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// Whether its stream is paid for as it goes.
    pub const fn is_metered(&self) -> bool {
        self.paid < u64::MAX
    }

    /// It goes to an engine: from here on its prompt is spent, whatever becomes of it.
    pub const fn begin(&mut self) {
        self.began = true;
    }

    /// Output tokens that may be passed on.
    pub const fn paid(&self) -> u64 {
        self.paid
    }

    /// So many output tokens have come. Pays more ahead before the last that is paid is passed on: half of them are
    /// asked for early, so that a stream seldom waits. `false` if they are not paid, and are to be waited for with
    /// [`QuotaTicket::pay`].
    pub fn has_written(&mut self, output: u64) -> bool {
        self.began = true;
        self.usage.output = self.usage.output.max(output);
        while self.paid < u64::MAX && self.paid.saturating_sub(output) <= self.ahead / 2 {
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
            let amounts = self.amounts(self.ahead);
            let quota = Arc::clone(&self.quota);
            match quota.wait_to_pay(&amounts, &mut self.held).await {
                Ok(()) => self.has_paid(),
                Err(QuotaRefusal::Budget(_)) if self.ahead > LEAST_AHEAD => {
                    self.ahead = (self.ahead / 8).max(LEAST_AHEAD);
                }
                Err(refusal) if self.ends_by(&refusal) => return Err(refusal),
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

    /// It is over, and no engine did anything for it: it costs nothing.
    pub fn release(mut self) {
        self.began = false;
    }

    /// Tokens of its prompt, before an engine has counted them.
    pub const fn estimated_input(&self) -> u64 {
        self.estimate.input
    }

    /// Output tokens that were paid before it began.
    pub const fn reserved_output(&self) -> u64 {
        self.estimate.output
    }

    /// Whether a stream ends by this. If nobody can tell whether money is left, it does if a budget that ends streams
    /// applies: it may be that one.
    fn ends_by(&self, refusal: &QuotaRefusal) -> bool {
        match refusal {
            QuotaRefusal::Budget(empty) => {
                self.applies.when(&empty.budget) == WhenExhausted::Refuse
            }
            _ => self
                .leases
                .iter()
                .any(|key| self.applies.units.get(&key.unit).is_some_and(|end| end.ends_streams)),
        }
    }

    fn try_pay(&mut self, waiter: &mut Option<u64>) -> bool {
        let amounts = self.amounts(self.ahead);
        match self.quota.try_to_pay(&amounts, &mut self.held, waiter) {
            Ok(()) => {
                self.has_paid();
                true
            }
            Err(Lacks::Empty(_) | Lacks::Amount(_) | Lacks::Room) => false,
            Err(Lacks::Permits { .. } | Lacks::TooMuch { .. }) => true,
        }
    }

    const fn has_paid(&mut self) {
        self.paid = self.paid.saturating_add(self.ahead);
        // Others may have given something back.
        self.ahead = if self.ahead < AHEAD / 2 { self.ahead * 2 } else { AHEAD };
    }

    fn amounts(&self, output: u64) -> Vec<(LeaseKey, Amount)> {
        let usage = TokenUsage { output, ..TokenUsage::default() };
        let amount = |key: &LeaseKey| (key.clone(), self.amount(key.unit, &usage));
        self.leases.iter().map(amount).collect()
    }

    fn amount(&self, unit: BudgetUnit, usage: &TokenUsage) -> Amount {
        usage.amount(unit, &self.estimate.prices.unwrap_or_default())
    }
}

impl Drop for QuotaTicket {
    fn drop(&mut self) {
        // What never went to an engine costs nothing.
        let usage = if self.began { self.usage } else { TokenUsage::default() };
        let used = |kind| match kind {
            RateKind::InputTokens => usage.input,
            RateKind::OutputTokens => usage.output,
            RateKind::Requests | RateKind::Concurrency => 1,
        };
        self.quota.settle(&self.held, |key| self.amount(key.unit, &usage), used);
    }
}
