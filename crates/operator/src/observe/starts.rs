//! How long replicas take from being asked for to serving, measured on their pods.

use super::facts::PodFacts;
use flyball_core::ids::VariantId;
use flyball_core::interval::{Interval, Origin};
use flyball_core::units::Micros;
use flyball_resources::model_service::VariantStatus;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Starts that are remembered for a variant.
const REMEMBERED: usize = 50;

/// Starts after which measured ones are believed more than stated ones.
const ENOUGH: usize = 3;

/// A pod that became ready longer than this after it was made was not starting all the time.
const LONGEST: Micros = Micros::from_minutes(120);

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Starts {
    variants: BTreeMap<VariantId, Measured>,
}

#[derive(Clone, Debug, Default)]
struct Measured {
    took: VecDeque<Micros>,
    /// Pods that were counted, as long as they are there.
    counted: BTreeSet<String>,
    /// As an operator before this one measured it.
    before: Option<(Interval<Micros>, usize)>,
}

impl Starts {
    /// Takes over what stands in a status, once.
    pub fn recall(&mut self, id: &VariantId, status: &VariantStatus) {
        if self.variants.contains_key(id) {
            return;
        }
        let count = usize::try_from(status.starts_measured).unwrap_or(0);
        let span = status.cold_start_seconds.as_ref().filter(|_| count >= ENOUGH);
        let before = span.and_then(|span| {
            let [low, point, high] = [span.low, span.point, span.high]
                .map(|seconds| Micros::from_seconds(u64::try_from(seconds).unwrap_or(0)));
            Some((Interval::new(low, point, high, Origin::Measured).ok()?, count))
        });
        self.variants.insert(id.clone(), Measured { before, ..Measured::default() });
    }

    /// Looks at the pods of a variant.
    pub fn learn<'a>(&mut self, id: &VariantId, pods: impl Iterator<Item = &'a PodFacts>) {
        let measured = self.variants.entry(id.clone()).or_default();
        let mut there = BTreeSet::new();
        for pod in pods {
            // A pod that restarted became ready again, and one that drains was ready long ago.
            let ready = pod.ready.filter(|_| pod.restarts == 0 && pod.draining.is_none());
            if let Some(took) = ready.and_then(|ready| ready.since(pod.created))
                && took <= LONGEST
                && !measured.counted.contains(&pod.uid)
            {
                measured.took.push_back(took);
            }
            if ready.is_some() || measured.counted.contains(&pod.uid) {
                there.insert(pod.uid.clone());
            }
        }
        measured.counted = there;
        while measured.took.len() > REMEMBERED {
            measured.took.pop_front();
        }
    }

    /// How long a start takes, once enough were measured.
    pub fn of(&self, id: &VariantId) -> Option<Interval<Micros>> {
        let measured = self.variants.get(id)?;
        if measured.took.len() < ENOUGH {
            return measured.before.map(|(before, _)| before);
        }
        let mut took: Vec<Micros> = measured.took.iter().copied().collect();
        took.sort();
        let at = |share: f64| took[((took.len() - 1) as f64 * share).round() as usize];
        Interval::new(at(0.1), at(0.5), at(0.95), Origin::Measured).ok()
    }

    /// Starts that were measured.
    pub fn count(&self, id: &VariantId) -> usize {
        let own = self.variants.get(id).map_or(0, |measured| measured.took.len());
        let before = self.variants.get(id).and_then(|measured| measured.before);
        own.max(before.map_or(0, |(_, count)| count))
    }

    /// Forgets variants that are gone.
    pub fn keep(&mut self, ids: &BTreeSet<VariantId>) {
        self.variants.retain(|id, _| ids.contains(id));
    }
}
