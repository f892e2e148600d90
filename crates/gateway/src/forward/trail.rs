//! What became of the engines that one request was sent to.

use super::suspects::{Death, Key, MOST_DEATHS};
use super::worker::Worker;
use crate::answer::Problem;
use crate::phase::{Admitted, Open};
use flyball_fleet::FleetEndpoint;
use flyball_fleet::invariants::GatewayInvariant;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

/// What became of the engines that one request was sent to.
#[derive(Debug)]
pub(crate) struct Trail {
    /// By what its prompt is remembered; `None` of copies, which nobody asked for.
    key: Option<Key>,
    /// A number of its own.
    request: u64,
    deaths: AtomicU32,
}

impl Trail {
    /// Of a request with this prompt.
    pub(super) fn of(admitted: &Open<Admitted>, prompt: u64, worker: &Worker) -> Self {
        let key = Key { caller: admitted.caller().number, prompt };
        Self {
            key: (!admitted.head().mirrored).then_some(key),
            request: worker.next_number(),
            deaths: AtomicU32::new(0),
        }
    }

    /// An engine that got the request at this time died with it. One that was told to go dies of that.
    pub(super) fn died(&self, worker: &Worker, endpoint: &FleetEndpoint, sent: Instant) {
        if endpoint.is_leaving() {
            return;
        }
        self.deaths.fetch_add(1, Relaxed);
        let Some(key) = self.key else { return };
        let (sent, now) = (worker.shared.millis(sent), worker.shared.now());
        let death = Death { engine: endpoint.key, request: self.request, sent, now };
        if worker.tried.suspects.died(key, death) {
            let engine = &*endpoint.name;
            tracing::warn!(
                engine,
                "several engines crashed on one prompt; refusing it for ten minutes"
            );
        }
    }

    /// Whether another engine may get the request: not the third after two have died, and none if the
    /// prompt is refused.
    pub(super) fn may_go_on(&self, worker: &Worker) -> bool {
        self.deaths.load(Relaxed) < MOST_DEATHS && self.refusal(worker).is_none()
    }

    /// An engine is about to get it.
    pub(super) fn goes_on(&self) {
        GatewayInvariant::Deaths.hold(self.deaths.load(Relaxed) < MOST_DEATHS);
    }

    /// Whether engines died over its prompt before, and none has answered it since.
    pub(super) fn is_suspect(&self, worker: &Worker) -> bool {
        self.key.is_some_and(|key| worker.tried.suspects.suspects(key))
    }

    /// An engine has answered.
    pub(super) fn answered(&self, worker: &Worker) {
        if let Some(key) = self.key {
            worker.tried.suspects.answered(key);
        }
    }

    /// Why its prompt is not sent to any engine; `None` if it is.
    pub(super) fn refusal(&self, worker: &Worker) -> Option<Problem> {
        worker.refusal(self.key?)
    }
}
