//! What was learnt about a model and takes long to learn again, as plain numbers, for whoever decides next.
//!
//! Left out is what a look or a few minutes bring back: the level of the work, wishes for fewer,
//! replicas that start. The numbers come back from outside of the process, so that each is refused
//! outside of its bounds.

use crate::capacity::Correction;
use crate::demand::Unit;
use crate::feedback::Feedback;
use crate::forecast::{self, Forecaster};
use crate::memory::Memory;
use crate::zero::Idle;
use flyball_core::ids::{ModelId, VariantName};
use std::collections::BTreeMap;

/// What one model taught.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// Minutes of work that it rests on.
    pub minutes: u32,
    /// The replica that work is counted in: tokens it reads and writes in a second, and holds.
    pub yardstick: [f64; 3],
    /// How work moves: noise, spread, and the table of moves.
    pub forecast: [f64; forecast::NUMBERS],
    /// What misses taught.
    pub feedback: [f64; 4],
    /// Idle times that ended, in seconds, the oldest first.
    pub idle_s: Vec<f64>,
    /// Of each variant: capacity measured over capacity predicted, and the samples of it.
    pub variants: BTreeMap<VariantName, [f64; 2]>,
}

impl Memory {
    /// Minutes of work that what is known of each model rests on.
    pub fn minutes(&self) -> impl Iterator<Item = (&ModelId, u32)> {
        self.models.iter().map(|(id, model)| (id, model.forecaster.minutes()))
    }

    /// What a model taught, once a minute of it was seen.
    pub fn learnt(&self, id: &ModelId) -> Option<Learnt> {
        let model = self.models.get(id)?;
        let unit = model.yardstick?;
        let minutes = model.forecaster.minutes();
        let variants = model.variants.iter();
        (minutes > 0).then(|| Learnt {
            minutes,
            yardstick: [unit.prefill, unit.decode, unit.resident],
            forecast: model.forecaster.numbers(),
            feedback: model.feedback.numbers(),
            idle_s: model.idle.past_s().collect(),
            variants: variants
                .map(|(name, one)| (name.clone(), one.correction.numbers()))
                .collect(),
        })
    }

    /// Replaces what a model taught by what it taught elsewhere. Returns whether it could be: numbers
    /// that cannot have been learnt change nothing.
    pub fn restore(&mut self, id: &ModelId, learnt: &Learnt) -> bool {
        let Some(restored) = Restored::of(learnt) else { return false };
        let model = self.models.entry(id.clone()).or_default();
        // The next look teaches, even one at the same moment: the level is not among the numbers.
        model.seen_at = None;
        model.yardstick = Some(restored.yardstick);
        model.forecaster = restored.forecaster;
        model.feedback = restored.feedback;
        model.idle.restore(&learnt.idle_s);
        for (name, correction) in restored.corrections {
            model.variants.entry(name).or_default().correction = correction;
        }
        // Pools count in the same unit, which may be another one now.
        for held in self.held.values_mut() {
            held.forget(id);
        }
        true
    }
}

/// Numbers that are within their bounds.
struct Restored {
    yardstick: Unit,
    forecaster: Forecaster,
    feedback: Feedback,
    corrections: Vec<(VariantName, Correction)>,
}

impl Restored {
    fn of(learnt: &Learnt) -> Option<Self> {
        let [prefill, decode, resident] = learnt.yardstick;
        // What is not known of a replica is infinite.
        let speeds = learnt.yardstick.iter().all(|part| *part >= 1e-3);
        let idle = learnt.idle_s.len() <= Idle::PAST
            && learnt.idle_s.iter().all(|past| (0.0..1e9).contains(past));
        let corrections = learnt.variants.iter();
        let corrections = corrections
            .map(|(name, numbers)| Some((name.clone(), Correction::restored(numbers)?)))
            .collect::<Option<_>>()?;
        (speeds && idle).then_some(())?;
        Some(Self {
            yardstick: Unit { prefill, decode, resident },
            forecaster: Forecaster::restored(&learnt.forecast, learnt.minutes)?,
            feedback: Feedback::restored(&learnt.feedback)?,
            corrections,
        })
    }
}
