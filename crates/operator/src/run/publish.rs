//! The last step of a turn: what is worth telling is told.

use super::{AT_ONCE, Operator};
use crate::decide::Decided;
use crate::observe::ObservedCluster;
use crate::report::pools::{self, SeenPool};
use crate::report::{self, Board, PublishError, StatusContext};
use flyball_core::decision::ModelDecision;
use flyball_core::ids::ModelId;
use flyball_core::snapshot::Snapshot;
use flyball_resources::model_service::ModelServiceStatus;
use futures::{StreamExt as _, stream};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// What was learnt is written this often: less than that is lost with an operator that is killed.
const LEARNT: Duration = Duration::from_secs(300);

/// For writing what was learnt at the end. A pod has half a minute to end, and the lease is still to be given
/// back.
const HAND_OVER: Duration = Duration::from_secs(5);

impl Operator {
    pub(super) async fn publish(&mut self, seen: &ObservedCluster, all: &Decided) {
        self.written.retain(|id, _| seen.models.contains_key(id));
        self.learnt_written.retain(|id, _| seen.models.contains_key(id));
        self.state.history(|history| history.keep(|id| seen.models.contains_key(id)));
        let by_id: BTreeMap<&ModelId, &ModelDecision> =
            all.decision.models.iter().map(|decided| (&decided.model, decided)).collect();
        let mut news = Vec::new();
        let mut statuses = BTreeMap::new();
        for (id, model) in &seen.models {
            let decided = by_id.get(id).copied();
            let learnt = self.learnt_if_due(id);
            let fresh = learnt.is_some();
            let status = self.status(id, seen, all, decided, learnt);
            let mode = format!("{:?}", model.service.spec.scaling.mode);
            let entry = self.state.history(|history| history.note(id, &mode, &status)).flatten();
            if entry.is_some() {
                let reason = decided.map_or("unknown", |decided| decided.reason.name());
                self.board.change(|shown| shown.decided(reason));
            }
            let since = self.written.get(id).map(Instant::elapsed);
            let write = report::is_worth_writing(model.service.status.as_ref(), &status, since);
            if write || entry.is_some() {
                let bad = report::turned_bad(model.service.status.as_ref(), &status);
                news.push((
                    id,
                    &model.service,
                    (write.then(|| status.clone()), fresh),
                    (entry, bad),
                ));
            }
            statuses.insert(id, status);
        }
        self.board.change(|shown| shown.publish(statuses.iter().map(|(id, status)| (*id, status))));
        let publisher = &self.publisher;
        let writes = stream::iter(news)
            .map(|(id, service, (status, fresh), (entry, bad))| async move {
                if let Some(entry) = &entry {
                    publisher.event(service, entry).await;
                }
                if let Some((reason, message)) = &bad {
                    publisher.happened(&**service, *reason, "Reconcile", message).await;
                }
                let Some(status) = status else { return (id, fresh, None) };
                (id, fresh, Some(publisher.status(service, &status).await))
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for (id, fresh, written) in writes {
            match written {
                None => {}
                Some(Ok(())) => {
                    self.written.insert(id.clone(), Instant::now());
                    if fresh {
                        self.learnt_written.insert(id.clone(), Instant::now());
                    }
                    self.board.change(|shown| shown.wrote("status"));
                }
                Some(Err(error)) => self.not_written(&error),
            }
        }
    }

    /// What was learnt about a model, if it is to be written again.
    fn learnt_if_due(&mut self, id: &ModelId) -> Option<String> {
        let since = self.learnt_written.entry(id.clone()).or_insert_with(Instant::now);
        (since.elapsed() >= LEARNT).then(|| self.learnt_of(id)).flatten()
    }

    fn learnt_of(&self, id: &ModelId) -> Option<String> {
        self.state.brain(|brain| brain.learnt(id, &self.learnt.estimator))
    }

    /// Writes what was learnt of all models, because another operator will lead. Whatever is not written
    /// in time is learnt again.
    pub(super) async fn hand_over(&self) {
        let facts = self.watches.facts();
        let writes = facts.models.iter().filter_map(|service| {
            let learnt = self.learnt_of(&service.id().ok()?)?;
            let status = ModelServiceStatus { learnt: Some(learnt), ..service.status.clone()? };
            Some((service, status))
        });
        let publisher = &self.publisher;
        let writing = stream::iter(writes)
            .map(|(service, status)| async move { publisher.status(service, &status).await })
            .buffer_unordered(AT_ONCE)
            .for_each(|wrote| async move {
                if let Err(error) = wrote {
                    self.not_written(&error);
                }
            });
        if self.fence.may_write(Instant::now()) && timeout(HAND_OVER, writing).await.is_err() {
            tracing::warn!(
                "status.learnt was written in part; the rest is learnt again after a restart"
            );
        }
    }

    /// Writes statuses of pools.
    pub(super) async fn publish_pools(&mut self, pools: &[SeenPool]) {
        self.pools_written.retain(|name, _| pools.iter().any(|pool| pool.name == *name));
        for seen in pools {
            let since = self.pools_written.get(&seen.name).map(Instant::elapsed);
            if !pools::is_news(seen.pool.status.as_ref(), &seen.status, since) {
                continue;
            }
            match self.publisher.pool(seen).await {
                Ok(()) => {
                    self.pools_written.insert(seen.name.clone(), Instant::now());
                    self.board.change(|shown| shown.wrote("pool"));
                }
                Err(error) => self.not_written(&error),
            }
        }
    }

    fn not_written(&self, error: &PublishError) {
        not_written(&self.board, error);
    }

    /// Requests of the last hour that met the objectives, of a million.
    pub(super) fn attainment(&self, id: &ModelId, snapshot: &Snapshot) -> Option<u32> {
        let counts = snapshot.models.get(id).and_then(|model| model.misses.fresh());
        self.attained.per_million(id, counts)
    }

    fn status(
        &self,
        id: &ModelId,
        seen: &ObservedCluster,
        all: &Decided,
        decided: Option<&ModelDecision>,
        learnt: Option<String>,
    ) -> ModelServiceStatus {
        let model = seen.snapshot.models.get(id);
        let context = StatusContext {
            snapshot: &seen.snapshot,
            decision: &all.decision,
            broken: &all.broken,
            seen: &seen.models[id],
            model,
            decided,
            attained_per_million: self.attainment(id, &seen.snapshot),
            learnt,
        };
        report::status(id, &context)
    }
}

/// Notes that a status was not written.
pub(super) fn not_written(board: &Board, error: &PublishError) {
    if matches!(error, PublishError::Moved(_) | PublishError::NotLeading(_)) {
        tracing::debug!(%error, "cannot publish the status");
    } else {
        tracing::warn!(%error, "cannot publish the status");
    }
    board.change(|shown| shown.failed("report", error.name()));
}
