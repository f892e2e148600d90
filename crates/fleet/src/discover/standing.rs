//! How discovery stands: whose engines cannot be looked for at the moment, why, and what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How watches of ModelServices are named: by the plural of their kind.
const MODEL_SERVICES: &str = "modelservices";

/// How discovery stands, for readiness, the page of metrics and `/state`.
#[derive(Debug, Default)]
pub struct DiscoveryStatus {
    /// By what is looked at.
    failing: Mutex<BTreeMap<String, Failing>>,
    doubted: AtomicUsize,
}

/// Something that the API server does not tell at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Models whose engines are looked for there.
    pub models: Arc<BTreeSet<String>>,
    /// What went wrong.
    pub error: String,
    /// What to do about it.
    pub hint: &'static str,
}

/// A failure lasts until this is dropped.
#[derive(Debug)]
pub struct Noted<'a> {
    standing: &'a DiscoveryStatus,
    what: String,
}

impl DiscoveryStatus {
    /// Watches that fail at the moment. What they listed last is used on.
    pub fn failing_watches(&self) -> usize {
        self.lock().len()
    }

    /// Models that seem to have lost all engines at once and keep them until that is confirmed.
    pub fn doubted_models(&self) -> usize {
        self.doubted.load(Ordering::Relaxed)
    }

    /// Models whose engines cannot be looked for, each with what fails, why, and what to do.
    pub fn failing_models(&self) -> BTreeMap<String, String> {
        let mut models: BTreeMap<String, String> = BTreeMap::new();
        for (what, Failing { models: of, error, hint }) in &*self.lock() {
            for model in &**of {
                models
                    .entry(model.clone())
                    .or_insert_with(|| format!("cannot watch {what}: {error}; hint: {hint}"));
            }
        }
        models
    }

    /// What the engines of a model are looked for in and cannot be, with a hint. Without the words of
    /// the API server: these are for everybody.
    pub(super) fn failing_model(&self, model: &str) -> Option<String> {
        let failing = self.lock();
        let (what, failing) = failing.iter().find(|(_, failing)| failing.models.contains(model))?;
        Some(format!("cannot watch {what}; hint: {}", failing.hint))
    }

    /// What keeps ModelServices from being listed, said in the same way.
    pub(super) fn failing_model_services(&self) -> Option<String> {
        self.failing_kind(MODEL_SERVICES)
    }

    /// What keeps objects of a kind from being listed, said in the same way. The kind is named by its plural.
    pub fn failing_kind(&self, plural: &str) -> Option<String> {
        let failing = self.lock();
        let is_of = |what: &str| what.split(' ').next() == Some(plural);
        let (what, failing) = failing.iter().find(|(what, _)| is_of(what))?;
        Some(format!("cannot watch {what}; hint: {}", failing.hint))
    }

    pub(super) fn doubt(&self, models: usize) {
        self.doubted.store(models, Ordering::Relaxed);
    }

    /// This fails, until what is returned is dropped.
    pub fn note(&self, what: impl Into<String>, failing: Failing) -> Noted<'_> {
        let what = what.into();
        self.lock().insert(what.clone(), failing);
        Noted { standing: self, what }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Failing>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.standing.lock().remove(&self.what);
    }
}
