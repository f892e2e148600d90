//! How often to save: ours beside the best fixed interval in hindsight, zone by zone.

use super::worlds::{RESTART, Reach, ZoneSet};
use crate::parallel;
use flyball_core::units::Micros;
use flyball_simulator::training::intervals::{SaveRule, best_fixed, saved_work};

/// What came of one zone at one length of save.
pub(super) struct Saved {
    pub(super) zone: String,
    pub(super) save: Micros,
    /// The best fixed interval.
    pub(super) best: Micros,
    /// Work that was saved, over that of the best fixed interval.
    pub(super) percent: f64,
}

const SAVES: [Micros; 3] =
    [Micros::from_seconds(5), Micros::from_seconds(30), Micros::from_seconds(120)];

/// Every zone by itself.
pub(super) fn all(sets: &[ZoneSet]) -> Vec<Saved> {
    let zones: Vec<(&ZoneSet, Micros)> = sets
        .iter()
        .filter(|set| set.reach == Reach::One)
        .flat_map(|set| SAVES.map(|save| (set, save)))
        .collect();
    parallel::map(&zones, |(set, save)| {
        let market = &set.market;
        let (best, most) = best_fixed(market, set.from, RESTART, *save);
        let ours = saved_work(market, set.from, RESTART, *save, SaveRule::Ours);
        let percent = 100.0 * ours.as_seconds() / most.as_seconds().max(1.0);
        Saved { zone: set.name.clone(), save: *save, best, percent }
    })
}
