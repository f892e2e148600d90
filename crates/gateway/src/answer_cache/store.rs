//! Answers within their bytes: when there are too many, those go that were not asked for longest.

use super::{Answer, Key};
use flyball_fleet::Millis;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an answer takes beside its bytes: two places in maps, a table of headers.
const BESIDE: usize = 512;

/// Answers by key.
#[derive(Debug, Default)]
pub(super) struct Store {
    answers: BTreeMap<Key, Entry>,
    /// Keys by when they were last asked for: one for each answer.
    turns: BTreeMap<u64, Key>,
    next_turn: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    answer: Arc<Answer>,
    since: Millis,
    turn: u64,
    bytes: usize,
}

impl Store {
    /// Bytes of all of them.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The answer, if there is one that is not older than this.
    pub(super) fn find(&mut self, key: &Key, now: Millis, ttl_ms: u64) -> Option<Arc<Answer>> {
        let entry = self.answers.get_mut(key)?;
        if now.0.saturating_sub(entry.since.0) >= ttl_ms {
            self.remove(key);
            return None;
        }
        self.turns.remove(&entry.turn);
        entry.turn = self.next_turn;
        self.next_turn += 1;
        self.turns.insert(entry.turn, *key);
        Some(Arc::clone(&entry.answer))
    }

    /// Keeps an answer in place of what its key had.
    pub(super) fn put(&mut self, key: Key, answer: Answer, now: Millis, most_bytes: usize) {
        let headers = answer.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        let bytes = answer.body.len() + headers.sum::<usize>() + BESIDE;
        self.remove(&key);
        if bytes > most_bytes {
            return;
        }
        self.shrink_to(most_bytes - bytes);
        let turn = self.next_turn;
        self.next_turn += 1;
        self.bytes += bytes;
        self.turns.insert(turn, key);
        self.answers.insert(key, Entry { answer: Arc::new(answer), since: now, turn, bytes });
    }

    /// Lets go until there are no more bytes than these.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        while self.bytes > bytes {
            let Some((_, key)) = self.turns.first_key_value() else { return };
            let key = *key;
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.answers.remove(key) {
            self.turns.remove(&entry.turn);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};
    use proptest::prelude::*;

    fn key(number: u8) -> Key {
        Key::of([&number.to_string(), "", "", ""], &HeaderMap::new(), &[])
    }

    fn answer(bytes: usize) -> Answer {
        let body = Bytes::from(vec![b'x'; bytes]);
        Answer { status: StatusCode::OK, headers: HeaderMap::new(), body }
    }

    #[test]
    fn what_was_not_asked_for_longest_goes_first() {
        let mut store = Store::default();
        let most = 3 * (BESIDE + 100);
        (0..3).for_each(|n| store.put(key(n), answer(100), Millis(0), most));
        assert!(store.find(&key(0), Millis(1), 10).is_some());
        store.put(key(3), answer(100), Millis(1), most);
        let there = [0, 1, 2, 3].map(|n| store.find(&key(n), Millis(1), 10).is_some());
        assert_eq!(there, [true, false, true, true]);
    }

    #[test]
    fn an_old_answer_and_one_that_is_too_large_are_not_there() {
        let mut store = Store::default();
        store.put(key(0), answer(100), Millis(5), 10_000);
        assert!(store.find(&key(0), Millis(14), 10).is_some());
        assert!(store.find(&key(0), Millis(15), 10).is_none());
        store.put(key(0), answer(100), Millis(5), 10_000);
        store.put(key(0), answer(10_000), Millis(5), 10_000);
        assert!(store.find(&key(0), Millis(5), 10).is_none());
        assert_eq!(store.bytes(), 0);
    }

    proptest! {
        #[test]
        fn bytes_are_those_of_what_is_there_and_never_too_many(
            acts in prop::collection::vec((any::<u8>(), 0_usize..2_000, any::<bool>()), 0..200),
            most in 0_usize..20_000,
        ) {
            let mut store = Store::default();
            for (number, (which, bytes, puts)) in acts.into_iter().enumerate() {
                let now = Millis(number as u64);
                match puts {
                    true => store.put(key(which % 20), answer(bytes), now, most),
                    false => drop(store.find(&key(which % 20), now, 30)),
                }
                prop_assert!(store.bytes() <= most);
                let sum: usize = store.answers.values().map(|entry| entry.bytes).sum();
                prop_assert_eq!(store.bytes(), sum);
                prop_assert_eq!(store.turns.len(), store.answers.len());
            }
        }
    }
}
