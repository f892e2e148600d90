//! Tokens that were verified a moment ago, by their SHA-256: a signature costs forty times as much as finding one here.
//!
//! What was found out holds for the Tenants and the key sets that it was found with, and no longer than the token. Bounded:
//! who is not seen among the last thousands of others is verified again.

use crate::identify::Caller;
use flyball_core::units::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Parts with a lock each, so that threads seldom wait for each other.
const SHARDS: usize = 16;

/// Tokens of a part that were seen last, and as many before them: 32,768 in all, which are 4 MB.
const EACH: usize = 1_024;

/// SHA-256 of a token, and of the Tenant that it is shown for, if one is named.
pub(super) type Place = [u8; 32];

/// Tokens that were verified.
#[derive(Debug, Default)]
pub(super) struct SeenTokens {
    shards: [Mutex<Shard>; SHARDS],
}

/// What a token was found to be.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) caller: Arc<Caller>,
    pub(super) under: Epoch,
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
}

/// Which Tenants and which key sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    pub(super) tenants: u64,
    pub(super) keys: u64,
}

/// Two halves stand for an order: whoever is in neither was not seen for as long as one took to fill.
#[derive(Debug, Default)]
struct Shard {
    young: BTreeMap<Place, Seen>,
    old: BTreeMap<Place, Seen>,
}

impl SeenTokens {
    /// Whose token it is, if that is still so.
    pub(super) fn find(&self, place: &Place, under: Epoch, now: Timestamp) -> Option<Arc<Caller>> {
        let mut shard = self.shard(place);
        let seen = shard.find(place)?;
        seen.holds(under, now).then(|| Arc::clone(&seen.caller))
    }

    /// Whose token it is from now on.
    pub(super) fn put(&self, place: Place, seen: Seen) {
        self.shard(&place).put(place, seen);
    }

    fn shard(&self, place: &Place) -> MutexGuard<'_, Shard> {
        self.shards[usize::from(place[0]) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// A clock that is set back has it verified anew.
    fn holds(&self, under: Epoch, now: Timestamp) -> bool {
        self.under == under && self.since <= now && now < self.until
    }
}

impl Shard {
    fn find(&mut self, place: &Place) -> Option<&Seen> {
        if let Some(seen) = self.old.remove(place) {
            self.put(*place, seen);
        }
        self.young.get(place)
    }

    fn put(&mut self, place: Place, seen: Seen) {
        if self.young.len() >= EACH {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&place);
        self.young.insert(place, seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::Keys;

    const UNDER: Epoch = Epoch { tenants: 3, keys: 7 };

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn place(number: u32) -> Place {
        let mut place = [0; 32];
        place[28..].copy_from_slice(&number.to_be_bytes());
        place
    }

    fn seen() -> Seen {
        let caller = Arc::clone(Keys::new(&[], true, None).anyone());
        Seen { caller, under: UNDER, since: at(100), until: at(200) }
    }

    #[test]
    fn it_holds_for_its_tenants_its_key_sets_and_its_time() {
        let tokens = SeenTokens::default();
        tokens.put(place(1), seen());
        let found = |under, now| tokens.find(&place(1), under, at(now)).is_some();
        assert!(found(UNDER, 100) && found(UNDER, 199));
        assert!(!found(UNDER, 200) && !found(UNDER, 99), "its time");
        assert!(!found(Epoch { tenants: 4, ..UNDER }, 150));
        assert!(!found(Epoch { keys: 8, ..UNDER }, 150));
        assert!(tokens.find(&place(2), UNDER, at(150)).is_none());
    }

    #[test]
    fn however_many_are_shown_there_is_a_bound_and_who_is_seen_often_stays() {
        let tokens = SeenTokens::default();
        tokens.put(place(0), seen());
        for number in 1..20_000 {
            tokens.put(place(number), seen());
            assert!(tokens.find(&place(0), UNDER, at(150)).is_some(), "{number}");
        }
        let shard = tokens.shard(&place(0));
        assert!(shard.young.len() <= EACH && shard.old.len() <= EACH);
        drop(shard);
        assert!(tokens.find(&place(1), UNDER, at(150)).is_none());
        assert!(tokens.find(&place(19_999), UNDER, at(150)).is_some());
    }
}
