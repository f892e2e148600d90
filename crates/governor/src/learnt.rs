//! What was learnt about a model, as plain numbers, so that whoever decides next decides the same.
//!
//! Left out is what a look brings back: replicas that start, and what a pool holds. The numbers come back from
//! outside of the process, so that each is refused outside of its bounds.

use crate::demand::Unit;
use crate::feedback::{self, Feedback};
use crate::forecast::{self, Forecaster};
use crate::memory::Memory;
use crate::recommendations::Recommendations;
use crate::zero::Idle;
use flyball_core::ids::ModelId;
use flyball_core::snapshot::Misses;
use flyball_core::units::{Requests, Timestamp};

/// What one model taught.
#[derive(Clone, Debug, PartialEq)]
pub struct GovernorMemory {
    /// Minutes of work that it rests on.
    pub minutes: u32,
    /// The replica that work is counted in: tokens it reads and writes in a second, and holds, and the part
    /// of its work that is reading; below zero where that is not known.
    pub yardstick: [f64; 4],
    /// How work stands: its level, noise and spread.
    pub forecast: [f64; forecast::NUMBERS],
    /// How it moves: the last minutes, and the table of moves. A few digits of these are enough.
    pub moves: [f64; forecast::MOVES_NUMBERS],
    /// The most work of each minute of the last hours, in small whole numbers.
    pub bursts: Vec<u16>,
    /// What fixed capacities would have missed. A few digits are enough.
    pub hindsight: [f64; forecast::HINDSIGHT_NUMBERS],
    /// How many replicas were wanted lately.
    pub recommendations: Vec<f64>,
    /// Requests and misses that were counted last, and since when the model is idle; below zero where that is
    /// not known.
    pub counted: [f64; 3],
    /// What misses taught.
    pub feedback: [f64; feedback::NUMBERS],
    /// Idle times that ended, in seconds, the oldest first.
    pub idle_s: Vec<f64>,
}

impl Memory {
    /// Minutes of work that what is known of each model rests on.
    pub fn minutes(&self) -> impl Iterator<Item = (&ModelId, u32)> {
        self.models.iter().map(|(id, model)| (id, model.forecaster.minutes()))
    }

    /// What a model taught, once a minute of it was seen.
    pub fn learnt(&self, id: &ModelId) -> Option<GovernorMemory> {
        let model = self.models.get(id)?;
        let unit = model.yardstick?;
        let minutes = model.forecaster.minutes();
        (minutes > 0).then(|| GovernorMemory {
            minutes,
            yardstick: [
                unit.prefill,
                unit.decode,
                unit.resident,
                unit.read_share.unwrap_or(NOT_KNOWN),
            ],
            forecast: model.forecaster.numbers(),
            moves: model.forecaster.moves(),
            bursts: model.forecaster.bursts().collect(),
            hindsight: model.forecaster.hindsight(),
            recommendations: model.recommendations.numbers(),
            counted: [
                model.misses.map_or(NOT_KNOWN, |misses| misses.requests.get() as f64),
                model.misses.map_or(NOT_KNOWN, |misses| misses.missed.get() as f64),
                model.idle.since().map_or(NOT_KNOWN, |since| since.as_micros() as f64),
            ],
            feedback: model.feedback.numbers(),
            idle_s: model.idle.past_s().collect(),
        })
    }

    /// Replaces what a model taught by what it taught elsewhere. Returns whether it could be: numbers
    /// that cannot have been learnt change nothing.
    pub fn restore(&mut self, id: &ModelId, learnt: &GovernorMemory) -> bool {
        let Some(restored) = Restored::of(learnt) else { return false };
        let model = self.models.entry(id.clone()).or_default();
        // The next look teaches, whatever the clock of whoever looked before.
        model.seen_at = None;
        model.yardstick = Some(restored.yardstick);
        model.forecaster = restored.forecaster;
        model.feedback = restored.feedback;
        model.recommendations = restored.recommendations;
        model.misses = restored.misses;
        model.idle.restore(restored.idle_since, &learnt.idle_s);
        // Pools count in the same unit, which may be another one now.
        for held in self.held.values_mut() {
            held.forget(id);
        }
        true
    }
}

/// In place of a share.
const NOT_KNOWN: f64 = -1.0;

/// Numbers that are within their bounds.
struct Restored {
    yardstick: Unit,
    forecaster: Forecaster,
    feedback: Feedback,
    recommendations: Recommendations,
    misses: Option<Misses>,
    idle_since: Option<Timestamp>,
}

impl Restored {
    fn of(learnt: &GovernorMemory) -> Option<Self> {
        let [prefill, decode, resident, read_share] = learnt.yardstick;
        // What is not known of a replica is infinite.
        let speeds = [prefill, decode, resident].iter().all(|part| *part >= 1e-3)
            && (NOT_KNOWN..=1.0).contains(&read_share);
        let read_share = (read_share >= 0.0).then_some(read_share);
        let idle = learnt.idle_s.len() <= Idle::PAST
            && learnt.idle_s.iter().all(|past| (0.0..1e9).contains(past));
        let counts = learnt.counted.iter().all(|count| (NOT_KNOWN..9e15).contains(count));
        (speeds && idle && counts).then_some(())?;
        let [requests, missed, idle_since] = learnt.counted;
        let count = |count: f64| (count >= 0.0).then(|| Requests::new(count as u64));
        let misses = count(requests).zip(count(missed));
        Some(Self {
            yardstick: Unit { prefill, decode, resident, read_share },
            forecaster: Forecaster::restored(
                &learnt.forecast,
                &learnt.moves,
                &learnt.bursts,
                &learnt.hindsight,
                learnt.minutes,
            )?,
            feedback: Feedback::restored(&learnt.feedback)?,
            recommendations: Recommendations::restored(&learnt.recommendations)?,
            misses: misses.map(|(requests, missed)| Misses { requests, missed }),
            idle_since: (idle_since >= 0.0).then(|| Timestamp::from_micros(idle_since as u64)),
        })
    }
}
