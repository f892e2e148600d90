//! Limits and budgets of Tenants, given out to gateways in parts.
//!
//! [`TenantQuota`] is what the rest of the operator sees: the link brings what gateways say and takes what they are told,
//! [`TenantQuota::set_tenants`] says what there is to give out, [`TenantQuota::status`] how budgets stand. `allocator`
//! decides, and is pure; `record` is what it leaves for its successor as text, `store` where that is kept, `keeper` lets
//! time pass and writes.
//!
//! It gives out nothing before the record says that this operator leads, and nothing that the record does not cover. A
//! gateway that hears nothing goes on with what it has.

mod allocator;
mod keeper;
mod record;
mod store;
#[cfg(test)]
mod tests;

pub use keeper::{Pods, keep};
pub use record::RecordProblem;
pub(crate) use store::ConfigMapStore;
pub use store::{RecordStore, StoreError};

use allocator::{Allocator, Clock, Replies};
use flyball_core::units::{Micros, Timestamp};
use flyball_quota::{BankRecord, BudgetKey, BudgetSpec, BudgetStatus, RateKey};
use flyball_resources::stream::{QuotaExcess, QuotaOrders, QuotaReply, QuotaReport, ReportedQuota};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// Messages that wait for a gateway. What does not fit is asked for again.
const WAITING: usize = 256;

/// Limits and budgets, and who has how much. One for the whole operator, behind an `Arc`.
#[derive(Debug)]
pub struct TenantQuota {
    state: Mutex<State>,
    /// Somebody waits for a write.
    short: Notify,
    began: Instant,
}

#[derive(Debug, Default)]
struct State {
    /// What Tenants say, once that is known.
    tenants: Option<Tenants>,
    /// While this operator leads.
    allocator: Option<Allocator>,
    /// To gateways that talk, by name.
    lines: BTreeMap<String, mpsc::Sender<QuotaOrders>>,
}

#[derive(Clone, Debug, Default)]
struct Tenants {
    budgets: Vec<BudgetSpec>,
    limits: BTreeMap<RateKey, u64>,
}

impl Default for TenantQuota {
    fn default() -> Self {
        Self { state: Mutex::default(), short: Notify::new(), began: Instant::now() }
    }
}

impl TenantQuota {
    /// From now on there is this to give out.
    pub fn set_tenants(&self, budgets: Vec<BudgetSpec>, limits: BTreeMap<RateKey, u64>) {
        let (mut state, now) = (self.state(), self.now());
        if let Some(allocator) = &mut state.allocator {
            allocator.set_tenants(budgets.clone(), limits.clone(), now);
        }
        state.tenants = Some(Tenants { budgets, limits });
    }

    /// How each budget stands; nothing while this operator does not lead.
    pub fn status(&self) -> BTreeMap<BudgetKey, BudgetStatus> {
        self.state().allocator.as_ref().map(Allocator::status).unwrap_or_default()
    }

    /// A gateway talks. What it is told comes here, until it talks on another connection.
    pub(crate) fn join(&self, gateway: &str) -> mpsc::Receiver<QuotaOrders> {
        let (line, messages) = mpsc::channel(WAITING);
        let mut state = self.state();
        if let Some(allocator) = &state.allocator {
            send_hello(&line, allocator.reply());
        }
        state.lines.retain(|_, line| !line.is_closed());
        state.lines.insert(gateway.to_owned(), line);
        messages
    }

    /// A gateway says how things stand.
    pub(crate) fn receive(
        &self,
        gateway: &str,
        message: &ReportedQuota,
    ) -> Result<(), QuotaExcess> {
        let report = QuotaReport::read(gateway, message)?;
        let (mut state, now) = (self.state(), self.now());
        let Some(allocator) = &mut state.allocator else { return Ok(()) };
        let replies = allocator.report(report, now);
        if allocator.is_short() {
            self.short.notify_one();
        }
        state.send(replies);
        Ok(())
    }

    /// Whether any Tenant has a budget or a limit.
    fn is_needed(&self) -> bool {
        let state = self.state();
        let any = |tenants: &Tenants| !tenants.budgets.is_empty() || !tenants.limits.is_empty();
        state.tenants.as_ref().is_some_and(any)
    }

    /// Begins to give out, after what was written last. `None` as long as Tenants are not known.
    fn begin(&self, record: BankRecord) -> Option<Allocator> {
        let (tenants, now) = (self.state().tenants.clone()?, self.now());
        let mut allocator = Allocator::new(record, tenants.budgets.clone(), now);
        allocator.set_tenants(tenants.budgets, tenants.limits, now);
        Some(allocator)
    }

    /// From now on it gives out; `None` if it does not any more.
    fn lead(&self, allocator: Option<Allocator>) {
        let (mut state, now) = (self.state(), self.now());
        state.allocator = allocator;
        let tenants = state.tenants.clone().unwrap_or_default();
        let State { allocator: Some(allocator), lines, .. } = &mut *state else { return };
        // They may have changed since it was made.
        allocator.set_tenants(tenants.budgets, tenants.limits, now);
        lines.values().for_each(|line| send_hello(line, allocator.reply()));
    }

    /// Does something with what gives out, if this operator leads.
    fn step<T>(&self, step: impl FnOnce(&mut Allocator, Clock) -> T) -> Option<T> {
        let now = self.now();
        self.state().allocator.as_mut().map(|allocator| step(allocator, now))
    }

    fn send(&self, replies: Replies) {
        self.state().send(replies);
    }

    fn now(&self) -> Clock {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros =
            |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Clock {
            wall: Timestamp::from_micros(micros(wall)),
            at: Micros::new(micros(self.began.elapsed())),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn send(&mut self, replies: Replies) {
        for (gateway, reply) in replies {
            let (name, _) = QuotaReport::name_of(&gateway);
            let Some(line) = self.lines.get(name) else { continue };
            // A gateway that does not read asks again.
            let full = reply.write().into_iter().any(|message| line.try_send(message).is_err());
            if full && line.is_closed() {
                self.lines.remove(name);
            }
        }
    }
}

/// Says who leads: a gateway then reports everything.
fn send_hello(line: &mpsc::Sender<QuotaOrders>, hello: QuotaReply) {
    for message in hello.write() {
        // One that does not read hears it in the next answer.
        line.try_send(message).ok();
    }
}
