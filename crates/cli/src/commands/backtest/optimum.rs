//! What somebody who knew the future would have paid, minute by minute.
//!
//! It misses nothing: its need is the mean of each minute in whole replicas that do all they can, and every
//! start is paid in full, as policies pay it. The hull around it says what misses would have saved; they are bought
//! where they are cheapest, over all models together. Beside it, what is left to gain for who does not know the
//! future: [`without_the_future`].

use flyball_simulator::clairvoyant::sizing::{self, SizedLoad};
use flyball_simulator::clairvoyant::{ClairvoyantPlan, causal, hull};
use flyball_simulator::fluid::FluidWorld;
use flyball_simulator::score::{ModelOutcome, Outcome, TimelineMoment};
use flyball_simulator::seconds::Seconds;

use super::answer::{HullView, tidy};

/// Corners of the hull that a picture needs.
const CORNERS: usize = 14;

/// One model's demand, minute by minute.
struct Demand {
    requests: Vec<f64>,
    masked: Vec<bool>,
    per_second: f64,
    initial: u32,
    floor: u32,
    gpus: f64,
    cold_start: Seconds,
}

impl Demand {
    fn load(&self) -> SizedLoad<'_> {
        SizedLoad {
            requests: &self.requests,
            masked: &self.masked,
            step: Seconds::MINUTE,
            served_per_step: self.per_second * Seconds::MINUTE.get(),
            cold_start: self.cold_start,
            initial: self.initial,
            floor: self.floor,
        }
    }
}

/// The optimum without misses, and the trade around it if it is wanted.
pub(super) fn play(world: &FluidWorld, with_hull: bool) -> (Outcome, Vec<HullView>) {
    let demands = demands(world);
    let requests: f64 = demands.iter().map(|demand| demand.load().total()).sum();
    let solve = |price: f64| sum(&demands, price, knows);
    let corners = match with_hull {
        true => hull::corners(requests, CORNERS, solve).points,
        false => Vec::new(),
    };
    let mut points: Vec<HullView> = corners
        .iter()
        .map(|point| HullView {
            gpu_hours: tidy(point.cost / 3_600.0),
            missed: tidy(point.missed / requests.max(1.0)),
        })
        .collect();
    points.sort_by(|a, b| a.gpu_hours.total_cmp(&b.gpu_hours));
    (outcome(&demands), points)
}

/// What somebody pays who knows how the loads move and not what comes, at the share that may miss, or the smallest
/// that is possible. Never less than who knows the future: within the minute that it sees, it does.
pub(super) fn without_the_future(world: &FluidWorld, missed_share: f64) -> HullView {
    let demands = demands(world);
    let requests: f64 = demands.iter().map(|demand| demand.load().total()).sum();
    let budget = missed_share * requests;
    let least = hull::narrow(budget, |price| sum(&demands, price, sees));
    let bound = hull::narrow(budget.max(least.missed), |price| sum(&demands, price, knows));
    HullView {
        gpu_hours: tidy(least.cost.max(bound.cost) / 3_600.0),
        missed: tidy(least.missed / requests.max(1.0)),
    }
}

/// Who knows the future.
fn knows(demand: &Demand, price: f64) -> ClairvoyantPlan {
    sizing::best(&demand.load(), price)
}

/// Who sees the load, and how often which one follows it.
fn sees(demand: &Demand, price: f64) -> ClairvoyantPlan {
    // A start that is shorter than the minute that is seen is as good as none.
    let ahead = (demand.cold_start.get() / Seconds::MINUTE.get()).floor() as usize;
    causal::best(&demand.load(), ahead, price)
}

/// Accelerator time and misses of all models. The price is one of accelerator time, which is what they have in common.
fn sum(demands: &[Demand], price: f64, plan: fn(&Demand, f64) -> ClairvoyantPlan) -> (f64, f64) {
    demands.iter().fold((0.0, 0.0), |sum, demand| {
        let plan = plan(demand, price / demand.gpus);
        (sum.0 + plan.replica_seconds * demand.gpus, sum.1 + plan.missed)
    })
}

fn demands(world: &FluidWorld) -> Vec<Demand> {
    let one = |model: &flyball_simulator::fluid::FluidModel| {
        let per_minute = (60.0 / model.load.step.get()).round().max(1.0) as usize;
        let mask = model.load.mask();
        let unscored = (world.unscored.get() / 60.0).round() as usize;
        let minutes = model.load.work.chunks(per_minute);
        let masked = mask.chunks(per_minute).enumerate();
        Demand {
            requests: minutes.map(|steps| steps.iter().map(|one| f64::from(*one)).sum()).collect(),
            masked: masked
                .map(|(minute, steps)| minute < unscored || steps.iter().any(|masked| *masked))
                .collect(),
            per_second: model.at_most,
            initial: model.initial.get(),
            floor: model.bounds.min.get(),
            gpus: f64::from(model.gpus.get()),
            cold_start: world.cold_start.mean(),
        }
    };
    world.models.iter().map(one).collect()
}

/// Scored as policies are.
fn outcome(demands: &[Demand]) -> Outcome {
    let models: Vec<ModelOutcome> = demands.iter().map(of_model).collect();
    let paid =
        models.iter().zip(demands).map(|(model, demand)| model.replica_seconds * demand.gpus);
    let scored = |demand: &Demand| demand.masked.iter().filter(|masked| !**masked).count();
    Outcome {
        gpu_seconds: paid.sum(),
        lent_gpu_seconds: 0.0,
        idle_gpu_seconds: 0.0,
        trained_gpu_seconds: 0.0,
        take_backs: 0,
        scored: Seconds(60.0 * demands.iter().map(scored).max().unwrap_or(0) as f64),
        models,
    }
}

fn of_model(demand: &Demand) -> ModelOutcome {
    let load = demand.load();
    let plan = sizing::best(&load, f64::INFINITY);
    let mut came = ModelOutcome {
        requests: load.total(),
        missed: plan.missed,
        replica_seconds: plan.replica_seconds,
        starting_seconds: plan.starts as f64 * demand.cold_start.get(),
        starts: u32::try_from(plan.starts).unwrap_or(u32::MAX),
        ..ModelOutcome::default()
    };
    let minutes = plan.replicas.iter().zip(&demand.requests).zip(&demand.masked);
    for (index, ((replicas, requests), masked)) in minutes.enumerate() {
        let room = f64::from(*replicas) * load.served_per_step;
        let missed = (requests - room).max(0.0);
        if !masked {
            came.useful_seconds += (requests - missed) / demand.per_second;
        }
        came.timeline.push(TimelineMoment {
            at: Seconds(60.0 * index as f64),
            demand: requests / load.served_per_step,
            ready: f64::from(*replicas),
            requests: *requests,
            missed,
            masked: *masked,
            ..TimelineMoment::default()
        });
    }
    came
}
