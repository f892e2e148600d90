//! How far back an endpoint's cache reaches, from what it tells about blocks that it stores and
//! forgets.
//!
//! Engines name blocks by hashes of tokens, and a gateway without a tokenizer cannot tell which
//! block holds which text. What it can tell is age: the longest unused goes first, so when a block
//! goes that was stored at some time, whatever was not used since about then is gone too.

use crate::ring::score;
use crate::seen::ObservedMoment;
use std::collections::BTreeMap;

/// One block in so many is watched: ages of neighbours hardly differ, and a large cache has a
/// million blocks.
const SAMPLE: u64 = 8;

/// Blocks that are watched at most: 524,288 blocks of 16 tokens, eight million tokens.
const WATCHED: usize = 65_536;

/// How far back one endpoint's cache reaches.
#[derive(Clone, Debug, Default)]
pub struct Horizon {
    /// When the watched blocks were stored.
    stored: BTreeMap<u64, ObservedMoment>,
    forgot: Option<ObservedMoment>,
}

impl Horizon {
    /// A block was stored.
    pub fn stored(&mut self, block: u64, now: ObservedMoment) {
        let is_watched = score(block, SAMPLE).is_multiple_of(SAMPLE);
        if is_watched && (self.stored.len() < WATCHED || self.stored.contains_key(&block)) {
            self.stored.insert(block, now);
        }
    }

    /// A block was forgotten. It may have been used after it was stored, which nobody tells; what
    /// is known to be gone is then less than what is.
    pub fn removed(&mut self, block: u64) {
        if let Some(stored) = self.stored.remove(&block)
            && self.forgot.is_none_or(|forgot| forgot.is_before(stored))
        {
            self.forgot = Some(stored);
        }
    }

    /// All was forgotten.
    pub fn cleared(&mut self, now: ObservedMoment) {
        self.stored.clear();
        self.forgot = Some(now);
    }

    /// Some of what it told did not arrive. What is known to be gone stays gone.
    pub fn missed(&mut self) {
        self.stored.clear();
    }

    /// What was not used since this moment is gone; `None` if nothing is known to be.
    pub const fn forgot(&self) -> Option<ObservedMoment> {
        self.forgot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn it_follows_what_goes_and_never_goes_back() {
        let mut horizon = Horizon::default();
        let watched: Vec<u64> =
            (0..1_000).filter(|b| score(*b, SAMPLE).is_multiple_of(SAMPLE)).collect();
        assert!((80..170).contains(&watched.len()), "{}", watched.len());
        for (at, block) in watched.iter().enumerate() {
            horizon.stored(*block, ObservedMoment(at as u16));
        }
        assert_eq!(horizon.forgot(), None);
        horizon.removed(watched[7]);
        horizon.removed(watched[3]);
        horizon.removed(123_456);
        assert_eq!(horizon.forgot(), Some(ObservedMoment(7)));
        horizon.missed();
        horizon.removed(watched[9]);
        assert_eq!(horizon.forgot(), Some(ObservedMoment(7)));
        horizon.cleared(ObservedMoment(500));
        assert_eq!(horizon.forgot(), Some(ObservedMoment(500)));
    }

    #[test]
    fn it_stays_small() {
        let mut horizon = Horizon::default();
        (0..2_000_000).for_each(|block| horizon.stored(block, ObservedMoment(1)));
        assert_eq!(horizon.stored.len(), WATCHED);
    }

    proptest! {
        /// A cache of blocks that forgets the longest unused, told of as engines tell: no hit is
        /// told, and yet whatever is called gone is gone.
        #[test]
        fn what_is_called_gone_is_gone(uses in prop::collection::vec(0_u64..400, 1..2_000)) {
            let mut horizon = Horizon::default();
            let (mut cache, mut used) = (VecDeque::new(), BTreeMap::new());
            for (at, block) in uses.into_iter().enumerate() {
                let now = ObservedMoment(at as u16);
                match cache.iter().position(|there| *there == block) {
                    Some(place) => drop(cache.remove(place)),
                    None => horizon.stored(block, now),
                }
                cache.push_back(block);
                used.insert(block, now);
                if cache.len() > 100 {
                    horizon.removed(cache.pop_front().unwrap());
                }
                if let Some(forgot) = horizon.forgot() {
                    for block in &cache {
                        prop_assert!(!used[block].is_before(forgot));
                    }
                }
            }
        }
    }
}
