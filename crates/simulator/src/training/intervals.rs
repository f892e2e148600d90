//! How much of the time on spot machines becomes saved work, by how often a run saves.
//!
//! The run is in one zone whenever that has machines, so that nothing differs but the interval. Ours is worked out from
//! what was seen up to then; a fixed one is known from the start.

use flyball_core::units::{Gpus, Micros};
use flyball_training::{RunMemory, TrainingChoice, TrainingSnapshot};

use super::market::SpotMarket;
use super::policy::{PolicyChoice, RunPolicy};
use super::replay::{RunToReplay, play};

/// How often a run saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveRule {
    /// As our own policy does.
    Ours,
    /// Each time after so much work.
    Every(Micros),
}

/// Fixed intervals worth trying, in minutes.
pub const FIXED_MINUTES: [u64; 18] =
    [1, 2, 3, 4, 5, 7, 10, 12, 15, 20, 25, 30, 45, 60, 90, 120, 180, 240];

/// A run that only wants to be where the only zone of a market has machines.
struct Stays {
    rule: SaveRule,
    memory: RunMemory,
}

impl RunPolicy for Stays {
    fn choose(&mut self, snapshot: &TrainingSnapshot) -> PolicyChoice {
        self.memory.see(snapshot);
        let there = snapshot.available().next().map(|(zone, ..)| zone.clone());
        let choice = there.map_or(TrainingChoice::Wait, TrainingChoice::Spot);
        let save_every = match self.rule {
            SaveRule::Ours => self.memory.save_every(snapshot, &choice),
            SaveRule::Every(every) => every,
        };
        let (reason, broken) = (None, Vec::new());
        PolicyChoice { choice, save_now: false, save_every, reason, broken }
    }
}

/// Work that was done and saved from a step on, to the end of the recording.
pub fn saved_work(
    market: &SpotMarket,
    from: usize,
    restart: Micros,
    save: Micros,
    rule: SaveRule,
) -> Micros {
    // More work than any recording has time for.
    let endless = Micros::from_minutes(60 * 24 * 365);
    let gpus = Gpus::new(1);
    let run = RunToReplay { start: from, work: endless, allowed: endless, restart, save, gpus };
    let came = play(market, &run, &mut Stays { rule, memory: RunMemory::default() });
    let not_work = came.starting.saturating_add(came.saving).saturating_add(came.lost);
    came.spot.saturating_sub(not_work)
}

/// The fixed interval that would have saved the most work, with how much.
pub fn best_fixed(
    market: &SpotMarket,
    from: usize,
    restart: Micros,
    save: Micros,
) -> (Micros, Micros) {
    let tried = FIXED_MINUTES.map(|minutes| {
        let every = Micros::from_minutes(minutes);
        (every, saved_work(market, from, restart, save, SaveRule::Every(every)))
    });
    tried.into_iter().max_by_key(|(_, saved)| *saved).unwrap_or_default()
}
