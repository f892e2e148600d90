//! Prompts that engines died over, and which of them are not sent any more.
//!
//! An engine that dies takes all its requests with it, and one of them may be the reason. Each is
//! sent to one other engine. Those that are answered there are innocent and forgotten here. A prompt
//! that takes a second engine with it is refused for a while: whoever sends it again, or lets a client
//! library do so, would otherwise restart a whole fleet.
//!
//! What counts as evidence is chosen so that engines which die for reasons of their own leave nobody
//! refused: see [`Suspects::died`]. Time is an argument, and nothing here waits. Each gateway
//! remembers for itself (`docs/decisions/0038`).

use flyball_fleet::Millis;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Engines that one request may take with it, and deaths of different engines after which a prompt is
/// refused.
pub(crate) const MOST_DEATHS: u32 = 2;

/// Deaths after which a prompt is refused, whatever else died: where there is one engine, it dies and
/// comes back.
const ANY_DEATHS: usize = 3;

/// How long a prompt is remembered after its last death: longer than client libraries try again, and
/// than a person does.
const MEMORY_MS: u64 = 10 * 60_000;

/// Engines that die within so long of each other may have died of one cause.
const TOGETHER_MS: u64 = 30_000;

/// Prompts that are remembered. A death with a thousand requests under way adds a thousand.
const PROMPTS: usize = 8_192;

/// Engines that are remembered to have died.
const ENGINES: usize = 1_024;

/// A prompt of a caller. Nobody's prompts are refused for what another caller did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The caller's number.
    pub(crate) caller: u64,
    /// A hash of the prompt, with its model and its salt.
    pub(crate) prompt: u64,
}

/// How many prompts that engines died over are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspected {
    /// An engine died over them, and they may be tried again.
    pub suspected: usize,
    /// They are not sent any more.
    pub refused: usize,
}

/// An engine died with a request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    /// A number of the engine's own.
    pub(crate) engine: u64,
    /// A number of the request's own.
    pub(crate) request: u64,
    /// When the engine got the request.
    pub(crate) sent: Millis,
    pub(crate) now: Millis,
}

/// The memory, for all threads.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// As many as are remembered; read without the lock.
    count: AtomicUsize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    prompts: BTreeMap<Key, Suspect>,
    by_age: BTreeSet<(Millis, Key)>,
    /// When engines died last, with whatever request.
    died: BTreeMap<u64, Millis>,
}

#[derive(Debug)]
struct Suspect {
    /// Engines that died one after the other, each after it was sent there in knowledge of the one
    /// before.
    in_turn: Vec<u64>,
    /// All engines that died with it.
    engines: BTreeSet<u64>,
    request: u64,
    last: Millis,
    refused: bool,
}

impl Suspects {
    /// An engine died with this prompt under way. Whether the prompt is refused from now on.
    ///
    /// - Copies of one prompt at several engines that die at once (a popular one, a node that is lost)
    ///   say no more than one: a death counts if the prompt was sent after the death before, or by the
    ///   same request.
    /// - Two deaths of different engines are enough, unless another engine died without it in the same
    ///   half minute: then something else kills engines, and a third death is needed.
    pub(crate) fn died(&self, key: Key, death: Death) -> bool {
        let mut known = self.lock();
        let refused = known.died(key, death);
        self.count.store(known.prompts.len(), Relaxed);
        refused
    }

    /// Whether a prompt is not to be sent.
    pub(crate) fn refuses(&self, key: Key, now: Millis) -> bool {
        if self.count.load(Relaxed) == 0 {
            return false;
        }
        let mut known = self.lock();
        known.forget(now);
        self.count.store(known.prompts.len(), Relaxed);
        known.prompts.get(&key).is_some_and(|suspect| suspect.refused)
    }

    /// Whether an engine died over it and no other has answered it since.
    pub(crate) fn suspects(&self, key: Key) -> bool {
        self.count.load(Relaxed) > 0 && self.lock().prompts.contains_key(&key)
    }

    /// An engine has answered it and lives.
    pub(crate) fn answered(&self, key: Key) {
        if self.count.load(Relaxed) == 0 {
            return;
        }
        let mut known = self.lock();
        known.clear(key);
        self.count.store(known.prompts.len(), Relaxed);
    }

    /// How many are remembered.
    pub(crate) fn counts(&self, now: Millis) -> Suspected {
        let mut known = self.lock();
        known.forget(now);
        let refused = known.prompts.values().filter(|suspect| suspect.refused).count();
        Suspected { suspected: known.prompts.len() - refused, refused }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn died(&mut self, key: Key, death: Death) -> bool {
        let Death { engine, request, sent, now } = death;
        self.forget(now);
        if self.died.len() < ENGINES || self.died.contains_key(&engine) {
            self.died.insert(engine, now);
        }
        let mut suspect = self.clear(key).unwrap_or_else(|| Suspect::new(request, now));
        let first = suspect.in_turn.is_empty();
        if first || request == suspect.request || sent >= suspect.last {
            suspect.in_turn.push(engine);
            (suspect.request, suspect.last) = (request, now);
        }
        if suspect.engines.len() < ENGINES {
            suspect.engines.insert(engine);
        }
        let different: BTreeSet<_> = suspect.in_turn.iter().collect();
        let alone = self.died.keys().all(|engine| suspect.engines.contains(engine));
        suspect.refused |= suspect.in_turn.len() >= ANY_DEATHS
            || (different.len() >= MOST_DEATHS as usize && alone);
        let refused = suspect.refused;
        if self.prompts.len() >= PROMPTS
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.prompts.remove(&oldest);
        }
        self.by_age.insert((suspect.last, key));
        self.prompts.insert(key, suspect);
        refused
    }

    fn clear(&mut self, key: Key) -> Option<Suspect> {
        let suspect = self.prompts.remove(&key)?;
        self.by_age.remove(&(suspect.last, key));
        Some(suspect)
    }

    fn forget(&mut self, now: Millis) {
        let old = |at: Millis, ms: u64| at.0.saturating_add(ms) <= now.0;
        while let Some((last, key)) = self.by_age.first().copied().filter(|o| old(o.0, MEMORY_MS)) {
            self.by_age.remove(&(last, key));
            self.prompts.remove(&key);
        }
        self.died.retain(|_, at| !old(*at, TOGETHER_MS));
    }
}

impl Suspect {
    const fn new(request: u64, last: Millis) -> Self {
        Self { in_turn: Vec::new(), engines: BTreeSet::new(), request, last, refused: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: Key = Key { caller: 1, prompt: 7 };

    /// A request that was sent at one second and took its engine with it at the next.
    fn death(engine: u64, request: u64, second: u64) -> Death {
        let (sent, now) = (Millis(second * 1_000), Millis((second + 1) * 1_000));
        Death { engine, request, sent, now }
    }

    fn at(second: u64) -> Millis {
        Millis(second * 1_000)
    }

    #[test]
    fn a_prompt_that_takes_two_engines_with_it_is_refused_for_its_caller_and_for_a_while() {
        let suspects = Suspects::default();
        assert!(!suspects.died(KEY, death(1, 10, 0)));
        assert!(suspects.suspects(KEY) && !suspects.refuses(KEY, at(1)), "one other may try");
        assert!(suspects.died(KEY, death(2, 11, 5)));
        assert!(suspects.refuses(KEY, at(6)));
        assert!(!suspects.refuses(Key { caller: 2, ..KEY }, at(6)), "of another caller");
        assert!(!suspects.refuses(Key { prompt: 8, ..KEY }, at(6)));
        assert_eq!(suspects.counts(at(6)), Suspected { suspected: 0, refused: 1 });
        assert!(suspects.refuses(KEY, at(605)));
        assert!(!suspects.refuses(KEY, at(606)));
        assert_eq!(suspects.counts(at(606)), Suspected::default());
    }

    #[test]
    fn who_is_answered_elsewhere_is_innocent() {
        let suspects = Suspects::default();
        for second in (0..100).step_by(2) {
            assert!(!suspects.died(KEY, death(second % 8, second, second)));
            suspects.answered(KEY);
            assert!(!suspects.suspects(KEY));
        }
    }

    #[test]
    fn a_popular_prompt_at_engines_that_die_at_once_is_not_the_reason() {
        let suspects = Suspects::default();
        for engine in 0..8 {
            assert!(!suspects.died(KEY, death(engine, engine, 0)), "all were sent before");
        }
        assert!(!suspects.refuses(KEY, at(2)));
        // Sent in knowledge of the first: it is.
        assert!(suspects.died(KEY, death(9, 100, 2)));
    }

    #[test]
    fn one_request_at_two_engines_at_once_is_evidence() {
        let suspects = Suspects::default();
        assert!(!suspects.died(KEY, death(1, 10, 0)));
        assert!(suspects.died(KEY, death(2, 10, 0)), "hedged");
    }

    #[test]
    fn where_other_engines_die_too_a_third_death_is_needed() {
        let suspects = Suspects::default();
        suspects.died(Key { caller: 3, prompt: 3 }, death(5, 1, 0));
        assert!(!suspects.died(KEY, death(1, 10, 0)));
        assert!(!suspects.died(KEY, death(2, 10, 1)), "engine 5 died without it");
        assert!(suspects.died(KEY, death(1, 10, 2)));
    }

    #[test]
    fn one_engine_that_dies_and_comes_back_is_not_asked_for_ever() {
        let suspects = Suspects::default();
        let died: Vec<_> = (0..4).map(|n| suspects.died(KEY, death(1, n, n * 60))).collect();
        assert_eq!(died, [false, false, true, true]);
    }

    #[test]
    fn the_oldest_make_room() {
        let suspects = Suspects::default();
        for prompt in 0..PROMPTS as u64 + 10 {
            suspects.died(Key { caller: 1, prompt }, death(1, prompt, prompt / 1_000));
        }
        assert_eq!(suspects.counts(at(10)).suspected, PROMPTS);
        assert!(!suspects.suspects(Key { caller: 1, prompt: 9 }));
        assert!(suspects.suspects(Key { caller: 1, prompt: 10 }));
    }

    proptest! {
        /// Nobody is refused without two deaths of its own since it was last answered, and nobody is
        /// let go on after three.
        #[test]
        fn refusals_follow_from_the_prompts_own_deaths(
            steps in prop::collection::vec((0_u64..4, 0_u64..5, any::<bool>()), 1..80),
        ) {
            let suspects = Suspects::default();
            let mut own = [0_u32; 4];
            for (second, (prompt, engine, dies)) in (0_u64..).zip(steps) {
                let key = Key { caller: 1, prompt };
                let sent = !suspects.refuses(key, at(second));
                if sent && dies {
                    suspects.died(key, death(engine, second, second));
                    own[prompt as usize] += 1;
                } else if sent {
                    suspects.answered(key);
                    own[prompt as usize] = 0;
                }
                let refused = suspects.refuses(key, at(second + 1));
                let deaths = own[prompt as usize];
                prop_assert!(deaths <= ANY_DEATHS as u32);
                prop_assert!(!refused || deaths >= MOST_DEATHS);
                prop_assert!(refused || deaths < ANY_DEATHS as u32);
            }
        }
    }
}
