//! Three models on accelerators that they share, and training that borrows what is idle.

use super::cells::{ALLOWED, Contender, cheapest};
use super::contenders::{self, GOVERNOR};
use super::worlds::{Part, Source, cold_starts, world};
use super::yardstick;
use crate::parallel;
use flyball_figures::quantile::median;
use flyball_simulator::cold_start::ColdStart;
use flyball_simulator::fluid::{FluidPool, FluidWorld, Training, run};
use flyball_simulator::score::Outcome;
use flyball_simulator::seconds::Seconds;
use flyball_simulator::tune::{self, TuneCandidate, TuneResult};
use std::fmt::Write as _;

/// A replica on an accelerator that is there: llm-d measured 4.0 s for a hot start of a 32B model.
const SWAP: Seconds = Seconds(5.0);
/// From the order to give back until an accelerator is idle: a checkpoint and the end of the pods.
const TAKE_BACK: Seconds = Seconds(60.0);
/// How long an accelerator stays idle before it is given back: at once, or as long as the cluster
/// autoscaler's default. Rivals are tuned over both.
const IDLE: [Seconds; 2] = [Seconds::ZERO, Seconds(600.0)];
/// The rivals that were cheapest with one model.
const STRONGEST: &[&str] = &["hpa-rate", "aibrix", "keda", "llm-d-tokens"];

/// The pool at one cold start.
pub(super) struct Shared {
    pub(super) cold_start: String,
    pub(super) clairvoyant: f64,
    pub(super) governor: Contender,
    pub(super) rivals: Vec<Contender>,
}

impl Shared {
    pub(super) fn best_rival(&self) -> Option<&Contender> {
        cheapest(self.rivals.iter())
    }

    pub(super) fn saving_pct(&self) -> Option<f64> {
        Some(self.governor.saved_pct(self.best_rival()?))
    }

    pub(super) fn ratio(&self) -> f64 {
        self.governor.gpu_hours.mean / self.clairvoyant
    }
}

/// A fixed pool that lends.
pub(super) struct Lent {
    pub(super) slots: u32,
    /// Share of its time that training had, in percent.
    pub(super) lent_pct: f64,
    /// Share of requests missed with and without lending, in percent.
    pub(super) missed_pct: (f64, f64),
}

/// The pool at every cold start, on all cores.
pub(super) fn shared(sources: &[Source], seeds: u64) -> Vec<Shared> {
    parallel::map(&cold_starts(), |(name, cold)| {
        let shared = one(sources, name, cold, seeds);
        eprintln!("{}", row(&shared));
        shared
    })
}

fn one(sources: &[Source], name: &str, cold: &ColdStart, seeds: u64) -> Shared {
    let all: Vec<&Source> = sources.iter().collect();
    let worlds = |idle, part, seeds: std::ops::Range<u64>| -> Vec<FluidWorld> {
        let pool = FluidPool { swap: SWAP, idle, fixed: None, training: None };
        seeds.map(|seed| world(&all, cold, Some(pool.clone()), part, seed)).collect()
    };
    let mut rivals = Vec::new();
    for idle in IDLE {
        let training = worlds(idle, Part::Training, 1000..1001);
        let later = worlds(idle, Part::Later, 1..1 + seeds);
        for settings in contenders::rivals_among(&training[0], STRONGEST).tuned {
            let tried: Vec<TuneResult> =
                settings.iter().map(|one| contenders::tried(one, &training)).collect();
            let Some(best) = tune::best(&tried, ALLOWED) else { continue };
            rivals.push(on(&settings[best], &later, idle));
        }
        for default in contenders::rivals_among(&training[0], STRONGEST).defaults {
            rivals.push(on(&default, &later, idle));
        }
    }
    let test = worlds(IDLE[1], Part::Test, 1..1 + seeds);
    let outcomes: Vec<Outcome> =
        test.iter().map(|world| run(world, contenders::governor().as_mut())).collect();
    Shared {
        clairvoyant: yardstick::pooled(&test[0]),
        governor: Contender::of(GOVERNOR, "", &outcomes),
        cold_start: name.to_owned(),
        rivals,
    }
}

fn on(candidate: &TuneCandidate, weeks: &[FluidWorld], idle: Seconds) -> Contender {
    let outcomes: Vec<Outcome> =
        weeks.iter().map(|world| run(world, (candidate.make)().as_mut())).collect();
    let setting = format!("{}, idle nodes kept {idle}", candidate.setting);
    Contender::of(&candidate.policy, &setting, &outcomes)
}

/// A fixed pool at the peak of the sum, with and without lending.
pub(super) fn lent(sources: &[Source], seeds: u64) -> Lent {
    let all: Vec<&Source> = sources.iter().collect();
    let (_, cold) = &cold_starts()[2];
    let peak = yardstick::pooled_peak(&world(&all, cold, None, Part::Test, 1));
    let outcomes = |lends: bool| -> Vec<Outcome> {
        let training = lends.then_some(Training { take_back: TAKE_BACK, runs: Vec::new() });
        let pool = FluidPool { swap: SWAP, idle: IDLE[1], fixed: Some(peak), training };
        let worlds =
            (1..1 + seeds).map(|seed| world(&all, cold, Some(pool.clone()), Part::Test, seed));
        worlds.map(|world| run(&world, contenders::governor().as_mut())).collect()
    };
    let (with, without) = (outcomes(true), outcomes(false));
    let missed = |all: &[Outcome]| {
        100.0 * all.iter().map(Outcome::missed_share).sum::<f64>() / all.len().max(1) as f64
    };
    let share = |one: &Outcome| 100.0 * one.lent_gpu_seconds / one.gpu_seconds.max(1.0);
    let lent_pct = with.iter().map(share).sum::<f64>() / with.len().max(1) as f64;
    Lent { slots: peak, lent_pct, missed_pct: (missed(&with), missed(&without)) }
}

pub(super) fn median_saving(all: &[Shared]) -> f64 {
    median(all.iter().filter_map(Shared::saving_pct))
}

pub(super) fn median_ratio(all: &[Shared]) -> f64 {
    median(all.iter().map(Shared::ratio))
}

pub(super) fn markdown(all: &[Shared], lent: &Lent, seeds: u64) -> String {
    let mut text = format!(
        "The three models in one world: a replica that finds an idle accelerator serves after \
         {SWAP} (a hot swap), one that does not must wait a whole cold start for a new one. Idle \
         accelerators are paid for. Rivals scale each model alone and are tuned on week 1, also \
         over how long idle nodes are kept (not at all, or the cluster autoscaler's 10 min); the \
         governor also says how many accelerators to hold. The clairvoyant serves the sum. {seeds} \
         seeds.\n\n| Cold start | Clairvoyant GPU-h | Governor GPU-h | x clairvoyant | Missed % | \
         Best rival, tuned | its GPU-h | its missed % | Saved % |\n|---|---|---|---|---|---|---|---|---|\n"
    );
    for shared in all {
        let _ = writeln!(text, "{}", row(shared));
    }
    let (with, without) = lent.missed_pct;
    let _ = write!(
        text,
        "\nA fixed pool of {} accelerators, the peak of the sum over both weeks, at a cold start of \
         100 s: training has **{:.1} %** of its time, and {with:.3} % of requests miss where \
         {without:.3} % miss without lending. A take-back takes {TAKE_BACK}.\n",
        lent.slots, lent.lent_pct
    );
    text
}

fn row(shared: &Shared) -> String {
    let governor = &shared.governor;
    let mut row = format!(
        "| {} | {:.0} | {:.0} | {:.3} | {:.2} |",
        shared.cold_start,
        shared.clairvoyant,
        governor.gpu_hours,
        shared.ratio(),
        governor.missed.times(100.0),
    );
    row += &governor.beside(shared.best_rival());
    row
}
