//! All policies on the same requests.

use super::batches::{Batches, POLICIES};
use super::fleet::Shadow;
use super::learner::{Learner, LearningRates};
use super::live::Live;
use super::report::{ShadowReport, ShadowStatus};
use super::{ENGINES, Listed, ShadowArrival};
use crate::policy::RoutingPolicy;
use flyball_core::quantile::median;
use std::collections::VecDeque;
use std::time::Duration;

/// The live policy of a model beside others. Times are since any fixed moment, the same for all.
#[derive(Clone, Debug)]
pub struct ShadowTrial {
    /// The live policy's first.
    shadows: Vec<Shadow>,
    live: Live,
    learner: Learner,
    rates: LearningRates,
    batches: Batches,
    /// The latest `|predicted - measured| / measured`.
    errors: VecDeque<f32>,
    block_tokens: u32,
    arrivals: u64,
    now: f64,
}

/// Errors that the median is taken of.
const ERRORS: usize = 1_024;

/// Arrivals between two looks at what was learned.
const LEARN_EVERY: u64 = 32;

impl ShadowTrial {
    /// The live policy beside others; each counts once. Prompts come in blocks of so many tokens.
    pub fn new(live: RoutingPolicy, others: &[RoutingPolicy], block_tokens: u32) -> Self {
        let mut shadows = vec![Shadow::new(live)];
        for policy in others {
            if shadows.iter().all(|shadow| shadow.policy() != *policy) {
                shadows.push(Shadow::new(*policy));
            }
        }
        let learner = Learner::default();
        Self {
            shadows,
            live: Live::default(),
            learner,
            rates: learner.rates(block_tokens),
            batches: Batches::new(),
            errors: VecDeque::new(),
            block_tokens,
            arrivals: 0,
            now: 0.0,
        }
    }

    /// These engines are there now. If there are more than [`ENGINES`], nothing is scored.
    pub fn list(&mut self, engines: &[Listed]) {
        let engines = if engines.len() > ENGINES { &[] } else { engines };
        self.live.list(engines, &self.rates);
        self.shadows.iter_mut().for_each(|shadow| shadow.list(engines, &self.rates));
    }

    /// A request arrived and was given to a real engine. Its number is higher than those before.
    pub fn arrive(&mut self, at: Duration, number: u64, arrival: &ShadowArrival<'_>, engine: u64) {
        self.pass(at);
        self.arrivals += 1;
        if self.arrivals.is_multiple_of(LEARN_EVERY) {
            self.learn();
        }
        let mut predicted = [None; POLICIES];
        for (place, shadow) in self.shadows.iter_mut().enumerate() {
            predicted[place] = shadow.arrive(at, arrival, &self.rates);
        }
        // What was guessed is not scored.
        let scored = predicted[0].filter(|_| self.rates.timed);
        let expected = scored.map(|live| live.first.as_secs_f64());
        let answer = arrival.output.get().min(self.rates.output_tokens as u64);
        self.live.sent(self.now, number, arrival, (engine, answer), expected);
        if scored.is_none() {
            return;
        }
        let batch = self.batches.at(self.now);
        batch.requests += 1.0;
        batch.prompt_tokens += arrival.prompt.get() as f64;
        for (place, one) in predicted.into_iter().enumerate() {
            if let Some(one) = one {
                batch.first_seconds[place] += one.first.as_secs_f64();
                batch.cached_tokens[place] += one.cached.get() as f64;
            }
        }
    }

    /// The first token of a request came from its engine. Not to be told of answers that come as a
    /// whole: what they took says little about reading.
    pub fn first(&mut self, at: Duration, number: u64) {
        self.pass(at);
        let Some(first) = self.live.first(self.now, number, &mut self.learner) else { return };
        let Some(predicted) = first.predicted else { return };
        let batch = self.batches.at(self.now);
        batch.firsts += 1.0;
        batch.actual_seconds += first.actual;
        if self.errors.len() >= ERRORS {
            self.errors.pop_front();
        }
        // A millisecond is the least that can be told apart.
        let error = (predicted - first.actual).abs() / first.actual.max(1e-3);
        self.errors.push_back(error as f32);
    }

    /// A request is over, with so many tokens of answer if it got all of it.
    pub fn end(&mut self, at: Duration, number: u64, output: Option<u64>) {
        self.pass(at);
        self.live.end(self.now, number, output, &mut self.learner);
    }

    /// An engine reported how much of its cache is in use.
    pub fn report(&mut self, engine: u64, used_per_thousand: u32) {
        let share = f64::from(used_per_thousand) / 1e3;
        self.live.reported(engine, share, self.rates.output_tokens, &mut self.learner);
    }

    /// Which policy would have been better.
    pub fn judge(&self) -> ShadowReport {
        let total = self.batches.total();
        let standing = |(place, shadow): (usize, &Shadow)| {
            let regret = self.batches.regret(place);
            ShadowStatus {
                policy: shadow.policy(),
                first_seconds: total.first_seconds[place] / total.requests.max(1.0),
                hit_share: total.cached_tokens[place] / total.prompt_tokens.max(1.0),
                regret_seconds: regret.value,
                regret_off: regret.off,
            }
        };
        ShadowReport {
            policies: self.shadows.iter().enumerate().map(standing).collect(),
            requests: total.requests as u64,
            seconds: self.batches.seconds(self.now),
            measured_seconds: (total.firsts > 0.0).then(|| total.actual_seconds / total.firsts),
            error: self.median_error(),
            rates: self.rates,
        }
    }

    fn median_error(&self) -> Option<f64> {
        let mut errors: Vec<f32> = self.errors.iter().copied().collect();
        errors.sort_by(f32::total_cmp);
        median(&errors).map(f64::from)
    }

    fn learn(&mut self) {
        self.rates = self.learner.rates(self.block_tokens);
        self.shadows.iter_mut().for_each(|shadow| shadow.fit(&self.rates));
        self.live.fit(&self.rates);
    }

    fn pass(&mut self, at: Duration) {
        self.now = self.now.max(at.as_secs_f64());
    }
}
