//! What each run cost under each policy, and what that says cell by cell.

use super::worlds::{Reach, SLACKS, World};
use crate::parallel;
use flyball_core::units::Micros;
use flyball_simulator::training::optimum::optimum;
use flyball_simulator::training::ours::{OurPolicy, watched};
use flyball_simulator::training::play;
use flyball_simulator::training::rivals::RunRival;
use std::collections::BTreeMap;

/// One run, in per cent of what on-demand machines alone cost.
pub(super) struct Came {
    pub(super) set: String,
    pub(super) reach: Reach,
    pub(super) slack: f64,
    pub(super) optimum: f64,
    pub(super) ours: f64,
    /// The same decisions with the statistics of the whole recording, its future included.
    pub(super) knows: f64,
    /// In the order of [`RunRival::ALL`].
    pub(super) rivals: Vec<f64>,
    pub(super) late: bool,
    pub(super) rivals_late: Vec<bool>,
    pub(super) broken: Vec<&'static str>,
    /// Lost, saving and starting, in per cent of the work.
    pub(super) overheads: [f64; 3],
}

/// Plays all of them, on all cores.
pub(super) fn all(worlds: &[World<'_>]) -> Vec<Came> {
    parallel::map(worlds, came)
}

fn came(world: &World<'_>) -> Came {
    let World { set, slack, run } = world;
    let market = &set.market;
    let whole = run.on_demand_dollars(market);
    let share = |dollars: f64| 100.0 * dollars / whole;
    let memory = watched(market, run, 0..run.start);
    let ours = play(market, run, &mut OurPolicy::with(memory.clone()));
    let knows = play(market, run, &mut OurPolicy::with(watched(market, run, 0..market.steps)));
    let rivals = RunRival::ALL
        .map(|rival| play(market, run, &mut rival.policy(run.work, run.allowed, memory.clone())));
    let part = |time: Micros| 100.0 * time.as_seconds() / run.work.as_seconds();
    Came {
        set: set.name.clone(),
        reach: set.reach,
        slack: *slack,
        optimum: optimum(market, run).map_or(f64::NAN, share),
        ours: share(ours.dollars),
        knows: share(knows.dollars),
        rivals: rivals.iter().map(|rival| share(rival.dollars)).collect(),
        late: ours.late,
        rivals_late: rivals.iter().map(|rival| rival.late).collect(),
        overheads: [ours.lost, ours.saving, ours.starting].map(part),
        broken: ours.broken,
    }
}

/// What all runs say together.
pub(super) struct Sums {
    pub(super) runs: usize,
    pub(super) late: usize,
    pub(super) broken: usize,
    /// Runs that were cheaper than the bound: there must be none.
    pub(super) below_optimum: usize,
    pub(super) cells: usize,
    pub(super) won: usize,
    /// Points above the optimum, of every run in order.
    points: Vec<f64>,
}

impl Sums {
    pub(super) fn of(all: &[Came]) -> Self {
        let mut cells: BTreeMap<(&str, u64), Vec<&Came>> = BTreeMap::new();
        for one in all {
            cells.entry((&one.set, (one.slack * 100.0) as u64)).or_default().push(one);
        }
        let beats = |cell: &&Vec<&Came>| {
            let ours = mean(cell, |one| one.ours);
            let bars = [RunRival::Greedy, RunRival::UniformProgress];
            bars.into_iter().all(|rival| ours < mean(cell, |one| of(one, rival)))
        };
        let below = |one: &&Came| {
            let rivals = one.rivals.iter().zip(&one.rivals_late);
            let in_time = rivals.filter(|(_, late)| !**late).map(|(cost, _)| *cost);
            in_time.chain([one.ours]).any(|cost| cost < one.optimum - 1e-6)
        };
        let mut points: Vec<f64> = all.iter().map(|one| one.ours - one.optimum).collect();
        points.sort_by(f64::total_cmp);
        Self {
            runs: all.len(),
            late: all.iter().filter(|one| one.late).count(),
            broken: all.iter().filter(|one| !one.broken.is_empty()).count(),
            below_optimum: all.iter().filter(below).count(),
            cells: cells.len(),
            won: cells.values().filter(beats).count(),
            points,
        }
    }

    pub(super) fn won_pct(&self) -> f64 {
        100.0 * self.won as f64 / self.cells.max(1) as f64
    }

    pub(super) fn median(&self) -> f64 {
        self.points.get(self.points.len() / 2).copied().unwrap_or(f64::NAN)
    }

    pub(super) fn most(&self) -> f64 {
        self.points.last().copied().unwrap_or(f64::NAN)
    }
}

/// What a rival paid.
pub(super) fn of(came: &Came, rival: RunRival) -> f64 {
    let place = RunRival::ALL.iter().position(|one| *one == rival);
    place.and_then(|place| came.rivals.get(place)).copied().unwrap_or(f64::NAN)
}

pub(super) fn mean(all: &[&Came], of: impl Fn(&Came) -> f64) -> f64 {
    all.iter().map(|one| of(one)).sum::<f64>() / all.len().max(1) as f64
}

/// Runs by how many zones they may use and by slack.
pub(super) fn groups(all: &[Came]) -> Vec<(Reach, f64, Vec<&Came>)> {
    let mut groups = Vec::new();
    for reach in Reach::ALL {
        for slack in SLACKS {
            let own = all.iter().filter(|one| one.reach == reach && one.slack == slack);
            let own: Vec<&Came> = own.collect();
            if !own.is_empty() {
                groups.push((reach, slack, own));
            }
        }
    }
    groups
}
