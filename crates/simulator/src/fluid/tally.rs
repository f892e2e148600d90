//! Keeps the score of one model while a replay runs.

use super::FluidModel;
use super::fleet::Fleet;
use super::queue::Served;
use crate::score::{ModelOutcome, TimelineMoment};
use crate::seconds::Seconds;

/// Bins of the histogram of waits: from 10 ms on, each a fifth longer than the one before, so that
/// a percentile is known to within a tenth.
const BINS: usize = 80;
const FIRST_BIN: f64 = 0.01;
const BIN_RATIO: f64 = 1.2;

pub(super) struct Tally {
    outcome: ModelOutcome,
    per_replica: f64,
    first_token: Seconds,
    cold_start: Seconds,
    last_up: Option<Seconds>,
    last_down: Option<Seconds>,
    waits: [f64; BINS],
    worst: Worst,
    keep: bool,
    minute: TimelineMoment,
}

/// Requests and misses of the five minutes under way.
#[derive(Clone, Copy, Debug, Default)]
struct Worst {
    from: f64,
    requests: f64,
    missed: f64,
}

impl Tally {
    pub(super) fn new(model: &FluidModel, cold_start: Seconds, keep: bool) -> Self {
        Self {
            outcome: ModelOutcome::default(),
            per_replica: model.per_replica,
            first_token: model.first_token,
            cold_start,
            last_up: None,
            last_down: None,
            waits: [0.0; BINS],
            worst: Worst::default(),
            keep,
            minute: TimelineMoment::default(),
        }
    }

    /// One replica was started.
    pub(super) const fn started(&mut self) {
        self.outcome.starts += 1;
    }

    /// The number of live replicas was changed by order.
    pub(super) fn ordered(&mut self, before: u32, after: u32, now: Seconds) {
        let within = |last: Option<Seconds>| last.is_some_and(|at| now - at < self.cold_start);
        if after > before {
            self.outcome.regrets += u32::from(within(self.last_down));
            self.last_up = Some(now);
        } else if after < before {
            self.outcome.reversals += u32::from(within(self.last_up));
            self.last_down = Some(now);
        }
    }

    /// One step.
    pub(super) fn add(
        &mut self,
        served: &Served,
        fleet: &Fleet,
        waiting: f64,
        now: Seconds,
        step: Seconds,
        scored: bool,
    ) {
        if self.keep {
            self.draw(served, fleet, waiting, now, scored);
        }
        if !scored {
            return;
        }
        let outcome = &mut self.outcome;
        outcome.requests += served.requests;
        outcome.missed += served.missed;
        outcome.replica_seconds += f64::from(fleet.held()) * step.get();
        outcome.starting_seconds += f64::from(fleet.starting()) * step.get();
        outcome.draining_seconds += f64::from(fleet.draining()) * step.get();
        outcome.useful_seconds += served.done / self.per_replica;
        let middle = f64::midpoint(served.waits.0, served.waits.1);
        self.waits[bin(middle)] += served.requests;
        if now.get() - self.worst.from >= 300.0 {
            self.worst = Worst { from: now.get(), ..Worst::default() };
        }
        self.worst.requests += served.requests;
        self.worst.missed += served.missed;
        if self.worst.requests > 0.0 {
            let share = self.worst.missed / self.worst.requests;
            outcome.worst_five_minutes = outcome.worst_five_minutes.max(share);
        }
    }

    pub(super) fn outcome(mut self) -> ModelOutcome {
        if self.keep && self.minute.requests > 0.0 {
            self.outcome.timeline.push(self.minute);
        }
        self.outcome.first_token_p99 = self.first_token + percentile(&self.waits, 0.99);
        self.outcome
    }

    fn draw(&mut self, served: &Served, fleet: &Fleet, waiting: f64, now: Seconds, scored: bool) {
        let start = (now.get() / 60.0).floor() * 60.0;
        if start > self.minute.at.get() {
            self.outcome.timeline.push(self.minute);
            self.minute = TimelineMoment { at: Seconds(start), ..TimelineMoment::default() };
        }
        let minute = &mut self.minute;
        minute.demand += served.work / self.per_replica / 60.0;
        minute.ready = f64::from(fleet.ready());
        minute.starting = f64::from(fleet.starting());
        minute.draining = f64::from(fleet.draining());
        minute.waiting = waiting;
        minute.requests += served.requests;
        minute.missed += served.missed;
        minute.masked |= !scored;
    }
}

fn bin(wait: f64) -> usize {
    if wait < FIRST_BIN {
        0
    } else {
        (((wait / FIRST_BIN).ln() / BIN_RATIO.ln()) as usize + 1).min(BINS - 1)
    }
}

/// The upper end of the bin in which the percentile lies; nothing waits at all in the first.
fn percentile(waits: &[f64; BINS], share: f64) -> Seconds {
    let total: f64 = waits.iter().sum();
    let mut below = 0.0;
    for (index, weight) in waits.iter().enumerate() {
        below += weight;
        if below >= share * total {
            let end = FIRST_BIN * BIN_RATIO.powi(index as i32);
            return if index == 0 { Seconds::ZERO } else { Seconds(end) };
        }
    }
    Seconds::ZERO
}
