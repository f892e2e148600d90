//! A run that borrows: what it needs, what is to be done next to start or stop it, and what is said of it. Pure.
//!
//! It has no place that is decided about: it is on its Pool's nodes or on none. One that is to stop is asked to save, as
//! far as that fits into what was promised, and then stands still, through Kueue's Workload where it is queued and the
//! JobSet's own switch where Flyball made that without a queue.

use super::act::{RunStep, address, placed_as_is, save};
use super::build::{JobSetPlan, job_set};
use super::inputs::RunEstimate;
use super::{RunPhase, SeenRun, TrackedRun, gate};
use crate::loans::LoanOrder;
use crate::observe::{Borrower, PodFacts, time_to_save};
use flyball_core::reason::Reason;
use flyball_core::units::{Gpus, Micros, Money, Price, Timestamp};
use flyball_resources::rfc3339;
use flyball_resources::training_run::{RunJobSpec, RunLoan, RunMode, TrainingRunStatus};
use flyball_training::TrainingChoice;

/// What pods get to end if they do not say.
const GRACE: Micros = Micros::from_seconds(30);

/// A JobSet that was refused is written again after so long.
const AGAIN: Micros = Micros::from_minutes(1);

/// A take-back that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// From the decision until the pods had ended.
    pub took: Micros,
    /// What was promised.
    pub promised: Micros,
}

/// What a run would borrow; nothing while it has no need, or nobody knows how much.
pub fn borrower(
    seen: &SeenRun,
    tracked: &TrackedRun,
    estimate: &RunEstimate,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Option<Borrower> {
    let spec = &seen.run.spec;
    let workload = &seen.workload;
    let wants =
        matches!(workload.phase, RunPhase::NotMade | RunPhase::Suspended | RunPhase::Active);
    let gpus = workload.gpus.filter(|gpus| *gpus > 0 && wants && spec.borrow)?;
    let holds = seen.gang.holding().next().is_some();
    // What has no budget left is lent nothing more.
    if !holds && gate::budget_spent(seen, tracked).is_some() {
        return None;
    }
    let last = tracked.totals.last.as_ref();
    let saved = last.map(|_| now.saturating_sub(estimate.unsaved));
    Some(Borrower {
        gang: super::gang_key(&seen.run),
        pool: spec.pool.as_ref()?.parse().ok()?,
        gpus: Gpus::new(gpus),
        acts: spec.mode == RunMode::Act
            && (spec.job.is_some() || workload.place.workload.is_some()),
        stopped: workload.place.inactive,
        deadline,
        last_saved: saved,
        save: address(seen).map(|_| estimate.save),
        grace: grace(seen),
        thrown_away: match holds {
            true => estimate.unsaved.saturating_add(estimate.restart),
            false => Micros::ZERO,
        },
        hourly_micros: seen.market.hourly(&seen.gang).filter(|_| holds),
        value: worth(seen, estimate, gpus),
    })
}

/// What an accelerator is worth to a run for an hour: its value over all that it still needs.
fn worth(seen: &SeenRun, estimate: &RunEstimate, gpus: u32) -> Option<Price> {
    let value = seen.run.spec.value.as_ref()?.of_core("spec.value").ok()?;
    let left = estimate.work_left?.max(Micros::from_minutes(1));
    let gpu_micros = u128::from(gpus) * u128::from(left.get());
    let value_micros = u128::try_from(value.micros()).ok()?;
    let hourly = value_micros * u128::from(Micros::HOUR.get()) / gpu_micros.max(1);
    let hourly = Money::from_micros(i64::try_from(hourly).ok()?, value.currency());
    Price::per_gpu_hour(hourly).ok()
}

fn grace(seen: &SeenRun) -> Micros {
    let seconds = |pod: &PodFacts| u64::try_from(pod.grace_seconds?).ok();
    let longest = seen.gang.holding().filter_map(seconds).max();
    longest.map_or(GRACE, Micros::from_seconds)
}

/// Notes what was decided, and what came of it.
pub fn note(
    seen: &SeenRun,
    tracked: &mut TrackedRun,
    order: Option<&LoanOrder>,
    now: Timestamp,
) -> Option<TakenBack> {
    tracked.loan = order.copied();
    let order = order?;
    let holds = seen.gang.holding().next().is_some();
    let over = matches!(seen.workload.phase, RunPhase::Complete | RunPhase::Failed);
    if !order.gpus.is_zero() || over {
        tracked.returning = false;
        return None;
    }
    if holds {
        tracked.returning = true;
        return None;
    }
    let took = std::mem::take(&mut tracked.returning).then(|| now.since(order.since)).flatten()?;
    tracked.took_back = Some(took);
    Some(TakenBack { took, promised: order.promise })
}

/// The next step for a run that borrows, if there is one.
pub fn next_step(
    seen: &SeenRun,
    tracked: &TrackedRun,
    frozen: bool,
    now: Timestamp,
) -> Option<RunStep> {
    let spec = &seen.run.spec;
    let order = tracked.loan.filter(|_| spec.mode == RunMode::Act && !frozen)?;
    let place = &seen.workload.place;
    let activate = |active| Some(RunStep::Activate { workload: place.workload.clone()?, active });
    // A JobSet that Flyball made without a queue.
    let alone = spec.job.as_ref().filter(|job| job.queue.is_none());
    let lately = tracked.placed_at.and_then(|at| now.since(at));
    let may_apply = lately.is_none_or(|since| since >= AGAIN);
    match (seen.workload.phase, order.gpus.is_zero()) {
        (RunPhase::NotMade, false) if may_apply => {
            let suspend = alone.is_some().then_some(false);
            apply(seen, suspend)
        }
        (RunPhase::Suspended, false) if place.inactive => activate(true),
        (RunPhase::Suspended, false) if alone.is_some() => apply(seen, Some(false)),
        (RunPhase::Suspended | RunPhase::Active, true) if !place.inactive => {
            match give_back(seen, tracked, &order, now) {
                GiveBack::Later => None,
                GiveBack::Save(step) => Some(step),
                GiveBack::Now if place.workload.is_some() => activate(false),
                GiveBack::Now if seen.workload.phase == RunPhase::Active => {
                    let job = alone?;
                    let step = |_: Option<&TrainingChoice>, suspend: Option<bool>| {
                        made(seen, job, suspend)
                    };
                    Some(placed_as_is(seen, &step))
                }
                GiveBack::Now => None,
            }
        }
        _ => None,
    }
}

enum GiveBack {
    Later,
    Save(RunStep),
    Now,
}

fn give_back(seen: &SeenRun, tracked: &TrackedRun, order: &LoanOrder, now: Timestamp) -> GiveBack {
    let last = tracked.totals.last.as_ref().filter(|_| seen.gang.lead().is_some());
    let (Some(address), Some(last)) = (address(seen), last) else { return GiveBack::Now };
    let left = time_to_save(order.promise, grace(seen));
    let left = left.saturating_sub(now.since(order.since).unwrap_or(Micros::ZERO));
    // What is done meanwhile is a step or two.
    if last.steps_at_risk() <= 2 || left.is_zero() {
        return GiveBack::Now;
    }
    let asked = tracked.instructed_at.is_some_and(|asked| asked >= order.since);
    let fits = last.save_time.unwrap_or(Micros::ZERO) < left;
    match (asked, fits) {
        (true, _) => GiveBack::Later,
        (false, true) => GiveBack::Save(save(address, now)),
        (false, false) => GiveBack::Now,
    }
}

fn apply(seen: &SeenRun, suspend: Option<bool>) -> Option<RunStep> {
    Some(made(seen, seen.run.spec.job.as_ref()?, suspend))
}

fn made(seen: &SeenRun, job: &RunJobSpec, suspend: Option<bool>) -> RunStep {
    let plan = JobSetPlan {
        choice: None,
        labelled: false,
        nodes: Some(&seen.market.nodes),
        resource: &seen.market.resource,
        save_every: seen.workload.place.save_every,
        suspend,
    };
    RunStep::Apply(Box::new(job_set(&seen.run, job, &plan)))
}

/// How a loan stands: whether it is as decided, why, and in words.
pub(super) fn standing(seen: &SeenRun, tracked: &TrackedRun) -> (Option<bool>, Reason, String) {
    let spec = &seen.run.spec;
    let pool = spec.pool.as_deref().unwrap_or("unknown");
    if !seen.market.lends {
        let text = format!("pool {pool} has no `lending`: nothing is lent and nothing taken back");
        return (None, Reason::RunUndecided, text);
    }
    let Some(order) = tracked.loan else {
        let text = match seen.workload.gpus {
            Some(gpus) if gpus > 0 => "no decision about loans is known".to_owned(),
            _ => "the number of accelerators is not known".to_owned(),
        };
        return (None, Reason::RunUndecided, text);
    };
    let gpus = seen.workload.gpus.unwrap_or(0);
    let lent = !order.gpus.is_zero();
    let holds = seen.gang.holding().next().is_some();
    if spec.mode == RunMode::Recommend {
        let text = match lent {
            true => format!("pool {pool} would lend it {gpus} accelerators"),
            false => format!("pool {pool} would not lend it {gpus} accelerators"),
        };
        return (Some(false), Reason::Recommending, text);
    }
    if let Some(why) = &tracked.refused {
        return (Some(false), Reason::RunNotPlaced, why.clone());
    }
    let why = reason(seen.run.status.as_ref(), &order);
    match (lent, holds) {
        (true, true) => (Some(true), why, format!("pool {pool} lends it {gpus} accelerators")),
        (true, false) => {
            (Some(false), why, format!("pool {pool} lends it {gpus} accelerators; its pods start"))
        }
        (false, true) => {
            let text = format!(
                "it gives {gpus} accelerators back to pool {pool}, within {} at most",
                order.promise
            );
            (Some(false), Reason::TakenBack, text)
        }
        (false, false) if why == Reason::TakenBack => {
            let text =
                format!("models of pool {pool} need its {gpus} accelerators; it goes on later");
            (Some(true), why, text)
        }
        (false, false) => {
            (Some(true), why, format!("pool {pool} cannot spare {gpus} accelerators yet"))
        }
    }
}

/// The word for a loan: one that was never given waits.
fn reason(before: Option<&TrainingRunStatus>, order: &LoanOrder) -> Reason {
    let before = before.and_then(|status| status.loan.as_ref());
    let had = before.is_some_and(|loan| {
        [Reason::Lent, Reason::TakenBack].iter().any(|reason| reason.name() == loan.reason)
    });
    match (order.gpus.is_zero(), had) {
        (false, _) => Reason::Lent,
        (true, true) => Reason::TakenBack,
        (true, false) => Reason::RunWaiting,
    }
}

/// What a status says of a loan. One that stands as before keeps its time, whoever leads.
pub(super) fn status(seen: &SeenRun, tracked: &TrackedRun) -> Option<RunLoan> {
    let spec = &seen.run.spec;
    let before = seen.run.status.as_ref().and_then(|status| status.loan.as_ref());
    let before = before.filter(|_| spec.borrow && spec.mode == RunMode::Act);
    let Some(order) = tracked.loan.filter(|_| spec.mode == RunMode::Act) else {
        // Until something is decided again, what was decided stands.
        return before.cloned();
    };
    let (_, _, message) = standing(seen, tracked);
    let reason = reason(seen.run.status.as_ref(), &order).name().to_owned();
    let since = before.filter(|before| before.reason == reason).map(|before| before.since.clone());
    let seconds = tracked.took_back.map(|took| i64::try_from(took.whole_seconds()).unwrap_or(0));
    Some(RunLoan {
        gpus: i32::try_from(order.gpus.get()).unwrap_or(i32::MAX),
        since: since.unwrap_or_else(|| rfc3339(order.since)),
        reason,
        message,
        take_back_seconds: seconds.or_else(|| before.and_then(|before| before.take_back_seconds)),
    })
}
