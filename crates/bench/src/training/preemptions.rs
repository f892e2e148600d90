//! Whom fifty preemptions take: our order beside the queue's, world by world.

use flyball_core::units::GpuMicros;
use flyball_simulator::training::preempted::{PreemptedWork, VictimOrder, preempt};
use std::fmt::Write as _;

const PREEMPTIONS: u64 = 50;
const WORLDS: u64 = 200;

/// What all worlds say together.
pub(super) struct Preempted {
    ours: PreemptedWork,
    ranked: PreemptedWork,
    queue: PreemptedWork,
    /// Of the world in which we saved the least, in per cent.
    worst_pct: f64,
}

/// Plays all worlds under both.
pub(super) fn all() -> Preempted {
    let [mut ours, mut ranked, mut queue] = [PreemptedWork::default(); 3];
    let mut worst_pct = f64::INFINITY;
    for seed in 0..WORLDS {
        let one = preempt(seed, PREEMPTIONS, VictimOrder::Ours);
        let other = preempt(seed, PREEMPTIONS, VictimOrder::NewestFirst);
        worst_pct = worst_pct.min(less_pct(one.redone, other.redone));
        ranked = sum(ranked, preempt(seed, PREEMPTIONS, VictimOrder::Ranked));
        ours = sum(ours, one);
        queue = sum(queue, other);
    }
    Preempted { ours, ranked, queue, worst_pct }
}

fn sum(one: PreemptedWork, other: PreemptedWork) -> PreemptedWork {
    PreemptedWork {
        redone: one.redone.saturating_add(other.redone),
        restarts: one.restarts.saturating_add(other.restarts),
        victims: one.victims + other.victims,
    }
}

fn less_pct(ours: GpuMicros, theirs: GpuMicros) -> f64 {
    100.0 * (1.0 - ours.get() as f64 / theirs.get().max(1) as f64)
}

impl Preempted {
    /// Work that is not thrown away, over all worlds.
    pub(super) fn saving_pct(&self) -> f64 {
        less_pct(self.ours.redone, self.queue.redone)
    }

    /// The same where each run has a number and Kueue takes one after the other.
    pub(super) fn ranked_saving_pct(&self) -> f64 {
        less_pct(self.ranked.redone, self.queue.redone)
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{PREEMPTIONS} preemptions in each of {WORLDS} made-up worlds: 24 runs of 8 to 64 GPUs and one priority, saves every \
             10 to 120 minutes, needs of 8 to 64 GPUs every 10 to 180 minutes. No public recording has runs with their saves, so \
             the worlds come from seeds. Beside us is Kueue's order: lowest priority, then who was admitted last, until there \
             is enough, less those without whom there is still enough. Work thrown away is what was done since the last save. \
             In the world where it helps the least it is {:.0} % less.\n\n\
             | Order | Work thrown away | Restarts | Runs preempted |\n|---|---|---|---|\n",
            self.worst_pct
        );
        let rows = [
            ("ours, for each need exactly", self.ours),
            ("ours, as ranks that Kueue goes by", self.ranked),
            ("newest first", self.queue),
        ];
        for (name, one) in rows {
            let PreemptedWork { redone, restarts, victims } = one;
            let _ = writeln!(text, "| {name} | {redone} | {restarts} | {victims} |");
        }
        text
    }
}
