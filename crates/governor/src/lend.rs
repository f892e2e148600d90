//! What training is lent of what models leave free, and what it gives back.
//!
//! Models come first: what they are to have is settled before. A run gets what it can work with or nothing. What is
//! only shown for a run takes nothing from the others.

use crate::model_state::ModelState;
use crate::policy::Policy;
use crate::pool::{Room, places};
use crate::share::{Place, gpus};
use flyball_core::decision::{Bound, Previous, RunAction, RunDecision};
use flyball_core::ids::{PoolId, RunId};
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Snapshot, TrainingRun};
use flyball_core::units::{Gpus, Timestamp};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Lends what is left of each pool.
pub(crate) fn lend(
    states: &[ModelState<'_>],
    snapshot: &Snapshot,
    previous: &Previous,
    policy: &Policy,
    lent_at: &mut BTreeMap<PoolId, Timestamp>,
) -> Vec<RunDecision> {
    if snapshot.runs.is_empty() {
        return Vec::new();
    }
    let places = places(states);
    let mut pools: BTreeMap<&PoolId, Vec<Borrower<'_>>> = BTreeMap::new();
    for (id, run) in &snapshot.runs {
        let before = previous.run_baseline(snapshot, id).get();
        pools.entry(&run.pool).or_default().push(Borrower { id, run, before });
    }
    let mut decided = BTreeMap::new();
    for (id, mut borrowers) in pools {
        let none = Vec::new();
        let here = places.get(id).unwrap_or(&none);
        let lending = policy.lending_of(id);
        let room = Room::of(id, here, states, snapshot, previous);
        let serving = gpus(states, here, ModelState::claimed);
        let mut left = room.left(serving, lending);
        borrowers.sort_by(|one, other| one.rank().cmp(&other.rank()));
        let now = snapshot.taken_at;
        let settled = lent_at
            .get(id)
            .is_none_or(|last| now.since(*last).is_some_and(|age| age >= lending.settle));
        let lends = lending.on && room.lends && !is_short(states, here);
        let mut changed = false;
        for borrower in borrowers.iter().filter(|one| one.run.acts) {
            let gets = borrower.gets(lends && settled, left);
            changed |= gets != borrower.before;
            left -= gets;
            decided.insert(borrower.id, (Gpus::new(borrower.before), Gpus::new(gets)));
        }
        for borrower in borrowers.iter().filter(|one| !one.run.acts) {
            // What it holds is in use by others, and it would go on holding it.
            let own = left.saturating_add(borrower.run.gpus.get());
            let gets = borrower.gets(lends, own);
            decided.insert(borrower.id, (Gpus::new(borrower.before), Gpus::new(gets)));
        }
        if changed {
            lent_at.insert(id.clone(), now);
        }
    }
    let decision = |(run, (before, gpus)): (&RunId, (Gpus, Gpus))| {
        let action = RunAction::between(before, gpus);
        let reason = match action {
            RunAction::Grow => Reason::Lent,
            RunAction::Shrink => Reason::TakenBack,
            RunAction::Hold => Reason::Steady,
        };
        RunDecision { run: run.clone(), gpus, reason, action }
    };
    decided.into_iter().map(decision).collect()
}

/// Whether a model that acts gets less than it needs because the pool has no more, or not all of it in this step.
fn is_short(states: &[ModelState<'_>], here: &[Place]) -> bool {
    here.iter().any(|(s, v)| {
        let (state, variant) = (&states[*s], &states[*s].variants[*v]);
        let cut = matches!(state.bound, Bound::Capacity | Bound::PoolLimit | Bound::Step);
        state.observed.acts() && cut && variant.target < variant.recommended
    })
}

/// A run that borrows, or would.
struct Borrower<'a> {
    id: &'a RunId,
    run: &'a TrainingRun,
    /// What it was to have.
    before: u32,
}

impl<'a> Borrower<'a> {
    /// Lent first and taken back last: what must be done first; then what is worth more; then what is lent already, because
    /// who comes later would else cost it a restart; then what would lose most work.
    fn rank(&self) -> impl Ord + use<'a> {
        let saved = self.run.last_saved.last_seen().copied();
        let deadline = (self.run.deadline.is_none(), self.run.deadline);
        (deadline, Reverse(self.worth()), self.before == 0, saved, self.id)
    }

    /// What its work is worth by the hour, twice as much while it has a loan: a run whose work gets less is worth more by the
    /// hour, and should not take from others for that alone.
    fn worth(&self) -> Option<u64> {
        let hourly =
            u64::try_from(self.run.value?.amount().micros()).ok().filter(|one| *one > 0)?;
        Some(if self.before == 0 { hourly } else { hourly.saturating_mul(2) })
    }

    /// What it should have of so many.
    fn gets(&self, may_grow: bool, left: u32) -> u32 {
        let most = if may_grow { self.run.most.get().max(self.before) } else { self.before };
        let gets = most.min(left);
        let too_few = gets < self.run.least.get() && (gets < self.before || self.before == 0);
        if too_few { 0 } else { gets }
    }
}
