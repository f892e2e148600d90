//! Which law decides for each model: replays of its past traffic, beside the loop and one at a time.
//!
//! The record is in memory only. After a restart the law that decided goes on, since its name stands in the status, and
//! the next replay waits for two hours of new traffic.

use crate::observe::ObservedCluster;
use flyball_core::decision::Decision;
use flyball_core::ids::ModelId;
use flyball_core::units::Timestamp;
use flyball_governor::policy::Law;
use flyball_governor::{Memory, Policy};
use flyball_tuner::{Name, TrialVerdict, Tuner};
use std::collections::BTreeMap;
use tokio::task::{self, JoinHandle};

/// The tuner, and the replay that is under way.
#[derive(Default)]
pub struct Tuning {
    tuner: Tuner,
    trial: Option<JoinHandle<TrialVerdict>>,
}

impl Tuning {
    /// Takes what came of a replay that ended.
    pub async fn settle(&mut self, now: Timestamp) {
        if self.trial.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(trial) = self.trial.take()
        {
            match trial.await {
                Ok(verdict) => {
                    tracing::info!(model = %verdict.model, law = %verdict.law, "replayed past traffic");
                    self.tuner.settle(verdict, now);
                }
                Err(error) => tracing::error!(%error, "cannot replay past traffic"),
            }
        }
    }

    /// Sets the law of each model in what was seen. Whoever does not lead goes by the leader's, so that it decides the
    /// same when it takes over.
    pub fn set_laws(&mut self, seen: &mut ObservedCluster, memory: &Memory, leads: bool) {
        for id in seen.snapshot.models.keys() {
            match decides(seen, id) {
                Some(law) if leads => self.tuner.restore(id, law),
                Some(law) => self.tuner.follow(id, law),
                None => {}
            }
        }
        self.tuner.observe(&seen.snapshot, memory, &mut seen.policy);
    }

    /// Writes the laws into the receipts, and begins the next replay if one is due and none is under way.
    pub fn after(
        &mut self,
        seen: &ObservedCluster,
        memory: &Memory,
        decision: &mut Decision,
        leads: bool,
    ) {
        self.tuner.sign(decision);
        if leads && self.trial.is_none() {
            let due = self.tuner.due(&seen.snapshot, memory, &seen.policy);
            self.trial = due.map(|trial| task::spawn_blocking(move || trial.run()));
        }
    }
}

/// The law that a status says decides.
fn decides(seen: &ObservedCluster, id: &ModelId) -> Option<Name> {
    let status = seen.models.get(id)?.service.status.as_ref()?;
    status.decision.as_ref()?.law.as_ref()?.name.parse().ok()
}

/// The laws of a look, for questions about it.
pub fn laws(policy: &Policy) -> BTreeMap<ModelId, Law> {
    policy.models.iter().map(|(id, settings)| (id.clone(), settings.law)).collect()
}
