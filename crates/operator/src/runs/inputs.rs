//! From what is seen of a run to what is decided on: how much work is left, when it will end. Pure.

use super::totals::RunTotals;
use super::{RunPhase, SeenRun};
use crate::time::of_date;
use flyball_core::snapshot::Purchase;
use flyball_core::units::{Gpus, Micros, Timestamp};
use flyball_resources::heartbeat::Heartbeat;
use flyball_resources::training_run::HeartbeatSource;
use flyball_training::{HeldMachine, TrainingChoice, TrainingSnapshot, ZoneName};

/// Of what a run has left, so much more may be needed if its steps were measured, in percent.
const MEASURED_ERROR: u64 = 5;

/// The same if the work is only stated.
const ASSUMED_ERROR: u64 = 30;

/// How much work is left, and what saves and restarts take.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEstimate {
    /// Steps of the whole run.
    pub total_steps: Option<u64>,
    /// Work left from where it is now.
    pub work_left: Option<Micros>,
    /// Work of the whole run.
    pub work: Option<Micros>,
    /// Work since the last save.
    pub unsaved: Micros,
    /// The time of a save.
    pub save: Micros,
    /// The time of a restart.
    pub restart: Micros,
    /// Whether the work is known from heartbeats.
    pub measured: bool,
}

impl RunEstimate {
    /// Of a run with this past.
    pub fn of(seen: &SeenRun, totals: &RunTotals, now: Timestamp) -> Self {
        let spec = &seen.run.spec;
        let assumed = |seconds: i32| Micros::from_seconds(u64::try_from(seconds).unwrap_or(0));
        let stated = spec.work_seconds.and_then(|all| u64::try_from(all).ok());
        let stated = stated.map(Micros::from_seconds);
        let last = totals.last.as_ref();
        let reported = last.and_then(|last| last.total_steps);
        let total_steps =
            reported.or_else(|| spec.steps.and_then(|steps| u64::try_from(steps).ok()));
        let save = last.and_then(|last| last.save_time);
        let mut estimate = Self {
            total_steps,
            work_left: None,
            work: stated,
            unsaved: Micros::ZERO,
            save: save.unwrap_or(assumed(spec.checkpoint.save_seconds)),
            restart: totals.restart.unwrap_or(assumed(spec.checkpoint.restart_seconds)),
            measured: false,
        };
        match last.and_then(|last| Some((last, last.step_time.filter(|step| !step.is_zero())?))) {
            Some((last, step)) => estimate.by_steps(last, step, seen),
            None => estimate.by_time(seen, totals, assumed(spec.checkpoint.interval_seconds), now),
        }
        estimate
    }

    fn by_steps(&mut self, last: &Heartbeat, step: Micros, seen: &SeenRun) {
        let runs = seen.gang.lead().is_some();
        let from = if runs { last.step } else { last.resumes_at() };
        let time = |steps: u64| step.saturating_mul(steps);
        self.unsaved = if runs { time(last.steps_at_risk()) } else { Micros::ZERO };
        match self.total_steps {
            Some(total) => {
                self.work = Some(time(total));
                self.work_left = Some(time(total.saturating_sub(from)));
                self.measured = true;
            }
            None => {
                self.work_left = self.work.map(|work| work.saturating_sub(time(from)));
            }
        }
    }

    /// Of a run that tells nothing, time on machines counts as work but for restarts, and it is taken to save as often as
    /// its spec says.
    fn by_time(&mut self, seen: &SeenRun, totals: &RunTotals, interval: Micros, now: Timestamp) {
        let starts = u64::from(totals.attempt_count.max(1));
        let done = totals.machine.saturating_sub(self.restart.saturating_mul(starts));
        self.work_left = self.work.map(|work| work.saturating_sub(done));
        let since = seen.gang.since().and_then(|since| now.since(since));
        let worked = since.map_or(Micros::ZERO, |since| since.saturating_sub(self.restart));
        self.unsaved = worked.min(interval);
    }

    /// Share of the work that is done, in millionths.
    pub fn done_per_million(&self) -> Option<u64> {
        let (work, left) = (self.work?.get(), self.work_left?.get());
        let done = u128::from(work.saturating_sub(left)) * 1_000_000;
        u64::try_from(done.checked_div(u128::from(work))?).ok()
    }
}

/// When it will end: earliest, likely, latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndSpan {
    /// If nothing goes wrong.
    pub earliest: Timestamp,
    /// Best estimate.
    pub likely: Timestamp,
    /// With what may go wrong.
    pub latest: Timestamp,
}

/// What is decided on.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInputs {
    /// The inputs, or what is missing for one.
    pub snapshot: Result<TrainingSnapshot, Vec<&'static str>>,
    /// When it will end on the machines that it has.
    pub end: Option<EndSpan>,
    /// When it must have ended.
    pub deadline: Option<Timestamp>,
}

impl RunInputs {
    /// Of a run.
    pub fn of(
        seen: &SeenRun,
        totals: &RunTotals,
        estimate: &RunEstimate,
        tick: Micros,
        now: Timestamp,
    ) -> Self {
        let deadline = seen.run.spec.deadline.as_ref();
        let deadline = deadline.and_then(|text| text.parse::<jiff::Timestamp>().ok()).map(of_date);
        let over = matches!(seen.workload.phase, RunPhase::Complete | RunPhase::Failed);
        let held = held(seen, totals, estimate, now);
        let snapshot = match over {
            true => Err(Vec::new()),
            false => snapshot(seen, estimate, deadline, held.clone(), tick, now),
        };
        let end = (!over).then(|| end(seen, totals, estimate, &held, now)).flatten();
        Self { snapshot, end, deadline }
    }
}

fn snapshot(
    seen: &SeenRun,
    estimate: &RunEstimate,
    deadline: Option<Timestamp>,
    held: HeldMachine,
    tick: Micros,
    now: Timestamp,
) -> Result<TrainingSnapshot, Vec<&'static str>> {
    let on_demand = seen.market.safe_price();
    let gpus = seen.workload.gpus.filter(|gpus| *gpus > 0);
    let missing = [
        (deadline.is_none(), "a deadline"),
        (on_demand.is_none(), "the price of on-demand machines"),
        (gpus.is_none(), "the number of accelerators"),
        (estimate.work_left.is_none(), "how much work is left"),
    ];
    match (deadline, on_demand, gpus, estimate.work_left) {
        (Some(deadline), Some(on_demand), Some(gpus), Some(work_left)) => Ok(TrainingSnapshot {
            now,
            deadline,
            work_left,
            unsaved: estimate.unsaved,
            restart: estimate.restart,
            save: estimate.save,
            tick,
            gpus: Gpus::new(gpus),
            on_demand,
            held,
            zones: seen.market.zones.clone(),
        }),
        _ => Err(missing.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect()),
    }
}

/// The machines that it has. One pod on a machine that may be taken makes all of them so.
fn held(seen: &SeenRun, totals: &RunTotals, estimate: &RunEstimate, now: Timestamp) -> HeldMachine {
    let Some(since) = seen.gang.since() else { return HeldMachine::NONE };
    let spot = seen.gang.nodes.values().find(|node| node.purchase == Purchase::Spot);
    let zone = spot.and_then(|node| node.zone.clone());
    let at = match (spot, zone) {
        (None, _) => TrainingChoice::OnDemand,
        (Some(_), Some(zone)) => TrainingChoice::Spot(ZoneName::new(&zone)),
        (Some(_), None) => TrainingChoice::Spot(ZoneName::new("unknown")),
    };
    // Once it takes steps, it is there.
    let steps = match seen.run.spec.checkpoint.heartbeat {
        HeartbeatSource::None => false,
        _ => totals.moved_at.is_some_and(|moved| moved >= since),
    };
    let ready_in = match (steps, now.since(since)) {
        (true, _) | (_, None) => Micros::ZERO,
        (false, Some(held)) => estimate.restart.saturating_sub(held),
    };
    HeldMachine { at, ready_in }
}

fn end(
    seen: &SeenRun,
    totals: &RunTotals,
    estimate: &RunEstimate,
    held: &HeldMachine,
    now: Timestamp,
) -> Option<EndSpan> {
    let left = estimate.work_left?;
    // Nobody knows when a run without machines gets some.
    if held.at == TrainingChoice::Wait {
        return None;
    }
    let every = totals.last.as_ref().and_then(|last| last.save_every);
    let stated = u64::try_from(seen.run.spec.checkpoint.interval_seconds).unwrap_or(1);
    let every = every.unwrap_or(Micros::from_seconds(stated)).get().max(1);
    let saves = estimate.save.saturating_mul(left.get() / every + 1);
    let percent = if estimate.measured { MEASURED_ERROR } else { ASSUMED_ERROR };
    let error = Micros::new(left.get() / 100 * percent);
    let earliest = now.saturating_add(held.ready_in).saturating_add(left.saturating_sub(error));
    let likely = now.saturating_add(held.ready_in).saturating_add(left).saturating_add(saves);
    // A machine that may be taken is, as far as this goes, once more.
    let redo = match &held.at {
        TrainingChoice::Spot(_) => estimate.restart.saturating_add(Micros::new(every)),
        _ => Micros::ZERO,
    };
    let latest = likely.saturating_add(error).saturating_add(redo);
    Some(EndSpan { earliest, likely, latest })
}
