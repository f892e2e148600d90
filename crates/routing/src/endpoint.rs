//! What a choice is made from.

use flyball_core::units::Tokens;

/// One endpoint, as the gateway knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name as a number, the same in every gateway: a hash of the pod's name.
    pub key: u64,
    /// Whether it may get requests.
    pub availability: Availability,
    /// Prompt tokens that it was given and has not read, as last reported.
    pub unread: Tokens,
    /// Tokens that it holds for requests it is answering, as last reported.
    pub held: Tokens,
    /// Tokens of work that this gateway sent since that report. Without them, everything that
    /// arrives between two reports would go to the endpoint that looked empty.
    pub sent_since: Tokens,
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
pub struct Ask<'a> {
    /// Hashes of the prompt's leading blocks, each over everything up to its block's end.
    pub prefixes: &'a [u64],
    /// Tokens in a block.
    pub block_tokens: u32,
    /// How many leading blocks somebody asked before, if the gateway remembers. Deeper ones are
    /// new: no cache has them, and nobody gets credit for them.
    pub seen_blocks: Option<u32>,
    /// Tokens of the whole prompt.
    pub prompt: Tokens,
    /// Tokens that the answer is expected to have.
    pub expected_output: Tokens,
    /// A number of the request's own. It breaks ties where there is no prefix, so that like loads
    /// do not send everything to the first of the list.
    pub key: u64,
}

/// How things are weighed against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Candidates named at each depth of the prefix.
    pub candidates_per_depth: usize,
    /// Work of a held token in thousandths of that of an unread prompt token. A held token costs
    /// one read of the cache in every step; an unread one costs a pass through the whole model.
    pub held_per_thousand: u32,
    /// Share of an expected cache hit that is believed. What rendezvous names may have been
    /// evicted.
    pub belief_per_thousand: u32,
    /// How far above the mean load the choice by prefix may go, in thousandths of the mean.
    pub overload_per_thousand: u32,
    /// Load that is never called overload, so that a quiet fleet keeps its affinity.
    pub slack: Tokens,
}

impl Weights {
    /// Where nobody has measured better.
    ///
    /// Two candidates per depth: the second choice takes away most of the imbalance and a third
    /// little more (the power of two choices). A quarter above the mean is the bound at which
    /// consistent hashing with bounded loads keeps most keys in place. The slack is the prompt
    /// tokens that an H100 reads in about half a second with a model of 8 billion weights.
    pub const DEFAULT: Self = Self {
        candidates_per_depth: 2,
        held_per_thousand: 50,
        belief_per_thousand: 800,
        overload_per_thousand: 1_250,
        slack: Tokens::new(16_384),
    };
}

impl Endpoint {
    /// Whether it may be chosen.
    pub const fn serves(&self) -> bool {
        matches!(self.availability, Availability::Serving)
    }
}
