//! The counts of one model and of one caller, and which name has which.
//!
//! Names come from the settings only, never from a request, and no more of them than
//! [`MODELS`] and [`CALLERS`]; a request then finds its counts by one search in a sorted map that
//! nobody locks.

use super::histogram::{DURATION, FIRST, Histogram, PER_TOKEN, TOKENS, WAIT};
use super::recent::Recent;
use super::{Finished, RequestOutcome};
use crate::settings::GatewaySettingsFile;
use crate::sse::Finish;
use crate::surface::Surface;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

/// Models with counts of their own: at about 100 series each, what one Prometheus takes easily.
pub const MODELS: usize = 1_000;

/// Callers with counts of their own.
pub const CALLERS: usize = 1_000;

/// Arms of all splits together with counts of their own.
pub const ARMS: usize = 1_000;

/// The label of names beyond the cap.
pub(super) const OTHER: &str = "other";

/// The label of requests for a model that we do not serve.
pub(super) const UNKNOWN: &str = "unknown";

/// The label of requests that nobody was asked a key for, or whose key we do not know.
pub(super) const NOBODY: &str = "none";

/// Classes of status in the order of [`Model::requests`].
pub(super) const CLASSES: [&str; 3] = ["2xx", "4xx", "5xx"];

/// Operations in the order of [`Model::operations`].
pub(super) const OPERATIONS: [&str; 3] = ["chat", "text_completion", "embeddings"];

/// Kinds of tokens in the order of [`Operation::tokens`].
pub(super) const TOKEN_TYPES: [&str; 3] = ["input", "cached", "output"];

/// Counts of one model.
#[derive(Debug)]
pub(super) struct Model {
    /// By outcome and class of status.
    pub(super) requests: [[AtomicU64; 3]; 5],
    pub(super) retries: AtomicU64,
    /// By [`Finish::ALL`].
    pub(super) finish: [AtomicU64; 5],
    pub(super) mirrored: AtomicU64,
    pub(super) held: AtomicU64,
    pub(super) hedged: AtomicU64,
    pub(super) continued: AtomicU64,
    pub(super) preempted: AtomicU64,
    pub(super) cache_hits: AtomicU64,
    pub(super) waits: Histogram,
    pub(super) recent: Recent,
    pub(super) operations: [Operation; 3],
}

/// Sizes of one kind of request for one model.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) duration: Histogram,
    pub(super) first: Histogram,
    pub(super) per_token: Histogram,
    pub(super) tokens: [Histogram; 3],
}

/// Counts of one caller.
#[derive(Debug, Default)]
pub(super) struct Caller {
    pub(super) requests: [AtomicU64; 5],
    pub(super) tokens: [AtomicU64; 3],
    pub(super) recent: Recent,
}

/// Which name has which counts. Replaced as a whole when settings change.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) models: BTreeMap<Box<str>, Arc<Model>>,
    pub(super) callers: BTreeMap<Box<str>, Arc<Caller>>,
    /// By the name of a split and the model of an arm.
    pub(super) arms: BTreeMap<Box<str>, BTreeMap<Box<str>, Arc<AtomicU64>>>,
    /// The callers of the settings, which come before Tenants.
    keys: Vec<Box<str>>,
}

impl Names {
    /// The names of these settings. Those that stay keep their counts, those that are gone leave
    /// with theirs, so reloading for ever does not grow anything.
    pub(super) fn of(settings: &GatewaySettingsFile, tenants: &[Arc<str>], before: &Self) -> Self {
        let models = settings.models.iter().map(|model| model.name.as_str());
        let keys: Vec<Box<str>> =
            settings.keys.iter().take(CALLERS).map(|key| key.name.as_str().into()).collect();
        Self {
            models: retained(models, &before.models, MODELS, [UNKNOWN, OTHER]),
            callers: callers(&keys, tenants, before),
            arms: arms(settings, before),
            keys,
        }
    }

    /// The same with these Tenants.
    pub(super) fn with_tenants(&self, tenants: &[Arc<str>]) -> Self {
        Self { callers: callers(&self.keys, tenants, self), ..self.clone() }
    }

    /// The counts of a model, and whether it has its own.
    pub(super) fn model(&self, name: Option<&str>) -> (Option<&Model>, bool) {
        found(&self.models, name.unwrap_or(UNKNOWN))
    }

    /// The count of the arm that a request went to, if it asked for a split.
    pub(super) fn arm(&self, split: Option<&str>, model: Option<&str>) -> Option<&AtomicU64> {
        Some(self.arms.get(split?)?.get(model?)?)
    }

    /// The counts of a caller, and whether it has its own.
    pub(super) fn caller(&self, name: &str) -> (Option<&Caller>, bool) {
        found(&self.callers, if name.is_empty() { NOBODY } else { name })
    }
}

impl Default for Model {
    fn default() -> Self {
        Self {
            requests: Default::default(),
            retries: AtomicU64::new(0),
            finish: Default::default(),
            mirrored: AtomicU64::new(0),
            held: AtomicU64::new(0),
            hedged: AtomicU64::new(0),
            continued: AtomicU64::new(0),
            preempted: AtomicU64::new(0),
            cache_hits: AtomicU64::new(0),
            waits: Histogram::new(&WAIT),
            recent: Recent::default(),
            operations: std::array::from_fn(|_| Operation {
                duration: Histogram::new(&DURATION),
                first: Histogram::new(&FIRST),
                per_token: Histogram::new(&PER_TOKEN),
                tokens: std::array::from_fn(|_| Histogram::new(&TOKENS)),
            }),
        }
    }
}

impl Model {
    pub(super) fn count(&self, finished: &Finished<'_>, ended: SystemTime) {
        self.recent.count(finished, ended);
        self.requests[finished.outcome.index()][class_index(finished.status)].fetch_add(1, Relaxed);
        if finished.retries > 0 {
            self.retries.fetch_add(u64::from(finished.retries), Relaxed);
        }
        if let Some(finish) = finished.finish {
            self.finish[finish_index(finish)].fetch_add(1, Relaxed);
        }
        // Whoever was refused before it had to wait says nothing about waits.
        if !finished.batch && (finished.chosen.is_some() || !finished.queued.is_zero()) {
            self.waits.add_time(finished.queued);
        }
        self.count_rare(finished);
        // A quick error or a kept answer says nothing about how long answers take.
        if finished.status < 400 && !finished.cached {
            self.operations[operation_index(finished.surface)].count(finished);
        }
    }
}

impl Model {
    /// What most requests have nothing of: a look at a flag costs less than adding zero.
    fn count_rare(&self, finished: &Finished<'_>) {
        for (count, is_so) in [
            (&self.mirrored, finished.mirrored),
            (&self.held, finished.held),
            (&self.hedged, finished.hedged),
            (&self.cache_hits, finished.cached),
        ] {
            if is_so {
                count.fetch_add(1, Relaxed);
            }
        }
        for (count, times) in
            [(&self.continued, finished.continued), (&self.preempted, finished.preempted)]
        {
            if times > 0 {
                count.fetch_add(u64::from(times), Relaxed);
            }
        }
    }
}

impl Operation {
    fn count(&self, finished: &Finished<'_>) {
        // Batch waits for minutes, and makes room: its times would hide those that anybody feels.
        if !finished.batch {
            self.count_times(finished);
        }
        let usage = finished.usage;
        let reported = usage.input > 0;
        for (histogram, (count, counts)) in self.tokens.iter().zip([
            (usage.input, reported),
            (usage.cached.unwrap_or(0), reported),
            (usage.output, usage.output > 0),
        ]) {
            if counts {
                histogram.add(count);
            }
        }
    }

    fn count_times(&self, finished: &Finished<'_>) {
        let Finished { outcome, took, first, .. } = finished;
        if matches!(outcome, RequestOutcome::Answered | RequestOutcome::Broken) {
            self.duration.add_time(*took);
        }
        if let Some(first) = first {
            self.first.add_time(*first);
        }
        if let Some(per_token) = finished.per_token() {
            self.per_token.add_time(per_token);
        }
    }

    /// Whether any request of this kind was measured.
    pub(super) fn is_used(&self) -> bool {
        self.duration.is_used()
            || self.first.is_used()
            || self.tokens.iter().any(Histogram::is_used)
    }
}

impl Caller {
    pub(super) fn count(&self, finished: &Finished<'_>, ended: SystemTime) {
        self.recent.count(finished, ended);
        self.requests[finished.outcome.index()].fetch_add(1, Relaxed);
        let usage = finished.usage;
        for (sum, count) in
            self.tokens.iter().zip([usage.input, usage.cached.unwrap_or(0), usage.output])
        {
            if count > 0 {
                sum.fetch_add(count, Relaxed);
            }
        }
    }
}

/// Keys of the settings, then Tenants that have counts, then others: who is new takes nobody's counts away.
fn callers(
    keys: &[Box<str>],
    tenants: &[Arc<str>],
    before: &Names,
) -> BTreeMap<Box<str>, Arc<Caller>> {
    let known = |path: &&Arc<str>| before.callers.contains_key(&***path);
    let (old, new): (Vec<_>, Vec<_>) = tenants.iter().partition(known);
    let tenants = old.into_iter().chain(new).map(|path| &**path);
    let names = keys.iter().map(|name| &**name).chain(tenants);
    retained(names, &before.callers, CALLERS, [NOBODY, OTHER])
}

fn retained<'a, T: Default>(
    names: impl Iterator<Item = &'a str>,
    before: &BTreeMap<Box<str>, Arc<T>>,
    cap: usize,
    fixed: [&'static str; 2],
) -> BTreeMap<Box<str>, Arc<T>> {
    fixed
        .into_iter()
        .chain(names.take(cap))
        .map(|name| (name.into(), before.get(name).cloned().unwrap_or_default()))
        .collect()
}

/// Every arm of every split, up to [`ARMS`].
fn arms(
    settings: &GatewaySettingsFile,
    before: &Names,
) -> BTreeMap<Box<str>, BTreeMap<Box<str>, Arc<AtomicU64>>> {
    let mut arms = BTreeMap::<Box<str>, BTreeMap<Box<str>, Arc<AtomicU64>>>::new();
    let named = settings
        .splits
        .iter()
        .flat_map(|split| split.arms.iter().map(|arm| (split.name.as_str(), arm.model.as_str())));
    for (split, model) in named.take(ARMS) {
        let count = before.arms.get(split).and_then(|arms| arms.get(model)).cloned();
        arms.entry(split.into()).or_default().insert(model.into(), count.unwrap_or_default());
    }
    arms
}

fn found<'a, T>(counts: &'a BTreeMap<Box<str>, Arc<T>>, name: &str) -> (Option<&'a T>, bool) {
    match counts.get(name) {
        Some(own) => (Some(own.as_ref()), true),
        None => (counts.get(OTHER).map(AsRef::as_ref), false),
    }
}

const fn finish_index(finish: Finish) -> usize {
    match finish {
        Finish::Stop => 0,
        Finish::Length => 1,
        Finish::ToolCalls => 2,
        Finish::ContentFilter => 3,
        Finish::Other => 4,
    }
}

const fn class_index(status: u16) -> usize {
    match status {
        0..400 => 0,
        400..500 => 1,
        _ => 2,
    }
}

const fn operation_index(surface: Surface) -> usize {
    match surface {
        Surface::Chat | Surface::Responses | Surface::Messages => 0,
        Surface::Completions => 1,
        Surface::Embeddings => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_the_tables_are_those_of_their_names() {
        for surface in Surface::ALL {
            assert_eq!(OPERATIONS[operation_index(surface)], surface.operation());
        }
        for (index, outcome) in RequestOutcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome.index(), index);
        }
        for (index, finish) in Finish::ALL.into_iter().enumerate() {
            assert_eq!(finish_index(finish), index);
        }
        for (status, class) in [(200, "2xx"), (404, "4xx"), (499, "4xx"), (503, "5xx")] {
            assert_eq!(CLASSES[class_index(status)], class);
        }
    }
}
