//! All gateways of a model together: counts into rates, and sums over those that tell.

use crate::reading::{GatewayCounts, GatewayReading};
use crate::shape::Means;
use crate::window::Span;
use flyball_core::snapshot::Sources;
use flyball_core::units::{Micros, Timestamp};

/// The busiest of so many seconds are looked for: about as long as a request may wait for its first token.
const BURST_S: f64 = 5.0;

/// What gateways say of a model, all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct GatewaySum {
    /// When the oldest of them said it.
    pub(crate) at: Timestamp,
    /// When the youngest of those that see work wait said it.
    pub(crate) waits_at: Option<Timestamp>,
    /// How many told lately, and how many did not.
    pub(crate) sources: Sources,
    /// Requests that come in a second.
    pub(crate) arrivals: Option<f64>,
    /// Prompt tokens that come in a second and must be read: those that a cache has are no work.
    pub(crate) prompt_rate: Option<f64>,
    /// The same in the busiest seconds.
    pub(crate) burst: Option<f64>,
    /// Tokens of answers in a second.
    pub(crate) output_rate: Option<f64>,
    /// Prompt tokens that wait in gateways.
    pub(crate) waiting_tokens: f64,
    /// Prompt tokens that engines were given and have not read.
    pub(crate) unread_tokens: f64,
    /// Tokens that engines hold for them, as gateways reckon.
    pub(crate) held_tokens: f64,
    /// Requests at engines.
    pub(crate) in_flight: f64,
    /// Requests that were judged and that missed, since counting began.
    pub(crate) judged: (f64, f64),
    /// What requests look like.
    pub(crate) shape: Option<Means>,
    /// Prompt tokens that had to be read, and all, in the window or of all time.
    pub(crate) prompts: (f64, f64),
    /// Tokens after first ones, and seconds that they took, in the window.
    pub(crate) paced: (f64, f64),
}

/// All of them together; `None` if there is none. Of the prompt tokens that they count, engines had to read this part,
/// where engines tell: a gateway remembers prompts, and does not know which of them a cache has lost, or whether there
/// is one.
pub(crate) fn sum(
    readings: &[GatewayReading],
    uncached: Option<f64>,
    (now, max_age): (Timestamp, Micros),
) -> Option<GatewaySum> {
    let mut all: Option<GatewaySum> = None;
    for reading in readings {
        let mut gateway = gateway(reading, uncached);
        // One that just began cannot tell a rate yet.
        let reports = now.apart(reading.at) <= max_age && gateway.prompt_rate.is_some();
        gateway.sources = Sources { reporting: u32::from(reports), silent: u32::from(!reports) };
        all = Some(all.map_or(gateway, |all| all.with(gateway)));
    }
    all
}

fn gateway(reading: &GatewayReading, uncached: Option<f64>) -> GatewaySum {
    let span = reading.counts.span();
    let counts = reading.counts.last().map(|(_, counts)| *counts).unwrap_or_default();
    // Without an engine nothing is read or written, however short the look; what came waits.
    let none = (reading.engines == 0).then_some(0.0);
    let rate = |count: fn(&GatewayCounts) -> u64| {
        span.map(|span| span.rate(|counts| count(counts) as f64)).or(none)
    };
    let grown = |count: fn(&GatewayCounts) -> u64| {
        span.map_or(0.0, |span| span.grown(|counts| count(counts) as f64))
    };
    let waits = reading.waiting_tokens > 0 || reading.unread_tokens > 0;
    let prompts = prompts(span, &counts);
    let share = uncached.or(uncached_share(prompts)).unwrap_or(1.0);
    let waiting = reading.waiting_tokens as f64 * share;
    let to_read = |counts: &GatewayCounts| match uncached {
        Some(share) => share * counts.prompt_tokens as f64,
        None => counts.unread() as f64,
    };
    GatewaySum {
        at: reading.at,
        waits_at: waits.then_some(reading.at),
        sources: Sources::default(),
        arrivals: rate(|counts| counts.arrived),
        prompt_rate: span.map(|span| span.rate(to_read)).or(none),
        burst: reading.counts.busiest(BURST_S, to_read),
        output_rate: rate(|counts| counts.output_tokens),
        // What waits is work, however much of it a cache may have.
        waiting_tokens: waiting.max(reading.waiting_tokens.min(1) as f64),
        unread_tokens: reading.unread_tokens as f64,
        held_tokens: reading.held_tokens as f64,
        in_flight: reading.in_flight as f64,
        judged: (counts.judged as f64, counts.missed as f64),
        shape: shape(span, &counts),
        prompts,
        paced: (grown(|counts| counts.paced_tokens), grown(|counts| counts.paced_micros) / 1e6),
    }
}

impl GatewayCounts {
    /// Prompt tokens that no cache had; all of them where that is not told.
    fn unread(&self) -> u64 {
        self.uncached_tokens.unwrap_or(self.prompt_tokens)
    }
}

/// Prompt tokens that no cache has, and all: of the window, or of all time if nothing came in it. What waits is taken to
/// be like what came.
fn prompts(span: Option<Span<GatewayCounts>>, counts: &GatewayCounts) -> (f64, f64) {
    let of_window = span.map(|span| {
        let grown = |count: fn(&GatewayCounts) -> u64| span.grown(|counts| count(counts) as f64);
        (grown(GatewayCounts::unread), grown(|counts| counts.prompt_tokens))
    });
    let of_all = (counts.unread() as f64, counts.prompt_tokens as f64);
    of_window.filter(|(_, all)| *all > 0.0).unwrap_or(of_all)
}

/// The part that no cache has, if any came.
fn uncached_share((read, all): (f64, f64)) -> Option<f64> {
    (all > 0.0).then(|| (read / all).min(1.0))
}

/// Mean tokens of prompts and answers: of all time while that is short, and of the window later, if anything ended
/// in it.
fn shape(span: Option<Span<GatewayCounts>>, counts: &GatewayCounts) -> Option<Means> {
    let mean = |tokens: f64, count: f64| (count > 0.0).then(|| tokens / count);
    let answered = counts.answered as f64;
    let of_window = span.filter(|_| answered >= Means::SETTLED).and_then(|span| {
        let grown = |count: fn(&GatewayCounts) -> u64| span.grown(|counts| count(counts) as f64);
        Some(Means {
            prompt: mean(grown(|one| one.prompt_tokens), grown(|one| one.arrived))?,
            output: mean(grown(|one| one.output_tokens), grown(|one| one.answered))?,
            answered,
        })
    });
    of_window.or_else(|| {
        Some(Means {
            prompt: mean(counts.prompt_tokens as f64, counts.arrived as f64)?,
            output: mean(counts.output_tokens as f64, answered)?,
            answered,
        })
    })
}

impl GatewaySum {
    /// The part of prompt tokens that no cache is thought to have had, if any came.
    pub(crate) fn uncached(&self) -> Option<f64> {
        uncached_share(self.prompts)
    }

    /// The same model at another gateway, or under another name.
    fn with(self, other: Self) -> Self {
        let both = |a: Option<f64>, b: Option<f64>| match (a, b) {
            // A gateway that just began cannot tell a rate yet; the others' must do until then.
            (None, one) | (one, None) => one,
            (Some(a), Some(b)) => Some(a + b),
        };
        let shape = match (self.shape, other.shape) {
            (None, one) | (one, None) => one,
            (Some(a), Some(b)) => Some(a.with(b)),
        };
        let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
        Self {
            at: self.at.min(other.at),
            waits_at: self.waits_at.max(other.waits_at),
            sources: Sources {
                reporting: self.sources.reporting + other.sources.reporting,
                silent: self.sources.silent + other.sources.silent,
            },
            arrivals: both(self.arrivals, other.arrivals),
            prompt_rate: both(self.prompt_rate, other.prompt_rate),
            burst: both(self.burst, other.burst),
            output_rate: both(self.output_rate, other.output_rate),
            waiting_tokens: self.waiting_tokens + other.waiting_tokens,
            unread_tokens: self.unread_tokens + other.unread_tokens,
            held_tokens: self.held_tokens + other.held_tokens,
            in_flight: self.in_flight + other.in_flight,
            judged: add(self.judged, other.judged),
            shape,
            prompts: add(self.prompts, other.prompts),
            paced: add(self.paced, other.paced),
        }
    }
}
