//! What users ask: single requests of a [`Trace`], or the `Rates` of clients over weeks.
//!
//! Where a source has no data there is a gap, and a gap is not a quiet time: it is masked, and
//! nothing is scored in it.
//!
//! [`load`] reads traffic from files, [`gaps`] finds where they lack data, [`lengths`] says how
//! long requests are, [`shape`] and [`reuse`] say what traffic looks like, [`fit`] and
//! [`generate`] make more of the same, and [`write`](mod@write) keeps it. Start reading at [`load::open`].

pub mod fit;
pub mod gaps;
pub mod generate;
pub mod lengths;
pub mod load;
mod load_error;
mod loaded;
pub mod prometheus;
#[cfg(test)]
pub(crate) mod real;
pub mod reuse;
pub mod shape;
mod windows;
pub mod write;

mod flow;

pub use flow::FlowLoad;

use crate::seconds::Seconds;
use std::ops::Range;

/// Single requests, in order of arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// In order of arrival.
    pub requests: Vec<Request>,
    /// Names of prompt blocks, which requests refer to by range. Prompts that begin alike begin
    /// with the same names.
    pub blocks: Vec<u64>,
    /// Tokens that one name stands for; zero where the source names no blocks.
    pub block_tokens: u32,
    /// When the source has no data.
    pub gaps: Vec<Range<Seconds>>,
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// When it arrives.
    pub at: Seconds,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens that it will generate.
    pub output: u32,
    /// The names of its prompt's blocks, in [`Trace::blocks`].
    pub blocks: Range<u32>,
    /// How long after arrival its client hangs up, if it does.
    pub patience: Option<Seconds>,
}

/// Rates of requests by client, over windows of one length. What a source with too many requests
/// to list them publishes.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficRates {
    /// Length of a window.
    pub window: Seconds,
    /// One series per client, all equally long.
    pub clients: Vec<Vec<TrafficWindow>>,
    /// Windows without data, in order.
    pub gaps: Vec<Range<usize>>,
}

/// What one client does in one window: requests whose distances are Gamma distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrafficWindow {
    /// Requests per second.
    pub rate: f64,
    /// Standard deviation of the distance between requests over its mean; one is Poisson.
    pub variation: f64,
}

impl TrafficRates {
    /// Number of windows.
    pub fn windows(&self) -> usize {
        self.clients.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Requests per second of all clients in a window.
    pub fn total(&self, window: usize) -> f64 {
        self.clients.iter().filter_map(|client| client.get(window)).map(|w| w.rate).sum()
    }

    /// Whether the window has no data.
    pub fn is_gap(&self, window: usize) -> bool {
        self.gaps.iter().any(|gap| gap.contains(&window))
    }
}

impl Trace {
    /// The names of a request's blocks.
    pub fn blocks_of(&self, request: &Request) -> &[u64] {
        &self.blocks[request.blocks.start as usize..request.blocks.end as usize]
    }
}
