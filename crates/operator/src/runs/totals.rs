//! What a run has cost, done and lost since Flyball observes it. Pure.
//!
//! Sums go on from the status after a restart of the operator. Time in between counts by the machines that the run has
//! when it is seen again, if it had them before.

use super::SeenRun;
use super::gang::GangNode;
use crate::observe::Outlook;
use crate::time::of_date;
use flyball_core::snapshot::Purchase;
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::decimal;
use flyball_resources::heartbeat::{Heartbeat, HeartbeatForm, VERSION};
use flyball_resources::training_run::{
    HeartbeatSource, RunAttempt, RunProgress, TrainingRunStatus,
};
use std::collections::BTreeMap;

/// Starts that a status keeps.
const RETAINED_ATTEMPTS: usize = 8;

/// Why a start of a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossCause {
    /// Its spot machines were taken.
    Reclaimed,
    /// A node that nobody may take did not answer any more.
    NodeLost,
    /// Kueue gave its machines to others, or took them back.
    Preempted,
    /// A process ended by itself.
    Failed,
    /// Nobody saw why.
    Unknown,
}

impl LossCause {
    const ALL: [Self; 5] =
        [Self::Reclaimed, Self::NodeLost, Self::Preempted, Self::Failed, Self::Unknown];

    /// The name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reclaimed => "Reclaimed",
            Self::NodeLost => "NodeLost",
            Self::Preempted => "Preempted",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

/// What was lost for one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostWork {
    /// How often.
    pub times: u32,
    /// Steps that had to be computed again.
    pub steps: u64,
    /// The time that went into them.
    pub time: Micros,
}

/// The sums of a run, and its last heartbeat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTotals {
    counted_until: Timestamp,
    /// Time in which it had machines.
    pub machine: Micros,
    /// Time of steps, lost ones too.
    pub stepping: Micros,
    /// Millionths of the currency.
    pub spent_micros: i64,
    /// What was thrown away.
    pub lost: BTreeMap<LossCause, LostWork>,
    /// The last starts.
    pub attempts: Vec<RunAttempt>,
    /// All starts.
    pub attempt_count: u32,
    /// The last heartbeat.
    pub last: Option<Heartbeat>,
    /// When the step last moved, as far as was seen.
    pub moved_at: Option<Timestamp>,
    /// Time from the request for machines to the first new step, as it was at the last restart.
    pub restart: Option<Micros>,
    /// What ended the start that is under way, if anything did.
    suspect: Option<LossCause>,
    /// Which start the last look saw: what the run calls it, or the pod of rank 0.
    attempt: Option<String>,
    nodes: BTreeMap<String, GangNode>,
    evicted_at: Option<Timestamp>,
}

impl RunTotals {
    /// Goes on from a status.
    pub fn resume(status: Option<&TrainingRunStatus>, now: Timestamp) -> Self {
        let Some(status) = status else { return Self { counted_until: now, ..Self::default() } };
        let progress = status.progress.as_ref();
        let mut totals = Self { counted_until: now, ..Self::default() };
        if let Some(account) = &status.account {
            totals.counted_until = moment(&account.counted_until).unwrap_or(now);
            totals.machine = seconds(account.machine_seconds);
            totals.stepping = seconds(account.step_seconds);
            totals.spent_micros = account.spent_micros;
        }
        for lost in &status.lost {
            if let Some(cause) = LossCause::from_name(&lost.cause) {
                let times = u32::try_from(lost.times).unwrap_or(0);
                let steps = u64::try_from(lost.steps).unwrap_or(0);
                totals.lost.insert(cause, LostWork { times, steps, time: seconds(lost.seconds) });
            }
        }
        totals.attempts.clone_from(&status.attempts);
        totals.attempt_count =
            status.attempt_count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        totals.attempt = progress.and_then(|progress| progress.attempt.clone());
        totals.restart = progress
            .and_then(|progress| decimal::micros(progress.restart_seconds.as_ref()?))
            .and_then(|micros| u64::try_from(micros).ok())
            .map(Micros::new);
        totals.last = progress.and_then(heartbeat);
        totals.moved_at = totals.last.as_ref().map(|last| last.at);
        totals
    }

    /// Up to when it is summed.
    pub const fn counted_until(&self) -> Timestamp {
        self.counted_until
    }

    /// Counts the time since the last look, and notes what happened to the machines.
    pub fn count(&mut self, seen: &SeenRun, now: Timestamp) {
        if let Some(since) = seen.gang.since() {
            let from = self.counted_until.max(since);
            let length = now.since(from).unwrap_or(Micros::ZERO);
            self.machine = self.machine.saturating_add(length);
            let hourly = seen.market.hourly(&seen.gang).unwrap_or(0);
            let cost =
                i128::from(hourly) * i128::from(length.get()) / i128::from(Micros::HOUR.get());
            self.spent_micros = self.spent_micros.saturating_add(i64::try_from(cost).unwrap_or(0));
            if seen.run.spec.checkpoint.heartbeat == HeartbeatSource::None {
                self.start(seen.gang.last_lead().map(|pod| pod.uid.clone()), None, now);
            }
        }
        self.counted_until = self.counted_until.max(now);
        self.suspect_of(seen);
        if !seen.gang.nodes.is_empty() {
            // Of a node that is gone, what was known before counts.
            let before = std::mem::take(&mut self.nodes);
            let retained = |(name, node): (&String, &GangNode)| {
                let known = before.get(name).filter(|_| node.outlook != Outlook::Stays);
                (name.clone(), known.unwrap_or(node).clone())
            };
            self.nodes = seen.gang.nodes.iter().map(retained).collect();
        }
    }

    /// Takes a heartbeat in.
    pub fn record(&mut self, beat: &Heartbeat, seen: &SeenRun, now: Timestamp) {
        let pod = || seen.gang.last_lead().map(|pod| pod.uid.clone());
        let attempt = beat.attempt.clone().or_else(pod);
        let stepped = self.last.as_ref().is_some_and(|last| last.step > 0);
        if self.attempt != attempt && beat.step == 0 && stepped {
            // It has not restored yet: where it goes on from, and so what was lost, is not known.
            return;
        }
        if self.attempt != attempt || self.attempts.is_empty() {
            let missed = self.missed(beat);
            self.lose(beat, missed);
            self.attempt_count = self.attempt_count.saturating_add(missed);
            self.start(attempt, Some(beat.restored_step), now);
            self.measure_restart(beat, seen);
        } else if let Some(last) = &self.last {
            let steps = beat.step.saturating_sub(last.step);
            self.stepping = self.stepping.saturating_add(times(beat.step_time, steps));
        }
        if self.last.as_ref().is_none_or(|last| last.step != beat.step) {
            self.moved_at = Some(now);
        }
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.last_step = i64::try_from(beat.step).ok();
        }
        let mut beat = beat.clone();
        // What was once measured stays until it is measured again.
        if let Some(last) = &self.last {
            beat.step_time = beat.step_time.or(last.step_time);
            beat.save_time = beat.save_time.or(last.save_time);
            beat.total_steps = beat.total_steps.or(last.total_steps);
            beat.repeated_steps = beat.repeated_steps.or(last.repeated_steps);
        }
        self.last = Some(beat);
    }

    /// The run has ended.
    pub fn end(&mut self, how: &str, at: Timestamp) {
        if let Some(last) = self.attempts.last_mut().filter(|last| last.ended_at.is_none()) {
            last.ended_at = Some(flyball_resources::rfc3339(at));
            last.end = Some(how.to_owned());
        }
    }

    /// Time of steps that were not lost.
    pub fn useful(&self) -> Micros {
        let lost = self.lost.values().fold(Micros::ZERO, |sum, lost| sum.saturating_add(lost.time));
        self.stepping.saturating_sub(lost)
    }

    /// Starts between the last heartbeat and this one that nobody saw: each took less time than there is between two looks.
    fn missed(&self, beat: &Heartbeat) -> u32 {
        let counted = beat.attempt_count.and_then(|count| u32::try_from(count).ok());
        counted.map_or(0, |counted| counted.saturating_sub(self.attempt_count + 1))
    }

    fn lose(&mut self, beat: &Heartbeat, missed: u32) {
        let from = beat.restored_step;
        let last = self.last.as_ref();
        let before = last.map_or(0, |last| last.step);
        // The run itself saw its last steps; from outside they are those of the last heartbeat.
        let counted = beat.repeated_steps.zip(last.and_then(|last| last.repeated_steps));
        let steps = match counted {
            Some((now, before)) => now.saturating_sub(before),
            None => before.saturating_sub(from),
        };
        let time = last.and_then(|last| last.step_time).or(beat.step_time);
        // Steps between the restored one and this, of which nothing was heard yet.
        let since = times(beat.step_time, beat.step.saturating_sub(from));
        self.stepping = self.stepping.saturating_add(since);
        if self.attempts.is_empty() || self.last.is_none() {
            // What was lost before the first look the run knows itself, and not for how long it had worked on it.
            if missed > 0 {
                let lost = self.lost.entry(LossCause::Unknown).or_default();
                lost.times = lost.times.saturating_add(missed);
                lost.steps = lost.steps.saturating_add(beat.repeated_steps.unwrap_or(0));
            }
            return;
        }
        let cause = self.suspect.unwrap_or(LossCause::Unknown);
        let lost = self.lost.entry(cause).or_default();
        lost.times = lost.times.saturating_add(1 + missed);
        lost.steps += steps;
        lost.time = lost.time.saturating_add(times(time, steps));
    }

    fn start(&mut self, attempt: Option<String>, from: Option<u64>, now: Timestamp) {
        if attempt.is_none() || (self.attempt == attempt && !self.attempts.is_empty()) {
            return;
        }
        let cause = self.suspect.take().unwrap_or(LossCause::Unknown);
        self.end(cause.name(), now);
        self.attempt = attempt;
        self.attempt_count += 1;
        self.attempts.push(RunAttempt {
            number: i32::try_from(self.attempt_count).unwrap_or(i32::MAX),
            started_at: flyball_resources::rfc3339(now),
            from_step: from.and_then(|step| i64::try_from(step).ok()),
            ..RunAttempt::default()
        });
        let surplus = self.attempts.len().saturating_sub(RETAINED_ATTEMPTS);
        self.attempts.drain(..surplus);
    }

    /// From the pod of rank 0 being made to the first step after it.
    fn measure_restart(&mut self, beat: &Heartbeat, seen: &SeenRun) {
        let made = seen.gang.last_lead().map(|pod| pod.created);
        let measured = made.zip(beat.started_at).zip(beat.restore_time);
        if let Some(((made, began), restore)) = measured
            && let Some(start) = began.since(made)
        {
            self.restart = Some(start.saturating_add(restore));
        }
    }

    fn suspect_of(&mut self, seen: &SeenRun) {
        if let Some((at, _)) = &seen.workload.evicted
            && self.evicted_at.is_none_or(|before| before < *at)
        {
            // One from before this operator looked says nothing about the start that is under way.
            if self.evicted_at.is_some() || self.attempt_count > 0 {
                self.suspect = Some(LossCause::Preempted);
            }
            self.evicted_at = Some(*at);
        }
        let now = &seen.gang.nodes;
        for (name, before) in &self.nodes {
            let goes = now.get(name).is_some_and(|node| node.outlook != Outlook::Stays);
            if goes {
                let reclaimed = before.purchase == Purchase::Spot;
                let cause = if reclaimed { LossCause::Reclaimed } else { LossCause::NodeLost };
                self.suspect = Some(cause);
            }
        }
        let crashed = seen.gang.pods.iter().any(|pod| pod.over || pod.crashed.is_some());
        if crashed && self.suspect.is_none() && seen.workload.ended.is_none() {
            self.suspect = Some(LossCause::Failed);
        }
    }
}

/// A heartbeat as far as a status keeps it.
fn heartbeat(progress: &RunProgress) -> Option<Heartbeat> {
    let count = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    let seconds = |text: &Option<String>| {
        text.as_ref().and_then(|text| decimal::micros(text)).map(|micros| micros as f64 / 1e6)
    };
    let form = HeartbeatForm {
        version: VERSION,
        step: count(progress.step)?,
        at: progress.heartbeat_at.clone()?,
        total_steps: count(progress.total_steps),
        saved_step: count(progress.saved_step),
        step_seconds: seconds(&progress.step_seconds),
        save_seconds: seconds(&progress.save_seconds),
        tokens: count(progress.tokens),
        attempt: progress.attempt.clone(),
        save_every_seconds: progress.save_every_seconds.map(|seconds| seconds as f64),
        restored_step: None,
        restore_seconds: None,
        started_at: None,
        instructions_number: None,
        attempt_count: None,
        repeated_steps: count(progress.repeated_steps),
    };
    form.try_into().ok()
}

fn times(time: Option<Micros>, count: u64) -> Micros {
    time.map_or(Micros::ZERO, |time| time.saturating_mul(count))
}

fn seconds(count: i64) -> Micros {
    Micros::from_seconds(u64::try_from(count).unwrap_or(0))
}

fn moment(rfc3339: &str) -> Option<Timestamp> {
    rfc3339.parse::<jiff::Timestamp>().ok().map(of_date)
}
