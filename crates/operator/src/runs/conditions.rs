//! How a run stands, as conditions. Pure.

use super::gang::GangPods;
use super::heartbeat::HeartbeatAnswer;
use super::inputs::{RunEstimate, RunInputs};
use super::loan;
use super::reason::reason;
use super::{RunPhase, SeenRun, TrackedRun, gate};
use flyball_core::reason::Reason;
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::conditions::{ConditionKind, ConditionValue};
use flyball_resources::training_run::{HeartbeatSource, RunMode};
use flyball_training::{TrainingChoice, TrainingReason, deadline};

/// No step for so long, and for ten steps, is a stall: evaluations and saves take minutes.
const STALL: Micros = Micros::from_minutes(5);

/// The same in steps.
const STALL_STEPS: u64 = 10;

/// Everything that is known about a run.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// What was seen.
    pub seen: &'a SeenRun,
    /// What it answered.
    pub answer: &'a HeartbeatAnswer,
    /// What is remembered.
    pub tracked: &'a TrackedRun,
    /// Its work.
    pub estimate: &'a RunEstimate,
    /// What was decided on.
    pub inputs: &'a RunInputs,
    /// When.
    pub now: Timestamp,
}

type StatusText = (Option<bool>, Reason, String);

/// The conditions of a run, and its state in a word.
pub(super) fn conditions(standing: &Standing<'_>) -> (Vec<ConditionValue>, &'static str) {
    let (ready, state) = ready(standing);
    let phase = standing.seen.workload.phase;
    let over = matches!(phase, RunPhase::Complete | RunPhase::Failed);
    let mut all = vec![(ConditionKind::Ready, ready.clone())];
    all.push((ConditionKind::TargetFound, target_found(standing, ready.1)));
    if !over {
        all.push((ConditionKind::HeartbeatFresh, heartbeat(standing)));
        all.push((ConditionKind::PlacementApplied, placed(standing)));
    }
    all.extend(in_time(standing).map(|stated| (ConditionKind::DeadlineMet, stated)));
    if !over {
        all.extend(in_budget(standing).map(|stated| (ConditionKind::WithinBudget, stated)));
    }
    if over {
        let so = Some(phase == RunPhase::Complete);
        all.push((ConditionKind::Complete, (so, ready.1, ready.2.clone())));
    }
    if state == "waiting" {
        all.push((ConditionKind::Reconciling, (Some(true), ready.1, ready.2.clone())));
    }
    if matches!(phase, RunPhase::Failed | RunPhase::Missing | RunPhase::KindMissing) {
        all.push((ConditionKind::Stalled, (Some(true), ready.1, ready.2)));
    }
    let value = |(kind, (so, reason, message))| ConditionValue { kind, so, reason, message };
    (all.into_iter().map(value).collect(), state)
}

fn ready(standing: &Standing<'_>) -> (StatusText, &'static str) {
    let seen = standing.seen;
    let message = seen.workload.message.clone();
    let or = |text: &str| if message.is_empty() { text.to_owned() } else { message.clone() };
    match seen.workload.phase {
        RunPhase::KindMissing => ((Some(false), Reason::RunKindMissing, message), "missing"),
        RunPhase::Missing => ((Some(false), Reason::TargetNotFound, message), "missing"),
        RunPhase::NotMade => match seen.run.spec.mode {
            RunMode::Recommend => {
                let text = "the JobSet is made once `mode` is Act".to_owned();
                ((Some(false), Reason::Recommending, text), "waiting")
            }
            RunMode::Act => {
                let text = "the JobSet is not made yet".to_owned();
                ((Some(false), Reason::RunWaiting, text), "waiting")
            }
        },
        RunPhase::Suspended => {
            ((Some(false), Reason::RunWaiting, or("it is suspended")), "waiting")
        }
        RunPhase::Complete => {
            let text = last_words(standing);
            ((Some(true), Reason::RunComplete, text), "complete")
        }
        RunPhase::Failed => ((Some(false), Reason::RunFailed, or("the job has failed")), "failed"),
        RunPhase::Active => active(standing),
    }
}

fn active(standing: &Standing<'_>) -> (StatusText, &'static str) {
    let gang = &standing.seen.gang;
    let GangPods { wanted, placed, running } = gang.count(standing.seen.workload.nodes);
    if running < wanted || running == 0 {
        let cost = standing.seen.market.hourly(gang).filter(|cost| *cost > 0 && placed > 0);
        let currency = standing.seen.market.currency;
        let cost = cost.map_or_else(String::new, |cost| {
            let cost = flyball_resources::decimal::text(cost, 2);
            format!("; those that wait cost {cost} {currency}/h")
        });
        let text = format!("{running} of {wanted} pods run, and {placed} have a node{cost}");
        return ((Some(false), Reason::RunWaiting, text), "waiting");
    }
    if let Some(still) = stalled(standing) {
        let text = format!("no step for {still}, with all {wanted} pods running");
        return ((Some(false), Reason::RunStalled, text), "stalled");
    }
    let text = match standing.tracked.totals.last.as_ref() {
        Some(last) => match standing.estimate.total_steps {
            Some(total) => format!("at step {} of {total}", last.step),
            None => format!("at step {}", last.step),
        },
        None => format!("{wanted} pods run; no step was reported yet"),
    };
    ((Some(true), Reason::RunProgressing, text), "progressing")
}

/// How long it takes no step, if that is longer than it should.
fn stalled(standing: &Standing<'_>) -> Option<Micros> {
    let spec = &standing.seen.run.spec;
    let totals = &standing.tracked.totals;
    // Where nothing was ever heard, that is stated.
    let last =
        totals.last.as_ref().filter(|_| spec.checkpoint.heartbeat != HeartbeatSource::None)?;
    let since = standing.seen.gang.since()?;
    let moved = totals.moved_at.filter(|moved| *moved >= since);
    let steps = last.step_time.map_or(Micros::ZERO, |step| step.saturating_mul(STALL_STEPS));
    let most = match moved {
        Some(_) => STALL.max(steps),
        None => STALL.max(standing.estimate.restart.saturating_mul(2)),
    };
    let still = standing.now.since(moved.unwrap_or(since))?;
    (still > most).then_some(still)
}

fn last_words(standing: &Standing<'_>) -> String {
    let totals = &standing.tracked.totals;
    let steps = match (&totals.last, standing.estimate.total_steps) {
        (Some(last), Some(total)) => {
            format!("; its last heartbeat was at step {} of {total}", last.step)
        }
        (Some(last), None) => format!("; its last heartbeat was at step {}", last.step),
        (None, _) => String::new(),
    };
    format!("the job has ended with success{steps}")
}

fn target_found(standing: &Standing<'_>, reason: Reason) -> StatusText {
    let message = standing.seen.workload.message.clone();
    match standing.seen.workload.phase {
        RunPhase::KindMissing => (None, reason, message),
        RunPhase::Missing | RunPhase::NotMade => (Some(false), reason, message),
        _ => (Some(true), reason, "the workload exists".to_owned()),
    }
}

fn heartbeat(standing: &Standing<'_>) -> StatusText {
    let source = standing.seen.run.spec.checkpoint.heartbeat;
    let stated = |so, reason, text: &str| (so, reason, text.to_owned());
    if source == HeartbeatSource::None {
        return stated(None, Reason::RunProgressing, "`checkpoint.heartbeat` is None");
    }
    if standing.seen.gang.lead().is_none() {
        return stated(None, Reason::RunWaiting, "the pod of rank 0 does not run");
    }
    match standing.answer {
        HeartbeatAnswer::Received(beat) => {
            let age = standing.now.since(beat.at).unwrap_or(Micros::ZERO);
            let steps =
                beat.step_time.map_or(Micros::ZERO, |step| step.saturating_mul(STALL_STEPS));
            if age > STALL.max(steps) {
                return (
                    Some(false),
                    Reason::RunHeartbeatMissing,
                    format!("the last heartbeat is {age} old"),
                );
            }
            stated(Some(true), Reason::RunProgressing, "heartbeats arrive")
        }
        HeartbeatAnswer::Failed(why) => (Some(false), Reason::RunHeartbeatMissing, why.clone()),
        HeartbeatAnswer::NotRequested => {
            stated(None, Reason::RunWaiting, "no heartbeat has been requested yet")
        }
    }
}

fn placed(standing: &Standing<'_>) -> StatusText {
    if standing.seen.run.spec.borrow {
        return loan::standing(standing.seen, standing.tracked);
    }
    let Some((_, decision)) = &standing.tracked.decided else {
        let missing = standing.inputs.snapshot.as_ref().err().cloned().unwrap_or_default();
        let text = format!("not known: {}", missing.join(", "));
        return (None, Reason::RunUndecided, text);
    };
    let reason = reason(decision.reason);
    let held = standing.inputs.snapshot.as_ref().map(|snapshot| &snapshot.held.at);
    if held == Ok(&decision.choice) {
        let text = match &decision.choice {
            TrainingChoice::Wait => "it has no machines, as decided".to_owned(),
            choice => format!("it is on {choice}, as decided"),
        };
        return (Some(true), reason, text);
    }
    let text = format!("{} is recommended", decision.choice);
    match standing.seen.run.spec.mode {
        RunMode::Recommend => (Some(false), Reason::Recommending, text),
        RunMode::Act => match (&standing.tracked.refused, &standing.seen.run.spec.job) {
            (Some(why), _) => (Some(false), Reason::RunNotPlaced, format!("{text}; {why}")),
            (None, None) => {
                let only = "only a JobSet that Flyball makes from `job` can be moved";
                (Some(false), Reason::RunNotPlaced, format!("{text}; {only}"))
            }
            (None, Some(_)) => (
                Some(false),
                Reason::RunWaiting,
                format!("{} is being carried out", decision.choice),
            ),
        },
    }
}

fn in_budget(standing: &Standing<'_>) -> Option<StatusText> {
    let (seen, tracked) = (standing.seen, standing.tracked);
    let spent = gate::budget_spent(seen, tracked).map(|text| (Reason::RunBudgetSpent, text));
    let above = || gate::above_value(seen, tracked).map(|text| (Reason::RunAboveValue, text));
    let (reason, text) = spent.or_else(above)?;
    Some((Some(false), reason, text))
}

fn in_time(standing: &Standing<'_>) -> Option<StatusText> {
    let until = standing.inputs.deadline?;
    let seen = standing.seen;
    let late = |text: String| Some((Some(false), Reason::RunTooLate, text));
    match (seen.workload.phase, seen.workload.ended) {
        (RunPhase::Complete, Some(ended)) if ended <= until => {
            return Some((Some(true), Reason::RunComplete, "it has ended in time".to_owned()));
        }
        (RunPhase::Complete, Some(ended)) => {
            return late(format!("it ended {} late", ended.apart(until)));
        }
        (RunPhase::Failed, _) => {
            return Some((Some(false), Reason::RunFailed, "it has failed".to_owned()));
        }
        _ => {}
    }
    if let (Some((_, decision)), Ok(snapshot)) =
        (&standing.tracked.decided, &standing.inputs.snapshot)
    {
        let reason = reason(decision.reason);
        return match deadline::slack(snapshot) {
            _ if decision.reason == TrainingReason::TooLate => late(
                TrainingReason::TooLate.summary().to_lowercase().trim_end_matches('.').to_owned(),
            ),
            Some(slack) => Some((Some(true), reason, format!("it can still lose {slack}"))),
            None => late("it needs longer than there is".to_owned()),
        };
    }
    match standing.inputs.end {
        Some(end) if end.likely > until => {
            late(format!("it is expected {} after its deadline", end.likely.apart(until)))
        }
        Some(end) => {
            let text = format!("it is expected {} before its deadline", end.likely.apart(until));
            Some((Some(true), Reason::RunProgressing, text))
        }
        None => Some((None, Reason::RunUndecided, "its end is not known".to_owned())),
    }
}
