//! Who owns a prefix: multi-probe consistent hashing (Appleton and O'Reilly 2015).
//!
//! Every endpoint has one place on a ring of 2^64. A prefix has [`PROBES`] places, and belongs to
//! the endpoint that follows one of them most closely. All of it follows from names, so every
//! gateway finds the same owner. When an endpoint goes, only its own prefixes move; when one comes,
//! prefixes move only to it.
//!
//! Rendezvous hashing has the same virtues and costs one hash per endpoint and prefix: 12 µs for
//! 10,000. This costs one hash and about two looks per probe, however many endpoints there are.

/// Places of one prefix. With `k` of them the busiest owner has about `1 + 1/k` times its share
/// (section 4 of the paper): 21 make 5 %.
const PROBES: u64 = 21;

/// The endpoints of one model on a ring. Made anew when endpoints come or go: `n log n`, about a
/// millisecond for 10,000.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Places in order, each with the endpoint's index in the caller's list.
    places: Vec<(u64, u32)>,
    /// For each of `1 << bits` equal arcs: the first place at or after its beginning.
    first: Vec<u32>,
    bits: u32,
    /// Short keys in order, each with the endpoint's index.
    names: Vec<(Short, u32)>,
}

impl Ring {
    /// The ring of the endpoints with these keys, in the order of the caller's list.
    pub fn new(keys: impl IntoIterator<Item = u64>) -> Self {
        let keys = keys.into_iter().zip(0_u32..);
        let (mut places, mut names): (Vec<_>, Vec<_>) =
            keys.map(|(key, index)| ((score(key, PLACE), index), (short(key), index))).unzip();
        places.sort_unstable();
        names.sort_unstable();
        // As many arcs as places, so that about one place has to be passed over.
        let bits = places.len().next_power_of_two().trailing_zeros().max(1);
        let first = (0..1_u64 << bits)
            .map(|arc| places.partition_point(|(place, _)| *place < arc << (64 - bits)) as u32)
            .collect();
        Self { places, first, bits, names }
    }

    /// How many endpoints there are.
    pub const fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The owner of a prefix among those that serve.
    pub(crate) fn owner(&self, prefix: u64, serves: impl Fn(usize) -> bool) -> Option<usize> {
        let mut nearest = (u64::MAX, None);
        for probe in 0..PROBES {
            let point = score(prefix, probe);
            for (place, endpoint) in self.after(point) {
                let distance = place.wrapping_sub(point);
                if distance >= nearest.0 {
                    break;
                }
                if serves(endpoint as usize) {
                    nearest = (distance, Some(endpoint as usize));
                    break;
                }
            }
        }
        nearest.1
    }

    /// An endpoint whose key has this short form. Several may, at a thousand endpoints or more;
    /// then it is one of them.
    pub(crate) fn named(&self, short: Short) -> Option<usize> {
        let place = self.names.partition_point(|(name, _)| *name < short);
        self.names.get(place).filter(|(name, _)| *name == short).map(|(_, index)| *index as usize)
    }

    /// All places, from the one that follows a point.
    fn after(&self, point: u64) -> impl Iterator<Item = (u64, u32)> {
        let (start, passed) = self.find(point);
        let (before, follow) = self.places.split_at(start + passed);
        follow.iter().chain(before).copied()
    }

    /// The first place of a point's arc, and how many of that arc are passed over to the point.
    fn find(&self, point: u64) -> (usize, usize) {
        let arc = point >> (64 - self.bits);
        let start = self.first.get(arc as usize).map_or(0, |first| *first as usize);
        let passed = self.places[start..].iter().take_while(|(place, _)| *place < point).count();
        (start, passed)
    }
}

impl Default for Ring {
    fn default() -> Self {
        Self::new([])
    }
}

/// A few bits of an endpoint's key, to remember it by. Zero is nobody.
pub(crate) type Short = u16;

/// The short form of a key.
pub(crate) fn short(key: u64) -> Short {
    (score(key, PLACE) as Short).max(1)
}

/// Tells places of endpoints from those of prefixes.
const PLACE: u64 = u64::MAX;

/// A number of two numbers that looks like chance.
///
/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit of the input changes every
/// bit of the output, so that neighbouring names get unrelated scores.
pub(crate) const fn score(one: u64, other: u64) -> u64 {
    let mut mixed = one ^ other.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(_: usize) -> bool {
        true
    }

    /// By distance over all pairs of a probe and an endpoint.
    fn plainly(keys: &[u64], open: &[bool], prefix: u64) -> Option<usize> {
        let nearest = |index: &usize| {
            let place = score(keys[*index], PLACE);
            (0..PROBES).map(|probe| place.wrapping_sub(score(prefix, probe))).min()
        };
        (0..keys.len()).filter(|index| open[*index]).min_by_key(nearest)
    }

    #[test]
    fn every_endpoint_owns_about_its_share() {
        for count in [2, 3, 16, 100] {
            let ring = Ring::new(0..count);
            let mut owned = vec![0_u32; count as usize];
            let prefixes = 20_000;
            for prefix in 0..prefixes {
                owned[ring.owner(score(prefix, 77), all).unwrap()] += 1;
            }
            let mean = prefixes as f64 / count as f64;
            let most = f64::from(*owned.iter().max().unwrap()) / mean;
            // 5 % by the paper, and four standard deviations of a count with that mean.
            assert!(most < 1.08 + 4.0 / mean.sqrt(), "{count}: {most}");
        }
    }

    #[test]
    fn a_point_is_found_without_passing_over_many_however_many_there_are() {
        for count in [16, 1_000, 100_000] {
            let ring = Ring::new(0..count);
            let points = 10_000;
            let passed = (0..points).map(|point| ring.find(score(point, 77)).1).sum::<usize>();
            // There is at least an arc for each place, and a point is in the middle of its arc.
            assert!(passed as u64 <= points, "{count}: {passed} places for {points} points");
        }
    }

    #[test]
    fn an_endpoint_is_found_by_its_short_key() {
        let keys = [77, 5, 9];
        let ring = Ring::new(keys);
        assert_eq!(keys.map(|key| ring.named(short(key))), [0, 1, 2].map(Some));
        assert_eq!((ring.named(short(6)), ring.named(0)), (None, None));
        assert_eq!(Ring::default().named(short(6)), None);
        assert_eq!(Ring::default().owner(4, all), None);
    }

    proptest! {
        #[test]
        fn the_owner_is_the_nearest_of_those_that_serve(
            keys in prop::collection::btree_set(any::<u64>(), 1..40),
            prefix: u64, open in prop::collection::vec(any::<bool>(), 40),
        ) {
            let keys: Vec<u64> = keys.into_iter().collect();
            let owner = Ring::new(keys.iter().copied()).owner(prefix, |index| open[index]);
            prop_assert_eq!(owner, plainly(&keys, &open, prefix));
        }

        #[test]
        fn who_comes_takes_only_for_itself(
            keys in prop::collection::btree_set(any::<u64>(), 2..40), prefix: u64, which: usize,
        ) {
            let all_keys: Vec<u64> = keys.into_iter().collect();
            let mut before = all_keys.clone();
            let newcomer = before.remove(which % before.len());
            let owner = |keys: &[u64]| {
                keys[Ring::new(keys.iter().copied()).owner(prefix, all).unwrap()]
            };
            let (was, is) = (owner(&before), owner(&all_keys));
            prop_assert!(is == was || is == newcomer);
        }
    }
}
