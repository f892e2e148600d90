//! The choice itself.

use crate::cost::{share, with};
use crate::endpoint::{Endpoint, RoutingRequest, Weights};
use crate::ring::{Ring, score};
use flyball_core::units::Tokens;
use std::cmp::Reverse;

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingChoice {
    /// Its place in the list of endpoints.
    pub endpoint: usize,
    /// Why it won.
    pub why: Why,
    /// Prompt tokens that it is thought to have to read. The gateway counts them as unread there
    /// until the first token comes.
    pub to_read: Tokens,
}

/// Why an endpoint won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It owns the prompt's beginning, or got it last.
    Affinity {
        /// Leading blocks that it is hoped to have.
        blocks: u32,
    },
    /// Whoever may have the beginning has too much to do, so that the least loaded is cheaper.
    Overload,
    /// The prompt has no beginning of its own to go by, so the least loaded was taken.
    LeastLoad,
    /// It was its turn.
    Turn,
}

/// The most endpoints that are looked at for the least load. Up to so many, all of them; of more,
/// so many draws by the request's key. Of 32 draws the best is among the 7 % least loaded nine
/// times in ten (0.93^32 = 0.1), and gateways that know the same do not all take the same one.
pub(crate) const CANDIDATES: usize = 32;

/// Blocks of the shortest beginning that has a home, where prompts are as long: 1,024 tokens of the
/// gateway's blocks. Most system prompts are shorter, so that families are told apart before anybody
/// has counted what is common; and to read so little again takes some 40 ms.
const SHORTEST: usize = 4;

/// The endpoint for a request; `None` if none serves. `endpoint` tells of the endpoint at a place of
/// the list that the ring was made of; it is asked at most about a hundred times, however many there
/// are.
///
/// The same arguments give the same choice. The order of the list matters only for whom the draws
/// meet, if there are more than 32.
pub fn choose(
    ring: &Ring,
    endpoint: impl Fn(usize) -> Endpoint,
    ask: &RoutingRequest<'_>,
    weights: &Weights,
) -> Option<RoutingChoice> {
    let hopes = Hopes::new(ask, weights);
    let mut cheapest: Option<(Order, Candidate)> = None;
    let mut consider = |place: usize, near: bool, hoped: u64| {
        let seen = endpoint(place);
        if seen.serves() {
            let hoped = hoped.max(hopes.everywhere);
            let cost = with(&seen, ask, weights, hoped);
            // Of two that cost the same: whoever may have more, then by the request's key.
            let order = (cost, Reverse((hoped, score(ask.key, seen.key))), seen.key);
            if cheapest.is_none_or(|(least, _)| order < least) {
                cheapest = Some((order, Candidate { place, near, hoped }));
            }
        }
    };
    if let Some(last) = ring.named(ask.past.last).filter(|_| hopes.last > 0) {
        consider(last, true, hopes.last);
    }
    if let Some(prefix) = hopes.beginning
        && let Some(owner) = ring.owner(prefix, |place| endpoint(place).serves())
    {
        consider(owner, true, hopes.home);
    }
    if ring.len() <= CANDIDATES {
        (0..ring.len()).for_each(|place| consider(place, false, 0));
    } else {
        let draw = |number| (score(ask.key, number) % ring.len() as u64) as usize;
        (0..CANDIDATES as u64).for_each(|number| consider(draw(number), false, 0));
    }
    // Where few of many serve, the draws may have met none of them.
    let any = || (0..ring.len()).find(|place| endpoint(*place).serves());
    let chosen = match cheapest {
        Some((_, candidate)) => candidate,
        None => Candidate { place: any()?, near: false, hoped: hopes.everywhere },
    };
    Some(chosen.choice(ask, hopes.beginning.is_some()))
}

/// Cost, then what breaks ties.
type Order = (u64, Reverse<(u64, u64)>, u64);

#[derive(Clone, Copy, Debug)]
struct Candidate {
    place: usize,
    /// Whether it was looked at for what it may have cached.
    near: bool,
    /// Tokens of the prompt that it is hoped to have.
    hoped: u64,
}

impl Candidate {
    fn choice(self, ask: &RoutingRequest<'_>, has_beginning: bool) -> RoutingChoice {
        let blocks = (self.hoped / u64::from(ask.block_tokens.max(1))) as u32;
        let why = match (self.near, has_beginning) {
            (true, _) => Why::Affinity { blocks },
            (false, true) => Why::Overload,
            (false, false) => Why::LeastLoad,
        };
        let to_read = Tokens::new(ask.prompt.get().saturating_sub(self.hoped));
        RoutingChoice { endpoint: self.place, why, to_read }
    }
}

/// Tokens of a prompt that endpoints are hoped to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hopes {
    /// The shortest beginning that is not common: what its prompts share makes them one family,
    /// and all of the family have the same home. Powers of two, because all gateways must take the
    /// same length although their counts differ a little.
    pub(crate) beginning: Option<u64>,
    pub(crate) everywhere: u64,
    pub(crate) home: u64,
    pub(crate) last: u64,
}

impl Hopes {
    pub(crate) fn new(ask: &RoutingRequest<'_>, weights: &Weights) -> Self {
        let past = &ask.past;
        let tokens = |blocks: u32| u64::from(blocks) * u64::from(ask.block_tokens);
        let everywhere = tokens(past.common);
        let own = past.common as usize + 1;
        let length = own.next_power_of_two().max(SHORTEST).min(ask.prefixes.len());
        let beginning = ask.prefixes.get(length.wrapping_sub(1)).filter(|_| length >= own);
        // Less than the beginning is what other families have too: it says nothing of this one.
        let seen = if past.seen as usize >= length.max(own) { tokens(past.seen) } else { 0 };
        let home = if seen > 0 {
            share(seen, weights.home_per_thousand)
        } else {
            let rest = ask.prompt.get().saturating_sub(everywhere);
            let part =
                if past.gone { weights.gone_per_thousand } else { weights.unseen_per_thousand };
            everywhere + share(rest, part)
        };
        Self { beginning: beginning.copied(), everywhere, home, last: seen }
    }
}
