//! The scaling laws that others publish, to be replayed against the same traffic.
//!
//! Each law is written from its published description and tested against it; [`named()`] gives each
//! with its published defaults, [`grid()`] lists settings worth trying on a training week, and
//! [`yaml`] reads a user's own `HorizontalPodAutoscaler` or `ScaledObject`.
//!
//! A law sees one model's [`Reading`] and nothing else: no queue of the virtual world, no future,
//! no other model. Start at `Law` and `Fleet`, then `hpa`, on which KEDA and llm-d build.

pub mod aibrix;
pub mod calendar;
pub mod dynamo;
mod grid;
pub mod hpa;
pub mod keda;
pub mod kpa;
pub mod llmd;
mod metric;
mod named;
mod predict;
pub mod ray;
mod window;
pub mod yaml;

pub use grid::grid;
pub use metric::RivalMetric;
pub use named::{NAMES, RivalError, RivalFacts, RivalSettings, named};

use crate::policy::{PolicyView, Reading, ScaleOrder, ScalingPolicy};
use crate::seconds::Seconds;
use flyball_core::units::Replicas;

/// How one model is scaled.
pub trait RivalLaw: Send {
    /// How many replicas there should be. `current` is what was ordered last.
    fn desired(&mut self, now: Seconds, reading: &Reading, current: u32) -> u32;

    /// How often it is asked.
    fn interval(&self) -> Seconds;
}

/// One law per model, as a policy.
pub struct RivalFleet {
    name: String,
    slots: Vec<Slot>,
}

impl RivalFleet {
    /// A policy that scales each model, in the order of the snapshot, by its own law.
    ///
    /// A model beyond the last law keeps the replicas it has.
    pub fn new(name: impl Into<String>, laws: Vec<Box<dyn RivalLaw>>) -> Self {
        let slots = laws.into_iter().map(|law| Slot { law, ordered: None, due: None }).collect();
        Self { name: name.into(), slots }
    }

    /// The same settings for so many models.
    pub fn uniform(name: impl Into<String>, settings: &RivalSettings, models: usize) -> Self {
        Self::new(name, (0..models).map(|_| settings.law()).collect())
    }
}

impl ScalingPolicy for RivalFleet {
    fn name(&self) -> &str {
        &self.name
    }

    fn interval(&self) -> Seconds {
        let shortest = self.slots.iter().map(|slot| slot.law.interval()).min();
        shortest.unwrap_or(Seconds::MINUTE)
    }

    fn reads_snapshot(&self) -> bool {
        false
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        let ask = |(index, reading): (usize, &Reading)| {
            let replicas = match self.slots.get_mut(index) {
                Some(slot) => slot.ask(sight.now, reading),
                None => reading.ready + reading.starting,
            };
            Replicas::new(replicas)
        };
        ScaleOrder::Scale(sight.readings.iter().enumerate().map(ask).collect())
    }
}

/// One model's law and what it last ordered.
struct Slot {
    law: Box<dyn RivalLaw>,
    ordered: Option<u32>,
    due: Option<Seconds>,
}

impl Slot {
    /// Asks the law when its turn has come. Laws with different cadences share one policy, so each
    /// keeps its own clock; a clock that jumped back makes it due at once.
    fn ask(&mut self, now: Seconds, reading: &Reading) -> u32 {
        let current = self.ordered.unwrap_or(reading.ready + reading.starting);
        let interval = self.law.interval();
        let early = self.due.is_some_and(|due| now.0 < due.0 - 1e-6 && due <= now + interval);
        if early {
            return current;
        }
        let desired = self.law.desired(now, reading, current);
        self.ordered = Some(desired);
        self.due = Some(now + interval);
        desired
    }
}

/// The next whole number of replicas. A ratio that is whole but for the rounding of floats stays.
fn ceil(replicas: f64) -> u32 {
    // Half a millionth of a replica is far below what any metric resolves.
    (replicas - 5e-7).ceil().clamp(0.0, f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests;
