//! What is asked of a model, from gateways or from engines, whoever knows.
//!
//! Gateways know best: they see work arrive and wait. Without them the engines' own series must do,
//! which tell what was read and written, not what arrived. What a source does not say is missing and
//! never zero.

use super::facts::PodFacts;
use super::in_flight::InFlight;
use flyball_core::interval::Interval;
use flyball_core::snapshot::{Demand, Misses, Observed};
use flyball_core::units::{Micros, Requests, Timestamp, Tokens, TokensPerSecond};
use std::collections::BTreeMap;

/// A pod that became ready this recently may not have been scraped yet.
const UNSCRAPED: Micros = Micros::from_seconds(60);

/// What gateways and engines said at one moment.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// By the model's public name, as gateways know it.
    pub asked: BTreeMap<String, Asked>,
    /// By namespace and pod.
    pub engines: BTreeMap<(String, String), Engine>,
    /// Requests inside pods.
    pub in_flight: InFlight,
}

/// What gateways say of a model, all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    /// When the oldest of them said it.
    pub at: Timestamp,
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) demand: Demand,
    pub(super) misses: Observed<Misses>,
    pub(super) shape: Option<Means>,
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

/// What is asked of the model of these names.
pub(super) fn known(
    names: &[String],
    serving: &Serving<'_>,
    signals: &Signals,
    (now, max_age): (Timestamp, Micros),
) -> Known {
    let engines = Sum::of(serving, signals, now);
    let asked =
        names.iter().filter_map(|name| signals.asked.get(name)).copied().reduce(Asked::with);
    let Some(asked) = asked else { return engines.alone(now, max_age) };
    let rate = |value: Option<f64>| {
        Observed::judge(value.and_then(TokensPerSecond::from_sample), asked.at, now, max_age)
    };
    let tokens = |value: f64, at| Observed::judge(Tokens::from_sample(value), at, now, max_age);
    let resident = match engines.resident {
        Some(resident) => tokens(resident, engines.at.unwrap_or(asked.at)),
        None => tokens(asked.held_tokens, asked.at),
    };
    // What waits in engines was sent by gateways, and by others: both counts have the former in them.
    let unread = asked.unread_tokens.max(engines.waiting_tokens.unwrap_or(0.0));
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
            resident,
            backlog: tokens(asked.backlog_tokens + unread, asked.at),
        },
        misses: Observed::judge(misses, asked.at, now, max_age),
        shape: asked.shape.or(engines.shape),
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

/// All engines of a model together. `None` where one that should say something does not.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    at: Option<Timestamp>,
    prompt_rate: Option<f64>,
    output_rate: Option<f64>,
    resident: Option<f64>,
    waiting_tokens: Option<f64>,
    shape: Option<Means>,
}

impl Sum {
    fn of(serving: &Serving<'_>, signals: &Signals, now: Timestamp) -> Self {
        let mut sum = Self {
            prompt_rate: Some(0.0),
            output_rate: Some(0.0),
            resident: Some(0.0),
            waiting_tokens: Some(0.0),
            ..Self::default()
        };
        let (mut prompts, mut outputs, mut said) = (0.0, 0.0, 0.0);
        for (pod, room) in &serving.pods {
            let place = (serving.namespace.to_owned(), pod.name.clone());
            let Some(engine) = signals.engines.get(&place) else {
                let new = pod.ready.and_then(|ready| now.since(ready));
                if new.is_some_and(|age| age < UNSCRAPED) {
                    continue;
                }
                return Self::default();
            };
            let add = |sum: Option<f64>, part: Option<f64>| sum.zip(part).map(|(a, b)| a + b);
            sum.at = Some(sum.at.map_or(engine.at, |at| at.min(engine.at)));
            sum.prompt_rate = add(sum.prompt_rate, engine.prompt_rate);
            sum.output_rate = add(sum.output_rate, engine.output_rate);
            let held =
                engine.cache_used.zip(*room).map(|(used, room)| used * room.point().get() as f64);
            sum.resident = add(sum.resident, held);
            let waiting = match engine.waiting {
                Some(waiting) if waiting <= 0.0 => Some(0.0),
                waiting => waiting.zip(engine.prompt_mean).map(|(count, mean)| count * mean),
            };
            sum.waiting_tokens = add(sum.waiting_tokens, waiting);
            // An engine that answered nobody lately has a mean that is no number.
            if let (Some(prompt), Some(output)) = (engine.prompt_mean, engine.output_mean)
                && prompt.is_finite()
                && output.is_finite()
            {
                (prompts, outputs, said) = (prompts + prompt, outputs + output, said + 1.0);
            }
        }
        sum.shape = (said > 0.0).then(|| Means {
            prompt: prompts / said,
            output: outputs / said,
            // Of how many, series do not tell.
            answered: Means::SETTLED,
        });
        sum
    }

    /// With nobody else to ask. No engine at all says nothing: whether anybody wants the model is then
    /// not known.
    fn alone(self, now: Timestamp, max_age: Micros) -> Known {
        let misses = Observed::Missing;
        let Some(at) = self.at else {
            return Known { demand: Demand::UNKNOWN, misses, shape: None };
        };
        let rate = |value: Option<f64>| {
            Observed::judge(value.and_then(TokensPerSecond::from_sample), at, now, max_age)
        };
        let tokens = |value: Option<f64>| {
            Observed::judge(value.and_then(Tokens::from_sample), at, now, max_age)
        };
        let demand = Demand {
            prefill: rate(self.prompt_rate),
            decode: rate(self.output_rate),
            resident: tokens(self.resident),
            backlog: tokens(self.waiting_tokens),
        };
        Known { demand, misses, shape: self.shape }
    }
}
