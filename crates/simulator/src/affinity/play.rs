//! The run: arrivals, reports and engines in the order of time.

use super::engines::AffinityEngine;
use super::sight::{AffinityReport, AffinityView};
use super::{Happened, Picked, PrefixRequest, Router};
use crate::chance::{self, Chance, Purpose};
use crate::cluster::StepSpeed;
use crate::engine::{Arrival, BlockChange, Event, SimulatedEngine, What};
use crate::seconds::Seconds;
use crate::traffic::Trace;
use flyball_core::quantile::nearest_rank;
use flyball_routing::{Horizon, ObservedMoment};
use rand::RngExt;

/// What is played.
#[derive(Clone, Debug)]
pub struct AffinitySetup<'a> {
    /// Who asks what.
    pub trace: &'a Trace,
    /// How much faster than it was.
    pub faster: f64,
    /// What the engines are.
    pub kind: &'a AffinityEngine,
    /// How many.
    pub engines: usize,
    /// How often engines report.
    pub report_every: Seconds,
    /// For the gateway that a request comes to.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct AffinityOutcome {
    /// Share of all prompt tokens that were in the chosen engine's cache.
    pub hit_share: f64,
    /// Share of the prompt tokens that were hoped to be there which were.
    pub hopes_met: f64,
    /// Tokens computed (prompt and answer) by the busiest engine over the mean of all.
    pub max_over_mean: f64,
    /// The same in windows of a minute: the 95th percentile over windows.
    pub max_over_mean_minute_p95: f64,
    /// Seconds to the first token: median, 95th percentile, mean.
    pub ttft: [f64; 3],
    /// Requests in an engine on average: running, and waiting.
    pub inside: [f64; 2],
    /// Preemptions.
    pub preemptions: u64,
    /// Requests that no engine could take.
    pub refused: u64,
}

/// Plays the trace through one gateway per router, to the end of the last request.
pub fn play<R: Router>(setup: &AffinitySetup<'_>, routers: &mut [R]) -> AffinityOutcome {
    let mut world = World::new(setup, routers.len());
    let mut spread = chance::stream(setup.seed, Purpose::Arrivals, 0);
    let mut next_report = Seconds::ZERO;
    let mut next_minute = Seconds::MINUTE;
    for number in 0..setup.trace.requests.len() {
        let at = setup.trace.requests[number].at / setup.faster;
        while next_report <= at {
            world.advance(next_report);
            world.deliver(routers);
            world.report(next_report);
            next_report += setup.report_every;
            if next_report >= next_minute {
                world.end_minute();
                next_minute += Seconds::MINUTE;
            }
        }
        world.advance(at);
        world.deliver(routers);
        let gateway = pick(&mut spread, routers.len());
        let request = world.request(number, at);
        let picked = routers[gateway].choose(&request, &world.sights[gateway]);
        world.send(number, at, Place { gateway, picked });
    }
    world.advance(Seconds(f64::MAX));
    world.deliver(routers);
    world.outcome()
}

fn pick(chance: &mut Chance, among: usize) -> usize {
    chance.random_range(0..among)
}

/// Where a request is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    gateway: usize,
    picked: Picked,
}

struct World<'a> {
    setup: &'a AffinitySetup<'a>,
    engines: Vec<SimulatedEngine<StepSpeed>>,
    /// By gateway, then by engine.
    sights: Vec<Vec<AffinityView>>,
    places: Vec<Place>,
    first: Vec<Option<f64>>,
    hits: Vec<Option<u32>>,
    events: Vec<Event>,
    /// What gateways are to be told, each by its number.
    happened: Vec<(usize, Happened)>,
    horizons: Vec<Horizon>,
    /// Tokens computed by each engine up to the last end of a minute.
    before: Vec<u64>,
    minutes: Vec<f64>,
    refused: u64,
    /// Reports, and the requests that they told of, running and waiting.
    reported: [u64; 3],
}

impl<'a> World<'a> {
    fn new(setup: &'a AffinitySetup<'a>, gateways: usize) -> Self {
        let requests = setup.trace.requests.len();
        Self {
            setup,
            engines: (0..setup.engines).map(|_| setup.kind.engine()).collect(),
            sights: vec![vec![AffinityView::default(); setup.engines]; gateways],
            places: vec![Place::default(); requests],
            first: vec![None; requests],
            hits: vec![None; requests],
            events: Vec::new(),
            happened: Vec::new(),
            horizons: vec![Horizon::default(); setup.engines],
            before: vec![0; setup.engines],
            minutes: Vec::new(),
            refused: 0,
            reported: [0; 3],
        }
    }

    fn request(&self, number: usize, at: Seconds) -> PrefixRequest<'a> {
        let trace = self.setup.trace;
        let request = &trace.requests[number];
        PrefixRequest {
            number: number as u64,
            at,
            prompt: request.prompt,
            output: request.output.max(1),
            blocks: trace.blocks_of(request),
            block_tokens: trace.block_tokens,
        }
    }

    fn advance(&mut self, until: Seconds) {
        for engine in 0..self.engines.len() {
            let events = &mut self.events;
            self.engines[engine].advance(until, &mut |event| events.push(event));
            for event in std::mem::take(&mut self.events) {
                self.note(&event);
            }
            self.follow(engine, until);
        }
    }

    /// What the engine's events about its cache tell to all gateways.
    fn follow(&mut self, engine: usize, now: Seconds) {
        let horizon = &mut self.horizons[engine];
        for change in self.engines[engine].changes() {
            match change {
                BlockChange::Stored(block) => horizon.stored(block, moment(now)),
                BlockChange::Removed(block) => horizon.removed(block),
            }
        }
        for gateway in &mut self.sights {
            gateway[engine].forgot = horizon.forgot();
        }
    }

    fn note(&mut self, event: &Event) {
        let number = event.id as usize;
        let PrefixRequest { prompt, output, .. } = self.request(number, event.at);
        let Place { gateway, picked: Picked { engine, to_read } } = self.places[number];
        let sight = &mut self.sights[gateway][engine];
        match event.what {
            // Again after a preemption; only what was there at first counts.
            What::Scheduled { cached } => {
                self.hits[number].get_or_insert(cached);
            }
            What::FirstToken if self.first[number].is_none() => {
                self.first[number] = Some(event.at.get());
                sight.first_token(to_read, prompt, output);
                let happened = Happened { number: event.id, at: event.at, output: None };
                self.happened.push((gateway, happened));
            }
            What::Finished => {
                sight.finished(prompt, output);
                let happened = Happened { number: event.id, at: event.at, output: Some(output) };
                self.happened.push((gateway, happened));
            }
            What::FirstToken | What::Preempted | What::Aborted => {}
        }
    }

    fn deliver<R: Router>(&mut self, routers: &mut [R]) {
        // Engines advance one after the other.
        self.happened.sort_by(|(_, a), (_, b)| a.at.get().total_cmp(&b.at.get()));
        for (gateway, happened) in self.happened.drain(..) {
            routers[gateway].happened(&happened);
        }
    }

    fn report(&mut self, now: Seconds) {
        for engine in 0..self.engines.len() {
            let load = self.engines[engine].load(now);
            let report = AffinityReport {
                running: load.running,
                waiting: load.waiting,
                used_share: load.used_share,
                unread_tokens: self.sights.iter().map(|seen| seen[engine].unread_tokens).sum(),
            };
            let reported = [1, u64::from(load.running), u64::from(load.waiting)];
            for (sum, one) in self.reported.iter_mut().zip(reported) {
                *sum += one;
            }
            for gateway in &mut self.sights {
                gateway[engine].reported(report);
            }
        }
    }

    fn send(&mut self, number: usize, at: Seconds, place: Place) {
        let Place { gateway, picked: Picked { engine, to_read } } = place;
        let PrefixRequest { prompt, output, blocks: names, block_tokens: name_tokens, .. } =
            self.request(number, at);
        let arrival = Arrival { at, prompt, output, names, name_tokens };
        if self.engines[engine].submit(number as u64, &arrival).is_err() {
            self.refused += 1;
            return;
        }
        self.places[number] = place;
        self.sights[gateway][engine].sent(to_read);
    }

    fn end_minute(&mut self) {
        let total: Vec<u64> = self.engines.iter().map(work).collect();
        let done: Vec<u64> = total.iter().zip(&self.before).map(|(now, then)| now - then).collect();
        self.minutes.push(max_over_mean(&done));
        self.before = total;
    }

    fn outcome(mut self) -> AffinityOutcome {
        let requests = &self.setup.trace.requests;
        let played = requests.iter().zip(&self.hits).filter_map(|(r, hit)| hit.map(|h| (r, h)));
        let (prompts, hits) = played.fold((0_u64, 0_u64), |(prompts, hits), (request, hit)| {
            (prompts + u64::from(request.prompt), hits + u64::from(hit))
        });
        let hopes = requests.iter().zip(&self.places).zip(&self.hits);
        let (hoped, met) = hopes.fold((0_u64, 0_u64), |(hoped, met), ((request, place), hit)| {
            let hope = request.prompt - place.picked.to_read.min(request.prompt);
            let hope = if hit.is_some() { hope } else { 0 };
            (hoped + u64::from(hope), met + u64::from(hope.min(hit.unwrap_or(0))))
        });
        let waits = requests.iter().zip(&self.first);
        let mut waits: Vec<f64> = waits
            .filter_map(|(r, first)| first.map(|f| f - r.at.get() / self.setup.faster))
            .collect();
        waits.sort_by(f64::total_cmp);
        self.minutes.sort_by(f64::total_cmp);
        let at = |sorted: &[f64], share| nearest_rank(sorted, share).unwrap_or(0.0);
        let work: Vec<u64> = self.engines.iter().map(work).collect();
        AffinityOutcome {
            hit_share: hits as f64 / prompts.max(1) as f64,
            hopes_met: met as f64 / hoped.max(1) as f64,
            max_over_mean: max_over_mean(&work),
            max_over_mean_minute_p95: at(&self.minutes, 0.95),
            ttft: [
                at(&waits, 0.5),
                at(&waits, 0.95),
                waits.iter().sum::<f64>() / waits.len().max(1) as f64,
            ],
            inside: [1, 2].map(|of| self.reported[of] as f64 / self.reported[0].max(1) as f64),
            preemptions: self.engines.iter().map(|engine| engine.tally().preemptions).sum(),
            refused: self.refused,
        }
    }
}

/// The same in the words of routing.
pub(super) fn moment(at: Seconds) -> ObservedMoment {
    ObservedMoment::of_millis((at.get() * 1e3) as u64)
}

/// Tokens computed, of prompts and of answers.
fn work(engine: &SimulatedEngine<StepSpeed>) -> u64 {
    let tally = engine.tally();
    tally.computed_tokens + tally.generated
}

fn max_over_mean(values: &[u64]) -> f64 {
    let most = values.iter().max().copied().unwrap_or(0) as f64;
    let sum: u64 = values.iter().sum();
    if sum == 0 { 1.0 } else { most * values.len() as f64 / sum as f64 }
}
