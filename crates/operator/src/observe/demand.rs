//! What is asked of a model, from gateways or from engines, whoever knows.
//!
//! Gateways know best: they see work arrive and wait. Without them the engines' own series must do,
//! which tell what was read and written, not what arrived (`engines`). What a source does not say is
//! missing and never zero: a silent one counts with what it told last, and the whole is stale then.
//! Only that work waits is as young as the youngest who sees it.

use super::engines::{NAMES, Sum};
use super::facts::PodFacts;
use super::in_flight::InFlight;
use flyball_core::ids::ModelId;
use flyball_core::interval::Interval;
use flyball_core::snapshot::{Demand, Misses, Observed, Sources};
use flyball_core::units::{Micros, Requests, Timestamp, Tokens, TokensPerSecond};
use flyball_resources::rfc3339;
use std::collections::BTreeMap;

/// What gateways and engines said at one moment.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// What gateways say, by the model that it is about.
    pub asked: BTreeMap<ModelId, Asked>,
    /// By namespace and pod.
    pub engines: BTreeMap<(String, String), Engine>,
    /// Requests inside pods.
    pub in_flight: InFlight,
    /// Gateways that are known and told nothing lately.
    pub silent: Vec<Silent>,
    /// Those that exist and never told what they serve: it may be any model.
    pub unheard: u32,
}

impl Signals {
    /// Counts gateways that exist and never told anything, once all that exist are known; `more` if there
    /// may be some that are not.
    pub fn count_unheard(&mut self, more: bool) {
        let silent = |name: &String| Silent { gateway: name.clone(), since: None };
        let unheard: Vec<Silent> = self.in_flight.unheard().map(silent).collect();
        let count = u32::try_from(unheard.len()).unwrap_or(u32::MAX);
        self.unheard = count.saturating_add(u32::from(more));
        self.silent.extend(unheard);
    }
}

/// A gateway that is known and tells nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silent {
    /// Its name.
    pub gateway: String,
    /// When it told something last, if ever.
    pub since: Option<Timestamp>,
}

/// What gateways say of a model, all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    /// When the oldest of them said it.
    pub at: Timestamp,
    /// When the youngest of those that see work wait said it.
    pub waits_at: Option<Timestamp>,
    /// How many told lately, and how many did not.
    pub sources: Sources,
    /// Prompt tokens that arrive in a second and must be read: those that a cache has are no work.
    pub prompt_rate: Option<f64>,
    /// Tokens of answers in a second.
    pub output_rate: Option<f64>,
    /// Prompt tokens that wait in gateways.
    pub backlog_tokens: f64,
    /// Prompt tokens that engines were given and have not read.
    pub unread_tokens: f64,
    /// Requests at engines.
    pub in_flight: f64,
    /// Tokens that engines hold for them, as gateways reckon.
    pub held_tokens: f64,
    /// Requests that were judged and that missed, since counting began.
    pub judged: Option<(f64, f64)>,
    /// What requests look like.
    pub shape: Option<Means>,
    /// Whether requests wait for a first replica.
    pub held: bool,
}

/// What requests look like on the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    /// Tokens of a prompt.
    pub prompt: f64,
    /// Tokens of an answer.
    pub output: f64,
    /// Requests that were answered since counting began. The first to end are the short ones, so that
    /// a mean of few is too small.
    pub answered: f64,
}

impl Means {
    /// Answers after which a mean is believed.
    pub const SETTLED: f64 = 300.0;

    fn with(self, other: Self) -> Self {
        let answered = self.answered + other.answered;
        let share = if answered > 0.0 { self.answered / answered } else { 0.5 };
        let mean = |one: f64, other: f64| one * share + other * (1.0 - share);
        Self {
            prompt: mean(self.prompt, other.prompt),
            output: mean(self.output, other.output),
            answered,
        }
    }
}

/// What one engine says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Engine {
    /// When.
    pub at: Timestamp,
    /// Prompt tokens that it reads in a second.
    pub prompt_rate: Option<f64>,
    /// Tokens that it writes in a second.
    pub output_rate: Option<f64>,
    /// Requests that it works on.
    pub running: Option<f64>,
    /// Requests that wait in it.
    pub waiting: Option<f64>,
    /// Share of its cache in use.
    pub cache_used: Option<f64>,
    /// Mean tokens of a prompt.
    pub prompt_mean: Option<f64>,
    /// Mean tokens of an answer.
    pub output_mean: Option<f64>,
}

/// What is known about one model's demand.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) demand: Demand,
    pub(super) misses: Observed<Misses>,
    pub(super) shape: Option<Means>,
    /// Who should tell and does not, for people to read.
    pub(super) silent: Vec<String>,
}

/// A model's pods that serve, with what one of them can hold.
pub(super) struct Serving<'a> {
    pub(super) namespace: &'a str,
    pub(super) pods: Vec<(&'a PodFacts, Option<Interval<Tokens>>)>,
    /// Whether a pod that served does not any more, and may again.
    pub(super) lapsed: bool,
}

impl Serving<'_> {
    /// Whether nobody is left who could write what is asked for. How much is written then says nothing
    /// about how much is wanted.
    const fn is_out(&self) -> bool {
        self.lapsed && self.pods.is_empty()
    }
}

/// What is asked of a model: what gateways say of it, if any does, and what its engines do.
pub(super) fn known(
    asked: Option<Asked>,
    serving: &Serving<'_>,
    signals: &Signals,
    time: (Timestamp, Micros),
) -> Known {
    let engines = Sum::of(serving, signals, time);
    let mut known = match asked {
        Some(asked) => both(asked, engines, serving, time),
        None => engines.alone(time),
    };
    if signals.unheard > 0 {
        known.demand = unheard(known.demand, signals.unheard);
    }
    if known.demand.sources.silent > 0 {
        known.silent.extend(signals.silent.iter().take(NAMES).map(ToString::to_string));
        if known.silent.is_empty() {
            known.silent.push("gateways that may be there and have not come".to_owned());
        }
    }
    known
}

/// What gateways say, and engines beside them.
fn both(asked: Asked, engines: Sum, serving: &Serving<'_>, time: (Timestamp, Micros)) -> Known {
    let (now, max_age) = time;
    let sources = Sources { silent: asked.sources.silent + engines.old, ..asked.sources };
    let rate = |value: Option<f64>| {
        let seen =
            Observed::judge(value.and_then(TokensPerSecond::from_sample), asked.at, now, max_age);
        seen.partial_if(sources.silent > 0)
    };
    let tokens = |value: f64, at| Observed::judge(Tokens::from_sample(value), at, now, max_age);
    let resident = match engines.resident.whole() {
        Some(resident) => tokens(resident, engines.at.unwrap_or(asked.at)),
        None => tokens(asked.held_tokens, asked.at),
    };
    // What waits in engines was sent by gateways, and by others: both counts have the former in them.
    let unread = asked.unread_tokens.max(engines.waiting.known().unwrap_or(0.0));
    let waiting = Waiting {
        tokens: Some(asked.backlog_tokens + unread),
        seen_at: asked.waits_at.max(engines.waits_at),
        at: asked.at,
        partial: sources.silent > 0,
    };
    let misses = asked.judged.and_then(|(requests, missed)| {
        Some(Misses {
            requests: Requests::from_sample(requests)?,
            missed: Requests::from_sample(missed)?,
        })
    });
    Known {
        demand: Demand {
            prefill: rate(asked.prompt_rate),
            decode: rate(asked.output_rate.filter(|_| !serving.is_out())),
            resident: resident.partial_if(sources.silent > 0),
            backlog: waiting.judge(time),
            sources,
        },
        misses: Observed::judge(misses, asked.at, now, max_age),
        shape: asked.shape.or(engines.shape),
        // Without series at all gateways are enough.
        silent: if engines.old > 0 { engines.names } else { Vec::new() },
    }
}

/// The same with gateways that never told what they serve: what is known is a part.
fn unheard(demand: Demand, count: u32) -> Demand {
    let waits = demand.backlog.fresh().is_some_and(|backlog| !backlog.is_zero());
    Demand {
        prefill: demand.prefill.partial(),
        decode: demand.decode.partial(),
        resident: demand.resident.partial(),
        backlog: demand.backlog.partial_if(!waits),
        sources: Sources { silent: demand.sources.silent + count, ..demand.sources },
    }
}

/// Work that waits, as sources see it together.
pub(super) struct Waiting {
    pub(super) tokens: Option<f64>,
    /// When the youngest of those that see work wait saw it.
    pub(super) seen_at: Option<Timestamp>,
    /// When the oldest source spoke.
    pub(super) at: Timestamp,
    /// Whether a source is silent.
    pub(super) partial: bool,
}

impl Waiting {
    /// One source that sees work wait now is enough for it to be so; that nothing waits, all must say.
    pub(super) fn judge(&self, (now, max_age): (Timestamp, Micros)) -> Observed<Tokens> {
        let tokens = self.tokens.and_then(Tokens::from_sample);
        let seen = self.seen_at.map(|at| Observed::judge(tokens, at, now, max_age));
        if let Some(seen) = seen.filter(|seen| seen.fresh().is_some_and(|count| !count.is_zero())) {
            return seen;
        }
        Observed::judge(tokens, self.at, now, max_age).partial_if(self.partial)
    }
}

impl std::fmt::Display for Silent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.since {
            Some(since) => write!(f, "gateway {} since {}", self.gateway, rfc3339(since)),
            None => write!(f, "gateway {}, never heard", self.gateway),
        }
    }
}

impl Asked {
    /// The same model at another gateway, or under another name.
    pub(super) fn with(self, other: Self) -> Self {
        let both = |a: Option<f64>, b: Option<f64>| match (a, b) {
            // A gateway that just began cannot tell a rate yet; the others' must do until then.
            (None, one) | (one, None) => one,
            (Some(a), Some(b)) => Some(a + b),
        };
        let shape = match (self.shape, other.shape) {
            (None, one) | (one, None) => one,
            (Some(a), Some(b)) => Some(a.with(b)),
        };
        let judged = match (self.judged, other.judged) {
            (None, one) | (one, None) => one,
            (Some(a), Some(b)) => Some((a.0 + b.0, a.1 + b.1)),
        };
        Self {
            at: self.at.min(other.at),
            waits_at: self.waits_at.max(other.waits_at),
            sources: Sources {
                heard: self.sources.heard + other.sources.heard,
                silent: self.sources.silent + other.sources.silent,
            },
            prompt_rate: both(self.prompt_rate, other.prompt_rate),
            output_rate: both(self.output_rate, other.output_rate),
            backlog_tokens: self.backlog_tokens + other.backlog_tokens,
            unread_tokens: self.unread_tokens + other.unread_tokens,
            in_flight: self.in_flight + other.in_flight,
            held_tokens: self.held_tokens + other.held_tokens,
            judged,
            shape,
            held: self.held || other.held,
        }
    }
}
