//! Who kept the limit, and at what price. Pure.

use super::play::{Answered, CLAIRVOYANT, Came, Halves, TRIED, rivals};
use super::world::World;
use flyball_figures::quantile::median;

/// The share of requests that may miss: `flyball backtest`'s own default.
pub(super) const LIMIT: f64 = 0.01;
/// The clairvoyant counts in whole minutes, and what a replay pays for ends with the trace.
const ROUNDING: f64 = 0.01;

/// What came of one world.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) world: String,
    pub(super) governor: Came,
    pub(super) clairvoyant: f64,
    /// Who knows how the load moves, and not what comes.
    pub(super) causal: Option<Came>,
    /// The cheapest that kept the limit, of rivals at their defaults and as they were tuned on the first half.
    pub(super) best: Option<Came>,
    /// One of them that both missed fewer and cost less.
    pub(super) dominated_by: Option<Came>,
    /// In the second half: the governor, and the cheapest that kept the limit in the first, static numbers too.
    pub(super) later: Came,
    pub(super) picked: Option<Came>,
    /// Static numbers of which both methods say the same, and all of them.
    pub(super) agreed: (usize, usize),
    /// Policies that were cheaper than the clairvoyant and kept the limit, in either method.
    pub(super) below: usize,
}

/// How the governor did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Somebody kept the limit, and so did it.
    WithinLimit,
    /// Somebody kept the limit, and it did not.
    Broke,
    /// Nobody kept the limit, and nobody both missed fewer and cost less.
    Unbeaten,
    /// Nobody kept the limit, and somebody did both.
    Dominated,
}

/// Over all worlds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sums {
    pub(super) agree_pct: f64,
    pub(super) below_clairvoyant: f64,
    /// Of the worlds in which somebody kept the limit, or nobody and the governor is not dominated.
    pub(super) within_limit_pct: f64,
    /// Of those in which both kept it, it was the cheapest.
    pub(super) cheapest_pct: f64,
    /// The most that it was dearer than the best.
    pub(super) worst_pct: f64,
    /// Later it kept the limit, and what an owner would have picked did not or cost more; or both missed too much and
    /// the pick was not better in both; or an owner had nothing to pick.
    pub(super) over_picked_pct: f64,
    /// What it cost later over what an owner would have picked, in the middle of the worlds in which both kept the limit.
    pub(super) over_picked_cost_pct: f64,
}

impl Came {
    pub(super) fn keeps(&self) -> bool {
        self.missed <= LIMIT
    }
}

impl Verdict {
    pub(super) fn of(world: &World, whole: &Answered, halves: &Halves, flow: &[Came]) -> Self {
        let (causal, whole) = (whole.causal.clone(), whole.came.as_slice());
        let governor = named(whole, "governor");
        let contenders = contenders(&halves.first);
        let rivals = || whole.iter().filter(|one| contenders.contains(&one.policy.as_str()));
        let beats =
            |one: &&Came| one.missed < governor.missed && one.gpu_hours < governor.gpu_hours;
        let picked = cheapest(halves.first.iter().filter(|one| is_rival(one)));
        let below = |all: &[Came]| {
            let within_limit = all.iter().filter(|one| one.keeps() && one.policy != CLAIRVOYANT);
            let beats = |one: &&Came| one.gpu_hours < (1.0 - ROUNDING) * bound(all, one.missed);
            within_limit.filter(beats).count()
        };
        let fixed: Vec<&Came> = whole.iter().filter(|one| is_static(one)).collect();
        let same = |one: &&&Came| named(flow, &one.policy).keeps() == one.keeps();
        Self {
            world: world.to_string(),
            clairvoyant: named(whole, CLAIRVOYANT).gpu_hours,
            causal,
            best: cheapest(rivals()),
            dominated_by: rivals().find(beats).cloned(),
            later: named(&halves.second, "governor"),
            picked: picked.map(|picked| named(&halves.second, &picked.policy)),
            agreed: (fixed.iter().filter(same).count(), fixed.len()),
            below: below(whole) + below(flow),
            governor,
        }
    }

    pub(super) fn stand(&self) -> Stand {
        match (&self.best, self.governor.keeps(), &self.dominated_by) {
            (_, true, _) => Stand::WithinLimit,
            (Some(_), false, _) => Stand::Broke,
            (None, false, None) => Stand::Unbeaten,
            (None, false, Some(_)) => Stand::Dominated,
        }
    }

    /// Whether it was the better choice for what came later.
    fn beats_picked(&self) -> bool {
        let Some(picked) = &self.picked else { return true };
        let cheaper = self.later.gpu_hours <= 1.0005 * picked.gpu_hours;
        match (self.later.keeps(), picked.keeps()) {
            (true, true) => cheaper,
            (true, false) => true,
            (false, true) => false,
            (false, false) => cheaper || self.later.missed <= picked.missed,
        }
    }

    /// What it cost later over what an owner would have picked, in percent, where both kept the limit.
    fn over_picked_pct(&self) -> Option<f64> {
        let picked = self.picked.as_ref().filter(|one| one.keeps() && self.later.keeps())?;
        Some(100.0 * (self.later.gpu_hours / picked.gpu_hours - 1.0))
    }

    /// How much dearer than the best it was, in percent, where both kept the limit.
    pub(super) fn dearer_pct(&self) -> Option<f64> {
        let best = self.best.as_ref().filter(|_| self.governor.keeps())?;
        Some(100.0 * (self.governor.gpu_hours / best.gpu_hours - 1.0))
    }
}

/// Sums over worlds.
pub(super) fn all(verdicts: &[Verdict]) -> Sums {
    let count = |test: &dyn Fn(&Verdict) -> bool| verdicts.iter().filter(|one| test(one)).count();
    let part = |some: usize, of: usize| 100.0 * some as f64 / of.max(1) as f64;
    let dearer: Vec<f64> = verdicts.iter().filter_map(Verdict::dearer_pct).collect();
    let agreed =
        verdicts.iter().fold((0, 0), |sum, one| (sum.0 + one.agreed.0, sum.1 + one.agreed.1));
    Sums {
        agree_pct: part(agreed.0, agreed.1),
        below_clairvoyant: verdicts.iter().map(|one| one.below as f64).sum(),
        within_limit_pct: part(
            count(&|one| matches!(one.stand(), Stand::WithinLimit | Stand::Unbeaten)),
            verdicts.len(),
        ),
        cheapest_pct: part(dearer.iter().filter(|pct| **pct <= 0.05).count(), dearer.len()),
        worst_pct: dearer.iter().copied().fold(0.0, f64::max),
        over_picked_pct: part(count(&Verdict::beats_picked), verdicts.len()),
        over_picked_cost_pct: median(verdicts.iter().filter_map(Verdict::over_picked_pct)),
    }
}

/// Rivals at their defaults, and the setting of each that was the cheapest to keep the limit in the first half;
/// so of numbers that never change.
pub(super) fn contenders(first: &[Came]) -> Vec<&str> {
    let tuned = |family: &str| {
        let settings = first.iter().filter(|one| one.policy.split('@').next() == Some(family));
        let within_limit = settings.filter(|one| one.keeps());
        within_limit
            .min_by(|a, b| a.gpu_hours.total_cmp(&b.gpu_hours))
            .map(|one| one.policy.as_str())
    };
    let mut all: Vec<&str> = rivals().collect();
    let families = TRIED.iter().filter_map(|tried| tried.split('@').next());
    for tuned in families.chain(["static"]).filter_map(tuned) {
        if !all.contains(&tuned) {
            all.push(tuned);
        }
    }
    all
}

fn is_static(one: &Came) -> bool {
    one.policy.starts_with("static@")
}

fn is_rival(one: &Came) -> bool {
    one.policy != "governor" && one.policy != CLAIRVOYANT
}

fn cheapest<'a>(all: impl Iterator<Item = &'a Came>) -> Option<Came> {
    let within_limit = all.filter(|one| one.keeps());
    within_limit.min_by(|a, b| a.gpu_hours.total_cmp(&b.gpu_hours)).cloned()
}

/// What the clairvoyant pays where it may miss so many: the line between the corners beside it.
fn bound(all: &[Came], missed: f64) -> f64 {
    let corners = all.iter().filter(|one| one.policy == CLAIRVOYANT);
    let mut corners: Vec<(f64, f64)> = corners.map(|one| (one.missed, one.gpu_hours)).collect();
    corners.sort_by(|a, b| a.0.total_cmp(&b.0));
    let after = corners.partition_point(|corner| corner.0 <= missed);
    match (corners.get(after.wrapping_sub(1)), corners.get(after)) {
        (Some(before), Some(after)) => {
            let part = (missed - before.0) / (after.0 - before.0);
            before.1 + part * (after.1 - before.1)
        }
        (Some(last), None) => last.1,
        (None, _) => 0.0,
    }
}

/// What came of this policy; nothing at all where it was not asked for.
fn named(all: &[Came], policy: &str) -> Came {
    all.iter().find(|one| one.policy == policy).cloned().unwrap_or_else(|| Came {
        policy: policy.to_owned(),
        gpu_hours: 0.0,
        missed: 1.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(all: &[(&str, f64, f64)]) -> Vec<Came> {
        let one = |(policy, gpu_hours, missed): &(&str, f64, f64)| Came {
            policy: (*policy).to_owned(),
            gpu_hours: *gpu_hours,
            missed: *missed,
        };
        all.iter().map(one).collect()
    }

    fn verdict(whole: &[(&str, f64, f64)]) -> Verdict {
        let whole = came(whole);
        let halves = Halves { first: whole.clone(), second: whole.clone() };
        let whole = Answered { came: whole, causal: None, per_replica: 1.0 };
        let flow = came(&[("clairvoyant", 3.0, 0.0), ("static@2", 2.0, 0.5)]);
        Verdict::of(&super::super::world::all()[0], &whole, &halves, &flow)
    }

    #[test]
    fn whoever_misses_some_is_held_against_a_clairvoyant_that_may() {
        let all =
            came(&[("clairvoyant", 4.0, 0.0), ("clairvoyant", 3.0, 0.01), ("hpa", 3.4, 0.005)]);
        assert!((bound(&all, 0.005) - 3.5).abs() < 1e-9);
        assert_eq!((bound(&all, 0.0), bound(&all, 0.5)), (4.0, 3.0));
        assert_eq!(bound(&all[2..], 0.0), 0.0, "nobody knows");
    }

    #[test]
    fn the_best_is_the_cheapest_that_keeps_the_limit_and_could_have_been_chosen() {
        let one = verdict(&[
            ("clairvoyant", 3.0, 0.0),
            ("governor", 5.5, 0.005),
            ("keda", 4.0, 0.02),
            ("keda@20", 3.5, 0.03),
            ("hpa", 5.0, 0.01),
            ("static@2", 4.5, 0.0),
        ]);
        assert_eq!(one.stand(), Stand::WithinLimit);
        // Two replicas kept it in the first half: an owner would have them.
        assert!((one.dearer_pct().unwrap() - 100.0 / 4.5).abs() < 1e-9);
        assert_eq!(one.picked.as_ref().unwrap().policy, "static@2");
        assert_eq!(one.agreed, (0, 1), "the flow says that two are not enough");
        let sums = all(&[one]);
        assert_eq!((sums.within_limit_pct, sums.cheapest_pct), (100.0, 0.0));
        assert_eq!(sums.over_picked_pct, 0.0, "two replicas would have been cheaper later, too");
        assert!((sums.over_picked_cost_pct - 100.0 / 4.5).abs() < 1e-9);
    }

    #[test]
    fn where_nobody_keeps_it_whoever_is_better_in_both_dominates() {
        let world = |rival: (&'static str, f64, f64)| {
            verdict(&[("clairvoyant", 3.0, 0.0), ("governor", 5.0, 0.1), rival])
        };
        assert_eq!(world(("hpa", 4.0, 0.2)).stand(), Stand::Unbeaten);
        assert_eq!(world(("hpa", 4.0, 0.05)).stand(), Stand::Dominated);
        assert_eq!(world(("hpa", 9.0, 0.005)).stand(), Stand::Broke);
        let sums = all(&[world(("hpa", 4.0, 0.2)), world(("hpa", 4.0, 0.05))]);
        assert_eq!(sums.within_limit_pct, 50.0);
    }

    #[test]
    fn nobody_who_keeps_the_limit_is_below_the_clairvoyant() {
        let one = verdict(&[
            ("clairvoyant", 3.0, 0.0),
            ("governor", 2.0, 0.0),
            ("hpa", 2.0, 0.5),
            ("keda", 2.98, 0.0),
        ]);
        assert_eq!(one.below, 1);
    }
}
