//! The rule by which no run is late: it may be elsewhere than on on-demand machines only as long as those could still
//! finish it, whatever happens until somebody decides again.
//!
//! All of it is whole microseconds, so that no rounding can make a run late. It holds in every state: while a machine
//! starts, while a save is under way, and if machines are reclaimed in the very next step, with all work since the last
//! save.

use crate::interval;
use crate::snapshot::{TrainingChoice, TrainingSnapshot};
use flyball_core::units::{Micros, Timestamp};

/// The time in which on-demand machines finish so much work once they run: the work, their few saves, and the last one.
pub fn on_demand_time(work: Micros, save: Micros) -> Micros {
    if work.is_zero() {
        return Micros::ZERO;
    }
    let every = interval::on_demand(save).get().max(1);
    let saves = work.get() / every + 1;
    work.saturating_add(save.saturating_mul(saves))
}

/// The time that on-demand machines need from being asked for until this much work is done.
pub fn on_demand_from_request(snapshot: &TrainingSnapshot, work: Micros) -> Micros {
    snapshot.restart.saturating_add(on_demand_time(work, snapshot.save))
}

/// Time that the run can still lose: what is left until the deadline beyond what on-demand machines would need if they
/// were asked for then, counted from the last save. `None` if it cannot be in time even if they are asked for now.
///
/// Nobody reclaims on-demand machines, so that what was done on them counts; a run saves before it leaves them.
pub fn slack(snapshot: &TrainingSnapshot) -> Option<Micros> {
    let is_safe = snapshot.held.at == TrainingChoice::OnDemand;
    let (work, save) = match is_safe && !snapshot.unsaved.is_zero() {
        true => (snapshot.work_left, snapshot.save),
        false => (snapshot.work_from_save(), Micros::ZERO),
    };
    let need = on_demand_from_request(snapshot, work).saturating_add(save);
    snapshot.time_left().checked_sub(need)
}

/// When on-demand machines must be asked for at the latest if nothing is done until then.
pub fn latest_request(snapshot: &TrainingSnapshot) -> Timestamp {
    let need = on_demand_from_request(snapshot, snapshot.work_from_save());
    snapshot.deadline.saturating_sub(need)
}

/// Whether the run may be there until the next decision without ever being late for it.
pub fn allows(snapshot: &TrainingSnapshot, choice: &TrainingChoice) -> bool {
    match choice {
        TrainingChoice::OnDemand => true,
        // Whatever is computed until then may be lost, so that only time passes.
        TrainingChoice::Wait | TrainingChoice::Spot(_) => {
            slack(snapshot).is_some_and(|slack| slack >= snapshot.tick)
        }
    }
}

/// Whether a save should begin now, because only then may the run stay on its spot machines: a save takes its own
/// time and a tick, during which a reclaim would still take all that is not saved.
pub fn needs_save(snapshot: &TrainingSnapshot) -> bool {
    let on_spot = matches!(snapshot.held.at, TrainingChoice::Spot(_));
    let worth_it = snapshot.unsaved > snapshot.save;
    let room = snapshot.save.saturating_add(snapshot.tick.saturating_mul(2));
    on_spot && worth_it && slack(snapshot).is_some_and(|slack| slack < room)
}

/// Whether a save fits before the run leaves its machines by itself.
pub fn save_fits(snapshot: &TrainingSnapshot) -> bool {
    if snapshot.held.at == TrainingChoice::OnDemand {
        return true;
    }
    let room = snapshot.save.saturating_add(snapshot.tick);
    slack(snapshot).is_some_and(|slack| slack >= room)
}
