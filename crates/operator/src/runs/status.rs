//! What a run's status says, and what of it is worth a write. Pure.

use super::conditions::{self, Standing};
use super::gang::GangPods;
use super::heartbeat::HeartbeatAnswer;
use super::inputs::{EndSpan, RunEstimate, RunInputs};
use super::learnt;
use super::loan;
use super::preempt::{self, Preemptible};
use super::reason::reason;
use super::totals::RunTotals;
use super::{RunKey, RunPhase, SeenRun, TrackedRun, key};
use crate::observe::Borrower;
use flyball_core::reason::Reason;
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::conditions::ConditionKind;
use flyball_resources::training_run::{
    ExpectedEnd, RunAccount, RunCandidate, RunCost, RunLosses, RunPlacement, RunProgress,
    TrainingRunDecision, TrainingRunStatus,
};
use flyball_resources::{TrainingRun, decimal, rfc3339};
use flyball_training::{TrainingDecision, TrainingSnapshot, deadline};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use std::sync::Arc;
use std::time::Duration;

/// Numbers alone are written this often: of 500 runs that is 17 writes a second at most.
const NUMBERS: Duration = Duration::from_secs(30);

/// What moves because time passes, as the slack of a run that waits, is written this often: 500 that wait were once
/// 17 writes a second for as long as they waited.
const CLOCK: Duration = Duration::from_mins(10);

/// Above so much, a cost is said with two digits behind the point, below with four.
const ROUND_MICROS: i64 = 100_000_000;

/// What came of a look at a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Which run.
    pub key: RunKey,
    /// As it is stored.
    pub run: Arc<TrainingRun>,
    /// What its status should say.
    pub status: TrainingRunStatus,
    /// How it stands, in a word.
    pub state: &'static str,
    /// Age of the last save, in seconds.
    pub saved_age_seconds: Option<f64>,
    /// Time that it can still lose; negative by how much it will be late.
    pub slack_seconds: Option<f64>,
    /// Share of its time on machines that became steps.
    pub goodput: Option<f64>,
    /// Its pods.
    pub pods: GangPods,
    /// What its machines cost for an hour, in the currency of their Pool.
    pub hourly_cost: Option<f64>,
    /// What it borrows, or would.
    pub borrower: Option<Borrower>,
    /// What a preemption would take, while Kueue has admitted it.
    pub preemptible: Option<Preemptible>,
}

/// Everything that is said about a run.
pub(super) fn report(
    seen: &SeenRun,
    answer: &HeartbeatAnswer,
    tracked: &mut TrackedRun,
    estimate: &RunEstimate,
    inputs: &RunInputs,
    now: Timestamp,
) -> RunReport {
    let ended = match seen.workload.phase {
        RunPhase::Complete => Some("Complete"),
        RunPhase::Failed => Some("Failed"),
        _ => None,
    };
    if let Some(how) = ended {
        tracked.totals.end(how, seen.workload.ended.unwrap_or(now));
    }
    let standing = Standing { seen, answer, tracked, estimate, inputs, now };
    let (conditions, state) = conditions::conditions(&standing);
    let status = status(&standing, &conditions);
    let goodput = goodput(&tracked.totals);
    let slack = inputs.snapshot.as_ref().ok().map(slack_seconds);
    RunReport {
        key: key(&seen.run),
        run: Arc::clone(&seen.run),
        status,
        state,
        saved_age_seconds: ended.is_none().then(|| saved_age(&tracked.totals, seen)).flatten(),
        slack_seconds: slack,
        goodput,
        pods: seen.gang.count(seen.workload.nodes),
        hourly_cost: hourly_cost(seen),
        borrower: loan::borrower(seen, tracked, estimate, inputs.deadline, now),
        preemptible: preempt::preemptible(seen, tracked, estimate, inputs),
    }
}

/// The status of a run with these conditions.
pub fn status(
    standing: &Standing<'_>,
    conditions: &[flyball_resources::conditions::ConditionValue],
) -> TrainingRunStatus {
    let Standing { seen, tracked, estimate, inputs, now, .. } = standing;
    let run = &seen.run;
    let before = run.status.as_ref();
    let totals = &tracked.totals;
    let known = before.map_or(&[][..], |status| status.conditions.as_slice());
    let date = crate::time::date(*now);
    let decision = tracked.decided.as_ref().zip(inputs.snapshot.as_ref().ok());
    TrainingRunStatus {
        observed_generation: run.metadata.generation,
        progress: progress(totals, estimate),
        expected_end: inputs.end.map(|end| expected_end(&end, estimate)),
        cost: cost(standing),
        goodput_percent: goodput(totals).map(|share| decimal::text((share * 1e8) as i64, 1)),
        lost: totals
            .lost
            .iter()
            .map(|(cause, lost)| RunLosses {
                cause: cause.name().to_owned(),
                times: i32::try_from(lost.times).unwrap_or(i32::MAX),
                steps: whole(lost.steps),
                seconds: whole(lost.time.whole_seconds()),
            })
            .collect(),
        placement: placement(seen),
        decision: decision.map(|((at, decision), snapshot)| decided(*at, decision, snapshot)),
        loan: loan::status(seen, tracked),
        preemption: None,
        size: tracked.size.clone(),
        suggested_save_seconds: decision
            .map(|((_, decision), _)| whole(decision.save_every.whole_seconds())),
        attempt_count: (totals.attempt_count > 0)
            .then(|| i32::try_from(totals.attempt_count).unwrap_or(i32::MAX)),
        attempts: totals.attempts.clone(),
        account: Some(account(totals)),
        learnt: learnt::write(&tracked.memory).or_else(|| before?.learnt.clone()),
        conditions: flyball_resources::conditions::merge(
            known,
            conditions,
            run.metadata.generation,
            date,
        ),
    }
}

/// Whether a status is worth a write, `since` the last one.
pub fn is_news(
    before: Option<&TrainingRunStatus>,
    now: &TrainingRunStatus,
    since: Option<Duration>,
) -> bool {
    let Some(before) = before else { return true };
    if essence(before) != essence(now) {
        return true;
    }
    // Up to when sums go is no number that anybody waits for.
    let counted = |status: &TrainingRunStatus| TrainingRunStatus {
        account: None,
        learnt: None,
        ..status.clone()
    };
    let every = if work_of(before) == work_of(now) { CLOCK } else { NUMBERS };
    counted(before) != counted(now) && since.is_none_or(|since| since >= every)
}

/// What moves only while a run has machines or reports something.
fn work_of(status: &TrainingRunStatus) -> impl PartialEq {
    let spent = status.cost.as_ref().map(|cost| cost.spent.clone());
    (status.progress.clone(), spent, status.goodput_percent.clone())
}

/// What a person should hear of: another decision, a start that lost work, and a condition that turned.
pub fn turned(
    before: Option<&TrainingRunStatus>,
    now: &TrainingRunStatus,
) -> Vec<(Reason, String)> {
    let mut turned = Vec::new();
    let was = |status: &TrainingRunStatus| {
        status.decision.as_ref().map(|decision| (decision.choice.clone(), decision.reason.clone()))
    };
    if let Some(decision) = now.decision.as_ref().filter(|_| before.and_then(was) != was(now)) {
        turned.extend(
            Reason::from_name(&decision.reason).map(|reason| (reason, decision.message.clone())),
        );
    }
    let lent = |status: &TrainingRunStatus| status.loan.as_ref().map(|loan| loan.reason.clone());
    if let Some(loan) = now.loan.as_ref().filter(|_| before.and_then(lent) != lent(now)) {
        let reason = Reason::from_name(&loan.reason);
        turned.extend(reason.map(|reason| (reason, loan.message.clone())));
    }
    let of = |status: &TrainingRunStatus, kind: ConditionKind| -> Option<Condition> {
        status.conditions.iter().find(|one| one.type_ == kind.name()).cloned()
    };
    for kind in [ConditionKind::Ready, ConditionKind::HeartbeatFresh, ConditionKind::DeadlineMet] {
        let Some(stands) = of(now, kind) else { continue };
        let same = before
            .and_then(|before| of(before, kind))
            .is_some_and(|before| before.status == stands.status && before.reason == stands.reason);
        let worth = kind == ConditionKind::Ready || stands.status == "False";
        if !same && worth {
            turned.extend(Reason::from_name(&stands.reason).map(|reason| (reason, stands.message)));
        }
    }
    turned.dedup_by(|one, other| one.0 == other.0);
    turned
}

fn progress(totals: &RunTotals, estimate: &RunEstimate) -> Option<RunProgress> {
    let percent = estimate
        .done_per_million()
        .map(|share| decimal::text(i64::try_from(share).unwrap_or(0).saturating_mul(100), 1));
    let total_steps = estimate.total_steps.map(whole);
    let Some(last) = &totals.last else {
        let known = percent.is_some() || total_steps.is_some();
        return known.then(|| RunProgress { percent, total_steps, ..RunProgress::default() });
    };
    let seconds = |time: Option<Micros>| {
        time.map(|time| decimal::text(i64::try_from(time.get()).unwrap_or(i64::MAX), 3))
    };
    Some(RunProgress {
        step: Some(whole(last.step)),
        saved_step: Some(last.resumes_at()).filter(|step| *step > 0).map(whole),
        total_steps,
        percent,
        step_seconds: seconds(last.step_time),
        save_seconds: seconds(last.save_time),
        restart_seconds: seconds(totals.restart),
        tokens: last.tokens.map(whole),
        save_every_seconds: last.save_every.map(|every| whole(every.whole_seconds())),
        attempt: last.attempt.clone(),
        repeated_steps: last.repeated_steps.map(whole),
        heartbeat_at: Some(rfc3339(last.at)),
    })
}

fn expected_end(end: &EndSpan, estimate: &RunEstimate) -> ExpectedEnd {
    let origin = if estimate.measured { "Measured" } else { "Assumed" };
    ExpectedEnd {
        earliest: to_the_second(end.earliest),
        likely: to_the_second(end.likely),
        latest: to_the_second(end.latest),
        origin: origin.to_owned(),
    }
}

fn cost(standing: &Standing<'_>) -> Option<RunCost> {
    let Standing { seen, tracked, inputs, now, .. } = standing;
    let totals = &tracked.totals;
    let hourly = seen.market.hourly(&seen.gang).filter(|_| seen.gang.since().is_some());
    if seen.market.prices.is_empty() && totals.spent_micros == 0 {
        return None;
    }
    let decided = tracked.decided.as_ref().and_then(|(_, decision)| {
        let chosen = decision.candidates.iter().find(|(choice, _)| *choice == decision.choice);
        chosen.map(|(_, cost)| cost.micros())
    });
    let by_time = || {
        let left = inputs.end?.likely.since(*now)?;
        let micros = i128::from(hourly?) * i128::from(left.get()) / i128::from(Micros::HOUR.get());
        i64::try_from(micros).ok()
    };
    let expected = match seen.workload.phase {
        RunPhase::Complete | RunPhase::Failed => Some(0),
        _ => decided.or_else(by_time),
    };
    Some(RunCost {
        spent: money(totals.spent_micros),
        expected: expected.map(|more| money(totals.spent_micros.saturating_add(more))),
        hourly: hourly.map(money),
        currency: seen.market.currency.to_string(),
    })
}

fn hourly_cost(seen: &SeenRun) -> Option<f64> {
    let hourly = seen.market.hourly(&seen.gang).filter(|_| seen.gang.since().is_some())?;
    Some(hourly as f64 / 1e6)
}

fn money(micros: i64) -> String {
    decimal::text(micros, if micros.abs() >= ROUND_MICROS { 2 } else { 4 })
}

fn placement(seen: &SeenRun) -> Option<RunPlacement> {
    if seen.workload.phase == RunPhase::Missing || seen.workload.phase == RunPhase::KindMissing {
        return None;
    }
    let small = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    Some(RunPlacement {
        nodes: small(u32::try_from(seen.gang.nodes.len()).unwrap_or(u32::MAX)),
        wanted_nodes: small(seen.workload.nodes),
        gpus: small(seen.workload.gpus.unwrap_or(0)),
        purchase: seen.gang.purchase().map(|purchase| purchase.name().to_owned()),
        zone: seen.gang.zone(),
        pool: seen.market.pool.clone(),
        admitted: seen.workload.admitted,
    })
}

fn decided(
    at: Timestamp,
    decision: &TrainingDecision,
    snapshot: &TrainingSnapshot,
) -> TrainingRunDecision {
    let slack = deadline::slack(snapshot);
    TrainingRunDecision {
        id: at.as_micros().to_string(),
        at: rfc3339(at),
        choice: decision.choice.to_string(),
        reason: reason(decision.reason).name().to_owned(),
        message: decision.explain(snapshot),
        save_now: decision.save_now,
        candidates: decision
            .candidates
            .iter()
            .map(|(choice, cost)| RunCandidate {
                choice: choice.to_string(),
                expected_cost: money(cost.micros()),
            })
            .collect(),
        latest_on_demand_at: to_the_second(decision.latest_on_demand),
        slack_seconds: slack.map(|slack| whole(slack.whole_seconds())),
    }
}

fn account(totals: &RunTotals) -> RunAccount {
    RunAccount {
        counted_until: rfc3339(totals.counted_until()),
        machine_seconds: whole(totals.machine.whole_seconds()),
        step_seconds: whole(totals.stepping.whole_seconds()),
        spent_micros: totals.spent_micros,
    }
}

/// Share of the time on machines that became steps which stayed. Unknown before any step.
fn goodput(totals: &RunTotals) -> Option<f64> {
    let known = !totals.machine.is_zero() && !totals.stepping.is_zero();
    known.then(|| (totals.useful().get() as f64 / totals.machine.get() as f64).min(1.0))
}

fn slack_seconds(snapshot: &TrainingSnapshot) -> f64 {
    let need = deadline::on_demand_from_request(snapshot, snapshot.work_from_save());
    match deadline::slack(snapshot) {
        Some(slack) => slack.as_seconds(),
        None => snapshot.time_left().as_seconds() - need.as_seconds(),
    }
}

/// How old the work since the last save is, in the time of its steps.
fn saved_age(totals: &RunTotals, seen: &SeenRun) -> Option<f64> {
    let last = totals.last.as_ref().filter(|_| seen.gang.lead().is_some())?;
    let steps = last.step - last.resumes_at();
    Some(last.step_time?.saturating_mul(steps).as_seconds())
}

/// A status without the numbers that always move.
fn essence(status: &TrainingRunStatus) -> TrainingRunStatus {
    let mut status = status.clone();
    status.expected_end = None;
    status.goodput_percent = None;
    status.suggested_save_seconds = None;
    status.account = None;
    status.learnt = None;
    if let Some(preemption) = &mut status.preemption {
        preemption.thrown_away_gpu_seconds = 0;
    }
    if let Some(size) = &mut status.size {
        (size.expected_cost, size.present_cost) = (String::new(), None);
    }
    if let Some(cost) = &mut status.cost {
        *cost = RunCost { currency: cost.currency.clone(), ..RunCost::default() };
    }
    if let Some(progress) = &mut status.progress {
        *progress = RunProgress { attempt: progress.attempt.clone(), ..RunProgress::default() };
    }
    if let Some(last) = status.attempts.last_mut() {
        last.last_step = None;
    }
    if let Some(decision) = &mut status.decision {
        decision.message.clear();
        decision.candidates.clear();
        decision.slack_seconds = None;
        decision.latest_on_demand_at.clear();
    }
    for condition in &mut status.conditions {
        condition.message.clear();
    }
    status
}

fn to_the_second(at: Timestamp) -> String {
    rfc3339(Timestamp::from_millis(at.as_millis() / 1_000 * 1_000))
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
