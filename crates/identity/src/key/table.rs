//! Whose a key is, for many keys.

use super::KeyHash;

/// Owners by the hashes of their keys.
///
/// Hashes are as good as random, so that the first bits of one say where it stands: a lookup reads two places of memory
/// however many keys there are. Whoever writes hashes by hand makes a place of it longer, and a lookup there a binary search.
#[derive(Clone, Debug)]
pub struct KeyTable<T> {
    /// In order.
    entries: Vec<(KeyHash, T)>,
    /// Where those begin whose first bits are the index; one more than there are such bits.
    begins: Vec<u32>,
    /// How far the first four bytes are moved to make an index.
    shift: u32,
}

impl<T> KeyTable<T> {
    /// Of two owners of one hash neither is found.
    pub fn new(owners: impl IntoIterator<Item = (KeyHash, T)>) -> Self {
        let mut all: Vec<(KeyHash, T)> = owners.into_iter().collect();
        all.sort_by_key(|(hash, _)| *hash);
        let mut entries: Vec<(KeyHash, T)> = Vec::with_capacity(all.len());
        let mut twice = None;
        for (hash, owner) in all {
            if entries.last().is_some_and(|(last, _)| *last == hash) {
                entries.pop();
                twice = Some(hash);
            } else if twice != Some(hash) {
                entries.push((hash, owner));
            }
        }
        let bits = entries.len().next_power_of_two().trailing_zeros().clamp(1, 24);
        let shift = 32 - bits;
        let mut begins = vec![0_u32; (1 << bits) + 1];
        for (hash, _) in &entries {
            begins[index(hash, shift) + 1] += 1;
        }
        for place in 1..begins.len() {
            begins[place] += begins[place - 1];
        }
        Self { entries, begins, shift }
    }

    /// Whose key has this hash.
    pub fn find(&self, hash: &KeyHash) -> Option<&T> {
        let place = index(hash, self.shift);
        let (from, to) = (self.begins[place] as usize, self.begins[place + 1] as usize);
        let near = &self.entries[from..to];
        let found = near.binary_search_by_key(hash, |(hash, _)| *hash).ok()?;
        Some(&near[found].1)
    }

    /// How many keys there are.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn index(hash: &KeyHash, shift: u32) -> usize {
    let [a, b, c, d, ..] = hash.0;
    (u32::from_be_bytes([a, b, c, d]) >> shift) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn hash(number: u32) -> KeyHash {
        KeyHash::of(&number.to_be_bytes())
    }

    #[test]
    fn every_owner_is_found_and_nobody_else() {
        for count in [0, 1, 2, 3, 100, 5_000] {
            let table = KeyTable::new((0..count).map(|number| (hash(number), number)));
            assert_eq!((table.len(), table.is_empty()), (count as usize, count == 0));
            assert!((0..count).all(|number| table.find(&hash(number)) == Some(&number)));
            assert!((count..count + 1_000).all(|number| table.find(&hash(number)).is_none()));
        }
    }

    #[test]
    fn a_hash_that_two_have_is_nobodys() {
        for times in [2, 3, 4, 5] {
            let twins = (0..times).map(|owner| (hash(7), owner));
            let table = KeyTable::new(twins.chain([(hash(8), 99)]));
            assert_eq!(table.find(&hash(7)), None, "{times} times");
            assert_eq!(table.find(&hash(8)), Some(&99));
        }
    }

    #[test]
    fn hashes_that_somebody_chose_are_found_too() {
        // All in one place.
        let chosen = |last: u8| KeyHash(std::array::from_fn(|at| if at == 31 { last } else { 0 }));
        let table = KeyTable::new((0..=255).map(|last| (chosen(last), last)));
        assert!((0..=255).all(|last| table.find(&chosen(last)) == Some(&last)));
        let ends = KeyTable::new([(KeyHash([0; 32]), 'a'), (KeyHash([0xff; 32]), 'z')]);
        assert_eq!(ends.find(&KeyHash([0xff; 32])), Some(&'z'));
        assert_eq!(ends.find(&KeyHash([0x7f; 32])), None);
    }

    proptest! {
        #[test]
        fn it_is_a_map(hashes in prop::collection::vec(any::<[u8; 32]>(), 0..200), other: [u8; 32]) {
            let map: BTreeMap<KeyHash, usize> =
                hashes.iter().enumerate().map(|(index, hash)| (KeyHash(*hash), index)).collect();
            let table = KeyTable::new(map.iter().map(|(hash, index)| (*hash, *index)));
            for hash in hashes.into_iter().chain([other]).map(KeyHash) {
                prop_assert_eq!(table.find(&hash), map.get(&hash));
            }
        }
    }
}
