//! What one replica carries, alone or as one of several: the largest rate at which enough requests meet their
//! objectives, found by putting requests like these through its engine.
//!
//! They come at random, as from many users who know nothing of each other. What comes in bursts needs more
//! replicas than its mean says; that is the business of whoever decides, and no property of a replica.
//!
//! The same engine replays traffic request by request, so that what is told of a replica is what the replay
//! then finds. Start at [`knee`].

use crate::chance::{self, Purpose};
use crate::cluster::Speed;
use crate::engine::{Arrival, Pace, SimulatedEngine, What};
use crate::seconds::Seconds;
use crate::traffic::{Request, Trace};
use flyball_core::snapshot::Objectives;
use flyball_core::units::Micros;
use flyball_perf::serving::steady::RequestShape;
use rand::RngExt;

/// What one replica carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Requests per second.
    pub per_second: f64,
    /// Share of the requests that miss though nobody else is there: no number of replicas mends it.
    pub unavoidable: f64,
    /// Seconds to the first token where nobody else is there.
    pub first_token: f64,
    /// Seconds that a request is inside, at the knee.
    pub service: f64,
    /// Seconds per token at the knee, on the mean over tokens.
    pub pace: f64,
    /// Tokens that one replica holds at the knee, on the mean over time.
    pub held: f64,
}

/// Requests that are put through: at one in a hundred missed, sixty misses say whether it is more or less.
const REQUESTS: usize = 6_000;
/// Of these the first so many fill the engine and are not judged.
const UNJUDGED: usize = 500;
/// An engine without work for a thousandth of a second at a time does not exist: no rate is beyond this.
const MOST: f64 = 1e5;
/// Halvings of the logarithm: from a factor of two to one in a hundred and fifty.
const HALVINGS: u32 = 7;

/// A request may wait for as long as it takes alone, where its objective cannot be reached.
const AS_LONG_AGAIN: f64 = 2.0;

/// Requests of which only the shape is known: lengths fall off exponentially, as those of recorded hours do.
pub fn like(shape: &RequestShape) -> Trace {
    let mut chance = chance::stream(0, Purpose::Lengths, 0);
    let mut tokens = |mean: f64| {
        let drawn = -chance.random_range(1e-12..1.0_f64).ln() * mean;
        drawn.clamp(1.0, 1e6) as u32
    };
    let one = |_| Request {
        at: Seconds::ZERO,
        prompt: tokens(shape.input),
        output: tokens(shape.output),
        blocks: 0..0,
        patience: None,
    };
    Trace { requests: (0..REQUESTS).map(one).collect(), ..Trace::default() }
}

/// Finds the knee for requests like those of a trace. `None` if none of them fits into the engine.
pub fn knee(speed: &Speed, trace: &Trace, objectives: &Objectives) -> Option<Knee> {
    fleet(speed, trace, objectives, 1)
}

/// The same of each of so many replicas, where every request goes to the one with the least to do. The more there are,
/// the more each carries: a request waits only while all of them are busy.
pub fn fleet(speed: &Speed, trace: &Trace, objectives: &Objectives, replicas: u32) -> Option<Knee> {
    let requests = chosen(trace, speed, replicas);
    if requests.is_empty() {
        return None;
    }
    let mut one = Trial { speed, trace, requests: &requests, objectives: *objectives, replicas };
    let alone = one.alone();
    let judged = (requests.len() - one.unjudged()) as f64;
    let unavoidable = alone.missed as f64 / judged;
    let may_miss = 1.0 - f64::from(objectives.attainment_per_million.min(1_000_000)) / 1e6;
    if unavoidable > may_miss {
        // Nobody can keep it. What can be kept is what most take alone, and as long again in a queue.
        one.objectives = alone.met_by(objectives, may_miss / 2.0);
    }
    let most = (may_miss * judged) as usize;
    let fits = |rate: f64| one.at_rate(rate, most).filter(|ran| ran.missed <= most);
    // One at a time is always carried; then twice as many until they are too many.
    let mut low = f64::from(replicas) / alone.service.max(1e-6);
    let mut carried = fits(low);
    while carried.is_none() && low > 1e-4 {
        low /= 2.0;
        carried = fits(low);
    }
    let mut high = 2.0 * low;
    while let Some(ran) = fits(high).filter(|_| high < MOST) {
        (low, high, carried) = (high, 2.0 * high, Some(ran));
    }
    for _ in 0..HALVINGS {
        let middle = (low * high).sqrt();
        match fits(middle) {
            Some(ran) => (low, carried) = (middle, Some(ran)),
            None => high = middle,
        }
    }
    let first_token = alone.first_token;
    let Ran { service, pace, held, .. } = carried.unwrap_or(alone);
    let per_second = low / f64::from(replicas);
    Some(Knee { per_second, unavoidable, first_token, service, pace, held: per_second * held })
}

/// Those that are put through, in their order: prompts that begin alike come close together.
fn chosen<'a>(trace: &'a Trace, speed: &Speed, replicas: u32) -> Vec<&'a Request> {
    let count = REQUESTS * replicas.div_ceil(2) as usize;
    let room = u64::from(speed.settings.blocks) * u64::from(speed.settings.block_tokens);
    let fits = |one: &&Request| u64::from(one.prompt.max(1)) + u64::from(one.output.max(1)) <= room;
    let all: Vec<&Request> = trace.requests.iter().filter(fits).collect();
    if trace.block_tokens > 0 || all.len() < 2 {
        return all.into_iter().take(count).collect();
    }
    // Every so many-th, so that all of the traffic is in it; round and round if it is short.
    let stride = (all.len() as f64 / count as f64).max(1.0);
    (0..count).map(|n| all[(n as f64 * stride) as usize % all.len()]).collect()
}

struct Trial<'a> {
    speed: &'a Speed,
    trace: &'a Trace,
    requests: &'a [&'a Request],
    objectives: Objectives,
    replicas: u32,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
struct Ran {
    missed: usize,
    /// Means of those that were judged, in seconds.
    first_token: f64,
    service: f64,
    /// Seconds per token, on the mean over tokens.
    pace: f64,
    /// Tokens that a request holds, times the seconds for which it does.
    held: f64,
    /// Times to the first token and between tokens, in seconds.
    times: Vec<[f64; 2]>,
}

impl Ran {
    /// Objectives that all but so many keep with some room.
    fn met_by(&self, objectives: &Objectives, may_miss: f64) -> Objectives {
        let longest = |which: usize| {
            let mut times: Vec<f64> = self.times.iter().map(|one| one[which]).collect();
            times.sort_by(f64::total_cmp);
            let place = ((times.len() as f64 * (1.0 - may_miss)) as usize).min(times.len() - 1);
            Micros::new((AS_LONG_AGAIN * times[place] * 1e6) as u64)
        };
        Objectives {
            first_token: objectives.first_token.map(|limit| limit.max(longest(0))),
            between_tokens: objectives.between_tokens.map(|limit| limit.max(longest(1))),
            ..*objectives
        }
    }
}

impl Trial<'_> {
    fn unjudged(&self) -> usize {
        (UNJUDGED * self.replicas as usize).min(self.requests.len() / 2)
    }

    /// Each when the one before it has ended.
    fn alone(&self) -> Ran {
        let mut run = Run::new(self);
        for number in 0..self.requests.len() {
            let at = Seconds(run.last + 0.001);
            run.submit(number, at);
            run.finish();
        }
        run.ran()
    }

    /// At random, so many per second on average; ends early when more than `most` have missed.
    fn at_rate(&self, rate: f64, most: usize) -> Option<Ran> {
        // The same draws at every rate, so that only the rate differs.
        let mut chance = chance::stream(0, Purpose::Arrivals, 0);
        let (mut run, mut at) = (Run::new(self), 0.0);
        for number in 0..self.requests.len() {
            at += -chance.random_range(1e-12..1.0_f64).ln() / rate;
            run.submit(number, Seconds(at));
            if run.missed > most {
                return None;
            }
        }
        run.finish();
        Some(run.ran())
    }
}

/// One engine at work on the requests of a trial.
struct Run<'a> {
    trial: &'a Trial<'a>,
    engines: Vec<SimulatedEngine<crate::cluster::StepSpeed>>,
    /// Prompt tokens that each has yet to read, and requests inside.
    load: Vec<[u64; 2]>,
    /// Where each went.
    went: Vec<usize>,
    /// When each came, and when its first token was there.
    came: Vec<f64>,
    first: Vec<f64>,
    last: f64,
    missed: usize,
    services: f64,
    /// Tokens that requests held, times the seconds for which they did.
    held: f64,
    /// Tokens after first ones, and seconds that they took.
    paced: [f64; 2],
    times: Vec<[f64; 2]>,
}

impl<'a> Run<'a> {
    fn new(trial: &'a Trial<'a>) -> Self {
        let Speed { step, settings } = trial.speed;
        Self {
            engines: (0..trial.replicas)
                .map(|_| SimulatedEngine::new(*settings, step.clone(), Pace::Skipping))
                .collect(),
            load: vec![[0; 2]; trial.replicas as usize],
            went: Vec::with_capacity(trial.requests.len()),
            came: Vec::with_capacity(trial.requests.len()),
            first: vec![0.0; trial.requests.len()],
            last: 0.0,
            missed: 0,
            services: 0.0,
            held: 0.0,
            paced: [0.0; 2],
            times: Vec::with_capacity(trial.requests.len()),
            trial,
        }
    }

    fn submit(&mut self, number: usize, at: Seconds) {
        self.advance(at);
        let request = self.trial.requests[number];
        let arrival = Arrival {
            at,
            prompt: request.prompt,
            output: request.output,
            names: self.trial.trace.blocks_of(request),
            name_tokens: self.trial.trace.block_tokens,
        };
        self.came.push(at.get());
        let to = (0..self.load.len()).min_by_key(|n| self.load[*n]).unwrap_or(0);
        self.went.push(to);
        self.load[to] = [self.load[to][0] + u64::from(request.prompt), self.load[to][1] + 1];
        // Only those were chosen that fit.
        let _ = self.engines[to].submit(number as u64, &arrival);
    }

    fn finish(&mut self) {
        let next = |run: &Self| run.engines.iter().filter_map(SimulatedEngine::next_event).min();
        while let Some(next) = next(self) {
            self.advance(next);
        }
    }

    fn advance(&mut self, until: Seconds) {
        let Self {
            trial,
            engines,
            load,
            went,
            came,
            first,
            last,
            missed,
            services,
            held,
            paced,
            times,
        } = self;
        let mut take = |event: crate::engine::Event| {
            let (number, at) = (event.id as usize, event.at.get());
            match event.what {
                What::FirstToken => {
                    first[number] = at;
                    load[went[number]][0] -= u64::from(trial.requests[number].prompt);
                }
                What::Finished => {
                    *last = last.max(at);
                    load[went[number]][1] -= 1;
                    if number < trial.unjudged() {
                        return;
                    }
                    let to_first = first[number] - came[number];
                    let further = f64::from(trial.requests[number].output.max(2) - 1);
                    let each = (at - first[number]) / further;
                    times.push([to_first, each]);
                    *paced = [paced[0] + further, paced[1] + (at - first[number])];
                    *services += at - came[number];
                    // Half of the answer is there on the mean.
                    let request = trial.requests[number];
                    let tokens = f64::from(request.prompt) + f64::from(request.output) / 2.0;
                    *held += tokens * (at - came[number]);
                    *missed += usize::from(misses(&trial.objectives, to_first, each));
                }
                What::Scheduled { .. } | What::Preempted | What::Aborted => {}
            }
        };
        for engine in engines {
            engine.advance(until, &mut take);
        }
    }

    fn ran(self) -> Ran {
        let judged = self.times.len().max(1) as f64;
        Ran {
            missed: self.missed,
            first_token: self.times.iter().map(|one| one[0]).sum::<f64>() / judged,
            service: self.services / judged,
            pace: self.paced[1] / self.paced[0].max(1.0),
            held: self.held / judged,
            times: self.times,
        }
    }
}

/// Whether a request missed: its first token, or the mean time between its tokens, in seconds.
fn misses(objectives: &Objectives, first_token: f64, between_tokens: f64) -> bool {
    let over = |limit: Option<Micros>, seconds: f64| {
        limit.is_some_and(|limit| seconds * 1e6 > limit.get() as f64)
    };
    over(objectives.first_token, first_token) || over(objectives.between_tokens, between_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{LinearEngine, StepSpeed};
    use crate::engine::EngineSettings;
    use flyball_core::pooling::Pooling;

    /// A step of 10 ms, 0.02 ms per prompt token and 0.1 ms per request.
    fn speed() -> Speed {
        let step = StepSpeed::Linear(LinearEngine {
            base: 0.010,
            per_prompt_token: 2e-5,
            per_decode: 1e-4,
            per_cached_token: 0.0,
        });
        Speed { step, settings: EngineSettings::vllm(256, 2048, 100_000) }
    }

    fn trace(prompt: u32, output: u32) -> Trace {
        let one = Request { at: Seconds(0.0), prompt, output, blocks: 0..0, patience: None };
        Trace { requests: vec![one; 10], ..Trace::default() }
    }

    fn objectives(first_ms: u64, between_ms: u64) -> Objectives {
        Objectives {
            first_token: Some(Micros::from_millis(first_ms)),
            between_tokens: Some(Micros::from_millis(between_ms)),
            attainment_per_million: 990_000,
        }
    }

    #[test]
    fn the_knee_lies_below_what_the_steps_could_do_at_most_and_not_far_below() {
        // 1,000 prompt tokens are 20 ms and 100 output tokens 10 ms of work: with steps of at most 50 ms
        // a fifth of each is the empty step, so 0.8 / 0.03 requests per second at the very most.
        let knee = knee(&speed(), &trace(1000, 101), &objectives(3_000, 50)).unwrap();
        let most = 0.8 / 0.03;
        assert!((0.6 * most..most).contains(&knee.per_second), "{knee:?}");
        assert_eq!(knee.unavoidable, 0.0);
        assert!((knee.first_token - 0.030).abs() < 0.015, "{knee:?}");
    }

    #[test]
    fn a_tighter_objective_means_less_and_one_that_nobody_meets_is_said() {
        let at = |between| knee(&speed(), &trace(1000, 101), &objectives(3_000, between)).unwrap();
        assert!(at(20).per_second < at(50).per_second);
        // An empty step takes longer; what can be kept instead is twice that, and carries something.
        let unreachable = at(5);
        assert_eq!(unreachable.unavoidable, 1.0);
        assert!(unreachable.per_second > 1.0, "{unreachable:?}");
    }

    #[test]
    fn each_of_many_carries_more_than_one_alone_does() {
        let (speed, trace, objectives) = (speed(), trace(40_000, 20), objectives(3_000, 100));
        let of = |replicas| fleet(&speed, &trace, &objectives, replicas).unwrap().per_second;
        let [one, four, eight] = [1, 4, 8].map(of);
        // A prompt takes 1 s of 3: a replica alone is kept half idle for it.
        assert!(one < 0.8 * four && four < eight, "{one} {four} {eight}");
        // The curve through the first and the last goes by the one between.
        let curve = Pooling::between(one, eight);
        assert!((one * curve.each(4.0) / four - 1.0).abs() < 0.1, "{one} {four} {eight}");
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        assert_eq!(knee(&speed(), &trace(4_000_000, 1), &objectives(3_000, 50)), None);
        assert_eq!(knee(&speed(), &Trace::default(), &objectives(3_000, 50)), None);
    }
}
