//! What must hold between a snapshot and a decision about a run.

use crate::deadline;
use crate::decide::TrainingDecision;
use crate::snapshot::{TrainingChoice, TrainingSnapshot};

/// What a decision broke, in words; empty if nothing.
///
/// 1. A run is elsewhere than on on-demand machines only while those could still finish it in time if they were asked for
///    at the next decision, whatever was lost until then.
/// 2. It goes only where machines can be had.
/// 3. It is told to save only where it runs, and only if there is something to save.
/// 4. No expected cost is negative.
pub fn broken(snapshot: &TrainingSnapshot, decision: &TrainingDecision) -> Vec<&'static str> {
    let mut broken = Vec::new();
    let works = !snapshot.work_from_save().is_zero();
    if works && !deadline::allows(snapshot, &decision.choice) {
        broken.push("the run may be late");
    }
    if let TrainingChoice::Spot(zone) = &decision.choice
        && !snapshot.is_available(zone)
    {
        broken.push("there are no spot machines in this zone");
    }
    if decision.save_now && (snapshot.unsaved.is_zero() || !snapshot.held.ready_in.is_zero()) {
        broken.push("there is nothing to save");
    }
    if decision.candidates.iter().any(|(_, cost)| cost.is_negative()) {
        broken.push("an expected cost is negative");
    }
    broken
}
