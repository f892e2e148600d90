//! Who competes: the governor, and every rival at its defaults and over its grid of settings.

use flyball_simulator::fluid::{FluidModel, FluidWorld};
use flyball_simulator::policy::ScalingPolicy;
use flyball_simulator::rivals::{NAMES, RivalFacts, RivalFleet, RivalSettings, grid, named};
use flyball_simulator::seconds::Seconds;
use flyball_simulator::tune::{self, TuneCandidate, TuneResult};
use flyball_tuner::Tuned;

pub(super) const GOVERNOR: &str = "governor";

/// The rivals of one world.
pub(super) struct Rivals {
    /// Each at its published defaults.
    pub(super) defaults: Vec<TuneCandidate>,
    /// The settings worth trying, one list per rival.
    pub(super) tuned: Vec<Vec<TuneCandidate>>,
}

/// Every rival, told what an operator would know after the training week. They see nothing of the
/// test week.
pub(super) fn rivals(training: &FluidWorld) -> Rivals {
    rivals_among(training, NAMES)
}

/// Some rivals. In a world of several models each model has its own law, with the same place in
/// the grid.
pub(super) fn rivals_among(training: &FluidWorld, names: &[&str]) -> Rivals {
    let facts: Vec<RivalFacts> =
        training.models.iter().map(|model| facts(model, training)).collect();
    let default = |name: &&str| {
        let each: Result<Vec<RivalSettings>, _> =
            facts.iter().map(|facts| named(name, facts)).collect();
        Some(candidate(name, each.ok()?))
    };
    let tuned = |name: &&str| -> Vec<TuneCandidate> {
        let grids: Vec<Vec<RivalSettings>> = facts.iter().map(|facts| grid(name, facts)).collect();
        let places = grids.iter().map(Vec::len).min().unwrap_or(0);
        let place = |at: usize| grids.iter().map(|grid| grid[at].clone()).collect();
        (0..places).map(|at| candidate(name, place(at))).collect()
    };
    Rivals {
        defaults: names.iter().filter_map(default).collect(),
        tuned: names.iter().map(tuned).filter(|list| !list.is_empty()).collect(),
    }
}

/// What a setting comes to. One that runs away within its first day (some laws on queues order all
/// they may have and give it back, over and over) is not replayed to the end.
pub(super) fn tried(candidate: &TuneCandidate, worlds: &[FluidWorld]) -> TuneResult {
    let day = |world: &FluidWorld| {
        let mut day = world.clone();
        for model in &mut day.models {
            let steps = (Seconds::DAY.get() / model.load.step.get()) as usize;
            model.load = model.load.part(0..steps.min(model.load.requests.len()));
        }
        day.unscored = Seconds::HOUR;
        day
    };
    let first = tune::try_on(candidate, &worlds.iter().map(day).take(1).collect::<Vec<_>>());
    let models = worlds.first().map_or(1, |world| world.models.len()) as f64;
    if first.gpu_hours > models * RUNAWAY_GPU_HOURS {
        return TuneResult { gpu_hours: f64::INFINITY, missed: 1.0 };
    }
    tune::try_on(candidate, worlds)
}

/// Half as much again as a static peak would take in a day: 66 replicas for 23 hours.
const RUNAWAY_GPU_HOURS: f64 = 1.5 * 66.0 * 23.0;

/// The governor with an empty memory.
pub(super) fn governor() -> Box<dyn ScalingPolicy> {
    governor_of(flyball_governor::Policy::default())
}

/// The governor with these settings.
pub(super) fn governor_of(policy: flyball_governor::Policy) -> Box<dyn ScalingPolicy> {
    Box::new(Tuned::new(policy))
}

fn candidate(name: &str, settings: Vec<RivalSettings>) -> TuneCandidate {
    let policy = name.to_owned();
    let setting = settings.first().map_or_else(String::new, RivalSettings::label);
    let make = move || -> Box<dyn ScalingPolicy> {
        let laws = settings.iter().map(RivalSettings::law).collect();
        Box::new(RivalFleet::new(policy.clone(), laws))
    };
    TuneCandidate { policy: name.to_owned(), setting, make: Box::new(make) }
}

/// What an operator knows of one model.
pub(super) fn facts(model: &FluidModel, world: &FluidWorld) -> RivalFacts {
    let (prompt, _) = model.tokens;
    let minute = (60.0 / model.load.step.get()).round() as usize;
    let rate = |(index, chunk): (u32, &[f32])| {
        let sum: f64 = chunk.iter().map(|one| f64::from(*one)).sum();
        (Seconds(60.0 * f64::from(index)), sum / (chunk.len() as f64 * model.load.step.get()))
    };
    let week: Vec<(Seconds, f64)> =
        (0..).zip(model.load.requests.chunks(minute)).map(rate).collect();
    RivalFacts {
        replica_per_second: model.per_replica,
        prompt_tokens_per_second: model.per_replica * prompt,
        prompt_tokens: prompt,
        max_running: model.per_replica * model.service.get(),
        first_token: model.first_token_objective,
        between_tokens: model.between_tokens_objective,
        cold_start: world.cold_start.quantile(0.5),
        min: model.bounds.min.get(),
        max: model.bounds.max.get(),
        ..RivalFacts::default()
    }
    .with_week(&week)
}
