//! Which optional steps a run has time for.
//!
//! What every commit needs always runs. The rest runs if its minutes fit into what the budget leaves
//! after the minutes that are gone and those that are still needed by steps that always run. So a
//! machine that has never seen the project does what matters in time, and one with full caches does
//! everything. A pure choice: it is given minutes and knows no clock.

use std::fmt;

/// Minutes, as estimated or measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(super) struct Minutes(pub(super) f64);

/// What a step is to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Every commit needs it.
    Always,
    /// It runs when there is time.
    IfTime,
}

/// How long a step takes on two cores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    /// With nothing of it in the caches.
    pub(super) cold: Minutes,
    /// With all of it there.
    pub(super) warm: Minutes,
    /// Where the numbers are from.
    pub(super) source: &'static str,
}

/// A step, as far as time is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) need: Need,
    pub(super) estimate: Estimate,
    /// Whether all that it needs is in the caches.
    pub(super) cached: bool,
}

/// Whether a step runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Run,
    /// Why not.
    Skip(String),
}

impl Estimate {
    /// From the cold and the warm minutes that were seen.
    pub(super) const fn seen(cold: f64, warm: f64) -> Self {
        let source = "seen on two cores on 2026-11-16, docs/decisions/0034";
        Self { cold: Minutes(cold), warm: Minutes(warm), source }
    }
}

impl Cost {
    const fn minutes(&self) -> Minutes {
        if self.cached { self.estimate.warm } else { self.estimate.cold }
    }
}

/// Whether the first of these steps runs, after so many minutes of the budget are gone. The others are
/// those that come after it.
pub(super) fn verdict(budget: Minutes, gone: Minutes, steps: &[Cost]) -> Verdict {
    let Some((step, later)) = steps.split_first() else { return Verdict::Run };
    if step.need == Need::Always {
        return Verdict::Run;
    }
    let needed = later.iter().filter(|later| later.need == Need::Always);
    let ahead = Minutes(needed.map(|later| later.minutes().0).sum());
    let cost = step.minutes();
    if gone.0 + ahead.0 + cost.0 <= budget.0 {
        return Verdict::Run;
    }
    let caches = if step.cached { "with its caches" } else { "without its caches" };
    let source = step.estimate.source;
    Verdict::Skip(format!(
        "about {cost} {caches} ({source}); of {budget} min {gone} are gone and {ahead} needed by \
         later steps"
    ))
}

impl fmt::Display for Minutes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.0}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Need::{Always, IfTime};

    const BUDGET: Minutes = Minutes(55.0);

    fn step(need: Need, cold: f64, cached: bool) -> Cost {
        let estimate = Estimate { cold: Minutes(cold), warm: Minutes(1.0), source: "a test" };
        Cost { need, estimate, cached }
    }

    fn runs(gone: f64, steps: &[Cost]) -> bool {
        verdict(BUDGET, Minutes(gone), steps) == Verdict::Run
    }

    #[test]
    fn what_is_always_needed_runs_however_late_it_is() {
        assert!(runs(500.0, &[step(Always, 30.0, false), step(Always, 30.0, false)]));
    }

    #[test]
    fn an_optional_step_leaves_their_minutes_to_those_that_are_needed() {
        let later = [step(Always, 20.0, false), step(IfTime, 90.0, false), step(Always, 9.0, true)];
        let steps = |cold| [[step(IfTime, cold, false)].as_slice(), &later].concat();
        // 20 cold, 1 with its caches, and nothing for what is optional itself.
        assert!(runs(20.0, &steps(14.0)));
        assert!(!runs(20.0, &steps(14.1)));
        assert!(!runs(20.1, &steps(14.0)));
    }

    #[test]
    fn caches_make_room() {
        assert!(!runs(50.0, &[step(IfTime, 14.0, false)]));
        assert!(runs(50.0, &[step(IfTime, 14.0, true)]));
        assert!(!runs(54.5, &[step(IfTime, 14.0, true)]));
    }

    #[test]
    fn a_skip_says_what_it_would_have_cost_and_where_the_time_is() {
        let steps = [step(IfTime, 14.0, false), step(Always, 20.0, false)];
        let Verdict::Skip(why) = verdict(BUDGET, Minutes(30.0), &steps) else { panic!("it runs") };
        let expected = "about 14 without its caches (a test); of 55 min 30 are gone and 20 needed by later steps";
        assert_eq!(why, expected);
    }

    #[test]
    fn a_larger_budget_runs_all_that_a_smaller_one_does() {
        let steps: Vec<Cost> = (0..64_u32)
            .map(|n| {
                let need = if n % 3 == 0 { Always } else { IfTime };
                step(need, f64::from(n % 7), n % 2 == 0)
            })
            .collect();
        for first in 0..steps.len() {
            for gone in [0.0, 20.0, 60.0] {
                let mut ran = false;
                for budget in [0.0, 30.0, 60.0, 90.0, 300.0] {
                    let runs =
                        verdict(Minutes(budget), Minutes(gone), &steps[first..]) == Verdict::Run;
                    assert!(runs || !ran, "{first}, {gone}, {budget}");
                    ran = runs;
                }
            }
        }
    }
}
