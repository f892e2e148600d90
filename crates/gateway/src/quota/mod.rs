//! Limits and budgets of Tenants, as this gateway has parts of them.
//!
//! [`GatewayQuota::admit`] is asked before a request goes to an engine, and gives a [`QuotaTicket`] that the request pays
//! with as it streams and that is settled once, whatever becomes of it. No request waits for a network as long as there
//! is something here; before one is refused, the operator is asked and waited for, for a quarter of a second.
//!
//! `table` says what applies to whom, `estimate` what a request needs, `state` who has what, with `lease`, `share` and `shares`,
//! `left`, `describe` and `refused` what clients are told of it; all of these are pure. The link brings
//! what the operator says and takes what it is told.
//!
//! What was spent is kept by the operator and not in a file: when this process dies, what it held and had not given back
//! counts as spent. That is a slice of each lease, five seconds of spending at most; see docs/decisions/0052.

#[cfg(test)]
mod cost;
mod describe;
mod estimate;
mod lease;
mod left;
mod refused;
mod share;
mod shares;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod ticket;

pub use estimate::QuotaEstimate;
pub use left::{QuotaLeft, RateLeft};
pub use ticket::{AHEAD, QuotaTicket};

use arc_swap::ArcSwap;
use flyball_core::units::{Micros, Timestamp};
use flyball_quota::{Amount, BudgetUnit, LeaseKey, RateKey, RateKind, Scope};
use flyball_resources::resolve::TenantAccess;
use flyball_resources::stream::{EmptyLease, QuotaExcess, QuotaOrders, QuotaReply, ReportedQuota};
use state::{Held, Lacks, Needs, QuotaState};
use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use table::QuotaTable;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Those who wait are told in so many groups: who waits for one Tenant is not woken by all others.
const GROUPS: usize = 64;

/// So long a request waits for an answer of the operator before it is refused.
const PATIENCE: Duration = Duration::from_millis(250);

/// So long it waits for money while an operator is there: others may have to give some back, and the record may have to
/// be written first. To be refused with money left would be worse than to wait.
const MONEY_PATIENCE: Duration = Duration::from_secs(2);

/// So long a stream waits for one: it is cut if it does not come.
const STREAM_PATIENCE: Duration = Duration::from_secs(2);

/// When it is worth coming again if nobody could tell whether anything is left.
const AGAIN: Duration = Duration::from_secs(1);

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaRefusal {
    /// A limit is used up.
    Rate {
        /// Which one.
        key: RateKey,
        /// How much it is.
        limit: u64,
        /// When enough of it is free.
        retry_after: Duration,
    },
    /// It needs more than the whole limit.
    TooLarge {
        /// Which one.
        key: RateKey,
        /// How much it is.
        limit: u64,
    },
    /// A budget is spent, or paid ahead by requests that run.
    Budget(Box<EmptyLease>),
    /// A budget of money applies, and nobody says what the model costs.
    NoPrice,
    /// Nobody could tell in time whether anything is left.
    Unknown {
        /// When it is worth trying again.
        retry_after: Duration,
    },
}

/// On what terms requests of a Tenant are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaTerms {
    /// What cannot be stopped must not exceed what was paid for it before it began.
    pub is_hard: bool,
}

/// Parts of limits and budgets. One for the whole gateway, behind an `Arc`.
pub struct GatewayQuota {
    table: ArcSwap<QuotaTable>,
    state: Mutex<QuotaState>,
    /// The operator has said something, or something was given back: to those who wait, by their Tenants.
    changed: [Notify; GROUPS],
    /// The operator is to be told something at once.
    due: Notify,
    accounts: String,
    is_pod: bool,
    began: Instant,
}

impl Default for GatewayQuota {
    fn default() -> Self {
        let chance = RandomState::new();
        Self {
            table: ArcSwap::default(),
            state: Mutex::default(),
            changed: std::array::from_fn(|_| Notify::new()),
            due: Notify::new(),
            accounts: format!("{:016x}{:016x}", chance.hash_one(0), chance.hash_one(1)),
            is_pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            began: Instant::now(),
        }
    }
}

impl GatewayQuota {
    /// From now on these Tenants have limits and budgets.
    pub fn set_tenants<'a>(&self, tenants: impl Iterator<Item = &'a TenantAccess>) {
        let table = QuotaTable::of(tenants, |key| self.state().slot(key));
        self.table.store(Arc::new(table));
    }

    /// On what terms a Tenant is counted; `None` if no limit and no budget applies to it.
    pub fn terms(&self, access: &TenantAccess) -> Option<QuotaTerms> {
        let applies = self.table.load().applies(&access.path)?;
        Some(QuotaTerms { is_hard: applies.is_hard() })
    }

    /// Lets a request of this Tenant in, if every limit and budget above it does. Nothing is held of a Tenant without any.
    pub async fn admit(
        self: &Arc<Self>,
        access: &TenantAccess,
        mut estimate: QuotaEstimate,
    ) -> Result<Option<QuotaTicket>, QuotaRefusal> {
        let Some(applies) = self.table.load().applies(&access.path) else { return Ok(None) };
        if applies.units.contains_key(&BudgetUnit::Money) && estimate.prices.is_none() {
            return Err(QuotaRefusal::NoPrice);
        }
        let mut needs = estimate.needs(&applies, &access.path);
        let mut held = self.wait(&needs, PATIENCE).await;
        // Where more may be spent than is left, a long answer begins with what there is too: it would be free of charge
        // otherwise if it only says that it may be long enough.
        let may_exceed = !estimate.can_stop && !applies.is_hard();
        if matches!(held, Err(QuotaRefusal::Budget(_))) && (estimate.can_stop || may_exceed) {
            let least = QuotaEstimate { output: estimate.output.min(AHEAD / 8), ..estimate };
            needs = least.needs(&applies, &access.path);
            held = self.wait(&needs, PATIENCE).await;
            estimate = if may_exceed { estimate } else { least };
        }
        let held = match held {
            Err(QuotaRefusal::Budget(empty)) if applies.may_idle(&empty.budget) => {
                needs.amounts.clear();
                let held = self.wait(&needs, PATIENCE).await?;
                return Ok(Some(QuotaTicket::idle(Arc::clone(self), applies, held, estimate)));
            }
            held => held?,
        };
        Ok(Some(QuotaTicket::new(Arc::clone(self), applies, held, estimate)))
    }

    /// What a Tenant has left here of its limits, for the headers of answers; `None` if nothing applies.
    pub fn left(&self, access: &TenantAccess) -> Option<QuotaLeft> {
        let applies = self.table.load().applies(&access.path)?;
        let now = self.now();
        Some(self.state().left(&applies.limits, now))
    }

    /// All limits and budgets that apply to a Tenant, as it is told when it asks.
    pub fn describe(&self, access: &TenantAccess, at: SystemTime) -> serde_json::Value {
        let applies = self.table.load().applies(&access.path).unwrap_or_default();
        let micros = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let at = Timestamp::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
        let now = self.now();
        self.state().describe(&access.path, &applies, now, at)
    }

    /// What the operator is to be told now; `None` if no Tenant has limits or budgets. With `all` everything is looked
    /// at, and otherwise what requests have just touched.
    pub fn report(&self, all: bool) -> Option<ReportedQuota> {
        if self.table.load().is_empty() {
            return None;
        }
        let report = self.state().report(all, self.now());
        Some(ReportedQuota { accounts: self.accounts.clone(), is_pod: self.is_pod, ..report })
    }

    /// The operator listens on another connection.
    pub fn report_anew(&self) {
        self.state().forget_reported();
    }

    /// The operator says something about quotas.
    pub fn follow(&self, orders: &QuotaOrders) -> Result<(), QuotaExcess> {
        let reply = QuotaReply::read(orders)?;
        let leases = reply.grants.iter().map(|(key, _)| &key.scope);
        let leases = leases.chain(reply.empty.iter().map(|empty| &empty.lease.scope));
        let scopes = leases.chain(reply.shares.iter().map(|(key, _)| &key.scope));
        let groups: BTreeSet<usize> = scopes.map(group).collect();
        let is_due = self.state().follow(reply, self.now());
        groups.into_iter().for_each(|group| self.changed[group].notify_waiters());
        if is_due {
            self.due.notify_one();
        }
        Ok(())
    }

    /// The operator was heard.
    pub fn note_contact(&self) {
        self.state().note_contact(self.now());
    }

    /// Waits until the operator is to be told something at once.
    pub async fn due(&self) {
        self.due.notified().await;
    }

    /// Gives back everything that no request has: the process ends.
    pub fn give_back(&self) {
        self.state().give_back();
        self.due.notify_one();
    }

    async fn wait(&self, needs: &Needs, patience: Duration) -> Result<Held, QuotaRefusal> {
        let began = Instant::now();
        let mut until = began + patience;
        let of = group(&needs.scope);
        let mut waiting = Waiting { quota: self, needs, number: None };
        loop {
            let changed = self.changed[of].notified();
            tokio::pin!(changed);
            // What comes between the look and the wait counts too.
            changed.as_mut().enable();
            let taken = self.state().take(needs, &mut waiting.number, self.now());
            let lacks = match taken {
                Ok(held) => return Ok(held),
                Err(lacks) => lacks,
            };
            if matches!(lacks, Lacks::Empty(_) | Lacks::TooMuch { .. } | Lacks::Room) {
                return Err(refusal(lacks));
            }
            self.due.notify_one();
            if matches!(lacks, Lacks::Amount(_)) && self.state().is_led(self.now()) {
                until = until.max(began + MONEY_PATIENCE);
            }
            // Permits that come free by themselves in time are waited for as well.
            let soon = match &lacks {
                Lacks::Permits { free_in: Some(free), .. } => Instant::now() + time(*free),
                _ => until,
            };
            if timeout_at(soon.min(until), changed).await.is_err() && Instant::now() >= until {
                return Err(refusal(lacks));
            }
        }
    }

    async fn wait_to_pay(
        &self,
        amounts: &[(LeaseKey, Amount)],
        held: &mut Held,
    ) -> Result<(), QuotaRefusal> {
        let needs = Needs::of_amounts(&held.scope, amounts);
        let more = self.wait(&needs, STREAM_PATIENCE).await?;
        for (key, amount) in more.amounts {
            *held.amounts.entry(key).or_default() += amount;
        }
        Ok(())
    }

    /// Pays more ahead, if it is here. If it is not, it is asked for.
    fn try_to_pay(
        &self,
        amounts: &[(LeaseKey, Amount)],
        held: &mut Held,
        waiter: &mut Option<u64>,
    ) -> Result<(), Lacks> {
        let mut state = self.state();
        let paid = state.pay(amounts, held, waiter, self.now());
        if let Some(waiter) = waiter.take() {
            // It goes on with what it has: the lease is asked for by its pace.
            state.leave(&Needs::of_amounts(&held.scope, amounts), waiter);
            self.due.notify_one();
        }
        paid
    }

    fn settle(
        &self,
        held: &Held,
        spent: impl Fn(&LeaseKey) -> Amount,
        used: impl Fn(RateKind) -> u64,
    ) {
        self.state().settle(held, spent, used, self.now());
        self.changed[group(&held.scope)].notify_waiters();
    }

    fn now(&self) -> Micros {
        Micros::new(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn state(&self) -> MutexGuard<'_, QuotaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for GatewayQuota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayQuota").field("accounts", &self.accounts).finish_non_exhaustive()
    }
}

/// Somebody who waits, until it does not any more.
struct Waiting<'a> {
    quota: &'a GatewayQuota,
    needs: &'a Needs,
    number: Option<u64>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.quota.state().leave(self.needs, number);
            // Whoever waits behind it is asked for next.
            self.quota.due.notify_one();
        }
    }
}

/// The group of a Tenant: that of the one at its top, since those below it share its limits.
fn group(scope: &Scope) -> usize {
    let path = scope.as_str();
    let end = path.match_indices('/').nth(1).map_or(path.len(), |(end, _)| end);
    (xxhash_rust::xxh3::xxh3_64(&path.as_bytes()[..end]) % GROUPS as u64) as usize
}

fn refusal(lacks: Lacks) -> QuotaRefusal {
    match lacks {
        Lacks::Permits { key, limit, free_in } => {
            let retry_after = free_in.map_or(AGAIN, time).max(Duration::from_millis(1));
            QuotaRefusal::Rate { key, limit, retry_after }
        }
        Lacks::TooMuch { key, limit } => QuotaRefusal::TooLarge { key, limit },
        Lacks::Empty(empty) => QuotaRefusal::Budget(empty),
        Lacks::Amount(_) | Lacks::Room => QuotaRefusal::Unknown { retry_after: AGAIN },
    }
}

const fn time(micros: Micros) -> Duration {
    Duration::from_micros(micros.get())
}
