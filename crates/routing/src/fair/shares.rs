//! Who has lately had how much, and where those keep to who had too much.

use super::Cost;
use crate::ring::score;
use std::collections::BTreeMap;

/// Callers that are told apart. Beyond, newcomers count as one.
const CALLERS: usize = 1_024;

/// Engines up to which exactly so many are named; beyond, about so many.
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

#[derive(Clone, Copy, Debug)]
struct Had {
    cost: u64,
    weight: u32,
    /// Part of its prompts that was not cached, in thousandths.
    read: u64,
    /// Whether it keeps to its share of the engines.
    confined: bool,
}

impl Default for Had {
    fn default() -> Self {
        Self { cost: 0, weight: 1, read: 1_000, confined: false }
    }
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

    /// The part of a caller's prompts that was not cached of late, in thousandths; all of them before
    /// any was seen. It is its own and not that of all: chat finds most of its prompts cached, and
    /// who floods with new ones would be taken for a tenth of what it costs.
    pub fn read(&self, caller: u64) -> u64 {
        self.had.get(&caller).map_or(1_000, |had| had.read)
    }

    /// A request has ended, and cost so much instead of what was thought; so many thousandths of its
    /// prompt were not cached.
    pub fn spent(&mut self, caller: u64, thought: Cost, actual: Cost, read: u64) {
        let Some(had) = self.had.get_mut(&caller) else { return };
        let put_right = |sum: u64| sum.saturating_add(actual.0).saturating_sub(thought.0);
        had.cost = put_right(had.cost);
        self.total = put_right(self.total);
        had.read = (had.read * 7 + read.min(1_000)).div_ceil(8);
    }

    /// Some time has passed: what was is worth half.
    pub fn fade(&mut self) {
        self.had.values_mut().for_each(|had| had.cost /= 2);
        self.had.retain(|_, had| had.cost > 0);
        self.total = self.had.values().map(|had| had.cost).sum();
    }

    /// A caller's share in thousandths, if it is to keep to that: it wants half as much again as others
    /// do who want something too, or did so and still waits. What it wants shows less once it is kept
    /// back, because who waits asks for nothing new; without the second rule it was let go every half
    /// minute, and took all engines at once.
    pub fn exceeded(&mut self, caller: u64, waits: bool) -> Option<u32> {
        let own = *self.had.get(&caller)?;
        let active = self.had.values().filter(|had| had.cost >= ACTIVE);
        let weights: u64 = active.map(|had| u64::from(had.weight)).sum();
        let others = weights.saturating_sub(u64::from(own.weight));
        let confined = others > 0 && {
            let of_others = u128::from(self.total.saturating_sub(own.cost));
            let like_others = of_others * u128::from(own.weight) / u128::from(others);
            u128::from(own.cost) * 2 > like_others * 3 || (own.confined && waits)
        };
        self.had.entry(caller).or_default().confined = confined;
        confined.then_some((u64::from(own.weight) * 1_000 / weights.max(1)) as u32)
    }
}

/// The edge of a caller's own engines among those with these keys: its share of them, and at least a
/// quarter, whose score for the caller is not above it. Every gateway names the same ones (shuffle
/// sharding), so that a caller who floods leaves the others to others, whichever gateways it comes
/// through. All of them if there is but one.
pub fn shard_edge(caller: u64, share: u32, keys: impl ExactSizeIterator<Item = u64>) -> u64 {
    let share = u64::from(share.clamp(250, 1_000));
    let count = keys.len();
    if count > EXACT {
        return u64::MAX / 1_000 * share;
    }
    let mut scores: Vec<u64> = keys.map(|key| score(caller, key)).collect();
    if scores.len() < 2 {
        return u64::MAX;
    }
    let chosen = (scores.len() as u64 * share / 1_000).max(1) as usize;
    *scores.select_nth_unstable(chosen - 1).1
}

/// Whether an engine is one of those up to this edge.
pub fn in_shard(caller: u64, key: u64, edge: u64) -> bool {
    score(caller, key) <= edge
}
