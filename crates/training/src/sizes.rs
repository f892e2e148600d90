//! How many nodes a run should have that can do with more or fewer: the cheapest size that is in time, of those that can be
//! had.
//!
//! What a size does is not known before it was tried, so that both ways are counted against it: with fewer nodes a run takes as
//! much longer as it has fewer, with more it gains less than it gets more. So a run keeps its size unless another one has
//! cheaper machines, or only another one is in time.
//!
//! The rule of [`crate::deadline`] holds for each size by itself: whatever is chosen, on-demand machines of that size would
//! still end the run in time. Where that is so for none, the size that ends it soonest on demand is chosen.

use crate::deadline;
use crate::hours::{hours, per_hour};
use crate::interval;
use crate::memory::{FAR_H, RunMemory};
use crate::snapshot::{
    HeldMachine, SpotState, SpotZone, TrainingChoice, TrainingSnapshot, ZoneName,
};
use flyball_core::units::{Gpus, Micros, Money};
use std::collections::{BTreeMap, BTreeSet};

/// Twice the nodes do at least so much more: 2 to this power is 1.8.
const GAIN: f64 = 0.85;

/// Sizes that are looked at, beside the present one.
const SIZES: u32 = 16;

/// A change of size must save so much, in percent: how fast a size is, is only assumed.
const WORTH: f64 = 5.0;

/// Numbers of nodes that a run can use, and where each can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticRun {
    /// Minimum nodes.
    pub least: u32,
    /// Maximum nodes.
    pub most: u32,
    /// Nodes that it has, or was made for: what the snapshot is about.
    pub nodes: u32,
    /// The most nodes that can be had on spot, by zone. What it has counts as well.
    pub spot: BTreeMap<ZoneName, u32>,
    /// The most nodes that can be had on demand.
    pub on_demand: u32,
}

/// What a size comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeCandidate {
    /// Nodes.
    pub nodes: u32,
    /// The cheapest place for it that the deadline allows.
    pub choice: TrainingChoice,
    /// What finishing there is expected to cost.
    pub cost: Money,
    /// Time that it can still lose on demand; `None` if it would be late.
    pub slack: Option<Micros>,
}

/// The size that a run should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeDecision {
    /// The size.
    pub chosen: SizeCandidate,
    /// The present one, if it can be had.
    pub present: Option<SizeCandidate>,
}

/// The size that a run should have; `None` if none can be had.
///
/// It asks what the next hours look like and does not wait for a size: whether to wait for machines is
/// [`decide()`](crate::decide())'s, for the size that it is given.
pub fn size(
    snapshot: &TrainingSnapshot,
    run: &ElasticRun,
    memory: &RunMemory,
) -> Option<SizeDecision> {
    if run.nodes == 0 || snapshot.work_from_save().is_zero() {
        return None;
    }
    let all: Vec<SizeCandidate> = sizes(run)
        .into_iter()
        .filter_map(|nodes| candidate(snapshot, run, memory, nodes))
        .collect();
    let present = all.iter().find(|one| one.nodes == run.nodes).cloned();
    let in_time = || all.iter().filter(|one| one.slack.is_some());
    let chosen = match in_time().min_by_key(|one| (one.cost.micros(), one.nodes)) {
        Some(cheapest) => match &present {
            Some(present) if present.slack.is_some() && !is_worth(present, cheapest) => present,
            _ => cheapest,
        },
        None => all.iter().min_by_key(|one| {
            (on_demand_time(snapshot, run, one.nodes), one.nodes != run.nodes, one.nodes)
        })?,
    };
    Some(SizeDecision { chosen: chosen.clone(), present })
}

/// The same run with so many nodes. With others than it has, it has none: it leaves with what is saved, and restarts.
pub fn sized(snapshot: &TrainingSnapshot, from: u32, to: u32) -> TrainingSnapshot {
    if from == to {
        return snapshot.clone();
    }
    let gpus = u64::from(snapshot.gpus.get()) * u64::from(to) / u64::from(from.max(1));
    TrainingSnapshot {
        work_left: scaled(snapshot.work_left, from, to),
        unsaved: scaled(snapshot.unsaved, from, to),
        gpus: Gpus::new(u32::try_from(gpus).unwrap_or(u32::MAX)),
        held: HeldMachine::NONE,
        ..snapshot.clone()
    }
}

/// What takes so long with some nodes takes at most so long with others.
pub fn scaled(time: Micros, from: u32, to: u32) -> Micros {
    let ratio = f64::from(from.max(1)) / f64::from(to.max(1));
    let slower = if ratio > 1.0 { ratio } else { ratio.powf(GAIN) };
    Micros::new((time.get() as f64 * slower).ceil() as u64)
}

/// The present one, both ends, and what lies between them at even distances.
fn sizes(run: &ElasticRun) -> BTreeSet<u32> {
    let (least, most) = (run.least.max(1), run.most.max(run.least.max(1)));
    let step = ((most - least) / SIZES).max(1);
    let even = (least..=most).step_by(step as usize);
    even.chain([most, run.nodes]).collect()
}

fn on_demand_time(snapshot: &TrainingSnapshot, run: &ElasticRun, nodes: u32) -> Micros {
    let sized = sized(snapshot, run.nodes, nodes);
    let start = match sized.held.at {
        TrainingChoice::OnDemand => sized.held.ready_in,
        _ => sized.restart,
    };
    start.saturating_add(deadline::on_demand_time(sized.work_from_save(), sized.save))
}

fn candidate(
    snapshot: &TrainingSnapshot,
    run: &ElasticRun,
    memory: &RunMemory,
    nodes: u32,
) -> Option<SizeCandidate> {
    let mut sized = sized(snapshot, run.nodes, nodes);
    let has = |choice: &TrainingChoice| nodes == run.nodes && sized.held.at == *choice;
    // What has no on-demand machines to fall back on is never sure.
    if run.on_demand < nodes && !has(&TrainingChoice::OnDemand) {
        return None;
    }
    sized.zones.retain(|name, _| {
        let can = run.spot.get(name).is_some_and(|most| *most >= nodes);
        can || (nodes == run.nodes && snapshot.held.at == TrainingChoice::Spot(name.clone()))
    });
    // The snapshot says where the present size can be had. Where there are too few nodes for that, there may be enough for this one.
    let now = sized.now;
    let too_few = |name: &ZoneName| run.spot.get(name).is_some_and(|most| *most < run.nodes);
    let fewer = |(name, zone): &(&ZoneName, &mut SpotZone)| {
        nodes < run.nodes && too_few(name) && zone.available_for(now).is_none()
    };
    let there = sized.zones.iter_mut().filter(fewer);
    there.for_each(|(_, zone)| zone.state = SpotState::Available(now));
    let slack = deadline::slack(&sized);
    let spot = sized.available().map(|(zone, ..)| TrainingChoice::Spot(zone.clone()));
    let allowed = spot.filter(|choice| deadline::allows(&sized, choice));
    let places = allowed.chain([TrainingChoice::OnDemand]);
    let costs = places.map(|choice| (cost(&sized, memory, &choice), choice));
    let (cost, choice) = costs.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let currency = snapshot.on_demand.amount().currency();
    let cost = Money::from_micros((cost * 1e6).round() as i64, currency);
    Some(SizeCandidate { nodes, choice, cost, slack })
}

/// What finishing there costs, with the saves, and on spot with the reclaims that machines of this age have to expect.
fn cost(sized: &TrainingSnapshot, memory: &RunMemory, choice: &TrainingChoice) -> f64 {
    let held = sized.held.at == *choice;
    let work = hours(if held { sized.work_left } else { sized.work_from_save() });
    let start = hours(if held { sized.held.ready_in } else { sized.restart });
    let save = hours(sized.save);
    let TrainingChoice::Spot(zone) = choice else {
        let time = deadline::on_demand_time(sized.work_left, sized.save);
        return per_hour(sized.on_demand, sized.gpus) * (start + hours(time));
    };
    let seen = &sized.zones[zone];
    let age = seen.available_for(sized.now).unwrap_or(Micros::ZERO);
    let lives = memory.lives(zone);
    let every = hours(interval::spot(sized.save, &lives, age));
    let useful = if every > 0.0 { every / (every + save) } else { 1.0 };
    let life = lives.expected_h(hours(age), FAR_H);
    // A reclaim costs a restart and half an interval, and less than all of the machine's life.
    let lost = ((hours(sized.restart) + every / 2.0) / life).min(0.9);
    per_hour(seen.price, sized.gpus) * (start + work / useful / (1.0 - lost))
}

fn is_worth(present: &SizeCandidate, other: &SizeCandidate) -> bool {
    let (has, would) = (present.cost.micros() as f64, other.cost.micros() as f64);
    would < has * (1.0 - WORTH / 100.0)
}
