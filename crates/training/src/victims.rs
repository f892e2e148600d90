//! Whom to preempt: the runs that lose the least by it.
//!
//! A preempted run does again what it had not saved, pays a restart, and may come to be late. Schedulers know none of the
//! three: they take the lowest priority and then whoever came last, who may be about to save for the first time in an hour.

use flyball_core::units::{GpuMicros, Gpus, Micros};

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

/// What a set of victims costs, in the order in which it counts: GPUs of the highest priority that has to go, runs that come
/// to be late, GPU time thrown away, and how many they are. All are sums, so that a part of the cheapest set is the cheapest.
type Cost = (u64, u32, u128, u32);

const NONE: Cost = (0, 0, 0, 0);

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

fn with((highest, late, loss, count): Cost, one: &VictimCandidate, ceiling: i32) -> Cost {
    let gpus = if one.priority == ceiling { u64::from(one.gpus.get()) } else { 0 };
    let late = late + u32::from(one.would_be_late());
    (highest + gpus, late, loss + u128::from(one.loss().get()), count + 1)
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
        }
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
