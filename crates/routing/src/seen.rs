//! What a gateway remembers of the prompts it saw: how deep a prompt was seen before, where that
//! went, and how much of its beginning everybody has.
//!
//! A table of fixed size without a clock: age is counted in prompts, and when a prompt went where is
//! what the caller says. A gateway with several threads
//! keeps one per thread or puts it behind a lock; what it forgets makes guesses worse and nothing
//! wrong.

use crate::ring::{Ring, Short, score, short};

/// What is remembered of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointPast {
    /// Leading blocks that were seen before, rounded down to a depth that is remembered.
    pub(crate) seen: u32,
    /// Leading blocks that so many prompts begin with that every endpoint soon has them.
    pub(crate) common: u32,
    /// The endpoint that the deepest of the seen blocks went to.
    pub(crate) last: Short,
    /// More was seen, and is known to be gone where it went.
    pub(crate) gone: bool,
}

/// A time in quarters of a second that comes round every 4.5 hours. What is more than half of that
/// ago looks as if it were to come; caches forget sooner, and if not, a hope is kept that should not
/// be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedMoment(pub u16);

impl ObservedMoment {
    /// Of so many milliseconds since any beginning.
    pub const fn of_millis(millis: u64) -> Self {
        Self((millis / 250) as u16)
    }

    /// Whether it was before another one.
    pub const fn is_before(self, other: Self) -> bool {
        (other.0.wrapping_sub(self.0) as i16) > 0
    }
}

/// The memory.
#[derive(Clone, Debug)]
pub struct ObservedEndpoints {
    sets: Vec<[Entry; WAYS]>,
    /// Prompts looked at, weighed like the counts: halved once in a round of the hand.
    prompts: u64,
    /// The next set whose counts are halved.
    hand: usize,
}

/// A prefix. The tag tells those of one set apart; of 32 bits, one prompt in 100 million is taken
/// for another at some depth, and then gets a wrong guess, not a wrong answer.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    tag: u32,
    /// Prompts that began with it, halved once in a round.
    count: u16,
    /// The endpoint that the last of them went to.
    last: Short,
    /// When that was.
    at: ObservedMoment,
}

/// Places where a prefix may stand.
const WAYS: usize = 4;

/// Prompts in a round of the hand. Long enough to see 1 in 500 often enough (8 of 4,096), short
/// enough to forget yesterday's system prompt in a few minutes at ten requests per second.
const ROUND: usize = 4_096;

/// Fewer than this is chance and not commonness.
const FEWEST: u64 = 8;

/// A prefix is common if it brings more than one part in so many of what one endpoint gets: whoever
/// owned it would be busy with little else.
const PART: u64 = 2;

impl ObservedEndpoints {
    /// A memory of about so many prefixes, 12 bytes each. A prompt of 12,000 tokens takes 20 of them.
    pub fn new(prefixes: usize) -> Self {
        let sets = (prefixes / WAYS).next_power_of_two();
        Self { sets: vec![[Entry::default(); WAYS]; sets], prompts: 0, hand: 0 }
    }

    /// What is remembered of a prompt with these prefixes, for a choice among so many endpoints.
    /// The prompt is counted.
    pub fn past_of(&mut self, prefixes: &[u64], endpoints: usize) -> EndpointPast {
        self.recall(prefixes, endpoints, |_, _| false)
    }

    /// The same for endpoints that tell what they forget: of what went to the endpoint at a place
    /// of the ring before the moment that `forgot` has for it, nothing is hoped for there.
    pub fn past_at(
        &mut self,
        prefixes: &[u64],
        ring: &Ring,
        forgot: impl Fn(usize) -> Option<ObservedMoment>,
    ) -> EndpointPast {
        let gone = |last: Short, at: ObservedMoment| {
            let before = ring.named(last).and_then(&forgot);
            before.is_some_and(|before| at.is_before(before))
        };
        self.recall(prefixes, ring.len(), gone)
    }

    /// Leading blocks of a prompt that were seen before and are not known to be gone. The prompt is not
    /// counted.
    pub fn known_at(
        &self,
        prefixes: &[u64],
        ring: &Ring,
        forgot: impl Fn(usize) -> Option<ObservedMoment>,
    ) -> u32 {
        let is_known = |blocks: &usize| {
            let (set, tag) = self.place(prefixes[blocks - 1]);
            let Some(entry) = self.sets[set].iter().find(|entry| entry.tag == tag) else {
                return false;
            };
            let before = ring.named(entry.last).and_then(&forgot);
            !before.is_some_and(|before| entry.at.is_before(before))
        };
        depths(prefixes.len()).take_while(is_known).last().unwrap_or(0) as u32
    }

    /// A prompt with these prefixes went to the endpoint with this key.
    pub fn sent(&mut self, prefixes: &[u64], key: u64) {
        self.sent_at(prefixes, key, ObservedMoment::default());
    }

    /// The same, with the time. To be said again when its answer is over: until then its blocks
    /// were in use.
    pub fn sent_at(&mut self, prefixes: &[u64], key: u64, at: ObservedMoment) {
        for blocks in depths(prefixes.len()) {
            let (set, tag) = self.place(prefixes[blocks - 1]);
            if let Some(entry) = self.sets[set].iter_mut().find(|entry| entry.tag == tag) {
                entry.last = short(key);
                entry.at = at;
            }
        }
    }

    fn recall(
        &mut self,
        prefixes: &[u64],
        endpoints: usize,
        gone: impl Fn(Short, ObservedMoment) -> bool,
    ) -> EndpointPast {
        self.age();
        self.prompts += 1;
        let often = FEWEST.max(self.prompts / (PART * endpoints.max(1) as u64));
        let mut past = EndpointPast::default();
        let mut leading = true;
        for blocks in depths(prefixes.len()) {
            let (known, entry) = self.count(prefixes[blocks - 1]);
            if leading && known && gone(entry.last, entry.at) {
                past.gone = true;
            }
            leading &= known && !past.gone;
            if leading {
                past.seen = blocks as u32;
                past.last = entry.last;
            }
            if u64::from(entry.count) >= often {
                past.common = blocks as u32;
            }
        }
        past
    }

    /// Counts a prefix. Whether it was there, and what is known of it now.
    fn count(&mut self, prefix: u64) -> (bool, Entry) {
        let (set, tag) = self.place(prefix);
        let set = &mut self.sets[set];
        if let Some(entry) = set.iter_mut().find(|entry| entry.tag == tag) {
            entry.count = entry.count.saturating_add(1);
            return (true, *entry);
        }
        // The least seen goes.
        let new = Entry { tag, count: 1, last: 0, at: ObservedMoment::default() };
        if let Some(least) = set.iter_mut().min_by_key(|entry| entry.count) {
            *least = new;
        }
        (false, new)
    }

    fn place(&self, prefix: u64) -> (usize, u32) {
        let mixed = score(prefix, WAYS as u64);
        // Zero is an empty place.
        (mixed as usize & (self.sets.len() - 1), ((mixed >> 32) as u32).max(1))
    }

    /// Halves the counts of a few sets, so that all have had their turn after a round.
    fn age(&mut self) {
        for _ in 0..self.sets.len().div_ceil(ROUND) {
            for entry in &mut self.sets[self.hand] {
                entry.count /= 2;
            }
            self.hand = (self.hand + 1) % self.sets.len();
            if self.hand == 0 {
                self.prompts /= 2;
            }
        }
    }
}

/// Depths that are remembered, in order: each up to eight, then four to each doubling. What was
/// seen is then told short by a fifth at most.
fn depths(blocks: usize) -> impl Iterator<Item = usize> {
    let next = |depth: &usize| Some(depth + ((1 << depth.ilog2()) / 4).max(1));
    std::iter::successors(Some(1_usize), next).take_while(move |depth| *depth <= blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn conversation(number: u64, blocks: u64) -> Vec<u64> {
        (0..blocks).map(|block| score(number, block)).collect()
    }

    #[test]
    fn depths_are_close_enough() {
        assert_eq!(depths(20).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20]);
        assert_eq!(depths(0).count(), 0);
    }

    #[test]
    fn a_prompt_is_remembered_as_deep_as_it_was_seen_and_where_it_went() {
        let mut seen = ObservedEndpoints::new(1_024);
        let prompt = conversation(1, 20);
        assert_eq!(seen.past_of(&prompt[..10], 16), EndpointPast::default());
        seen.sent(&prompt[..10], 77);
        let longer = seen.past_of(&prompt, 16);
        assert_eq!((longer.seen, longer.common, longer.last), (10, 0, short(77)));
        assert_eq!(seen.past_of(&conversation(2, 20), 16), EndpointPast::default());
    }

    #[test]
    fn what_an_endpoint_has_forgotten_is_not_hoped_for_there() {
        let ring = Ring::new([77, 78]);
        let mut seen = ObservedEndpoints::new(1_024);
        let (prompt, at) = (conversation(1, 10), ObservedMoment);
        seen.past_of(&prompt, 2);
        let of = |seen: &mut ObservedEndpoints, before: Option<u16>| {
            let past = seen.past_at(&prompt, &ring, |place| before.filter(|_| place == 0).map(at));
            (past.seen, past.gone)
        };
        seen.sent_at(&prompt, 77, at(50));
        seen.sent_at(&prompt[..4], 77, at(100));
        let known = |seen: &ObservedEndpoints, before: u16| {
            seen.known_at(&prompt, &ring, |_| Some(at(before)))
        };
        assert_eq!([50, 51, 101].map(|before| known(&seen, before)), [10, 4, 0]);
        assert_eq!(of(&mut seen, None), (10, false));
        assert_eq!(of(&mut seen, Some(50)), (10, false));
        // The beginning was used later.
        assert_eq!(of(&mut seen, Some(51)), (4, true));
        assert_eq!(of(&mut seen, Some(101)), (0, true));
        // The other one has not forgotten anything.
        seen.sent_at(&prompt, 78, at(50));
        assert_eq!(of(&mut seen, Some(101)), (10, false));
        assert!(at(65_535).is_before(at(3)) && !at(3).is_before(at(65_535)));
        assert!(!at(3).is_before(at(3)));
    }

    #[test]
    fn what_everybody_begins_with_is_common_and_what_one_says_often_is_not() {
        let mut seen = ObservedEndpoints::new(65_536);
        let system = conversation(0, 3);
        let mut last = EndpointPast::default();
        for number in 0..2_000 {
            // One in a hundred is the same conversation: less than half of a 16th.
            let own = if number % 100 == 0 { 1 } else { number + 10 };
            let prompt = [system.clone(), conversation(own, 5)].concat();
            last = seen.past_of(&prompt, 16);
        }
        assert_eq!((last.seen, last.common), (3, 3));
        let again = seen.past_of(&[system, conversation(1, 5)].concat(), 16);
        assert_eq!((again.seen, again.common), (8, 3));
    }

    #[test]
    fn what_nobody_says_any_more_is_no_longer_common() {
        let mut seen = ObservedEndpoints::new(65_536);
        let before = conversation(0, 1);
        for _ in 0..1_000 {
            seen.past_of(&before, 16);
        }
        assert_eq!(seen.past_of(&before, 16).common, 1);
        for number in 1..4 * ROUND as u64 {
            seen.past_of(&conversation(number, 1), 16);
        }
        assert_eq!(seen.past_of(&before, 16).common, 0);
    }

    proptest! {
        #[test]
        fn any_size_takes_any_prompts(
            size in 0_usize..200,
            prompts in prop::collection::vec(prop::collection::vec(0_u64..50, 0..40), 0..60),
        ) {
            let mut seen = ObservedEndpoints::new(size);
            for prompt in prompts {
                let past = seen.past_of(&prompt, 3);
                prop_assert!(past.seen as usize <= prompt.len());
                prop_assert!(past.common as usize <= prompt.len());
                seen.sent(&prompt, 5);
            }
        }
    }
}
