//! What is to be done about a run whose mode is Act, one step at a time. Pure.
//!
//! A run is moved by: asking it to save, if that fits; having it stand still, through Kueue's Workload where it is queued and
//! the JobSet's own switch where it is not; changing the node selector, which only a suspended JobSet allows; and letting it
//! go on. Each look does the next step and no more, so that whoever leads next goes on from what is there.

use super::build::{JobSetPlan, job_set};
use super::marks::PLACED;
use super::{RunPhase, SeenRun, TrackedRun, gate};
use crate::observe::Outlook;
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::heartbeat::{HeartbeatInstructions, MIN_SAVE_EVERY};
use flyball_resources::training_run::{HeartbeatSource, RunMode};
use flyball_training::{TrainingChoice, TrainingDecision};
use serde_json::Value;
use std::net::SocketAddr;

/// A save that was asked for is waited for as long as it takes, and so much longer.
const PATIENCE: Micros = Micros::from_minutes(1);

/// While a node is about to go, saves are asked for so far apart: no taint says when it goes, and the shortest notices are of
/// half a minute.
const SAVES_APART: Micros = Micros::from_seconds(20);

/// The same, in times that a save takes.
const SAVES_APART_TIMES: u64 = 10;

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum RunStep {
    /// Make the JobSet, or write where it should be.
    Apply(Box<Value>),
    /// Let Kueue admit the Workload of this name, or take its machines back.
    Activate {
        /// Its name.
        workload: String,
        /// Which of the two.
        active: bool,
    },
    /// Ask the run to save.
    Save {
        /// Where.
        address: SocketAddr,
        /// What it is told.
        instructions: HeartbeatInstructions,
    },
}

impl RunStep {
    /// Its word in metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Apply(_) => "run",
            Self::Activate { .. } => "admission",
            Self::Save { .. } => "save",
        }
    }
}

/// The next step for a run, if there is one.
pub fn next_step(
    seen: &SeenRun,
    tracked: &TrackedRun,
    frozen: bool,
    now: Timestamp,
) -> Option<RunStep> {
    let spec = &seen.run.spec;
    if spec.mode != RunMode::Act || frozen {
        return None;
    }
    if let Some(step) = save_before_a_node_goes(seen, tracked, now) {
        return Some(step);
    }
    let Some(job) = &spec.job else {
        let (_, decision) = tracked.decided.as_ref()?;
        return advise(seen, tracked, decision, now);
    };
    let decided = tracked.decided.as_ref();
    let choice = decided.map(|(_, decision)| &decision.choice);
    let kueue = job.queue.is_some();
    let apply = |choice: Option<&TrainingChoice>, suspend: Option<bool>| {
        let plan = JobSetPlan {
            choice,
            labelled: seen.market.labelled,
            nodes: None,
            resource: &seen.market.resource,
            save_every: match seen.workload.phase {
                RunPhase::NotMade => decided.map(|(_, decision)| decision.save_every),
                _ => seen.workload.place.save_every,
            },
            suspend,
        };
        RunStep::Apply(Box::new(job_set(&seen.run, job, &plan)))
    };
    let place = &seen.workload.place;
    let activate = |active| Some(RunStep::Activate { workload: place.workload.clone()?, active });
    let holds = seen.gang.holding().next().is_some();
    if !holds && gate::budget_spent(seen, tracked).is_some() {
        let may_start = seen.workload.phase == RunPhase::Suspended && kueue && !place.inactive;
        return if may_start { activate(false) } else { None };
    }
    // One that was refused is tried again, and not with each look.
    let lately = tracked.placed_at.and_then(|at| now.since(at));
    let may_apply = lately.is_none_or(|since| since >= PATIENCE);
    match seen.workload.phase {
        // A run that waits for spot machines needs none yet.
        RunPhase::NotMade if choice == Some(&TrainingChoice::Wait) => None,
        RunPhase::NotMade => may_apply.then(|| apply(choice, (!kueue).then_some(false))),
        RunPhase::Suspended => {
            let choice = choice?;
            let wait = *choice == TrainingChoice::Wait;
            if !wait && place.placed.as_deref() != Some(&choice.to_string()) {
                // Kueue has not admitted it, or was told to take its machines back.
                return (may_apply && !holds)
                    .then(|| apply(Some(choice), (!kueue).then_some(true)));
            }
            match (wait, place.inactive) {
                (false, true) => activate(true),
                (true, false) if kueue => activate(false),
                (false, false) if !kueue => Some(apply(Some(choice), Some(false))),
                _ => None,
            }
        }
        RunPhase::Active => {
            let (at, decision) = decided?;
            if !moves(seen, decision) {
                return advise(seen, tracked, decision, now);
            }
            match leave(seen, tracked, (*at, decision), now) {
                Leave::Later => None,
                Leave::Save(step) => Some(step),
                Leave::Now if kueue && place.inactive => None,
                Leave::Now if kueue => activate(false),
                // Its place is changed once it stands still.
                Leave::Now => Some(placed_as_is(seen, &apply)),
            }
        }
        _ => None,
    }
}

/// What leaving takes next.
enum Leave {
    Later,
    Save(RunStep),
    Now,
}

/// Whether it runs elsewhere than it should. One that nobody placed is where it is.
fn moves(seen: &SeenRun, decision: &TrainingDecision) -> bool {
    let placed = seen.workload.place.placed.as_deref();
    placed.is_some_and(|placed| placed != "anywhere" && placed != decision.choice.to_string())
}

fn leave(
    seen: &SeenRun,
    tracked: &TrackedRun,
    (at, decision): (Timestamp, &TrainingDecision),
    now: Timestamp,
) -> Leave {
    let Some(address) = address(seen).filter(|_| decision.save_now) else { return Leave::Now };
    let totals = &tracked.totals;
    // What is done meanwhile is a step or two.
    let saved = totals.last.as_ref().is_some_and(|last| last.steps_at_risk() <= 2);
    let save = totals.last.as_ref().and_then(|last| last.save_time).unwrap_or(Micros::ZERO);
    let waited = now.since(at).unwrap_or(Micros::ZERO);
    if saved || waited > save.saturating_mul(2).saturating_add(PATIENCE) {
        return Leave::Now;
    }
    match tracked.instructed_at.is_some_and(|instructed| instructed >= at) {
        true => Leave::Later,
        false => Leave::Save(instruct(address, Some(decision.save_every), now, true)),
    }
}

/// A node that will be taken away takes what is not saved: the run is asked to save at once, and again while it goes on there.
fn save_before_a_node_goes(
    seen: &SeenRun,
    tracked: &TrackedRun,
    now: Timestamp,
) -> Option<RunStep> {
    let mut nodes = seen.gang.nodes.values();
    let goes = nodes.any(|node| matches!(node.outlook, Outlook::Leaves { .. }));
    let last = tracked.totals.last.as_ref().filter(|last| goes && last.steps_at_risk() > 0)?;
    let took = last.save_time.unwrap_or(Micros::ZERO);
    let apart = SAVES_APART.max(took.saturating_mul(SAVES_APART_TIMES));
    let since = tracked.save_requested_at.and_then(|at| now.since(at));
    let decided = tracked.decided.as_ref().map(|(_, decision)| decision.save_every);
    let every = decided.or(tracked.instructed_interval);
    let may = since.is_none_or(|since| since >= apart);
    may.then(|| Some(instruct(address(seen)?, every, now, true))).flatten()
}

/// A run that stays is told how often to save, and to save where only that lets it stay.
fn advise(
    seen: &SeenRun,
    tracked: &TrackedRun,
    decision: &TrainingDecision,
    now: Timestamp,
) -> Option<RunStep> {
    let before = tracked.instructed_interval;
    let differs = before.is_none_or(|before| {
        let apart = before.get().abs_diff(decision.save_every.get());
        apart > before.get() / 5
    });
    let address = address(seen).filter(|_| differs || decision.save_now)?;
    let lately =
        tracked.instructed_at.and_then(|at| now.since(at)).is_some_and(|since| since < PATIENCE);
    (!lately).then(|| instruct(address, Some(decision.save_every), now, decision.save_now))
}

fn instruct(
    address: SocketAddr,
    save_every: Option<Micros>,
    now: Timestamp,
    save_now: bool,
) -> RunStep {
    let whole = |every: Micros| Micros::from_seconds(every.whole_seconds());
    let instructions = HeartbeatInstructions {
        number: now.as_micros(),
        save_every: save_every.map(whole).filter(|every| *every >= MIN_SAVE_EVERY),
        save_now,
    };
    RunStep::Save { address, instructions }
}

/// Where a run takes instructions.
pub(super) fn address(seen: &SeenRun) -> Option<SocketAddr> {
    let checkpoint = &seen.run.spec.checkpoint;
    let ip = seen.gang.lead()?.ip.as_ref()?.parse().ok()?;
    let http = checkpoint.heartbeat == HeartbeatSource::Http;
    http.then(|| Some(SocketAddr::new(ip, u16::try_from(checkpoint.port).ok()?))).flatten()
}

/// Asks a run to save, and leaves how often it does.
pub(super) fn save(address: SocketAddr, now: Timestamp) -> RunStep {
    let number = now.as_micros();
    let instructions = HeartbeatInstructions { number, save_every: None, save_now: true };
    RunStep::Save { address, instructions }
}

/// The JobSet where it is, standing still.
pub(super) fn placed_as_is(
    seen: &SeenRun,
    apply: &impl Fn(Option<&TrainingChoice>, Option<bool>) -> RunStep,
) -> RunStep {
    let mut step = apply(None, Some(true));
    if let RunStep::Apply(object) = &mut step
        && let Some(template) =
            object.pointer_mut("/spec/replicatedJobs/0/template/spec/template/spec")
    {
        template["nodeSelector"] = seen.workload.place.selector.clone();
        object["metadata"]["annotations"][PLACED] = serde_json::json!(seen.workload.place.placed);
    }
    step
}
