//! Whom to preempt: the runs that lose the least by it.
//!
//! A preempted run does again what it had not saved, pays a restart, and may come to be late. Schedulers know none of the
//! three: they take the lowest priority and then whoever came last, who may be about to save for the first time in an hour.
//!
//! [`victims`] is the exact choice for a need that is known. A queue that takes one run after the other, and lets those go
//! again that it does not need, is given [`ranks`].

use flyball_core::units::{GpuMicros, Gpus, Micros, Money};
use std::cmp::Reverse;

/// A run that could be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VictimCandidate {
    /// Its GPUs; all of them go.
    pub gpus: Gpus,
    /// Its priority: a run goes only if those of lower priority have not enough.
    pub priority: i32,
    /// Work since its last save; of a run that does not report, the middle of its interval.
    pub unsaved: Micros,
    /// From asking for machines until its next step.
    pub restart: Micros,
    /// What it can still lose without being late; `None` if it has no deadline, or is late anyway.
    pub slack: Option<Micros>,
    /// How long it would wait for machines.
    pub wait: Micros,
    /// What its owner says that it is worth that it ends in time. Amounts of one queue are compared as numbers.
    pub value: Option<Money>,
}

impl VictimCandidate {
    /// GPU time that its preemption throws away.
    pub fn loss(&self) -> GpuMicros {
        GpuMicros::of(self.gpus, self.unsaved.saturating_add(self.restart))
    }

    /// Whether its preemption makes it late.
    pub fn would_be_late(&self) -> bool {
        let needs = self.unsaved.saturating_add(self.restart).saturating_add(self.wait);
        self.slack.is_some_and(|slack| slack < needs)
    }
}

impl VictimCandidate {
    /// What is lost of its value if it goes, in millionths.
    fn value_lost(&self) -> u128 {
        let value = self.value.filter(|_| self.would_be_late());
        value.map_or(0, |value| u128::from(value.micros().max(0).unsigned_abs()))
    }
}

/// What a set of victims costs, in the order in which it counts: GPUs of the highest priority that has to go, the value of
/// runs that come to be late, how many those are, GPU time thrown away, and how many go. All are sums, so that a part of the
/// cheapest set is the cheapest.
type Cost = (u64, u128, u32, u128, u32);

const NONE: Cost = (0, 0, 0, 0, 0);

/// Ranks are below so many: whoever carries them out has as many numbers between two priorities.
pub const RANKS: u32 = 10;

/// In which order a queue should take these runs, where it takes one after the other until it has enough and then lets those
/// go again that it does not need: for each its rank, the first to go at 0. Of one priority, who comes to be late goes last, by
/// value; the others go by what is thrown away. `before` are their ranks until now, which decide where losses differ by less
/// than a fifth, so that ranks do not change places all the time.
pub fn ranks(candidates: &[VictimCandidate], before: &[Option<u32>]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|place| {
        let one = &candidates[*place];
        let was = before.get(*place).copied().flatten();
        // Of those that were never ranked the later ones go first, as in the queue itself.
        let was = (was.unwrap_or(0), Reverse(*place));
        (one.priority, one.value_lost(), one.would_be_late(), class_of(one.loss()), was)
    });
    let mut ranks = vec![0; candidates.len()];
    for (rank, place) in order.into_iter().enumerate() {
        ranks[place] = u32::try_from(rank).unwrap_or(RANKS).min(RANKS - 1);
    }
    ranks
}

/// Classes of losses, each a fifth longer than the one before; the first is of less than a GPU-minute.
fn class_of(loss: GpuMicros) -> u32 {
    let mut ends = u128::from(Micros::from_minutes(1).get());
    let mut class = 0;
    while u128::from(loss.get()) >= ends {
        ends = ends * 6 / 5;
        class += 1;
    }
    class
}

/// The cheapest of these runs that together have so many GPUs, by their places in the list and in order; none if all
/// together have not.
pub fn victims(candidates: &[VictimCandidate], need: Gpus) -> Vec<usize> {
    let mut ceilings: Vec<i32> = candidates.iter().map(|one| one.priority).collect();
    ceilings.sort_unstable();
    ceilings.dedup();
    // The lowest ceiling under which there are enough; only then does cost count.
    let allowed = |ceiling: i32| candidates.iter().filter(move |one| one.priority <= ceiling);
    let gpus = |ceiling| allowed(ceiling).map(|one| u64::from(one.gpus.get())).sum::<u64>();
    let enough = ceilings.into_iter().find(|ceiling| gpus(*ceiling) >= u64::from(need.get()));
    enough.map_or_else(Vec::new, |ceiling| cheapest(candidates, need.get() as usize, ceiling))
}

/// The cheapest set under a ceiling, by the cost of each number of GPUs up to what is needed.
fn cheapest(candidates: &[VictimCandidate], need: usize, ceiling: i32) -> Vec<usize> {
    let mut best: Vec<Option<(Cost, Vec<usize>)>> = vec![None; need + 1];
    best[0] = Some((NONE, Vec::new()));
    for (place, one) in candidates.iter().enumerate() {
        if one.priority > ceiling || one.gpus.is_zero() {
            continue;
        }
        let gpus = one.gpus.get() as usize;
        for had in (0..=need).rev() {
            let Some((cost, set)) = &best[had] else { continue };
            let to = (had + gpus).min(need);
            let cost = with(*cost, one, ceiling);
            if had < need && best[to].as_ref().is_none_or(|(least, _)| cost < *least) {
                let set = set.iter().copied().chain([place]).collect();
                best[to] = Some((cost, set));
            }
        }
    }
    best.pop().flatten().map(|(_, set)| set).unwrap_or_default()
}

fn with((highest, value, late, loss, count): Cost, one: &VictimCandidate, ceiling: i32) -> Cost {
    let gpus = if one.priority == ceiling { u64::from(one.gpus.get()) } else { 0 };
    let late = late + u32::from(one.would_be_late());
    let loss = loss + u128::from(one.loss().get());
    (highest + gpus, value + one.value_lost(), late, loss, count + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(gpus: u32, unsaved_min: u64) -> VictimCandidate {
        VictimCandidate {
            gpus: Gpus::new(gpus),
            priority: 0,
            unsaved: Micros::from_minutes(unsaved_min),
            restart: Micros::from_minutes(5),
            slack: None,
            wait: Micros::ZERO,
            value: None,
        }
    }

    fn dollars(amount: i64) -> Option<Money> {
        Some(Money::from_micros(amount * 1_000_000, flyball_core::units::Currency::USD))
    }

    #[test]
    fn of_two_that_would_be_late_the_one_of_less_value_goes() {
        let tight = |value| VictimCandidate { slack: Some(Micros::ZERO), value, ..run(8, 0) };
        let all = [tight(dollars(900)), tight(dollars(20)), tight(None)];
        assert_eq!(victims(&all, Gpus::new(8)), [2]);
        assert_eq!(victims(&all[..2], Gpus::new(8)), [1]);
        assert_eq!(ranks(&all, &[]), [2, 1, 0]);
        // Nobody loses a value that would still be had; and a debt is no value.
        let roomy = VictimCandidate { value: dollars(900), ..run(8, 0) };
        assert_eq!(victims(&[run(8, 9), roomy], Gpus::new(8)), [1]);
        assert_eq!(victims(&[tight(dollars(-1)), tight(dollars(1))], Gpus::new(8)), [0]);
    }

    #[test]
    fn ranks_go_by_what_is_lost_and_stay_where_that_differs_little() {
        let all = [run(8, 50), run(8, 1), run(8, 20)];
        assert_eq!(ranks(&all, &[]), [2, 0, 1]);
        let close = [run(8, 50), run(8, 51)];
        assert_eq!(ranks(&close, &[Some(0), Some(1)]), [0, 1]);
        assert_eq!(ranks(&close, &[Some(1), Some(0)]), [1, 0]);
        // Nobody was ranked yet: the later one goes, as it would without us.
        assert_eq!(ranks(&close, &[None, None]), [1, 0]);
        let many = ranks(&vec![run(8, 5); 40], &[]);
        assert_eq!((many[39], many[30], many[0]), (0, 9, RANKS - 1));
        assert_eq!(ranks(&[], &[]), [0; 0]);
    }

    #[test]
    fn the_run_that_has_just_saved_goes() {
        assert_eq!(victims(&[run(8, 50), run(8, 1), run(8, 20)], Gpus::new(8)), [1]);
    }

    #[test]
    fn two_small_runs_go_where_they_lose_less_than_a_large_one() {
        assert_eq!(victims(&[run(16, 30), run(8, 2), run(8, 3)], Gpus::new(16)), [1, 2]);
        assert_eq!(victims(&[run(16, 1), run(8, 20), run(8, 3)], Gpus::new(16)), [0]);
    }

    #[test]
    fn a_run_that_would_be_late_goes_last_and_a_higher_priority_only_if_it_must() {
        let mut tight = run(8, 0);
        tight.slack = Some(Micros::from_minutes(4));
        assert_eq!(victims(&[tight, run(8, 50)], Gpus::new(8)), [1]);
        let mut valuable = run(8, 0);
        valuable.priority = 1;
        assert_eq!(victims(&[valuable, run(8, 50)], Gpus::new(8)), [1]);
        assert_eq!(victims(&[valuable, run(8, 50)], Gpus::new(16)), [0, 1]);
        assert_eq!(victims(&[run(8, 0)], Gpus::new(16)), [0; 0]);
        assert_eq!(victims(&[run(8, 0)], Gpus::new(0)), [0; 0]);
    }

    proptest! {
        /// Deciding twice changes nothing, and a higher priority never goes before a lower one.
        #[test]
        fn ranks_are_stable(
            runs in prop::collection::vec((1u32..9, 0u64..60, 0i32..3), 1..30),
        ) {
            let all: Vec<VictimCandidate> = runs.iter().map(|(gpus, unsaved, priority)| {
                VictimCandidate { priority: *priority, ..run(*gpus, *unsaved) }
            }).collect();
            let once = ranks(&all, &[]);
            let before: Vec<Option<u32>> = once.iter().map(|rank| Some(*rank)).collect();
            if all.len() <= RANKS as usize {
                prop_assert_eq!(&ranks(&all, &before), &once);
            }
            for (one, rank) in all.iter().zip(&once) {
                for (other, later) in all.iter().zip(&once) {
                    prop_assert!(one.priority <= other.priority || rank >= later);
                }
            }
        }

        /// Against every set that there is.
        #[test]
        fn no_set_that_is_large_enough_is_cheaper(
            runs in prop::collection::vec((1u32..9, 0u64..60, any::<bool>()), 1..9),
            need in 1u32..24,
        ) {
            let all: Vec<VictimCandidate> = runs.iter().map(|(gpus, unsaved, tight)| {
                let slack = tight.then_some(Micros::ZERO);
                VictimCandidate { slack, ..run(*gpus, *unsaved) }
            }).collect();
            let cost = |set: &[usize]| set.iter().fold(NONE, |sum, place| with(sum, &all[*place], 0));
            let gpus = |set: &[usize]| set.iter().map(|place| all[*place].gpus.get()).sum::<u32>();
            let sets = (0..1usize << all.len()).map(|bits| {
                (0..all.len()).filter(|place| bits >> place & 1 == 1).collect::<Vec<usize>>()
            });
            let least = sets.filter(|set| gpus(set) >= need).map(|set| cost(&set)).min();
            let chosen = victims(&all, Gpus::new(need));
            match least {
                None => prop_assert!(chosen.is_empty()),
                Some(least) => prop_assert_eq!(cost(&chosen), least),
            }
        }
    }
}
