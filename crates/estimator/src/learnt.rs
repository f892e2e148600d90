//! What was learnt about a model and takes long to learn again, as plain numbers, for whoever looks next.
//!
//! The numbers come back from outside of the process, so that each is refused outside of its bounds.

use crate::capacity::{self, Learned};
use crate::reach::Judged;
use crate::shape::{Means, Shape};
use crate::starts::Starts;
use crate::{Estimator, ModelMemory, VariantMemory};
use flyball_core::ids::{ModelId, VariantName};
use flyball_core::interval::Interval;
use flyball_core::snapshot::Misses;
use flyball_core::units::{Micros, Requests, Timestamp};
use std::collections::BTreeMap;

/// What one model taught.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EstimatorMemory {
    /// What requests look like.
    pub shape: Option<Means>,
    /// How long starts of each variant take, and how many were measured.
    pub starts: BTreeMap<VariantName, (Interval<Micros>, usize)>,
    /// When it was seen last, how many replicas served since when, and requests and misses that were counted; below
    /// zero where that is not known.
    pub seen: Option<[f64; 5]>,
    /// What replicas of each variant can do.
    pub variants: BTreeMap<VariantName, [f64; capacity::NUMBERS]>,
}

/// In place of a number that is not known.
const NOT_KNOWN: f64 = -1.0;

impl ModelMemory {
    fn seen(&self) -> Option<[f64; 5]> {
        let micros = |at: Timestamp| at.as_micros() as f64;
        let (serving, since) = self.serving;
        Some([
            self.shape.seen_at().map(micros)?,
            serving as f64,
            micros(since),
            self.misses.map_or(NOT_KNOWN, |misses| misses.requests.get() as f64),
            self.misses.map_or(NOT_KNOWN, |misses| misses.missed.get() as f64),
        ])
    }
}

impl Estimator {
    /// What a model taught.
    pub fn learnt(&self, id: &ModelId) -> Option<EstimatorMemory> {
        let model = self.models.get(id)?;
        let variants = model.variants.iter();
        let variants =
            variants.filter_map(|(name, one)| Some((name.clone(), one.learned.numbers()?)));
        let starts = model.variants.iter();
        let starts = starts.filter_map(|(name, one)| {
            Some((name.clone(), (one.starts.measured()?, one.starts.count())))
        });
        Some(EstimatorMemory {
            shape: model.shape.known(),
            starts: starts.collect(),
            seen: model.seen(),
            variants: variants.collect(),
        })
    }

    /// Begins with what a model taught elsewhere, if nothing is known of it here. Returns whether it could: numbers
    /// that cannot have been learnt change nothing.
    pub fn restore(&mut self, id: &ModelId, learnt: &EstimatorMemory) -> bool {
        if self.models.contains_key(id) {
            return true;
        }
        let mut variants: BTreeMap<VariantName, VariantMemory> = BTreeMap::new();
        for (name, numbers) in &learnt.variants {
            let Some(learned) = Learned::restored(numbers) else { return false };
            variants.entry(name.clone()).or_default().learned = learned;
        }
        for (name, (span, count)) in &learnt.starts {
            variants.entry(name.clone()).or_default().starts = Starts::recalled(*span, *count);
        }
        let [shape_at, serving, since, requests, missed] = learnt.seen.unwrap_or([NOT_KNOWN; 5]);
        let bounded =
            learnt.seen.is_none_or(|seen| seen.iter().all(|one| (-1.0..9e15).contains(one)));
        let moment = |micros: f64| (micros >= 0.0).then(|| Timestamp::from_micros(micros as u64));
        let count = |count: f64| (count >= 0.0).then(|| Requests::new(count as u64));
        let misses = count(requests).zip(count(missed));
        let misses = misses.map(|(requests, missed)| Misses { requests, missed });
        let mut judged = Judged::default();
        judged.learn(misses);
        let shape = learnt.shape.map(|means| Shape::recalled(means, moment(shape_at)));
        let memory = ModelMemory {
            shape: shape.unwrap_or_default(),
            misses,
            judged,
            serving: (serving.max(0.0) as usize, moment(since).unwrap_or_default()),
            variants,
        };
        if bounded {
            self.models.insert(id.clone(), memory);
        }
        bounded
    }

    /// Forgets what was learnt of all models, because another operator leads: its word stands in the statuses.
    pub fn forget(&mut self) {
        self.models.clear();
    }
}
