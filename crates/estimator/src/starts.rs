//! How long replicas take from being asked for to serving.

use flyball_core::ids::ReplicaId;
use flyball_core::interval::{Interval, Origin};
use flyball_core::units::Micros;
use std::collections::{BTreeSet, VecDeque};

/// Starts that are remembered for a variant.
const REMEMBERED: usize = 50;

/// Starts after which measured ones are believed more than stated ones.
pub(crate) const ENOUGH: usize = 3;

/// What became ready longer than this after it was asked for was not starting all the time.
const LONGEST: Micros = Micros::from_minutes(120);

/// Starts of one variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Starts {
    took: VecDeque<Micros>,
    /// Replicas that were counted, as long as they are named.
    counted: BTreeSet<ReplicaId>,
    /// As somebody else measured it before.
    before: Option<(Interval<Micros>, usize)>,
}

impl Starts {
    /// Starts that were measured elsewhere.
    pub(crate) fn recalled(span: Interval<Micros>, count: usize) -> Self {
        let before = (count >= ENOUGH).then_some((span, count));
        Self { before, ..Self::default() }
    }

    /// These have begun to serve after so long.
    pub(crate) fn learn(&mut self, started: &[(ReplicaId, Micros)]) {
        let mut there = BTreeSet::new();
        for (id, took) in started {
            if *took <= LONGEST && !self.counted.contains(id) {
                self.took.push_back(*took);
            }
            there.insert(id.clone());
        }
        self.counted = there;
        while self.took.len() > REMEMBERED {
            self.took.pop_front();
        }
    }

    /// How long a start takes, once enough were measured.
    pub(crate) fn measured(&self) -> Option<Interval<Micros>> {
        if self.took.len() < ENOUGH {
            return self.before.map(|(before, _)| before);
        }
        let mut took: Vec<Micros> = self.took.iter().copied().collect();
        took.sort();
        // Not the rank of `core`: of an even number that takes the quicker one in the middle, and decisions depend on it.
        let at = |share: f64| took[((took.len() - 1) as f64 * share).round() as usize];
        Interval::new(at(0.1), at(0.5), at(0.95), Origin::Measured).ok()
    }

    /// Starts that were measured.
    pub(crate) fn count(&self) -> usize {
        self.took.len().max(self.before.map_or(0, |(_, count)| count))
    }
}
