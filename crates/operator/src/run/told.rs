//! The last step of a turn: what is worth telling is told.

use super::{AT_ONCE, Operator};
use crate::observe::Seen;
use crate::report::{self, Context, Shown, TellError};
use flyball_core::decision::{Decision, ModelDecision};
use flyball_core::ids::ModelId;
use flyball_resources::model_service::ModelServiceStatus;
use futures::{StreamExt as _, stream};
use std::collections::BTreeMap;
use std::time::Instant;

impl Operator {
    pub(super) async fn tell(&mut self, seen: &Seen, decision: &Decision) {
        self.written.retain(|id, _| seen.models.contains_key(id));
        self.state.history(|history| history.keep(|id| seen.models.contains_key(id)));
        let by_id: BTreeMap<&ModelId, &ModelDecision> =
            decision.models.iter().map(|decided| (&decided.model, decided)).collect();
        let mut news = Vec::new();
        for (id, model) in &seen.models {
            let decided = by_id.get(id).copied();
            let status = self.status(id, seen, decision, decided);
            let mode = format!("{:?}", model.service.spec.scaling.mode);
            let entry = self.state.history(|history| history.note(id, &mode, &status)).flatten();
            if entry.is_some() {
                let reason = decided.map_or("unknown", |decided| decided.reason.name());
                self.board.change(|shown| Shown::count(&mut shown.decisions, reason));
            }
            let since = self.written.get(id).map(Instant::elapsed);
            let write = report::is_worth_writing(model.service.status.as_ref(), &status, since);
            if write || entry.is_some() {
                news.push((id, &model.service, write.then_some(status), entry));
            }
        }
        let (teller, fence) = (&self.teller, &self.fence);
        let told = stream::iter(news)
            .map(|(id, service, status, entry)| async move {
                // What was carried out may have taken longer than the lease.
                if !fence.may_write(Instant::now()) {
                    return (id, None);
                }
                if let Some(entry) = &entry {
                    teller.event(service, entry).await;
                }
                let Some(status) = status else { return (id, None) };
                (id, Some(teller.status(service, &status).await))
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for (id, written) in told {
            match written {
                None => {}
                Some(Ok(())) => {
                    self.written.insert(id.clone(), Instant::now());
                    self.board.change(|shown| Shown::count(&mut shown.writes, "status"));
                }
                Some(Err(error @ TellError::Moved(_))) => {
                    tracing::debug!(%error, "nothing was told")
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "nothing was told");
                    self.board.change(|shown| Shown::count(&mut shown.errors, "report"));
                }
            }
        }
    }

    fn status(
        &self,
        id: &ModelId,
        seen: &Seen,
        decision: &Decision,
        decided: Option<&ModelDecision>,
    ) -> ModelServiceStatus {
        let model = seen.snapshot.models.get(id);
        let counts = model.and_then(|model| model.misses.fresh());
        let context = Context {
            snapshot: &seen.snapshot,
            decision,
            seen: &seen.models[id],
            model,
            decided,
            attained_per_million: self.attained.per_million(id, counts),
            starts: &self.learnt.starts,
        };
        report::status(id, &context)
    }
}
