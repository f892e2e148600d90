//! Past decisions, as long as the operator lives and the ring reaches.

use flyball_core::ids::ModelId;
use flyball_resources::admin_api::Entry;
use flyball_resources::model_service::ModelServiceStatus;
use std::collections::{BTreeMap, VecDeque};

/// Decisions that are kept of one model. A busy model decides something new about every two minutes:
/// eight hours.
const PER_MODEL: usize = 240;

/// Of all models together: 50,000 at about 1 KiB.
const IN_ALL: usize = 50_000;

/// Past decisions, by model.
#[derive(Clone, Debug, Default)]
pub struct History {
    models: BTreeMap<ModelId, VecDeque<Entry>>,
    count: usize,
}

impl History {
    /// Remembers a status whose decision is not the last one that was remembered.
    pub fn note(&mut self, id: &ModelId, mode: &str, status: &ModelServiceStatus) -> Option<Entry> {
        let receipt = status.decision.as_ref()?;
        let past = self.models.entry(id.clone()).or_default();
        let last = past.back();
        if last.is_some_and(|last| last.receipt.id == receipt.id) {
            return None;
        }
        let entry = Entry {
            model: id.to_string(),
            from: last.and_then(|last| last.to),
            to: status.recommended_replicas,
            ready: status.ready_replicas,
            mode: mode.to_owned(),
            receipt: receipt.clone(),
        };
        past.push_back(entry.clone());
        self.count += 1;
        if past.len() > PER_MODEL {
            past.pop_front();
            self.count -= 1;
        }
        self.shrink();
        Some(entry)
    }

    /// Past decisions of one model or of all, oldest first.
    pub fn of(&self, id: Option<&ModelId>) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = match id {
            Some(id) => self.models.get(id).into_iter().flatten().collect(),
            None => self.models.values().flatten().collect(),
        };
        entries.sort_by(|a, b| a.receipt.at.cmp(&b.receipt.at));
        entries
    }

    /// Forgets models that are gone.
    pub fn keep(&mut self, is_there: impl Fn(&ModelId) -> bool) {
        self.models.retain(|id, _| is_there(id));
        self.count = self.models.values().map(VecDeque::len).sum();
    }

    /// Who has most gives first.
    fn shrink(&mut self) {
        while self.count > IN_ALL {
            let Some(longest) = self.models.values_mut().max_by_key(|past| past.len()) else {
                return;
            };
            longest.pop_front();
            self.count -= 1;
        }
    }
}
