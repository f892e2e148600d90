//! What is asked of a model, from gateways or from engines, whoever knows.
//!
//! Gateways know best: they see work arrive and wait. Without them the engines must do, which tell what was read
//! and written, not what arrived. What a source does not say is missing and never zero: a silent one counts with
//! what it told last, and the whole is stale then. Only that work waits is as young as the youngest who sees it.

use crate::engines::Sum;
use crate::gateways::GatewaySum;
use flyball_core::snapshot::{Demand, Misses, Observed, Sources};
use flyball_core::units::{Micros, Requests, Timestamp, Tokens, TokensPerSecond};

/// What is known about a model's demand.
pub(crate) struct Known {
    pub(crate) demand: Demand,
    pub(crate) misses: Observed<Misses>,
}

/// What is known beside what gateways and engines say at this moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    /// Gateways that exist and did not say whether they serve it.
    pub(crate) silent: u32,
    /// Whether somebody waits for a first replica.
    pub(crate) waited_for: bool,
    /// Mean tokens of an answer.
    pub(crate) output: Option<f64>,
    /// What would be held at the pace that replicas may have, over what is held now.
    pub(crate) held: f64,
    /// Whether nobody is left who could write what is asked for.
    pub(crate) out: bool,
    /// Prompt tokens that replicas may have in hand: one prompt each is being read, and does not wait.
    pub(crate) in_hand: f64,
}

/// What is asked of a model.
pub(crate) fn known(
    gateways: Option<GatewaySum>,
    engines: &Sum,
    beside: Beside,
    time: (Timestamp, Micros),
) -> Known {
    let gateways = if beside.waited_for { Some(with_waiting(gateways, time.0)) } else { gateways };
    let mut known = match gateways {
        Some(gateways) => both(gateways, engines, beside, time),
        None => alone(engines, beside, time),
    };
    if beside.silent > 0 {
        known.demand = with_silent(known.demand, beside.silent);
    }
    known
}

/// Somebody waits, whatever else is known: that is told at once, and how much waits only within a second.
fn with_waiting(gateways: Option<GatewaySum>, now: Timestamp) -> GatewaySum {
    let gateways = gateways.unwrap_or(GatewaySum { at: now, ..GatewaySum::default() });
    GatewaySum { waiting_tokens: gateways.waiting_tokens.max(1.0), waits_at: Some(now), ..gateways }
}

/// What gateways say, and engines beside them.
fn both(gateways: GatewaySum, engines: &Sum, beside: Beside, time: (Timestamp, Micros)) -> Known {
    let (now, max_age) = time;
    let sources = Sources { silent: gateways.sources.silent + engines.old, ..gateways.sources };
    let rate = |value: Option<f64>| {
        let seen = Observed::judge(
            value.and_then(TokensPerSecond::from_sample),
            gateways.at,
            now,
            max_age,
        );
        seen.partial_if(sources.silent > 0)
    };
    let tokens = |value: f64, at| Observed::judge(Tokens::from_sample(value), at, now, max_age);
    let resident = match engines.resident.whole() {
        Some(resident) => tokens(beside.held * resident, engines.at.unwrap_or(gateways.at)),
        None => tokens(beside.held * gateways.held_tokens, gateways.at),
    };
    let waiting = Waiting {
        tokens: Some(waiting_tokens(Some(gateways), engines, beside.in_hand)),
        seen_at: gateways.waits_at.max(engines.waits_at),
        at: gateways.at,
        partial: sources.silent > 0,
    };
    // What was written is less than what is wanted while requests wait, and what ended was wanted long ago. So
    // the answers to what comes are counted, as long as they usually are. While nobody is left who could write any,
    // callers are turned away and come less often: then what is wanted is not known.
    let arriving = gateways.arrivals.zip(beside.output).map(|(rate, tokens)| rate * tokens);
    let written = arriving.or(gateways.output_rate).filter(|_| !beside.out);
    let (requests, missed) = gateways.judged;
    let misses = Requests::from_sample(requests).zip(Requests::from_sample(missed));
    let misses = misses.map(|(requests, missed)| Misses { requests, missed });
    Known {
        demand: Demand {
            prefill: rate(gateways.prompt_rate),
            decode: rate(written),
            resident: resident.partial_if(sources.silent > 0),
            burst: rate(gateways.burst),
            backlog: waiting.judge(time),
            sources,
        },
        misses: Observed::judge(misses, gateways.at, now, max_age),
    }
}

/// Prompt tokens that wait, in gateways and behind them.
///
/// What waits in engines was sent by gateways, and by others: both counts have the former in them. A gateway cannot tell a
/// prompt that is being read from one that waits; an engine can, and what it says waits does. With a prompt for each
/// replica taken off that too, six-token prompts that always waited for an engine of four places were no queue for
/// twelve minutes.
pub(crate) fn waiting_tokens(gateways: Option<GatewaySum>, engines: &Sum, in_hand: f64) -> f64 {
    let (waiting, unread) =
        gateways.map_or((0.0, 0.0), |gateways| (gateways.waiting_tokens, gateways.unread_tokens));
    waiting + (unread - in_hand).max(engines.waiting.known().unwrap_or(0.0)).max(0.0)
}

/// With nobody but engines to ask. No engine at all says nothing: whether anybody wants the model is then not
/// known.
fn alone(engines: &Sum, beside: Beside, time: (Timestamp, Micros)) -> Known {
    let (misses, (now, max_age)) = (Observed::Missing, time);
    let Some(at) = engines.at else { return Known { demand: Demand::UNKNOWN, misses } };
    let rate = |part: crate::engines::Part| {
        let value = part.known().and_then(TokensPerSecond::from_sample);
        Observed::judge(value, at, now, max_age).partial_if(part.lacks)
    };
    let held = engines.resident.known().map(|tokens| beside.held * tokens);
    let held = held.and_then(Tokens::from_sample);
    let resident = Observed::judge(held, at, now, max_age);
    let waiting = Waiting {
        tokens: engines.waiting.known(),
        seen_at: engines.waits_at,
        at,
        partial: engines.waiting.lacks,
    };
    let demand = Demand {
        prefill: rate(engines.prompt_rate),
        decode: rate(engines.output_rate),
        resident: resident.partial_if(engines.resident.lacks),
        burst: Observed::Missing,
        backlog: waiting.judge(time),
        sources: Sources { reporting: engines.reporting, silent: engines.silent },
    };
    Known { demand, misses }
}

/// The same with gateways that did not say whether they serve it: what is known is a part.
fn with_silent(demand: Demand, count: u32) -> Demand {
    let waits = demand.backlog.fresh().is_some_and(|backlog| !backlog.is_zero());
    Demand {
        prefill: demand.prefill.partial(),
        decode: demand.decode.partial(),
        resident: demand.resident.partial(),
        burst: demand.burst.partial(),
        backlog: demand.backlog.partial_if(!waits),
        sources: Sources { silent: demand.sources.silent + count, ..demand.sources },
    }
}

/// Work that waits, as sources see it together.
struct Waiting {
    tokens: Option<f64>,
    /// When the youngest of those that see work wait saw it.
    seen_at: Option<Timestamp>,
    /// When the oldest source spoke.
    at: Timestamp,
    /// Whether a source is silent.
    partial: bool,
}

impl Waiting {
    /// One source that sees work wait now is enough for it to be so; that nothing waits, all must say.
    fn judge(&self, (now, max_age): (Timestamp, Micros)) -> Observed<Tokens> {
        let tokens = self.tokens.and_then(Tokens::from_sample);
        let seen = self.seen_at.map(|at| Observed::judge(tokens, at, now, max_age));
        if let Some(seen) = seen.filter(|seen| seen.fresh().is_some_and(|count| !count.is_zero())) {
            return seen;
        }
        Observed::judge(tokens, self.at, now, max_age).partial_if(self.partial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engines(waiting: Option<f64>) -> Sum {
        let mut sum = Sum::default();
        sum.waiting.add(waiting);
        sum
    }

    #[test]
    fn a_prompt_that_is_being_read_does_not_wait_and_what_an_engine_says_waits_does() {
        let gateways =
            GatewaySum { waiting_tokens: 10.0, unread_tokens: 30.0, ..GatewaySum::default() };
        // Four prompts of six tokens wait for the one replica.
        assert_eq!(waiting_tokens(None, &engines(Some(24.0)), 6.0), 24.0);
        assert_eq!(waiting_tokens(Some(gateways), &engines(None), 12.0), 28.0);
        assert_eq!(waiting_tokens(Some(gateways), &engines(None), 40.0), 10.0);
        assert_eq!(waiting_tokens(Some(gateways), &engines(Some(24.0)), 12.0), 34.0);
    }
}
