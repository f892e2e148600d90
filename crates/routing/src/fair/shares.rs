//! Who has lately had how much, and where those keep to who had too much.

use super::Cost;
use crate::ring::score;
use std::collections::BTreeMap;

/// Callers that are told apart. Beyond, newcomers count as one.
const CALLERS: usize = 1_024;

/// Engines up to which exactly half are named; beyond, about half.
const EXACT: usize = 256;

/// Who had less lately wants nothing now. A request of chat counts for two fadings; against a share of
/// all it would count for nothing as soon as somebody floods.
const ACTIVE: u64 = 512;

/// What callers had lately.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    had: BTreeMap<u64, Had>,
    total: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Had {
    cost: u64,
    weight: u32,
}

impl Shares {
    /// A caller wants so much.
    pub fn wants(&mut self, caller: u64, weight: u32, cost: Cost) {
        let caller =
            if self.had.len() < CALLERS || self.had.contains_key(&caller) { caller } else { 0 };
        let had = self.had.entry(caller).or_default();
        had.cost = had.cost.saturating_add(cost.0);
        had.weight = weight.max(1);
        self.total = self.total.saturating_add(cost.0);
    }

    /// Some time has passed: what was is worth half.
    pub fn fade(&mut self) {
        self.had.values_mut().for_each(|had| had.cost /= 2);
        self.had.retain(|_, had| had.cost > 0);
        self.total = self.had.values().map(|had| had.cost).sum();
    }

    /// Whether a caller wants more than half as much again as its share while others want something
    /// too.
    pub fn is_over(&self, caller: u64) -> bool {
        let Some(own) = self.had.get(&caller) else { return false };
        let counts = |had: &&Had| had.cost >= ACTIVE;
        let weights: u64 = self.had.values().filter(counts).map(|had| u64::from(had.weight)).sum();
        if weights <= u64::from(own.weight) {
            return false;
        }
        let share = u128::from(self.total) * u128::from(own.weight) / u128::from(weights);
        u128::from(own.cost) * 2 > share * 3
    }
}

/// The edge of a caller's half of the engines with these keys: those whose score for the caller is
/// not above it. Every gateway names the same half (shuffle sharding), so that a caller who floods
/// leaves the other half to others, whichever gateways it comes through. All of them if there is but
/// one.
pub fn shard_edge(caller: u64, keys: impl ExactSizeIterator<Item = u64>) -> u64 {
    let count = keys.len();
    if count > EXACT {
        return u64::MAX / 2;
    }
    let mut scores: Vec<u64> = keys.map(|key| score(caller, key)).collect();
    if scores.len() < 2 {
        return u64::MAX;
    }
    let middle = scores.len() / 2 - 1;
    *scores.select_nth_unstable(middle).1
}

/// Whether an engine is in the half that ends at this edge.
pub fn in_shard(caller: u64, key: u64, edge: u64) -> bool {
    score(caller, key) <= edge
}
