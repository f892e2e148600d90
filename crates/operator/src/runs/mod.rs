//! Training runs: how far each is, where it should be, and what its status says.
//!
//! The modules are steps, in order: `workload` and `gang` read what runs, `heartbeat` asks the run itself (the only I/O here),
//! `totals` sums what it cost and lost, `market` says which machines there are at which price, `inputs` makes of all that
//! what `flyball_training` decides on, `status` and `conditions` say it, `act` says which step comes next and `build` what a JobSet
//! is. `preempt` has whom a preemption should take, `gate` and `check` who may start, `elastic` how many nodes a run should have.
//! The loop over them is in `run`.
//!
//! In *Recommend* mode nothing is written but statuses and events. What is learnt about how long machines last is not kept
//! over a restart (not yet); sums and attempts are, in the status. Start at [`observe`].

pub mod act;
mod build;
pub mod check;
mod conditions;
mod elastic;
mod gang;
pub mod gate;
pub mod heartbeat;
mod inputs;
pub mod kueue;
mod learnt;
pub mod loan;
mod market;
mod marks;
pub mod preempt;
mod reason;
mod status;
#[cfg(test)]
mod tests;
mod totals;
mod workload;

pub use gang::{Gang, GangPods};
pub use inputs::{RunEstimate, RunInputs};
pub use market::{Market, ZoneHistory};
pub use status::{RunReport, is_news, status, turned};
pub use totals::{LossCause, RunTotals};
pub use workload::{RunPhase, RunWorkload, gang_key, kinds, owner_key, workload};

use crate::loans::LoanOrder;
use crate::observe::{RunFacts, WorkloadsOfRuns};
use act::RunStep;
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::TrainingRun;
use flyball_resources::training_run::{RunMode, RunSize};
use flyball_training::{RunMemory, TrainingDecision};
use heartbeat::HeartbeatAnswer;
use kube::ResourceExt as _;
use std::sync::Arc;

/// Namespace and name of a TrainingRun.
pub type RunKey = (String, String);

/// The key of a run.
pub fn key(run: &TrainingRun) -> RunKey {
    (run.namespace().unwrap_or_default(), run.name_any())
}

/// What is remembered of a run from one look to the next.
#[derive(Clone, Debug)]
pub struct TrackedRun {
    /// Its uid: another of the same name is another.
    pub uid: String,
    /// What it cost and lost.
    pub totals: RunTotals,
    /// What its zones taught.
    pub memory: RunMemory,
    /// What was decided last, and when.
    pub decided: Option<(Timestamp, TrainingDecision)>,
    /// When it was last told something.
    pub instructed_at: Option<Timestamp>,
    /// How often the start that is under way was told to save.
    pub instructed_interval: Option<Micros>,
    /// When it was last told to save at once.
    pub save_requested_at: Option<Timestamp>,
    /// When its JobSet was last written.
    pub placed_at: Option<Timestamp>,
    /// The size that it should have, if it is elastic.
    pub size: Option<RunSize>,
    /// What was decided about its loan last, if it borrows.
    pub loan: Option<LoanOrder>,
    /// Whether it gives its machines back.
    pub returning: bool,
    /// How long the last take-back took.
    pub took_back: Option<Micros>,
    /// Why the last step was not made.
    pub refused: Option<String>,
}

impl TrackedRun {
    /// Goes on from what a status says.
    pub fn resume(run: &TrainingRun, now: Timestamp) -> Self {
        Self {
            uid: run.uid().unwrap_or_default(),
            totals: RunTotals::resume(run.status.as_ref(), now),
            memory: learnt_before(run).unwrap_or_default(),
            decided: None,
            instructed_at: None,
            instructed_interval: None,
            save_requested_at: None,
            placed_at: None,
            size: None,
            loan: None,
            returning: false,
            took_back: None,
            refused: None,
        }
    }
}

fn learnt_before(run: &TrainingRun) -> Option<RunMemory> {
    learnt::read(run.status.as_ref()?.learnt.as_ref()?)
}

impl TrackedRun {
    /// Notes a step that was made.
    pub fn did(&mut self, step: &RunStep, now: Timestamp) {
        match step {
            RunStep::Save { instructions, .. } => {
                self.instructed_at = Some(now);
                self.instructed_interval = instructions.save_every;
                if instructions.save_now {
                    self.save_requested_at = Some(now);
                }
            }
            RunStep::Apply(_) => self.placed_at = Some(now),
            RunStep::Activate { .. } => {}
        }
    }

    /// Notes a step that was not made.
    pub fn did_not(&mut self, step: &RunStep, now: Timestamp) {
        if matches!(step, RunStep::Apply(_)) {
            self.placed_at = Some(now);
        }
    }
}

/// A run as it is seen, before anybody asked it.
#[derive(Clone, Debug)]
pub struct SeenRun {
    /// As it is stored.
    pub run: Arc<TrainingRun>,
    /// What it runs as.
    pub workload: RunWorkload,
    /// Its pods.
    pub gang: Gang,
    /// Which machines there are for it.
    pub market: Market,
    /// Nodes that it could have, if it is elastic.
    pub spare: Option<elastic::SpareNodes>,
}

/// Looks at a run. `None` while nobody knows enough: then nothing is said about it.
pub fn observe(
    run: &Arc<TrainingRun>,
    facts: &RunFacts,
    workloads: &WorkloadsOfRuns,
    zones: &mut ZoneHistory,
    now: Timestamp,
) -> Option<SeenRun> {
    let gang = Gang::of(run, facts);
    let market = Market::of(run, &gang, facts, zones, now);
    let workload = workload(run, workloads, &market.resource)?;
    let spare = elastic::SpareNodes::of(run, &gang, facts);
    Some(SeenRun { run: Arc::clone(run), workload, gang, market, spare })
}

/// What comes of a look: what the status should say, and what is to be shown.
pub fn consider(
    seen: &SeenRun,
    answer: &HeartbeatAnswer,
    tracked: &mut TrackedRun,
    tick: Micros,
    now: Timestamp,
) -> RunReport {
    tracked.totals.count(seen, now);
    if let HeartbeatAnswer::Received(beat) = answer {
        let starts = tracked.totals.attempt_count;
        tracked.totals.record(beat, seen, now);
        if starts != tracked.totals.attempt_count {
            // What a process was told ends with it.
            tracked.instructed_interval = None;
            tracked.instructed_at = None;
            tracked.save_requested_at = None;
        }
    }
    let estimate = RunEstimate::of(seen, &tracked.totals, now);
    let inputs = RunInputs::of(seen, &tracked.totals, &estimate, tick, now);
    // Who borrows has no machines to choose among.
    let decidable = inputs.snapshot.as_ref().ok().filter(|_| !seen.run.spec.borrow);
    let decision = decidable.map(|snapshot| {
        let memory = std::mem::take(&mut tracked.memory);
        // What was only recommended was not asked for.
        let acts = seen.run.spec.mode == RunMode::Act && seen.run.spec.job.is_some();
        let previous = tracked.decided.as_ref().filter(|_| acts).map(|(_, decision)| decision);
        let (decision, memory) = flyball_training::decide(snapshot, previous, memory);
        tracked.memory = memory;
        tracked.size = elastic::recommended(seen, snapshot, &tracked.memory);
        decision
    });
    if let Some(decision) = decision {
        let same = tracked.decided.as_ref().is_some_and(|(_, before)| {
            before.choice == decision.choice && before.reason == decision.reason
        });
        let at = tracked.decided.as_ref().filter(|_| same).map_or(now, |(at, _)| *at);
        tracked.decided = Some((at, decision));
    } else {
        (tracked.decided, tracked.size) = (None, None);
    }
    status::report(seen, answer, tracked, &estimate, &inputs, now)
}
