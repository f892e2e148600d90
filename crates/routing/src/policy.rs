//! Ways to choose that a model can be set to.

use crate::choose::{CANDIDATES, RoutingChoice, Why, choose};
use crate::endpoint::{Endpoint, RoutingRequest, Weights};
use crate::ring::{Ring, score};
use crate::seen::EndpointPast;

/// How an endpoint is chosen for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoutingPolicy {
    /// By what an endpoint may have cached, and by load: [`choose()`].
    #[default]
    Prefix,
    /// By load alone: [`least_load`].
    LeastLoad,
    /// One after the other: [`round_robin`].
    RoundRobin,
}

impl RoutingPolicy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Prefix, Self::LeastLoad, Self::RoundRobin];

    /// Their names.
    pub const NAMES: [&str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut place = 0;
        while place < names.len() {
            names[place] = Self::ALL[place].name();
            place += 1;
        }
        names
    };

    /// Its name in settings, metrics and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefix => "prefix",
            Self::LeastLoad => "least-load",
            Self::RoundRobin => "round-robin",
        }
    }

    /// The endpoint for a request by this policy; `None` if none serves. `turn` is asked by those
    /// that go by turns, once: it counts the requests that had one before.
    pub fn choose(
        self,
        ring: &Ring,
        endpoint: impl Fn(usize) -> Endpoint,
        ask: &RoutingRequest<'_>,
        weights: &Weights,
        turn: impl FnOnce() -> u64,
    ) -> Option<RoutingChoice> {
        match self {
            Self::Prefix => choose(ring, endpoint, ask, weights),
            Self::LeastLoad => least_load(ring, endpoint, ask, weights),
            Self::RoundRobin => {
                let serves = |place| endpoint(place).serves();
                let endpoint = round_robin(ring.len(), serves, turn())?;
                Some(RoutingChoice { endpoint, why: Why::Turn, to_read: ask.prompt })
            }
        }
    }
}

/// The least loaded endpoint, whatever anybody may have cached; of more than 32, the least loaded of
/// 32 draws. `None` if none serves.
pub fn least_load(
    ring: &Ring,
    endpoint: impl Fn(usize) -> Endpoint,
    ask: &RoutingRequest<'_>,
    weights: &Weights,
) -> Option<RoutingChoice> {
    // A prompt without a beginning goes to the least loaded.
    let blind = RoutingRequest { prefixes: &[], past: EndpointPast::default(), ..*ask };
    choose(ring, |place| Endpoint { cached_blocks: 0, ..endpoint(place) }, &blind, weights)
}

/// The endpoint whose turn it is among so many; `None` if none serves. The turn of one that does not
/// serve goes to any other: if it went to the next, that one would do the work of two.
pub fn round_robin(endpoints: usize, serves: impl Fn(usize) -> bool, turn: u64) -> Option<usize> {
    let place = |number: u64| (number % endpoints.max(1) as u64) as usize;
    let draws = (0..CANDIDATES as u64).map(|number| place(score(turn, number)));
    let tries = std::iter::once(place(turn)).chain(draws).chain(0..endpoints);
    tries.filter(|place| *place < endpoints).find(|place| serves(*place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Availability;
    use flyball_core::units::Tokens;
    use proptest::prelude::*;

    fn endpoint(key: u64, unread: u64) -> Endpoint {
        Endpoint {
            key,
            availability: Availability::Serving,
            unread: Tokens::new(unread),
            held: Tokens::ZERO,
            kv_used_per_thousand: 0,
            cached_blocks: 0,
            speed_per_thousand: 1_000,
        }
    }

    #[test]
    fn the_least_loaded_wins_although_another_has_the_prompt() {
        let endpoints = [endpoint(1, 500), endpoint(2, 400), endpoint(3, 600)];
        let ring = Ring::new(endpoints.map(|one| one.key));
        let (prefixes, prompt) = ([5, 6, 7, 8], Tokens::new(1_024));
        let ask = RoutingRequest {
            prefixes: &prefixes,
            block_tokens: 256,
            past: EndpointPast::default(),
            prompt,
            key: 1,
        };
        let of = |place: usize| Endpoint { cached_blocks: 4, ..endpoints[place] };
        let choice = least_load(&ring, of, &ask, &Weights::DEFAULT).unwrap();
        assert_eq!((choice.endpoint, choice.why), (1, Why::LeastLoad));
        assert_eq!(choice.to_read, prompt);
    }

    #[test]
    fn turns_of_the_fallen_are_shared_by_all() {
        let mut counts = [0; 8];
        for turn in 0..8_000 {
            counts[round_robin(8, |place| place != 3, turn).unwrap()] += 1;
        }
        // Its 1,000 turns over 7 are 143 each, standard deviation 11; four of them either way.
        let others = [0, 1, 2, 4, 5, 6, 7].map(|place| counts[place]);
        assert!(others.iter().all(|count| (1_099..=1_187).contains(count)), "{counts:?}");
        assert_eq!(counts[3], 0);
    }

    proptest! {
        #[test]
        fn a_turn_goes_to_one_that_serves(
            open in prop::collection::vec(any::<bool>(), 0..80), turn: u64,
        ) {
            match round_robin(open.len(), |place| open[place], turn) {
                Some(place) => prop_assert!(open[place]),
                None => prop_assert!(!open.contains(&true)),
            }
        }
    }
}
