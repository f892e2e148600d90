//! One model alone: each source at each cold start is a cell, and in each the governor is held
//! against every rival, at its defaults and tuned on the first week.

pub(super) mod table;

use super::contenders::{self, GOVERNOR};
use super::spread::Spread;
use super::worlds::{Part, Source, cold_starts, world};
use super::yardstick;
use crate::parallel;
use flyball_figures::quantile::median;
use flyball_governor::policy::ModelPolicy;
use flyball_simulator::cold_start::ColdStart;
use flyball_simulator::fluid::{FluidWorld, run};
use flyball_simulator::score::Outcome;
use flyball_simulator::tune::{self, TuneCandidate, TuneResult};
use flyball_tuner::Name;

/// The share of requests that may miss.
pub(super) const ALLOWED: f64 = 0.01;

/// How much is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    pub(super) training_seeds: u64,
    pub(super) test_seeds: u64,
}

/// What came of one cell.
pub(super) struct Cell {
    pub(super) source: String,
    pub(super) cold_start: String,
    /// Accelerator hours of the clairvoyant that misses nothing.
    pub(super) clairvoyant: f64,
    pub(super) governor: Contender,
    /// Each rival as tuned on week 1.
    pub(super) tuned: Vec<Contender>,
    /// Each rival at its defaults.
    pub(super) defaults: Vec<Contender>,
    /// The cheapest of all rivals and settings that kept the limit in week 1: the one that an owner would have picked.
    pub(super) picked: Option<Contender>,
    /// The cheapest setting of any rival that keeps the limit in the test week itself.
    pub(super) hindsight: Option<(String, TuneResult)>,
    /// What the governor cost over the best of the laws that it chooses from, in percent, with what that one cost.
    pub(super) regret: Option<(String, f64)>,
}

/// One policy in one cell, on the test week.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub(super) policy: String,
    pub(super) setting: String,
    pub(super) gpu_hours: Spread,
    pub(super) missed: Spread,
    pub(super) first_token_p99: f64,
    pub(super) starts: f64,
    pub(super) reversals: f64,
    pub(super) killed: f64,
}

impl Contender {
    pub(super) fn of(policy: &str, setting: &str, outcomes: &[Outcome]) -> Self {
        let each =
            |read: &dyn Fn(&Outcome) -> f64| -> Vec<f64> { outcomes.iter().map(read).collect() };
        let sum = |read: fn(&flyball_simulator::score::ModelOutcome) -> f64| {
            Spread::of(&each(&|outcome| outcome.models.iter().map(read).sum())).mean
        };
        Self {
            policy: policy.to_owned(),
            setting: setting.to_owned(),
            gpu_hours: Spread::of(&each(&|outcome| outcome.gpu_seconds / 3600.0)),
            missed: Spread::of(&each(&Outcome::missed_share)),
            first_token_p99: Spread::of(&each(&|outcome| {
                let waits = outcome.models.iter().map(|model| model.first_token_p99.get());
                waits.fold(0.0, f64::max)
            }))
            .mean,
            starts: sum(|model| f64::from(model.starts)),
            reversals: sum(|model| f64::from(model.reversals)),
            killed: sum(|model| model.killed),
        }
    }

    pub(super) fn keeps(&self) -> bool {
        self.missed.mean <= ALLOWED
    }

    /// Accelerator hours saved against another, in percent.
    pub(super) fn saved_pct(&self, other: &Self) -> f64 {
        100.0 * (1.0 - self.gpu_hours.mean / other.gpu_hours.mean)
    }

    /// The last columns of a row: the best rival, what it takes and misses, and what is saved.
    pub(super) fn beside(&self, rival: Option<&Self>) -> String {
        let Some(rival) = rival else {
            return " none keeps the limit | – | – | – |".to_owned();
        };
        format!(
            " {} ({}) | {:.0} | {:.2} | {:.1} |",
            rival.policy,
            rival.setting,
            rival.gpu_hours,
            rival.missed.times(100.0),
            self.saved_pct(rival),
        )
    }
}

/// The cheapest that keeps the limit.
pub(super) fn cheapest<'a>(all: impl Iterator<Item = &'a Contender>) -> Option<&'a Contender> {
    let keeping = all.filter(|one| one.keeps());
    keeping.min_by(|a, b| a.gpu_hours.mean.total_cmp(&b.gpu_hours.mean))
}

impl Cell {
    /// Accelerator hours saved against the rival that an owner would have picked, in percent. Where that one misses too
    /// much there is nobody to save against.
    pub(super) fn saving_pct(&self) -> Option<f64> {
        Some(self.governor.saved_pct(self.picked.as_ref().filter(|one| one.keeps())?))
    }

    /// The governor keeps the limit, and the rival that an owner would have picked does not or costs more.
    pub(super) fn is_won(&self) -> bool {
        self.governor.keeps() && self.saving_pct().is_none_or(|saving| saving > 0.0)
    }

    /// What is allowed is used, and not overdrawn.
    pub(super) fn is_calibrated(&self) -> bool {
        (0.7 * ALLOWED..=ALLOWED).contains(&self.governor.missed.mean)
    }
}

/// Runs every chosen cell, on all cores, telling of each as it is done.
pub(super) fn measure(
    sources: &[Source],
    effort: Effort,
    chosen: impl Fn(&str, &str) -> bool,
    report: impl Fn(&Cell) + Sync,
) -> Vec<Cell> {
    let starts = cold_starts();
    let all = sources.iter().flat_map(|source| starts.iter().map(move |start| (source, start)));
    let jobs: Vec<_> = all.filter(|(source, (name, _))| chosen(&source.name, name)).collect();
    parallel::map(&jobs, |(source, (name, start))| {
        let cell = one(source, name, start, effort);
        report(&cell);
        cell
    })
}

fn one(source: &Source, name: &str, cold_start: &ColdStart, effort: Effort) -> Cell {
    let worlds = |part, seeds: std::ops::Range<u64>| -> Vec<FluidWorld> {
        seeds.map(|seed| world(&[source], cold_start, None, part, seed)).collect()
    };
    // Training and test draw their arrivals from different seeds.
    let training = worlds(Part::Training, 1000..1000 + effort.training_seeds);
    let test = worlds(Part::Test, 1..1 + effort.test_seeds);
    let later = worlds(Part::Later, 1..1 + effort.test_seeds);
    // A calendar counts from the start of the replay.
    let weeks = |one: &TuneCandidate| if one.policy == "cron" { &test } else { &later };
    let rivals = contenders::rivals(&training[0]);
    let mut tuned = Vec::new();
    let mut in_week_1: Vec<(&TuneCandidate, TuneResult)> = Vec::new();
    let mut hindsight: Vec<(String, TuneResult)> = Vec::new();
    for settings in &rivals.tuned {
        let tried: Vec<TuneResult> =
            settings.iter().map(|candidate| contenders::tried(candidate, &training)).collect();
        let Some(best) = tune::best(&tried, ALLOWED) else { continue };
        tuned.push(on_test(&settings[best], weeks(&settings[best])));
        in_week_1.push((&settings[best], tried[best]));
        let named =
            |candidate: &TuneCandidate| format!("{} {}", candidate.policy, candidate.setting);
        // What missed far too much in week 1 would have to be lucky in week 2.
        let near = settings.iter().zip(&tried).filter(|(_, tried)| tried.missed <= 5.0 * ALLOWED);
        let on_one = |(one, _)| (named(one), contenders::tried(one, &later[..1]));
        hindsight.extend(near.map(on_one));
    }
    let defaults =
        rivals.defaults.iter().map(|candidate| on_test(candidate, weeks(candidate))).collect();
    let at_defaults = rivals.defaults.iter();
    in_week_1.extend(at_defaults.map(|one| (one, contenders::tried(one, &training))));
    let keeping = in_week_1.iter().filter(|(_, tried)| tried.missed <= ALLOWED);
    let picked = keeping.min_by(|(_, a), (_, b)| a.gpu_hours.total_cmp(&b.gpu_hours));
    let outcomes: Vec<Outcome> =
        test.iter().map(|world| run(world, contenders::governor().as_mut())).collect();
    let keeping = hindsight.into_iter().filter(|(_, tried)| tried.missed <= ALLOWED);
    Cell {
        source: source.name.clone(),
        cold_start: name.to_owned(),
        clairvoyant: yardstick::alone(&test[0]),
        regret: regret(&outcomes[0], &test[0]),
        governor: Contender::of(GOVERNOR, "", &outcomes),
        picked: picked.map(|(one, _)| on_test(one, weeks(one))),
        tuned,
        defaults,
        hindsight: keeping.min_by(|(_, a), (_, b)| a.gpu_hours.total_cmp(&b.gpu_hours)),
    }
}

/// What was paid over the cheapest law that keeps the limit, of those that the governor chooses from.
fn regret(outcome: &Outcome, test: &FluidWorld) -> Option<(String, f64)> {
    let facts = contenders::facts(&test.models[0], test);
    let laws = Name::ALL.iter().map(|law| {
        let mut policy = law.replayed(&ModelPolicy::default(), &facts);
        (law.to_string(), TuneResult::of(&run(test, policy.as_mut())))
    });
    let keeping = laws.filter(|(_, tried)| tried.missed <= ALLOWED);
    let (law, best) = keeping.min_by(|(_, a), (_, b)| a.gpu_hours.total_cmp(&b.gpu_hours))?;
    Some((law, 100.0 * (TuneResult::of(outcome).gpu_hours / best.gpu_hours - 1.0)))
}

fn on_test(candidate: &TuneCandidate, test: &[FluidWorld]) -> Contender {
    let outcomes: Vec<Outcome> =
        test.iter().map(|world| run(world, (candidate.make)().as_mut())).collect();
    Contender::of(&candidate.policy, &candidate.setting, &outcomes)
}

/// The middle of the savings, cells without a rival left out.
pub(super) fn median_saving(cells: &[Cell]) -> f64 {
    median(cells.iter().filter_map(Cell::saving_pct))
}
