//! What a choice is made from.

use crate::seen::EndpointPast;
use flyball_core::units::Tokens;

/// One endpoint, as the gateway knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name as a number, the same in every gateway: a hash of the pod's name.
    pub key: u64,
    /// Whether it may get requests.
    pub availability: Availability,
    /// Prompt tokens that it was given and has not read. Of this gateway's own requests the sum of
    /// `to_read` until their first token; of others what gateways tell
    /// each other, or else the requests that the engine says wait, less the own ones, times the
    /// usual prompt.
    pub unread: Tokens,
    /// Tokens that it holds for requests it is answering.
    pub held: Tokens,
    /// Share of its cache that running requests hold, in thousandths. Zero if unknown.
    pub kv_used_per_thousand: u32,
    /// How many leading blocks of this prompt it is known to have in its cache. Zero if unknown.
    pub cached_blocks: u32,
    /// Speed in thousandths of a common measure, so that unlike accelerators can be compared.
    pub speed_per_thousand: u32,
}

/// Whether an endpoint may get requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It serves.
    Serving,
    /// It finishes what it has.
    Draining,
    /// It does not answer as it should.
    Unhealthy,
}

/// What is known of a request before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingRequest<'a> {
    /// Hashes of the prompt's leading blocks, each over everything up to its block's end.
    pub prefixes: &'a [u64],
    /// Tokens in a block.
    pub block_tokens: u32,
    /// What `Seen` remembers of it; the default if nothing.
    pub past: EndpointPast,
    /// Tokens of the whole prompt.
    pub prompt: Tokens,
    /// A number of the request's own. It breaks ties, and draws whom to look at among many.
    pub key: u64,
}

/// How things are weighed against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Work of a held token in thousandths of that of an unread prompt token. A held token costs
    /// one read of the cache in every step; an unread one costs a pass through the whole model.
    pub held_per_thousand: u32,
    /// Tokens of waiting that are borne to save the reading of one.
    pub miss: u32,
    /// Share of what this gateway saw before that the owner of the beginning is thought to have,
    /// in thousandths. The last one went elsewhere if the owner was overloaded.
    pub home_per_thousand: u32,
    /// The same of a prompt that this gateway never saw: another may have.
    pub unseen_per_thousand: u32,
    /// The same of a prompt that this gateway saw and that is gone from where it went, by what that
    /// endpoint tells: another gateway may have used it since.
    pub gone_per_thousand: u32,
    /// Load of a cache that is half full. It is this times `k / (1 - k)` at a share of `k`.
    pub half_full: Tokens,
}

impl Weights {
    /// Where nobody has measured better.
    ///
    /// `miss` and `unseen` were found on Mooncake's synthetic trace and on the first half of its
    /// conversation trace, 16 engines, 1 and 8 gateways (`simulator::affinity`). A token that is
    /// read again costs more than its reading: it takes the room of another prefix, and the next
    /// turn looks for it at home. Below 4, eight gateways at high load lose a fifth of the hits and
    /// with them the capacity that they miss; above 20, the 95th percentile of the time to the
    /// first token doubles. `gone` was found on the conversation trace with caches of 300,000 tokens: at
    /// 0 eight gateways lose a fifth of the hits, because one of them does not know what others used
    /// since; at 400 events change nothing. The barrier is that of SMG's `least_load`, 0.15 s, at the 27,000 prompt
    /// tokens per second of a 70B model on eight H100.
    pub const DEFAULT: Self = Self {
        held_per_thousand: 50,
        miss: 10,
        home_per_thousand: 700,
        unseen_per_thousand: 400,
        gone_per_thousand: 200,
        half_full: Tokens::new(4_000),
    };
}

impl Endpoint {
    /// Whether it may be chosen.
    pub const fn serves(&self) -> bool {
        matches!(self.availability, Availability::Serving)
    }
}
