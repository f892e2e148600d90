//! What holds for every choice.

use crate::choose::CANDIDATES;
use crate::cost::load;
use crate::{
    Availability, Endpoint, EndpointPast, ObservedEndpoints, Ring, RoutingChoice, RoutingRequest,
    Weights, Why, choose,
};
use flyball_core::units::Tokens;
use proptest::prelude::*;
use std::cell::Cell;

const WEIGHTS: Weights = Weights::DEFAULT;

fn idle(key: u64) -> Endpoint {
    Endpoint {
        key,
        availability: Availability::Serving,
        unread: Tokens::ZERO,
        held: Tokens::ZERO,
        kv_used_per_thousand: 0,
        cached_blocks: 0,
        speed_per_thousand: 1_000,
    }
}

fn ask(prefixes: &[u64]) -> RoutingRequest<'_> {
    let (past, prompt) = (EndpointPast::default(), Tokens::new(1_000));
    RoutingRequest { prefixes, block_tokens: 64, past, prompt, key: 7 }
}

fn choice(endpoints: &[Endpoint], ask: &RoutingRequest<'_>) -> Option<RoutingChoice> {
    let ring = Ring::new(endpoints.iter().map(|endpoint| endpoint.key));
    choose(&ring, |place| endpoints[place], ask, &WEIGHTS)
}

fn chosen(endpoints: &[Endpoint], ask: &RoutingRequest<'_>) -> usize {
    choice(endpoints, ask).unwrap().endpoint
}

#[test]
fn nobody_is_chosen_where_nobody_serves() {
    let mut drains = idle(1);
    drains.availability = Availability::Draining;
    let mut ill = idle(2);
    ill.availability = Availability::Unhealthy;
    assert_eq!(choice(&[drains, ill], &ask(&[5])), None);
    assert_eq!(choice(&[], &ask(&[5])), None);
}

#[test]
fn the_one_of_many_that_serves_is_found() {
    let mut endpoints: Vec<Endpoint> = (0..1_000).map(idle).collect();
    for (place, endpoint) in endpoints.iter_mut().enumerate() {
        if place != 637 {
            endpoint.availability = Availability::Unhealthy;
        }
    }
    assert_eq!(chosen(&endpoints, &ask(&[])), 637);
    assert_eq!(chosen(&endpoints, &ask(&[1, 2])), 637);
}

#[test]
fn a_prefix_stays_where_it_is_and_different_ones_spread() {
    let endpoints: Vec<Endpoint> = (0..8).map(idle).collect();
    let places: Vec<usize> = (0..1_000).map(|p| chosen(&endpoints, &ask(&[p]))).collect();
    assert_eq!(places, (0..1_000).map(|p| chosen(&endpoints, &ask(&[p]))).collect::<Vec<_>>());
    // 1,000 prefixes over 8 endpoints: 125 each, standard deviation sqrt(1000 * 1/8 * 7/8) = 10.5.
    // Four of them either way.
    for endpoint in 0..8 {
        let share = places.iter().filter(|place| **place == endpoint).count();
        assert!((83..=167).contains(&share), "{endpoint}: {share}");
    }
}

#[test]
fn turns_of_a_conversation_meet_on_gateways_that_never_saw_it() {
    let endpoints: Vec<Endpoint> = (0..16).map(idle).collect();
    let turns = [&[1, 2, 3, 4][..], &[1, 2, 3, 4, 5, 6, 7], &[1, 2, 3, 4, 5, 6, 7, 8, 9]];
    let places = turns.map(|turn| chosen(&endpoints, &ask(turn)));
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
}

#[test]
fn what_everybody_begins_with_is_nobodys() {
    let endpoints: Vec<Endpoint> = (0..16).map(idle).collect();
    let mut seen = ObservedEndpoints::new(4_096);
    let mut places = std::collections::BTreeSet::new();
    for number in 0..200 {
        let prefixes = [1, 2, 3, 4, 5, 1_000 + number, 2_000 + number, 3_000 + number];
        let past = seen.past_of(&prefixes, 16);
        let choice = choice(&endpoints, &RoutingRequest { past, ..ask(&prefixes) }).unwrap();
        if number > 50 {
            places.insert(choice.endpoint);
        }
    }
    // 149 families over 16 endpoints: 9 each, and e^-9 of a chance that one gets none.
    assert_eq!(places.len(), 16);
}

#[test]
fn who_got_it_last_is_asked_again() {
    let mut endpoints: Vec<Endpoint> = (0..16).map(idle).collect();
    let prefixes = [11, 12, 13, 14, 15, 16, 17, 18];
    let mut seen = ObservedEndpoints::new(1_024);
    let home = choice(&endpoints, &ask(&prefixes)).unwrap();
    assert!(matches!(home.why, Why::Affinity { .. }), "{home:?}");
    seen.past_of(&prefixes, 16);
    endpoints[home.endpoint].unread = Tokens::new(1_000_000);
    let escaped = choice(&endpoints, &ask(&prefixes)).unwrap();
    assert_eq!((escaped.why, escaped.to_read), (Why::Overload, Tokens::new(1_000)));
    seen.sent(&prefixes, endpoints[escaped.endpoint].key);
    endpoints[home.endpoint].unread = Tokens::ZERO;
    let past = seen.past_of(&prefixes, 16);
    let again = choice(&endpoints, &RoutingRequest { past, ..ask(&prefixes) }).unwrap();
    assert_eq!((again.endpoint, again.why), (escaped.endpoint, Why::Affinity { blocks: 8 }));
    // 1,000 tokens, of which 8 blocks of 64 are there.
    assert_eq!(again.to_read, Tokens::new(1_000 - 512));
}

#[test]
fn a_known_cache_beats_a_hoped_one() {
    let mut endpoints: Vec<Endpoint> = (0..4).map(idle).collect();
    let prefixes = [11, 12, 13, 14, 15, 16, 17, 18];
    let other = (chosen(&endpoints, &ask(&prefixes)) + 1) % 4;
    endpoints[other].cached_blocks = 8;
    assert_eq!(chosen(&endpoints, &ask(&prefixes)), other);
}

#[test]
fn a_nearly_full_cache_keeps_others_away() {
    let mut endpoints: Vec<Endpoint> = (0..2).map(idle).collect();
    let first = chosen(&endpoints, &ask(&[]));
    endpoints[first].kv_used_per_thousand = 100;
    assert_ne!(chosen(&endpoints, &ask(&[])), first);
    // 4,000 * 0.99 / 0.01 = 396,000 is more than 10 tokens of waiting for each of 1,000.
    let home = chosen(&endpoints, &ask(&[3]));
    endpoints[home].kv_used_per_thousand = 990;
    assert_ne!(chosen(&endpoints, &ask(&[3])), home);
}

fn endpoints(most: usize) -> impl Strategy<Value = Vec<Endpoint>> {
    let one = (0_u8..4, 0_u64..200_000, 0_u64..2_000_000, 0_u32..1_001, 0_u32..20, 200_u32..4_000);
    prop::collection::vec(one, 1..most).prop_map(|all| {
        let endpoint = |(key, (health, unread, held, used, cached, speed))| Endpoint {
            key: key as u64,
            availability: match health {
                0 => Availability::Draining,
                1 => Availability::Unhealthy,
                _ => Availability::Serving,
            },
            unread: Tokens::new(unread),
            held: Tokens::new(held),
            kv_used_per_thousand: used,
            cached_blocks: cached,
            speed_per_thousand: speed,
        };
        all.into_iter().enumerate().map(endpoint).collect()
    })
}

proptest! {
    #[test]
    fn only_endpoints_that_serve_are_chosen(
        endpoints in endpoints(80), prefixes in prop::collection::vec(any::<u64>(), 0..40),
    ) {
        let serves = endpoints.iter().any(|endpoint| endpoint.serves());
        match choice(&endpoints, &ask(&prefixes)) {
            Some(RoutingChoice { endpoint, .. }) => prop_assert!(endpoints[endpoint].serves()),
            None => prop_assert!(!serves),
        }
    }

    #[test]
    fn nobody_waits_longer_than_ten_misses(
        mut endpoints in endpoints(32), prefixes in prop::collection::vec(any::<u64>(), 0..40),
    ) {
        for endpoint in &mut endpoints {
            endpoint.speed_per_thousand = 1_000;
        }
        let Some(choice) = choice(&endpoints, &ask(&prefixes)) else { return Ok(()) };
        let loads = endpoints.iter().filter(|e| e.serves()).map(|e| load(e, &WEIGHTS));
        let most = loads.min().unwrap() + u64::from(WEIGHTS.miss) * 1_000;
        prop_assert!(load(&endpoints[choice.endpoint], &WEIGHTS) <= most);
    }

    #[test]
    fn the_order_of_the_list_does_not_matter(
        endpoints in endpoints(32), prefixes in prop::collection::vec(any::<u64>(), 0..40), turn: usize,
    ) {
        let mut turned = endpoints.clone();
        turned.rotate_left(turn % endpoints.len());
        let key = |list: &[Endpoint]| {
            choice(list, &ask(&prefixes)).map(|choice| (list[choice.endpoint].key, choice.why))
        };
        prop_assert_eq!(key(&endpoints), key(&turned));
    }

    #[test]
    fn when_an_endpoint_goes_only_its_own_prefixes_move(
        count in 2_usize..80, gone: usize, prefixes in prop::collection::vec(any::<u64>(), 1..40),
    ) {
        let all: Vec<Endpoint> = (0..count as u64).map(idle).collect();
        let before = all[chosen(&all, &ask(&prefixes))].key;
        let mut rest = all;
        let gone = rest.remove(gone % count).key;
        let after = rest[chosen(&rest, &ask(&prefixes))].key;
        prop_assert!(after == before || before == gone, "{before} moved to {after}");
    }
}

/// The most endpoints that any of many choices asks about, with its look into the memory.
fn most_considered(endpoints: &[Endpoint]) -> usize {
    let ring = Ring::new(endpoints.iter().map(|endpoint| endpoint.key));
    let mut seen = ObservedEndpoints::new(65_536);
    let choices = (0..1_000_u64).map(|key| {
        let considered = Cell::new(0);
        let consider = |place: usize| {
            considered.set(considered.get() + 1);
            endpoints[place]
        };
        // Each prompt comes twice, so that there is one that got it last.
        let prefixes: [u64; 64] = std::array::from_fn(|block| (key / 2) << 8 | block as u64);
        let past = seen.past_of(&prefixes, endpoints.len());
        let ask = RoutingRequest { past, key, ..ask(&prefixes) };
        let picked = choose(&ring, consider, &ask, &WEIGHTS).unwrap();
        seen.sent(&prefixes, endpoints[picked.endpoint].key);
        considered.get()
    });
    choices.max().unwrap()
}

#[test]
fn a_choice_asks_about_a_hundred_endpoints_at_most_however_many_there_are() {
    for count in [16, 32, 256, 10_000] {
        let mut endpoints: Vec<Endpoint> = (0..count)
            .map(|key| Endpoint { unread: Tokens::new(key * 991 % 5_000), ..idle(key) })
            .collect();
        // One that got it last, 21 probes for its home, the home, and the looks for the least load.
        let most = most_considered(&endpoints);
        assert!(most <= 1 + 21 + 1 + CANDIDATES, "{count}: {most}");
        for endpoint in endpoints.iter_mut().step_by(3) {
            endpoint.availability = Availability::Unhealthy;
        }
        let most = most_considered(&endpoints);
        assert!(most <= 100, "{count}, a third of them ill: {most}");
    }
}
