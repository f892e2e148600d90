//! Whom preemptions take: the same runs and the same needs, once in our order and once in that of a queue that knows
//! nothing of saves.
//!
//! Made up, because no public recording has runs with their saves: sizes, intervals and times come from a seed. A preempted
//! run loses what it had not saved, waits, restarts, and can be preempted again.

use flyball_core::units::{GpuMicros, Gpus, Micros};
use flyball_training::victims::ranks;
use flyball_training::{VictimCandidate, victims};
use rand::RngExt;

use crate::chance::{Chance, Purpose, stream};

/// Who chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimOrder {
    /// `victims`, for a need that is known.
    Ours,
    /// `ranks`, as marks on the runs for a queue that takes one after the other, as Kueue does.
    Ranked,
    /// Kueue's: the lowest priority, then who was admitted last, until there is enough; then those are let go again
    /// without whom there is still enough.
    NewestFirst,
}

/// What preemptions took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptedWork {
    /// Work done and not saved, which is done again.
    pub redone: GpuMicros,
    /// Restarts on top.
    pub restarts: GpuMicros,
    /// Runs that were preempted.
    pub victims: u32,
}

/// Runs side by side.
const RUNS: usize = 24;
/// How long a preempted run waits for machines.
const WAIT: Micros = Micros::from_minutes(60);

/// A run that goes on for as long as the replay.
#[derive(Clone, Copy, Debug)]
struct QueuedRun {
    gpus: Gpus,
    restart: Micros,
    save: Micros,
    /// Work from one save to the next.
    every: Micros,
    admitted: Micros,
    /// From when on it computes.
    computes: Micros,
}

impl QueuedRun {
    fn drawn(chance: &mut Chance) -> Self {
        let minutes = |chance: &mut Chance, from: u64, to: u64| {
            Micros::from_minutes(chance.random_range(from..=to))
        };
        let admitted = minutes(chance, 0, 24 * 60);
        Self {
            gpus: Gpus::new(8 << chance.random_range(0..4u32)),
            restart: minutes(chance, 3, 15),
            save: Micros::from_seconds(chance.random_range(5..=120)),
            every: minutes(chance, 10, 120),
            admitted,
            computes: admitted,
        }
    }

    /// Work since the last save. While it saves, all since the one before is still at stake.
    fn unsaved(&self, now: Micros) -> Micros {
        let cycle = self.every.saturating_add(self.save);
        let into = now.saturating_sub(self.computes).get() % cycle.get();
        Micros::new(into).min(self.every)
    }

    fn candidate(&self, now: Micros) -> VictimCandidate {
        VictimCandidate {
            gpus: self.gpus,
            priority: 0,
            unsaved: self.unsaved(now),
            restart: self.restart,
            slack: None,
            wait: WAIT,
            value: None,
        }
    }
}

/// Plays so many preemptions, of the world of this seed.
pub fn preempt(seed: u64, preemptions: u64, order: VictimOrder) -> PreemptedWork {
    let mut chance = stream(seed, Purpose::Victims, 0);
    let mut runs: Vec<QueuedRun> = (0..RUNS).map(|_| QueuedRun::drawn(&mut chance)).collect();
    let mut now = Micros::from_minutes(24 * 60);
    let mut sum = PreemptedWork::default();
    for _ in 0..preemptions {
        now = now.saturating_add(Micros::from_minutes(chance.random_range(10..=180)));
        let need = Gpus::new(8 * chance.random_range(1..=8u32));
        let running: Vec<usize> = (0..RUNS).filter(|run| runs[*run].admitted <= now).collect();
        for run in chosen(&runs, &running, need, now, order) {
            let run = &mut runs[run];
            let add = |to: GpuMicros, time| to.saturating_add(GpuMicros::of(run.gpus, time));
            sum.redone = add(sum.redone, run.unsaved(now));
            sum.restarts = add(sum.restarts, run.restart);
            sum.victims += 1;
            run.admitted = now.saturating_add(WAIT);
            run.computes = run.admitted.saturating_add(run.restart);
        }
    }
    sum
}

fn chosen(
    runs: &[QueuedRun],
    running: &[usize],
    need: Gpus,
    now: Micros,
    order: VictimOrder,
) -> Vec<usize> {
    match order {
        VictimOrder::Ours => {
            let all: Vec<_> = running.iter().map(|run| runs[*run].candidate(now)).collect();
            victims(&all, need).into_iter().map(|place| running[place]).collect()
        }
        VictimOrder::Ranked => {
            let all: Vec<_> = running.iter().map(|run| runs[*run].candidate(now)).collect();
            one_by_one(runs, running, &ranks(&all, &[]), need)
        }
        VictimOrder::NewestFirst => one_by_one(runs, running, &vec![0; running.len()], need),
    }
}

/// By rank, then who was admitted last.
fn one_by_one(runs: &[QueuedRun], running: &[usize], ranks: &[u32], need: Gpus) -> Vec<usize> {
    let mut order: Vec<(usize, u32)> = running.iter().copied().zip(ranks.iter().copied()).collect();
    order.sort_by_key(|(run, rank)| (*rank, std::cmp::Reverse(runs[*run].admitted)));
    let (mut gpus, mut taken) = (Gpus::ZERO, Vec::new());
    for (run, _) in order {
        if gpus < need {
            gpus = gpus.saturating_add(runs[run].gpus);
            taken.push(run);
        }
    }
    for place in (0..taken.len().saturating_sub(1)).rev() {
        let without = gpus.saturating_sub(runs[taken[place]].gpus);
        if without >= need {
            gpus = without;
            taken.remove(place);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_has_just_saved_has_nothing_to_lose() {
        let mut chance = stream(1, Purpose::Victims, 0);
        let run = QueuedRun { admitted: Micros::ZERO, ..QueuedRun::drawn(&mut chance) };
        let run = QueuedRun { computes: Micros::ZERO, ..run };
        let cycle = run.every.saturating_add(run.save);
        assert_eq!(run.unsaved(cycle), Micros::ZERO);
        assert_eq!(run.unsaved(cycle.saturating_sub(Micros::new(1))), run.every);
    }

    #[test]
    fn the_queue_takes_the_last_and_lets_go_whom_it_does_not_need() {
        let mut chance = stream(1, Purpose::Victims, 0);
        let run = |gpus, admitted, chance: &mut Chance| QueuedRun {
            gpus: Gpus::new(gpus),
            admitted: Micros::from_minutes(admitted),
            ..QueuedRun::drawn(chance)
        };
        let runs = [run(8, 3, &mut chance), run(32, 1, &mut chance), run(8, 2, &mut chance)];
        assert_eq!(one_by_one(&runs, &[0, 1, 2], &[0; 3], Gpus::new(8)), [0]);
        assert_eq!(one_by_one(&runs, &[0, 1, 2], &[0; 3], Gpus::new(32)), [1]);
        assert_eq!(one_by_one(&runs, &[0, 1, 2], &[2, 1, 0], Gpus::new(8)), [2]);
    }

    #[test]
    fn our_order_throws_less_than_half_away() {
        for seed in 0..20 {
            let [ours, theirs] = [VictimOrder::Ours, VictimOrder::NewestFirst]
                .map(|order| preempt(seed, 50, order).redone.get());
            assert!(2 * ours < theirs, "{seed}: {ours} of {theirs}");
        }
    }

    /// A number on each run cannot say "these two together", and still says most of it.
    #[test]
    fn ranks_throw_less_than_half_away_in_the_sum_and_the_exact_choice_less_than_they() {
        let all = |order| (0..20).map(|seed| preempt(seed, 50, order).redone.get()).sum::<u64>();
        let [ours, ranked, theirs] =
            [VictimOrder::Ours, VictimOrder::Ranked, VictimOrder::NewestFirst].map(all);
        assert!(ours < ranked && 2 * ranked < theirs, "{ours} {ranked} {theirs}");
    }

    #[test]
    fn a_run_preempted_is_not_preempted_again_while_it_waits() {
        for order in [VictimOrder::Ours, VictimOrder::Ranked, VictimOrder::NewestFirst] {
            let played = preempt(3, 50, order);
            assert!(played.victims >= 50 && !played.restarts.is_zero(), "{order:?} {played:?}");
        }
    }
}
