//! What one request has of the cache.
//!
//! Its first blocks may be shared under names, the rest is its own.

use super::blocks::{Handle, Place, Pool};

/// The blocks of one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Holding {
    /// Names of the prompt's blocks, each mixed with all before it.
    keys: Vec<u64>,
    name_tokens: u32,
    /// Groups that it holds, for the first names.
    groups: Vec<Place>,
    /// Blocks in them that are its prompt's.
    named: u32,
    /// Whether its next full block may get a name: nobody else has computed it meanwhile.
    chained: bool,
    /// Own blocks given back by preemption, which followed so many named ones.
    parked: Option<(Handle, u32)>,
}

/// What of a prompt is in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hit {
    /// Blocks that need not be computed.
    pub(super) blocks: u32,
    /// Free blocks that are no longer so when the hit is taken.
    pub(super) from_free: u32,
    /// Names among them, the blocks under these, and whether the own blocks follow.
    names: u32,
    named: u32,
    own: bool,
}

impl Holding {
    /// Starts anew for another request.
    pub(super) fn reset(&mut self, names: &[u64], name_tokens: u32) {
        self.keys.clear();
        self.groups.clear();
        let mut key = 0x9e37_79b9_7f4a_7c15;
        for &name in names {
            key = mix(key ^ name);
            self.keys.push(key);
        }
        self.name_tokens = name_tokens;
        self.named = 0;
        self.parked = None;
    }

    /// Own blocks of a request that has computed so many tokens.
    pub(super) const fn own(&self, computed: u32, block_tokens: u32) -> u32 {
        computed.div_ceil(block_tokens) - self.named
    }

    /// What is there of the first `limit` blocks.
    pub(super) fn look_up(&self, pool: &Pool, prompt: u32, limit: u32, block_tokens: u32) -> Hit {
        let mut hit = Hit::default();
        for (index, &key) in self.keys.iter().enumerate() {
            let end = self.end_of(index, prompt, block_tokens).min(limit);
            let needed = end.saturating_sub(hit.blocks);
            let Some((_, present, free)) = pool.find(key).filter(|_| needed > 0) else { break };
            let there = needed.min(present);
            hit.names += 1;
            hit.from_free += if free { there } else { 0 };
            hit.blocks += there;
            if present < needed {
                break;
            }
        }
        hit.named = hit.blocks;
        if let Some((handle, base)) = self.parked {
            let there = pool.parked(handle);
            if base == hit.blocks && there > 0 {
                hit.own = true;
                hit.blocks += there;
                hit.from_free += there;
            }
        }
        hit
    }

    /// Takes what `look_up` has found.
    pub(super) fn take(&mut self, pool: &mut Pool, hit: Hit, block_tokens: u32) {
        self.groups.clear();
        for index in 0..hit.names as usize {
            let Some((place, ..)) = pool.find(self.keys[index]) else { break };
            let end = self.start_of(index + 1, block_tokens).min(hit.named);
            pool.hold(place, end.saturating_sub(self.start_of(index, block_tokens)));
            self.groups.push(place);
        }
        self.named = hit.named;
        self.chained = true;
        if let (true, Some((handle, _))) = (hit.own, self.parked.take()) {
            pool.unpark(handle);
        }
    }

    /// Gives names to blocks that are full once so many tokens are computed.
    pub(super) fn name(&mut self, pool: &mut Pool, computed: u32, prompt: u32, block_tokens: u32) {
        let full = computed.min(prompt) / block_tokens;
        while self.chained && self.named < full && !self.keys.is_empty() {
            let index = self.groups.len().saturating_sub(1);
            let begun = self.groups.last().copied();
            let unfinished =
                begun.filter(|_| self.named < self.end_of(index, prompt, block_tokens));
            let (index, place) = match unfinished {
                Some(place) => {
                    let start = self.start_of(index, block_tokens);
                    // Somebody else has gone on filling it.
                    if pool.present(place) != self.named - start {
                        self.chained = false;
                        break;
                    }
                    (index, place)
                }
                None => {
                    let index = self.groups.len();
                    match self.keys.get(index) {
                        Some(&key) if pool.find(key).is_none() => {
                            self.groups.push(pool.begin(key));
                            (index, self.groups[index])
                        }
                        _ => {
                            self.chained = false;
                            break;
                        }
                    }
                }
            };
            let count = self.end_of(index, prompt, block_tokens).min(full) - self.named;
            pool.extend(place, count);
            self.named += count;
            if count == 0 {
                self.chained = false;
            }
        }
    }

    /// Gives everything back: the request has ended.
    pub(super) fn release(&mut self, pool: &mut Pool, computed: u32, block_tokens: u32) {
        pool.give(self.own(computed, block_tokens));
        self.release_groups(pool);
    }

    /// Gives everything back, and remembers what it had.
    pub(super) fn park(&mut self, pool: &mut Pool, computed: u32, block_tokens: u32) {
        let full = (computed / block_tokens).saturating_sub(self.named);
        pool.give(self.own(computed, block_tokens) - full);
        self.parked = pool.park(full).map(|handle| (handle, self.named));
        self.release_groups(pool);
    }

    fn release_groups(&mut self, pool: &mut Pool) {
        while let Some(place) = self.groups.pop() {
            pool.release(place);
        }
        self.named = 0;
    }

    fn start_of(&self, index: usize, block_tokens: u32) -> u32 {
        (index as u64 * u64::from(self.name_tokens) / u64::from(block_tokens)) as u32
    }

    /// Where the full blocks of the prompt under a name end.
    fn end_of(&self, index: usize, prompt: u32, block_tokens: u32) -> u32 {
        self.start_of(index + 1, block_tokens).min(prompt / block_tokens)
    }
}

/// Spreads the bits of a key (the finisher of SplitMix64, public domain).
const fn mix(key: u64) -> u64 {
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}
