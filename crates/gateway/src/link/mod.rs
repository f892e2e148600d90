//! The gateway's end of the stream to the operator: what is wanted goes up each second, what to go by
//! comes down.
//!
//! Nothing on a request's way waits for it. While the operator is unreachable, the gateway goes on by
//! what it said last (module `orders`), tries again (`backoff`) and says so in its state; only drain
//! marks lapse, because a pod that was not deleted for so long should serve again. `connect` opens
//! connections, `conversation` is one talk, `report` writes what goes up, `past` what went up lately.
//!
//! It starts and stops no engine. Start at `Link`.

mod backoff;
mod connect;
mod conversation;
mod now;
mod past;
mod report;
#[cfg(test)]
mod tests;

pub use now::{Came, LinkNow};

use crate::audit::Audit;
use crate::quota::GatewayQuota;
use crate::serve::RunningGateway;
use crate::settings::Operator;
use backoff::Backoff;
use flyball_resources::stream::{Down, Hello, Protocol, Up, Wake};
use now::Standing;
use past::Past;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Drain marks lapse when nobody has said for so long that they hold.
const LAPSE: Duration = Duration::from_mins(10);

/// A talk of this length was a good one.
const STEADY: Duration = Duration::from_secs(10);

/// Between two looks at whether they have.
const TICK: Duration = Duration::from_secs(1);

/// To the operator. One for the whole gateway, behind an `Arc`.
pub struct OperatorLink {
    settings: Operator,
    running: Arc<RunningGateway>,
    quota: Arc<GatewayQuota>,
    hello: Hello,
    standing: Standing,
    audit: Option<Arc<Audit>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Where words for the operator go while it listens.
    mouth: Option<mpsc::Sender<Up>>,
    /// The number of the orders that came on this stream.
    sequence: u64,
    /// When it was last said that the drain marks hold; `None` if there are none.
    marked: Option<Instant>,
    /// Engines that drain, as last told.
    drained: usize,
    /// How things stood lately.
    past: Past,
}

impl OperatorLink {
    /// To the operator of these settings, for this gateway.
    pub fn new(settings: Operator, running: Arc<RunningGateway>, version: &str) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started = now.saturating_sub(running.began().elapsed());
        let hello = Hello {
            protocol: Some(Protocol::OURS),
            gateway: name(),
            program: version.to_owned(),
            started_ms: u64::try_from(started.as_millis()).unwrap_or(u64::MAX),
        };
        let (standing, state) = (Standing::default(), Mutex::default());
        let quota = running.quota();
        Self { settings, running, quota, hello, standing, audit: None, state }
    }

    /// The same, and what the operator does is written down.
    #[must_use]
    pub fn with_audit(self, audit: Arc<Audit>) -> Self {
        Self { audit: Some(audit), ..self }
    }

    /// The same under another name, where two gateways share a host.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.hello.gateway);
        self
    }

    /// Talks to the operator until `until`, however often it goes and comes back.
    pub async fn talk(&self, until: impl Future<Output = ()>) {
        tokio::select! {
            never = self.try_for_ever() => match never {},
            never = self.lapse_for_ever() => match never {},
            () = until => {}
        }
    }

    /// A request arrived for a model without engines. Said at once; fails if the operator does not
    /// respond. Should the connection break before it is heard, the next report says it again.
    pub fn wake(&self, model: &str) -> Result<(), String> {
        let namespace = self.running.namespace(model).unwrap_or_default();
        let wake = Wake { model: model.to_owned(), namespace };
        let wake = Up { wake: Some(wake), ..Up::default() };
        let state = self.state();
        let mouth = state.mouth.as_ref().ok_or("the operator is unreachable")?;
        mouth.try_send(wake).map_err(|_| "the operator does not respond".to_owned())?;
        self.standing.count_sent();
        Ok(())
    }

    /// How it goes.
    pub fn now(&self) -> LinkNow {
        LinkNow { drained: self.running.drained(), ..self.standing.now() }
    }

    async fn try_for_ever(&self) -> std::convert::Infallible {
        let (mut backoff, chance) = (Backoff::default(), RandomState::new());
        let mut known = None;
        for number in 0_u64.. {
            let began = Instant::now();
            let (came, ended) = self.converse().await;
            self.hush();
            self.standing.tried(came, ended.is_usual());
            if came == Came::Welcomed {
                known = None;
                // Whoever is sent away again and again comes less and less often.
                if began.elapsed() >= STEADY {
                    backoff = Backoff::default();
                }
            }
            let text = ended.to_string();
            if !ended.is_usual() && known.as_ref() != Some(&text) {
                tracing::warn!(error = text, "operator unreachable; keeping its last directives");
                known = Some(text);
            }
            tokio::time::sleep(backoff.next(chance.hash_one(number))).await;
        }
        std::future::pending().await
    }

    async fn lapse_for_ever(&self) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(TICK).await;
            self.lapse();
        }
    }

    /// Forgets drain marks that nobody has spoken of for long.
    fn lapse(&self) {
        let mut state = self.state();
        if state.marked.is_none_or(|marked| marked.elapsed() < LAPSE) {
            return;
        }
        state.marked = None;
        state.drained = 0;
        drop(state);
        let drained = self.running.forget_drains();
        tracing::warn!(drained, "operator unreachable for ten minutes; drain marks expired");
        self.audit.iter().for_each(|audit| audit.ordered(0, "drain marks expired"));
    }

    /// Takes in what the operator says.
    fn take(&self, down: Down) {
        self.standing.count_received();
        self.quota.note_contact();
        if let Some(Err(error)) = down.quota.as_ref().map(|quota| self.quota.follow(quota)) {
            tracing::warn!(%error, "ignoring an invalid message about quotas");
        }
        let mut state = self.state();
        let Some(orders) = down.orders else {
            // Others that we have not got yet do not say that ours hold.
            if state.sequence != 0 && down.holds == state.sequence && state.marked.is_some() {
                state.marked = Some(Instant::now());
            }
            return;
        };
        state.sequence = orders.sequence;
        state.marked = (!orders.drains.is_empty()).then(Instant::now);
        self.running.order(orders);
        let drained = self.running.drained();
        let before = std::mem::replace(&mut state.drained, drained);
        drop(state);
        if before != drained {
            tracing::info!(drained, "operator's drain marks changed");
            self.audit.iter().for_each(|audit| audit.ordered(drained, "told by the operator"));
        }
    }

    /// Says how things stand. The lock is held from looking to saying: a wake that comes between the two
    /// would be taken back by a report that does not know of it.
    fn report(&self) {
        let mut state = self.state();
        let demand = report::demand(&self.running, state.sequence);
        state.past.add(Instant::now(), &demand.models);
        let Some(mouth) = &state.mouth else { return };
        let demand = Some(demand);
        // If the last ones have not gone out, this one would only make it worse.
        if mouth.try_send(Up { demand, ..Up::default() }).is_ok() {
            self.standing.count_sent();
        }
    }

    /// Says how limits and budgets stand: all that changed, or what requests have just touched.
    fn report_quota(&self, all: bool) {
        let state = self.state();
        let Some(mouth) = &state.mouth else { return };
        // What does not go out is not reported: without room nothing is looked at.
        if let (Ok(permit), Some(quota)) = (mouth.try_reserve(), self.quota.report(all)) {
            permit.send(Up { quota: Some(quota), ..Up::default() });
        }
    }

    /// The operator listens here.
    fn speak(&self, mouth: mpsc::Sender<Up>) {
        let mut state = self.state();
        let past = state.past.reported(Instant::now());
        if !past.is_empty() {
            // The first of a thousand words has room.
            mouth.try_send(Up { past, ..Up::default() }).ok();
        }
        self.quota.report_anew();
        state.mouth = Some(mouth);
        state.sequence = 0;
    }

    /// The operator does not listen any more.
    fn hush(&self) {
        self.state().mouth = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for OperatorLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("hello", &self.hello).finish_non_exhaustive()
    }
}

/// The name of the pod, which Kubernetes gives as its host name.
fn name() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let host = host.unwrap_or_else(|| format!("gateway-{}", std::process::id()));
    host.chars().take(253).collect()
}
