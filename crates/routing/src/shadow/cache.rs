//! A cache of block prefixes: fixed size, the least recently used go.
//!
//! A prompt's beginning is worth nothing if one block in it is lost, so what goes must be what is
//! oldest in the whole cache, not in some part of it. Blocks carry the number of the prompt that used
//! them last, and `since` counts blocks by that number: as soon as there are more than fit, those of
//! the oldest prompt count as gone.

use crate::ring::score;
use std::collections::VecDeque;

/// The cache of one engine.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// Blocks that fit.
    blocks: usize,
    sets: Vec<[Slot; WAYS]>,
    /// The number of the last prompt, from 1.
    now: u32,
    /// How many blocks each of the last prompts was the last to use, the latest behind. At most one
    /// more than there are blocks.
    since: VecDeque<u32>,
    /// Their sum.
    held: usize,
}

/// A block. `used` is zero where there is none.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    tag: u32,
    used: u32,
}

/// Slots of a set.
const WAYS: usize = 16;

/// Slots for each block. A block may stand in two sets and takes the emptier one, so that with half of
/// the slots free no set overflows before the cache is full (Azar and others 1994: the fullest has
/// little more than the mean). With one choice one set in 250 would, and as all prompts of a busy
/// engine have blocks in it, most would lose their beginning.
const SPARE: usize = 2;

/// It is made anew when its size is off by more than one part in so many: what is learned of it moves
/// a little with every report.
const FIT_PART: usize = 5;

impl Cache {
    /// Of so many blocks.
    pub(super) fn new(blocks: usize) -> Self {
        let sets = vec![[Slot::default(); WAYS]; (blocks * SPARE).div_ceil(WAYS).max(1)];
        Self { blocks: blocks.max(1), sets, now: 0, since: VecDeque::new(), held: 0 }
    }

    /// A prompt with these prefixes is read, and an answer of so many blocks is written that nobody
    /// will ask for; `key` tells these from others. Returns how many of the prompt's leading blocks
    /// were there; all are afterwards.
    pub(super) fn read(&mut self, prefixes: &[u64], key: u64, answer: u64) -> usize {
        self.begin();
        let mut found = 0;
        for (place, prefix) in prefixes.iter().enumerate() {
            if self.touch(*prefix) && found == place {
                found += 1;
            }
        }
        for number in 0..answer {
            self.touch(score(key, !number));
        }
        self.let_go();
        found
    }

    /// Takes on another size, if it is far from the one that it has.
    pub(super) fn fit(&mut self, blocks: usize) {
        if blocks.abs_diff(self.blocks) > self.blocks / FIT_PART {
            *self = self.resized(blocks);
        }
    }

    /// The same with another size; as much is kept as fits.
    fn resized(&self, blocks: usize) -> Self {
        let (now, since, held) = (self.now, self.since.clone(), self.held);
        let mut other = Self { now, since, held, ..Self::new(blocks) };
        for slot in self.sets.iter().flatten().filter(|slot| self.is_there(slot)) {
            let (set, place) = other.emptiest(slot.tag);
            let lost = std::mem::replace(&mut other.sets[set][place], *slot);
            other.uncount(lost.used);
        }
        other.let_go();
        other
    }

    fn begin(&mut self) {
        match self.now.checked_add(1) {
            Some(now) => self.now = now,
            // After four thousand million prompts it begins anew.
            None => *self = Self { now: 1, ..Self::new(self.blocks) },
        }
        self.since.push_back(0);
    }

    /// Uses a block, and says whether it was there.
    fn touch(&mut self, prefix: u64) -> bool {
        // The sets follow from the tag, so that a table of another size can be made from this one.
        let tag = (score(prefix, WAYS as u64) >> 32) as u32;
        let known = self.sets_of(tag).into_iter().find_map(|set| {
            let place = self.sets[set].iter().position(|slot| slot.used > 0 && slot.tag == tag)?;
            Some((set, place))
        });
        let (set, place) = known.unwrap_or_else(|| self.emptiest(tag));
        let latest = Slot { tag, used: self.now };
        let before = std::mem::replace(&mut self.sets[set][place], latest);
        let found = known.is_some() && self.is_there(&before);
        self.uncount(before.used);
        if let Some(latest) = self.since.back_mut() {
            *latest += 1;
            self.held += 1;
        }
        found
    }

    /// Whether a slot holds a block that is not gone.
    fn is_there(&self, slot: &Slot) -> bool {
        slot.used > 0 && (self.now - slot.used) < self.since.len() as u32
    }

    /// A block is not any more what a prompt was the last to use.
    fn uncount(&mut self, used: u32) {
        let back = (self.now - used) as usize;
        if used > 0
            && let Some(place) = self.since.len().checked_sub(back + 1)
        {
            self.since[place] -= 1;
            self.held -= 1;
        }
    }

    /// Lets the oldest go until the rest fits.
    fn let_go(&mut self) {
        while self.held > self.blocks || self.since.len() > self.blocks.max(2) {
            self.held -= self.since.pop_front().unwrap_or(0) as usize;
        }
    }

    /// The place of the oldest slot in the emptier of a block's sets.
    fn emptiest(&self, tag: u32) -> (usize, usize) {
        let there = |set: usize| self.sets[set].iter().filter(|slot| self.is_there(slot)).count();
        let [one, other] = self.sets_of(tag);
        let set = if there(other) < there(one) { other } else { one };
        let place = (0..WAYS).min_by_key(|place| self.sets[set][*place].used).unwrap_or(0);
        (set, place)
    }

    fn sets_of(&self, tag: u32) -> [usize; 2] {
        let other = (score(u64::from(tag), 0) >> 32) as u32;
        [tag, other].map(|part| ((u64::from(part) * self.sets.len() as u64) >> 32) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prompt(number: u64, blocks: u64) -> Vec<u64> {
        (0..blocks).map(|block| score(number, block)).collect()
    }

    /// Reads without an answer.
    fn read(cache: &mut Cache, number: u64, blocks: u64) -> usize {
        cache.read(&prompt(number, blocks), 0, 0)
    }

    #[test]
    fn what_was_read_is_found_as_deep_as_it_is_alike() {
        let mut cache = Cache::new(1_000);
        assert_eq!(read(&mut cache, 1, 10), 0);
        assert_eq!(read(&mut cache, 1, 20), 10);
        let mut other = prompt(1, 20);
        other[5] = 77;
        assert_eq!(cache.read(&other, 0, 0), 5);
    }

    #[test]
    fn all_that_fits_is_kept_whole_and_in_turn_nothing_more() {
        let mut cache = Cache::new(1_000);
        for _ in 0..3 {
            (0..19).for_each(|number| assert!(read(&mut cache, number, 50) <= 50));
        }
        let cached = (0..19).filter(|number| read(&mut cache, *number, 50) == 50).count();
        assert_eq!(cached, 19, "950 of 1,000 blocks");
        for _ in 0..3 {
            (0..21).for_each(|number| assert!(read(&mut cache, number, 50) <= 50));
        }
        // 1,050 in turn: the next one is always the one that went last.
        assert_eq!(read(&mut cache, 0, 50), 0);
    }

    #[test]
    fn answers_take_room_too() {
        let mut cache = Cache::new(160);
        read(&mut cache, 1, 20);
        cache.read(&[], 9, 150);
        assert_eq!(read(&mut cache, 1, 20), 0);
    }

    #[test]
    fn a_prompt_that_comes_for_ever_takes_no_more_and_more_room() {
        let mut cache = Cache::new(100);
        assert_eq!((0..10_000).map(|_| read(&mut cache, 1, 10)).min(), Some(0));
        assert!(cache.since.len() <= 100);
        assert_eq!(read(&mut cache, 1, 10), 10);
    }

    proptest! {
        #[test]
        fn counts_are_right_and_sizes_are_kept(
            steps in prop::collection::vec((0_u64..12, 0_u64..30, 0_usize..300), 1..120),
        ) {
            let mut cache = Cache::new(200);
            for (number, blocks, size) in steps {
                if size % 10 == 0 {
                    cache.fit(size);
                }
                cache.read(&prompt(number, blocks), number, blocks / 7);
                let slots = cache.sets.iter().flatten();
                let there = slots.filter(|slot| cache.is_there(slot)).count();
                prop_assert_eq!(there, cache.held);
                prop_assert_eq!(cache.held, cache.since.iter().sum::<u32>() as usize);
                prop_assert!(cache.held <= cache.blocks);
            }
        }
    }
}
