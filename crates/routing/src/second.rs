//! A second endpoint for a request whose first one is slow.

use crate::choose::{Hopes, RoutingChoice, Why, choose};
use crate::cost::with;
use crate::endpoint::{Availability, Endpoint, RoutingRequest, Weights};
use crate::ring::Ring;
use flyball_core::units::Tokens;

/// Tokens that may be read a second time although nobody has them: some 20 ms of a 70B model on
/// eight H100 (27,000 per second), less than any wait that is worth a second request.
const SMALL: u64 = 512;

/// An endpoint other than `first` that is thought to have about as much of the prompt as that one,
/// or to have little to read; `None` if there is none, or if all of them have more to read than the
/// first one.
///
/// Stricter than [`choose()`]: that one hopes that the next owner has what the first had, because it
/// must send the request somewhere. Here only those count that own the beginning among all
/// endpoints, or got it last, and only what this gateway saw before.
pub fn second(
    ring: &Ring,
    endpoint: impl Fn(usize) -> Endpoint,
    ask: &RoutingRequest<'_>,
    weights: &Weights,
    first: usize,
) -> Option<RoutingChoice> {
    let hopes = Hopes::new(ask, weights);
    let was_seen = hopes.last > 0;
    let owner = hopes.beginning.and_then(|prefix| ring.owner(prefix, |_| true));
    let last = ring.named(ask.past.last);
    let hope = |place: usize| {
        let last = if last == Some(place) { hopes.last } else { 0 };
        let home = if owner == Some(place) && was_seen { hopes.home } else { 0 };
        last.max(home).max(hopes.everywhere)
    };
    let others = |place: usize| {
        let seen = endpoint(place);
        let away = Endpoint { availability: Availability::Unhealthy, ..seen };
        if place == first { away } else { seen }
    };
    let least_loaded = choose(ring, others, ask, weights).map(|choice| choice.endpoint);
    let (hope_of_first, busy) = (hope(first), endpoint(first).unread);
    // Two thirds: what the owner is hoped to have is 70 % of what was seen.
    let has_enough = |hoped: u64| {
        ask.prompt.get().saturating_sub(hoped) < SMALL
            || (hoped > hopes.everywhere && hoped * 3 >= hope_of_first * 2)
    };
    let place = [last, owner, least_loaded]
        .into_iter()
        .flatten()
        .filter(|place| others(*place).serves() && endpoint(*place).unread <= busy)
        .filter(|place| has_enough(hope(*place)))
        .min_by_key(|place| {
            let seen = endpoint(*place);
            (with(&seen, ask, weights, hope(*place)), seen.key)
        })?;
    let hoped = hope(place);
    let blocks = (hoped / u64::from(ask.block_tokens.max(1))) as u32;
    let to_read = Tokens::new(ask.prompt.get().saturating_sub(hoped));
    let near = hoped > hopes.everywhere;
    let why = if near { Why::Affinity { blocks } } else { Why::LeastLoad };
    Some(RoutingChoice { endpoint: place, why, to_read })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObservedEndpoints;

    const WEIGHTS: Weights = Weights::DEFAULT;
    const PREFIXES: [u64; 8] = [11, 12, 13, 14, 15, 16, 17, 18];

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

    /// A prompt of 2,100 tokens, seen before at `last` if that is said.
    fn ask(last: Option<&Endpoint>) -> RoutingRequest<'static> {
        let mut seen = ObservedEndpoints::new(1_024);
        if let Some(last) = last {
            seen.past_of(&PREFIXES, 16);
            seen.sent(&PREFIXES, last.key);
        }
        let past = seen.past_of(&PREFIXES, 16);
        RoutingRequest {
            prefixes: &PREFIXES,
            block_tokens: 256,
            past,
            prompt: Tokens::new(2_100),
            key: 7,
        }
    }

    fn chosen(
        endpoints: &[Endpoint],
        ask: &RoutingRequest<'_>,
        first: usize,
    ) -> Option<RoutingChoice> {
        let ring = Ring::new(endpoints.iter().map(|endpoint| endpoint.key));
        second(&ring, |place| endpoints[place], ask, &WEIGHTS, first)
    }

    fn home(endpoints: &[Endpoint]) -> usize {
        let ring = Ring::new(endpoints.iter().map(|endpoint| endpoint.key));
        choose(&ring, |place| endpoints[place], &ask(None), &WEIGHTS).unwrap().endpoint
    }

    #[test]
    fn home_and_the_last_one_stand_in_for_each_other() {
        let mut endpoints: Vec<Endpoint> = (0..16).map(idle).collect();
        let home = home(&endpoints);
        let last = (home + 5) % 16;
        let ask = ask(Some(&endpoints[last]));
        let choice = chosen(&endpoints, &ask, home).unwrap();
        assert_eq!((choice.endpoint, choice.why), (last, Why::Affinity { blocks: 8 }));
        assert_eq!(chosen(&endpoints, &ask, last).unwrap().endpoint, home);
        endpoints[home].unread = Tokens::new(1);
        assert_eq!(chosen(&endpoints, &ask, last), None, "home has more to read");
        endpoints[home] = Endpoint { availability: Availability::Draining, ..idle(home as u64) };
        assert_eq!(
            chosen(&endpoints, &ask, last),
            None,
            "home drains, and the next owner has nothing"
        );
    }

    #[test]
    fn what_only_one_has_is_not_read_twice() {
        let endpoints: Vec<Endpoint> = (0..16).map(idle).collect();
        let home = home(&endpoints);
        assert_eq!(chosen(&endpoints, &ask(None), home), None, "never seen");
        assert_eq!(chosen(&endpoints, &ask(Some(&endpoints[home])), home), None, "only at home");
    }

    #[test]
    fn a_short_prompt_may_go_to_anybody_else() {
        let endpoints: Vec<Endpoint> = (0..3).map(idle).collect();
        let past = ask(None).past;
        let short = RoutingRequest { prefixes: &[], past, prompt: Tokens::new(511), ..ask(None) };
        let choice = chosen(&endpoints, &short, 1).unwrap();
        assert_ne!(choice.endpoint, 1);
        assert_eq!((choice.why, choice.to_read), (Why::LeastLoad, Tokens::new(511)));
        assert_eq!(chosen(&endpoints[..1], &short, 0), None, "there is only one");
        assert_eq!(
            chosen(&endpoints, &RoutingRequest { prompt: Tokens::new(512), ..short }, 1),
            None
        );
    }
}
