//! What models of a recorded week leave idle of a fixed pool, and what runs make of it that borrow whole.

use crate::parallel;
use crate::worlds::{Part, Source, cold_starts, world};
use crate::{contenders, yardstick};
use flyball_core::units::{Gpus, Micros};
use flyball_governor::Policy;
use flyball_governor::policy::Lending;
use flyball_simulator::fluid::{FluidPool, FluidRun, Training, run};
use flyball_simulator::score::Outcome;
use flyball_simulator::seconds::Seconds;
use std::fmt::Write as _;

/// Slots of the runs that borrow: more than there ever is to lend.
const RUNS: [u32; 16] = [16, 16, 16, 8, 8, 8, 8, 4, 4, 4, 4, 2, 2, 2, 1, 1];

/// From getting machines until the first new step.
const RESTART: Seconds = Seconds(120.0);

/// Of a run that cannot be asked to save and saves every two minutes, at most.
const LOST: Seconds = Seconds(120.0);

/// A replica on an accelerator that is there.
const SWAP: Seconds = Seconds(5.0);

/// From the order to give back until accelerators are free, and how many are never lent.
const CASES: [(Seconds, u32); 6] = [
    (Seconds(15.0), 0),
    (Seconds(60.0), 0),
    (Seconds(60.0), 3),
    (Seconds(60.0), 8),
    (Seconds(180.0), 0),
    (Seconds(180.0), 8),
];

/// The case of the figures.
const USUAL: usize = 2;

/// One case beside the same week without lending.
pub(super) struct LoansCase {
    take_back: Seconds,
    keep_free: u32,
    with: Outcome,
}

/// All cases.
pub(super) struct LoansWeek {
    slots: u32,
    without: Outcome,
    cases: Vec<LoansCase>,
}

pub(super) fn all(sources: &[Source]) -> LoansWeek {
    let all: Vec<&Source> = sources.iter().collect();
    let (_, cold) = &cold_starts()[2];
    let slots = yardstick::pooled_peak(&world(&all, cold, None, Part::Test, 1));
    let played = |training: Option<Training>, keep_free: u32| {
        let pool = FluidPool { swap: SWAP, idle: Seconds::HOUR, fixed: Some(slots), training };
        let settle = Micros::from_minutes(10);
        let lending = Lending { on: true, keep_free: Gpus::new(keep_free), settle };
        let mut law = contenders::governor_of(Policy { lending, ..Policy::default() });
        run(&world(&all, cold, Some(pool), Part::Test, 1), law.as_mut())
    };
    let borrow = |slots: &u32| FluidRun { slots: *slots, restart: RESTART, lost: LOST };
    let runs: Vec<FluidRun> = RUNS.iter().map(borrow).collect();
    let lent = |(take_back, keep_free): &(Seconds, u32)| {
        let training = Training { take_back: *take_back, runs: runs.clone() };
        let with = played(Some(training), *keep_free);
        LoansCase { take_back: *take_back, keep_free: *keep_free, with }
    };
    LoansWeek { slots, without: played(None, 0), cases: parallel::map(&CASES, lent) }
}

impl LoansWeek {
    /// Share of the idle time that was training, in percent, of the usual case.
    pub(super) fn idle_used_pct(&self) -> f64 {
        self.cases[USUAL].idle_used_pct(&self.without)
    }

    /// Points by which more requests missed than without lending, in the usual case.
    pub(super) fn extra_missed_points(&self) -> f64 {
        self.cases[USUAL].extra_missed_points(&self.without)
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "Three recorded models (ServeGen), the second of two weeks, on {} accelerators, which is the peak of both weeks; starts take \
             {SWAP} and, where somebody borrows, the take-back. {} runs of 1 to 16 accelerators borrow all that they need or nothing, \
             train {RESTART} after they got it, and lose up to {LOST} with each take-back. More is lent 10 min after the \
             last change. Without lending, {:.3} % of requests miss and {:.0} GPU-hours are idle.\n\n\
             | Take-back | Kept free | Idle time that is training % | Lent, of idle % | Take-backs | Missed % | More than without, points |\n\
             |---|---|---|---|---|---|---|\n",
            self.slots,
            RUNS.len(),
            100.0 * self.without.missed_share(),
            self.without.idle_gpu_seconds / 3600.0
        );
        for case in &self.cases {
            let _ = writeln!(
                text,
                "| {} | {} | {:.1} | {:.1} | {} | {:.3} | {:+.3} |",
                case.take_back,
                case.keep_free,
                case.idle_used_pct(&self.without),
                100.0 * case.with.lent_gpu_seconds / self.without.idle_gpu_seconds.max(1.0),
                case.with.take_backs,
                100.0 * case.with.missed_share(),
                case.extra_missed_points(&self.without)
            );
        }
        text + "\nIdle time is that of the replay without lending: what is lent makes models look further ahead and hold more. \
                A take-back takes as long here as is promised, so that no promise can be broken; that is for a real cluster to show.\n"
    }
}

impl LoansCase {
    fn idle_used_pct(&self, without: &Outcome) -> f64 {
        100.0 * self.with.trained_gpu_seconds / without.idle_gpu_seconds.max(1.0)
    }

    fn extra_missed_points(&self, without: &Outcome) -> f64 {
        100.0 * (self.with.missed_share() - without.missed_share())
    }
}
