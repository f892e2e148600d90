//! Weeks of traffic in seconds: requests as a flow, replicas one by one.
//!
//! Every five seconds or so work arrives, what the ready replicas can do of it is done, and the
//! rest waits in order of arrival. Who would wait longer than the objective allows has missed; who
//! would wait beyond patience hangs up. Policies are asked at their own pace and see what metrics
//! would show. What happens inside an engine is left out: a replica does so many requests per
//! second within its objectives, and that number comes from `perf` or from a measurement.
//!
//! Start at `World` and [`run`], then `queue.rs` (the flow), `fleet.rs` (replicas of one model),
//! `pool.rs` (the accelerators that they share), `loans.rs` (what training borrows of them) and `sight.rs` (what a policy sees).

mod fleet;
mod loans;
mod pool;
mod queue;
mod sight;
mod tally;
#[cfg(test)]
mod tests;

pub use loans::FluidRun;
pub use pool::{FluidPool, Training};

use crate::chance::{Purpose, stream};
use crate::cold_start::ColdStart;
use crate::policy::{ScaleOrder, ScalingPolicy};
use crate::score::{ModelOutcome, Outcome};
use crate::seconds::Seconds;
use crate::traffic::FlowLoad;
use fleet::Fleet;
use flyball_core::decision::{Decision, ModelDecision};
use flyball_core::ids::ModelId;
use flyball_core::pooling::Pooling;
use flyball_core::snapshot::ScalingBounds;
use flyball_core::units::{Gpus, Price, Replicas, Timestamp};
use pool::Accelerators;
use queue::Queue;
use sight::View;
use tally::Tally;

/// What is replayed.
#[derive(Clone, Debug)]
pub struct FluidWorld {
    /// When the replay starts, for policies that know the hour and the weekday.
    pub start: Timestamp,
    /// The models, in the order of their names.
    pub models: Vec<FluidModel>,
    /// How long a replica takes to start when its accelerators must be bought first.
    pub cold_start: ColdStart,
    /// The accelerators that models share; without one, each buys and returns its own.
    pub pool: Option<FluidPool>,
    /// What an accelerator costs, if it should be told to policies.
    pub price: Option<Price>,
    /// Scoring begins after this, so that policies can learn what they would know.
    pub unscored: Seconds,
    /// Gaps in the data are outages: nothing arrives and no signal is seen. Otherwise something
    /// plausible arrives in them and is not scored.
    pub gaps_are_outages: bool,
    /// Seed of the cold starts. The arrivals have their own.
    pub seed: u64,
    /// Whether to keep minutes and decisions for pictures.
    pub keep: Keep,
}

/// What a replay keeps beside its scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Minutes, for pictures.
    pub timeline: bool,
    /// Decisions that changed something or were made on the hour, for explanations.
    pub decisions: bool,
}

/// One model of a world.
#[derive(Clone, Debug)]
pub struct FluidModel {
    /// Its name.
    pub id: ModelId,
    /// What arrives. All models of a world have equal steps.
    pub load: FlowLoad,
    /// Mean requests per second that one replica serves within the objectives.
    pub per_replica: f64,
    /// How much more many of them serve together.
    pub pooling: Pooling,
    /// None serves more than this, however many there are: bounds rest on it.
    pub at_most: f64,
    /// Of a million parts of a replica's work, those that are reading, if known.
    pub reading_per_million: Option<u32>,
    /// Time to the first token when nothing waits.
    pub first_token: Seconds,
    /// Longest time to the first token that meets the objective.
    pub first_token_objective: Seconds,
    /// Longest time between tokens that meets the objective. A replica at capacity just meets it.
    pub between_tokens_objective: Seconds,
    /// A client hangs up after waiting so long.
    pub patience: Seconds,
    /// Mean time that an engine works on a request; what a replica needs to drain.
    pub service: Seconds,
    /// Mean tokens of a prompt and of an answer.
    pub tokens: (f64, f64),
    /// Accelerators of one replica.
    pub gpus: Gpus,
    /// How few and how many replicas it may have.
    pub bounds: ScalingBounds,
    /// Replicas that are there when the replay begins.
    pub initial: Replicas,
    /// How many of a million requests should meet the objectives.
    pub attainment_per_million: u32,
}

impl FluidModel {
    /// How long a request may wait and still meet the objective.
    pub fn slack(&self) -> Seconds {
        (self.first_token_objective - self.first_token).max(Seconds::ZERO)
    }
}

/// One decision that a replay kept.
#[derive(Clone, Debug, PartialEq)]
pub struct FluidTimelines {
    /// When it was made.
    pub at: Seconds,
    /// What was decided for one model.
    pub decision: ModelDecision,
}

/// Replays the world under a policy.
pub fn run(world: &FluidWorld, policy: &mut dyn ScalingPolicy) -> Outcome {
    replay(world, policy).0
}

/// Replays the world under a policy, and hands out the decisions that it was told to keep.
pub fn replay(
    world: &FluidWorld,
    policy: &mut dyn ScalingPolicy,
) -> (Outcome, Vec<FluidTimelines>) {
    let mut replay = Replay::new(world);
    let step = world.models.first().map_or(Seconds(5.0), |model| model.load.step);
    let steps = world.models.iter().map(|model| model.load.requests.len()).max().unwrap_or(0);
    let between = ((policy.interval().get() / step.get()).round() as usize).max(1);
    for index in 0..steps {
        let now = step * index as f64;
        replay.settle(now);
        if index % between == 0 {
            replay.ask(now, policy);
        }
        replay.flow(index, now, step);
    }
    replay.finish()
}

/// A replay under way.
struct Replay<'a> {
    world: &'a FluidWorld,
    sites: Vec<Site<'a>>,
    accelerators: Accelerators,
    view: View,
    gpu_seconds: f64,
    lent_gpu_seconds: f64,
    idle_gpu_seconds: f64,
    /// What runs had trained when scoring began.
    trained_before: Option<f64>,
    scored: f64,
    timelines: Vec<FluidTimelines>,
}

/// One model with its queue, its replicas and its score.
struct Site<'a> {
    model: &'a FluidModel,
    masked: Vec<bool>,
    queue: Queue,
    fleet: Fleet,
    tally: Tally,
}

impl<'a> Replay<'a> {
    fn new(world: &'a FluidWorld) -> Self {
        let keep = world.keep.timeline;
        let sites: Vec<Site<'a>> = (0..)
            .zip(&world.models)
            .map(|(index, model)| Site {
                model,
                masked: model.load.mask(),
                queue: Queue::new(model),
                fleet: Fleet::new(model, stream(world.seed, Purpose::ColdStarts, index)),
                tally: Tally::new(model, world.cold_start.quantile(0.5), keep),
            })
            .collect();
        let held = sites.iter().map(|site| site.fleet.held()).sum();
        Self {
            accelerators: Accelerators::new(world.pool.as_ref(), held),
            view: View::new(world, sites.iter().map(|site| site.fleet.members())),
            sites,
            world,
            gpu_seconds: 0.0,
            lent_gpu_seconds: 0.0,
            idle_gpu_seconds: 0.0,
            trained_before: None,
            scored: 0.0,
            timelines: Vec::new(),
        }
    }

    /// Lets what was under way arrive.
    fn settle(&mut self, now: Seconds) {
        for (site, view) in self.sites.iter_mut().zip(&mut self.view.models) {
            site.fleet.settle(now, &mut self.accelerators, view);
        }
        self.accelerators.settle(now);
    }

    /// Asks the policy and carries out what it orders.
    fn ask(&mut self, now: Seconds, policy: &mut dyn ScalingPolicy) {
        let draws = policy.reads_snapshot();
        for (site, view) in self.sites.iter_mut().zip(&mut self.view.models) {
            let since = view.scrape(site.model, &mut site.queue, site.fleet.counts(), now);
            if draws {
                view.count(site.model, &since, site.queue.waiting(), now);
            }
        }
        let order = if draws {
            self.view.show(now, &self.accelerators, |sight| policy.decide(&sight))
        } else {
            self.view.read_out(now, |sight| policy.decide(&sight))
        };
        match order {
            ScaleOrder::Scale(counts) => {
                for (index, count) in counts.into_iter().enumerate().take(self.sites.len()) {
                    self.scale(index, count.get(), now);
                }
            }
            ScaleOrder::Decision(decision) => self.carry_out(*decision, now),
        }
    }

    /// As the `scale` subresource does it.
    fn scale(&mut self, index: usize, desired: u32, now: Seconds) {
        let Some((site, view)) = self.sites.get_mut(index).zip(self.view.models.get_mut(index))
        else {
            return;
        };
        let live = site.fleet.live();
        site.tally.ordered(live, desired, now);
        if desired > live {
            let cold = &self.world.cold_start;
            for _ in live..desired {
                if !site.fleet.start(now, cold, &mut self.accelerators, view) {
                    break;
                }
                site.tally.started();
            }
        } else {
            for _ in desired..live {
                site.fleet.remove_any(now, &mut self.accelerators, view);
            }
        }
    }

    fn carry_out(&mut self, decision: Decision, now: Seconds) {
        self.accelerators.follow(&decision, now, &self.world.cold_start);
        for entry in decision.models {
            let place = self.sites.iter().position(|site| site.model.id == entry.model);
            let Some(index) = place else { continue };
            let (site, view) = (&mut self.sites[index], &mut self.view.models[index]);
            let before = site.fleet.live();
            let mut started = 0;
            for action in entry.targets.iter().flat_map(|target| &target.actions) {
                started += site.fleet.act(
                    action,
                    now,
                    &self.world.cold_start,
                    &mut self.accelerators,
                    view,
                );
            }
            site.tally.ordered(before, site.fleet.live(), now);
            (0..started).for_each(|_| site.tally.started());
            let on_the_hour = now.get() % 3600.0 == 0.0;
            if self.world.keep.decisions && (before != site.fleet.live() || on_the_hour) {
                self.timelines.push(FluidTimelines { at: now, decision: entry });
            }
        }
    }

    /// Lets work arrive and be done for one step.
    fn flow(&mut self, index: usize, now: Seconds, step: Seconds) {
        let mut any_scored = false;
        let mut held = 0;
        for site in &mut self.sites {
            let outage = self.world.gaps_are_outages && site.masked.get(index) == Some(&true);
            let arrived = |series: &[f32]| match series.get(index) {
                Some(value) if !outage => f64::from(*value),
                _ => 0.0,
            };
            let requests = arrived(&site.model.load.requests);
            let work = arrived(&site.model.load.work);
            let ready = site.fleet.ready();
            let served = site.queue.step(requests, work, ready, step, outage);
            let masked = site.masked.get(index).copied().unwrap_or(true);
            let scored = !masked && now >= self.world.unscored;
            any_scored |= scored;
            held += site.fleet.held();
            site.tally.add(&served, &site.fleet, site.queue.waiting(), now, step, scored);
        }
        if any_scored {
            let gpus = self.world.models.first().map_or(1.0, |model| f64::from(model.gpus.get()));
            self.scored += step.get();
            let (paid, lent) = self.accelerators.paid(held);
            self.gpu_seconds += paid * gpus * step.get();
            self.lent_gpu_seconds += lent * gpus * step.get();
            self.idle_gpu_seconds += (paid - f64::from(held)).max(0.0) * gpus * step.get();
            self.trained_before.get_or_insert(self.accelerators.loans().useful());
        }
        self.accelerators.train(now, step);
    }

    fn finish(self) -> (Outcome, Vec<FluidTimelines>) {
        let gpus = self.world.models.first().map_or(1.0, |model| f64::from(model.gpus.get()));
        let loans = self.accelerators.loans();
        let trained = loans.useful();
        let models: Vec<ModelOutcome> =
            self.sites.into_iter().map(|site| site.tally.outcome()).collect();
        let outcome = Outcome {
            models,
            gpu_seconds: self.gpu_seconds,
            lent_gpu_seconds: self.lent_gpu_seconds,
            idle_gpu_seconds: self.idle_gpu_seconds,
            trained_gpu_seconds: (trained - self.trained_before.unwrap_or(trained)) * gpus,
            take_backs: loans.take_backs,
            scored: Seconds(self.scored),
        };
        (outcome, self.timelines)
    }
}
