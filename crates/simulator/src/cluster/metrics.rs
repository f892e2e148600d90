//! The way of a number from the world to whoever decides: counted, scraped, delayed, and sometimes
//! stale, missing or not a number.

use super::World;
use super::faults::Fault;
use super::histogram::{FIRST, Histogram, PER_TOKEN};
use crate::seconds::Seconds;
use crate::traffic::Request;
use flyball_core::quantile::nearest_rank;
use flyball_core::snapshot::ReplicaState;
use flyball_core::units::{Micros, Timestamp};
use flyball_estimator::CounterWindow;
use flyball_estimator::reading::{GatewayCounts, GatewayReading};
use std::collections::VecDeque;

const SECOND: Micros = Micros::from_seconds(1);

/// Everything on its way, and what has arrived.
#[derive(Debug)]
pub(super) struct Pipeline {
    counted: Vec<Counted>,
    /// Counts at past scrapes, for rates.
    past: VecDeque<(Seconds, Vec<Counts>)>,
    /// Scrapes that nobody can read yet, with the time from which on.
    under_way: VecDeque<(Seconds, Scrape)>,
    /// The last that can be read.
    readable: Option<Scrape>,
    /// What the gateway of each model told last, where it tells by itself.
    reported: Vec<Option<GatewayReading>>,
    /// The part of prompt tokens that gateways think no cache has, where they say so.
    uncached: Option<f64>,
}

/// One scrape.
#[derive(Clone, Debug)]
pub(super) struct Scrape {
    pub(super) at: Seconds,
    pub(super) models: Vec<Scraped>,
    /// What the gateway counts of each model, if that can be read.
    pub(super) gateways: Vec<Option<GatewayReading>>,
    /// Requests inside each replica that was there.
    pub(super) in_flight: Vec<(usize, Option<f64>)>,
}

/// What a scrape says of a model. `None` is "no value".
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scraped {
    pub(super) arrivals: Option<f64>,
    pub(super) prompt_tokens: Option<f64>,
    /// As engines count: each when it is there.
    pub(super) output_tokens: Option<f64>,
    pub(super) waiting: Option<f64>,
    pub(super) waiting_tokens: Option<f64>,
    pub(super) running: Option<f64>,
    pub(super) cache_used: Option<f64>,
    pub(super) resident: Option<f64>,
    pub(super) first_token_p90: Option<f64>,
    pub(super) between_tokens_p90: Option<f64>,
    /// Requests judged since the start, and those of them that missed.
    pub(super) judged: Option<f64>,
    pub(super) missed: Option<f64>,
}

impl Scraped {
    fn map(self, change: impl Fn(Option<f64>) -> Option<f64>) -> Self {
        Self {
            arrivals: change(self.arrivals),
            prompt_tokens: change(self.prompt_tokens),
            output_tokens: change(self.output_tokens),
            waiting: change(self.waiting),
            waiting_tokens: change(self.waiting_tokens),
            running: change(self.running),
            cache_used: change(self.cache_used),
            resident: change(self.resident),
            first_token_p90: change(self.first_token_p90),
            between_tokens_p90: change(self.between_tokens_p90),
            judged: change(self.judged),
            missed: change(self.missed),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    prompt_tokens: u64,
    generated: u64,
    answered: u64,
    answered_tokens: u64,
    paced_tokens: u64,
    paced_micros: u64,
    judged: u64,
    missed: u64,
}

/// What is counted of a model between scrapes.
#[derive(Clone, Debug)]
struct Counted {
    counts: Counts,
    /// The same at past scrapes, as a gateway tells it.
    window: CounterWindow<GatewayCounts>,
    first_tokens: Vec<f64>,
    between_tokens: Vec<f64>,
    /// The same of requests that have ended, as the gateway's page has them.
    first: Histogram,
    per_token: Histogram,
    /// Tokens that each replica had generated when last scraped, by its place.
    generated: Vec<(usize, u64)>,
}

impl Counts {
    /// As a gateway counts.
    fn of_gateway(&self, uncached: Option<f64>) -> GatewayCounts {
        GatewayCounts {
            arrived: self.requests,
            prompt_tokens: self.prompt_tokens,
            uncached_tokens: uncached.map(|share| (self.prompt_tokens as f64 * share) as u64),
            answered: self.answered,
            output_tokens: self.answered_tokens,
            paced_tokens: self.paced_tokens,
            paced_micros: self.paced_micros,
            judged: self.judged,
            missed: self.missed,
        }
    }
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            window: CounterWindow::of(GatewayReading::WINDOW),
            first_tokens: Vec::new(),
            between_tokens: Vec::new(),
            first: Histogram::new(&FIRST),
            per_token: Histogram::new(&PER_TOKEN),
            generated: Vec::new(),
        }
    }
}

impl Pipeline {
    pub(super) fn new(models: usize, uncached: Option<f64>) -> Self {
        Self {
            counted: vec![Counted::default(); models],
            past: VecDeque::new(),
            under_way: VecDeque::new(),
            readable: None,
            reported: vec![None; models],
            uncached,
        }
    }

    /// What the gateway of a model told last.
    pub(super) fn reported(&self, model: usize) -> Option<&GatewayReading> {
        self.reported[model].as_ref()
    }

    pub(super) fn arrived(&mut self, model: usize, request: &Request, at: (Timestamp, Timestamp)) {
        let uncached = self.uncached;
        let Counted { counts, window, .. } = &mut self.counted[model];
        // Gateways speak every second.
        if window.last().is_none_or(|(last, _)| at.1.since(last).is_some_and(|age| age >= SECOND)) {
            window.add(at.1, at.0, counts.of_gateway(uncached));
        }
        counts.requests += 1;
        counts.prompt_tokens += u64::from(request.prompt);
    }

    pub(super) fn first_token(&mut self, model: usize, after: Seconds) {
        self.counted[model].first_tokens.push(after.get());
    }

    /// An answer of so many tokens ended, whose first came after this long.
    pub(super) fn answered(&mut self, model: usize, tokens: u32, first: Seconds, apart: Seconds) {
        let counted = &mut self.counted[model];
        counted.first.add(first.get());
        if tokens > 1 {
            counted.per_token.add(apart.get());
        }
        let Counted { counts, between_tokens, .. } = counted;
        let further = u64::from(tokens.saturating_sub(1));
        counts.answered += 1;
        counts.answered_tokens += u64::from(tokens);
        counts.paced_tokens += further;
        counts.paced_micros += (apart.get() * 1e6 * further as f64) as u64;
        between_tokens.push(apart.get());
    }

    pub(super) fn judged(&mut self, model: usize, missed: bool) {
        let counts = &mut self.counted[model].counts;
        counts.judged += 1;
        counts.missed += u64::from(missed);
    }

    /// The newest scrape that can be read at this time.
    pub(super) fn read(&mut self, now: Seconds) -> Option<&Scrape> {
        while self.under_way.front().is_some_and(|(from, _)| *from <= now) {
            self.readable = self.under_way.pop_front().map(|(_, scrape)| scrape);
        }
        self.readable.as_ref()
    }
}

impl World<'_> {
    pub(super) fn scrape(&mut self) {
        let seen: Vec<Scraped> =
            (0..self.models.len()).map(|model| self.scrape_model(model)).collect();
        for (model, scraped) in seen.iter().enumerate() {
            self.models[model].account.waited(self.now, scraped.waiting.unwrap_or(0.0));
        }
        let at = self.now.after(self.setup.start);
        for counted in &mut self.pipeline.counted {
            counted.window.add(
                at,
                self.setup.start,
                counted.counts.of_gateway(self.setup.habits.uncached),
            );
        }
        let counts = self.pipeline.counted.iter().map(|counted| counted.counts).collect();
        self.pipeline.past.push_back((self.now, counts));
        let window = self.now - self.setup.metrics.window;
        while self.pipeline.past.get(1).is_some_and(|(at, _)| *at <= window) {
            self.pipeline.past.pop_front();
        }
        if self.suffers(|fault| matches!(fault, Fault::StaleMetrics { .. })) {
            return;
        }
        self.scrape_engines();
        let missing = self.suffers(|fault| matches!(fault, Fault::MissingMetrics { .. }));
        let nan = self.suffers(|fault| matches!(fault, Fault::NotANumber { .. }));
        let change = |value: Option<f64>| match value {
            Some(_) if missing => None,
            Some(_) if nan => Some(f64::NAN),
            other => other,
        };
        let served = self.present.iter().filter(|r| self.replicas[**r].served.is_some());
        let in_flight = served
            .map(|replica| (*replica, change(Some(self.replicas[*replica].inside.len() as f64))));
        let in_flight = in_flight.collect();
        let known = !missing && !nan;
        let gateways =
            (0..).zip(&seen).map(|(model, scraped)| known.then(|| self.gateway(model, scraped)));
        let gateways = gateways.collect();
        let models = seen.into_iter().map(|scraped| scraped.map(change)).collect();
        let scrape = Scrape { at: self.now, models, gateways, in_flight };
        self.pipeline.under_way.push_back((self.now + self.setup.metrics.delay, scrape));
    }

    /// Gateways tell what they count. Who scrapes in vain hears nothing of them either.
    pub(super) fn report(&mut self) {
        if self.suffers(|fault| matches!(fault, Fault::StaleMetrics { .. })) {
            return;
        }
        let known = !self.suffers(|fault| {
            matches!(fault, Fault::MissingMetrics { .. } | Fault::NotANumber { .. })
        });
        let at = self.now.after(self.setup.start);
        for model in 0..self.models.len() {
            let counted = &mut self.pipeline.counted[model];
            counted.window.add(
                at,
                self.setup.start,
                counted.counts.of_gateway(self.setup.habits.uncached),
            );
            self.pipeline.reported[model] = known.then(|| self.own_reading(model));
        }
    }

    /// What a gateway knows by itself of a model's requests: those that wait in it, and those that it gave to engines.
    fn own_reading(&self, model: usize) -> GatewayReading {
        let there = || self.present.iter().map(|place| &self.replicas[*place]);
        let there = || there().filter(|replica| replica.model == model);
        let serving = there().filter(|replica| replica.state == ReplicaState::Ready).count();
        GatewayReading {
            at: self.now.after(self.setup.start),
            counts: self.pipeline.counted[model].window.clone(),
            waiting_tokens: self.models[model].held.tokens,
            unread_tokens: there().map(|replica| replica.unread).sum(),
            held_tokens: there().map(|replica| replica.unread + replica.held).sum(),
            in_flight: there().map(|replica| replica.inside.len() as u64).sum(),
            engines: u32::try_from(serving).unwrap_or(u32::MAX),
        }
    }

    /// What the gateway counts of a model.
    fn gateway(&self, model: usize, scraped: &Scraped) -> GatewayReading {
        let held = self.models[model].held.tokens;
        let serving = self.present.iter().filter(|place| {
            let replica = &self.replicas[**place];
            replica.model == model && replica.state == ReplicaState::Ready
        });
        GatewayReading {
            at: self.now.after(self.setup.start),
            counts: self.pipeline.counted[model].window.clone(),
            waiting_tokens: held,
            unread_tokens: (scraped.waiting_tokens.unwrap_or(0.0) as u64).saturating_sub(held),
            held_tokens: scraped.resident.unwrap_or(0.0) as u64,
            in_flight: scraped.running.unwrap_or(0.0) as u64,
            engines: u32::try_from(serving.count()).unwrap_or(u32::MAX),
        }
    }

    fn scrape_model(&mut self, model: usize) -> Scraped {
        let held = &self.models[model].held;
        let (mut waiting, mut waiting_tokens) = (held.queue.len() as f64, held.tokens as f64);
        let (mut running, mut resident, mut used, mut serving) = (0.0, 0.0, 0.0, 0_u32);
        let mut generated = Vec::new();
        for place in 0..self.present.len() {
            let replica = self.present[place];
            if self.replicas[replica].model != model {
                continue;
            }
            self.catch_up(replica);
            let Some(engine) = &self.replicas[replica].engine else { continue };
            let load = engine.load(self.now);
            waiting += f64::from(load.waiting);
            waiting_tokens += load.waiting_tokens as f64;
            running += f64::from(load.running);
            resident += load.resident as f64;
            generated.push((replica, load.generated));
            if self.replicas[replica].is_live() {
                used += load.used_share;
                serving += 1;
            }
        }
        let counted = &mut self.pipeline.counted[model];
        for (replica, now) in &generated {
            let before =
                counted.generated.iter().find(|(r, _)| r == replica).map_or(0, |(_, n)| *n);
            counted.counts.generated += now.saturating_sub(before);
        }
        counted.generated = generated;
        let (mut first_token_p90, mut between_tokens_p90) =
            (p90(&mut counted.first_tokens), p90(&mut counted.between_tokens));
        if self.setup.habits.histograms {
            first_token_p90 = counted.first.p90(self.now);
            between_tokens_p90 = counted.per_token.p90(self.now);
        }
        let now = counted.counts;
        let rate = |count: fn(&Counts) -> u64| {
            let (at, past) = self.pipeline.past.front()?;
            let past = past.get(model)?;
            let apart = (self.now - *at).get();
            (apart > 0.0).then(|| (count(&now) - count(past)) as f64 / apart)
        };
        Scraped {
            arrivals: rate(|counts| counts.requests),
            prompt_tokens: rate(|counts| counts.prompt_tokens),
            output_tokens: rate(|counts| counts.generated),
            waiting: Some(waiting),
            waiting_tokens: Some(waiting_tokens),
            running: Some(running),
            cache_used: (serving > 0).then(|| used / f64::from(serving)),
            resident: Some(resident),
            first_token_p90,
            between_tokens_p90,
            judged: Some(now.judged as f64),
            missed: Some(now.missed as f64),
        }
    }
}

/// The 90th percentile, after which counting begins anew.
fn p90(samples: &mut Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    let value = nearest_rank(samples, 0.9);
    samples.clear();
    value
}
