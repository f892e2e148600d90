//! All engines' cancels, shared between the data plane that makes them and whoever asks engines.

use super::verify::{Case, VerifiedEngine, VerifyEvent};
use crate::fleet::{Fleet, FleetEndpoint, FleetModel};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What is told to whoever counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifierEvent {
    /// A cancel let go of its slot after this long.
    Freed(Duration),
    /// This many cancels could not be proven either way: the engine does not report.
    Unproven(usize),
    /// An engine ignores cancels and gets nothing new.
    Quarantined {
        /// Its name.
        engine: Arc<str>,
        /// Requests that it kept.
        zombies: u32,
    },
    /// An engine may have requests again.
    Released {
        /// Its name.
        engine: Arc<str>,
    },
}

/// All engines' cancels. Engines are told apart by address: two models may share one.
pub struct Verifier {
    cases: Mutex<BTreeMap<SocketAddr, Case>>,
    /// Wakes whoever asks engines.
    pub(super) wake: Notify,
    notify: Box<dyn Fn(VerifierEvent) + Send + Sync>,
}

impl Verifier {
    /// One without cancels; `notify` counts what it finds.
    pub fn new(notify: impl Fn(VerifierEvent) + Send + Sync + 'static) -> Self {
        Self { cases: Mutex::default(), wake: Notify::new(), notify: Box::new(notify) }
    }

    /// A request at this engine was cancelled. Call it when the request is no longer counted as in
    /// flight. Never waits.
    pub fn cancelled(&self, endpoint: &FleetEndpoint, at: Instant) {
        let mut cases = self.cases();
        let case = cases.entry(endpoint.address).or_insert_with(|| Case::new(endpoint.engine));
        let was_open = case.is_open();
        let counted = case.cancelled(at);
        drop(cases);
        if !was_open {
            self.wake.notify_one();
        }
        if !counted {
            (self.notify)(VerifierEvent::Unproven(1));
        }
    }

    /// Requests in engines that were cancelled and should be gone.
    pub fn zombies(&self) -> usize {
        self.cases().values().map(|case| case.zombies() as usize).sum()
    }

    /// Engines with unproven cancels: they are asked often.
    pub(super) fn open(&self) -> Vec<SocketAddr> {
        let cases = self.cases();
        cases.iter().filter(|(_, case)| case.is_open()).map(|(address, _)| *address).collect()
    }

    /// Takes in what was seen of an engine. `endpoints` are all that stand for it.
    pub(super) fn report(
        &self,
        fleet: &Fleet,
        endpoints: &[Arc<FleetEndpoint>],
        seen: &VerifiedEngine,
    ) {
        let Some(first) = endpoints.first() else { return };
        let mut cases = self.cases();
        let case = cases.entry(first.address).or_insert_with(|| Case::new(first.engine));
        // Taken out to look at the others meanwhile.
        let mut case = std::mem::replace(case, Case::new(first.engine));
        let verdict = case.report(seen, || {
            may_quarantine(fleet, first.address, |at| {
                cases.get(&at).is_some_and(Case::is_quarantined)
            })
        });
        let quarantined = case.is_quarantined();
        cases.insert(first.address, case);
        drop(cases);
        for endpoint in endpoints {
            endpoint.quarantine(quarantined);
        }
        for took in &verdict.freed {
            (self.notify)(VerifierEvent::Freed(*took));
        }
        let (engine, zombies) = (&*first.name, verdict.zombies);
        match verdict.change {
            Some(VerifyEvent::Quarantined) => {
                let hint = "restart it, or check its log for aborts";
                tracing::error!(
                    engine,
                    zombies,
                    hint,
                    "engine ignores cancellation; no new requests are sent to it"
                );
                (self.notify)(VerifierEvent::Quarantined {
                    engine: Arc::clone(&first.name),
                    zombies,
                });
            }
            Some(VerifyEvent::Spared) => {
                let hint = "half of the model's engines are quarantined already";
                tracing::error!(
                    engine,
                    zombies,
                    hint,
                    "engine ignores cancellation; it is the last one and stays in use"
                );
            }
            Some(VerifyEvent::Released) => {
                tracing::info!(
                    engine,
                    "engine finished its cancelled requests; it receives requests again"
                );
                (self.notify)(VerifierEvent::Released { engine: Arc::clone(&first.name) });
            }
            None => {}
        }
    }

    /// Forgets engines that are gone and cancels that nobody will ever prove.
    pub(super) fn tidy(&self, fleet: &Fleet, now: Instant) {
        let mut there: Vec<_> = fleet.endpoints().map(|endpoint| endpoint.address).collect();
        there.sort_unstable();
        let mut unproven = 0;
        self.cases().retain(|address, case| {
            unproven += case.give_up(now);
            // An engine that is gone took its slots with it.
            there.binary_search(address).is_ok()
        });
        if unproven > 0 {
            (self.notify)(VerifierEvent::Unproven(unproven));
        }
    }

    fn cases(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Case>> {
        // Every change is whole before anything could panic.
        self.cases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("open", &self.open().len()).finish_non_exhaustive()
    }
}

/// At most half of a model's engines are kept away. If more of them ignore cancels, it is a
/// version's fault and not an engine's, and the few that are left could not carry the load.
fn may_quarantine(
    fleet: &Fleet,
    address: SocketAddr,
    is_quarantined: impl Fn(SocketAddr) -> bool,
) -> bool {
    let serve_it = |model: &&Arc<FleetModel>| model.endpoints.iter().any(|e| e.address == address);
    fleet.models().filter(serve_it).all(|model| {
        let others = model.endpoints.iter().filter(|e| is_quarantined(e.address)).count();
        (others + 1) * 2 <= model.endpoints.len()
    })
}
