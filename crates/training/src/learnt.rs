//! What a run's zones taught, as plain values: for whoever writes it down, and reads it again after a restart.

use crate::lifetimes::{AGES, Lifetimes};
use crate::memory::{RunMemory, SeenZone};
use crate::snapshot::ZoneName;
use flyball_core::units::Timestamp;
use std::collections::BTreeMap;

/// Ends in each class of ages, and then hours.
pub type LearntLives = [f64; 2 * AGES];

/// More than anybody can have seen: a century of every zone that there is.
const MOST: f64 = 1e9;

/// What is known of the machines that a run may have.
#[derive(Clone, Debug, PartialEq)]
pub struct LearntMarket {
    /// Of each zone by itself.
    pub zones: BTreeMap<ZoneName, LearntZone>,
    /// Of all zones together.
    pub all: LearntLives,
    /// Of times in which no zone has any.
    pub none: LearntLives,
    /// Whether some zone has any, and since when.
    pub market: Option<(bool, Timestamp)>,
    /// Ends of a zone's machines while another had some, and all of them.
    pub elsewhere: [f64; 2],
    /// When it last learnt something.
    pub seen_at: Timestamp,
}

/// What is known of a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct LearntZone {
    /// How long its machines lasted.
    pub lives: LearntLives,
    /// Whether it has any, and since when.
    pub available: (bool, Timestamp),
    /// Hours with machines, and all that were seen.
    pub hours: [f64; 2],
}

impl RunMemory {
    /// What it knows; `None` before it has seen anything.
    pub fn learnt(&self) -> Option<LearntMarket> {
        let zone = |seen: &SeenZone| LearntZone {
            lives: seen.lives.counts(),
            available: (seen.available, seen.since),
            hours: [seen.there_h, seen.seen_h],
        };
        Some(LearntMarket {
            zones: self.zones.iter().map(|(name, seen)| (name.clone(), zone(seen))).collect(),
            all: self.all.counts(),
            none: self.none.counts(),
            market: self.market,
            elsewhere: self.elsewhere.into(),
            seen_at: self.seen_at?,
        })
    }

    /// Goes on from what was known. `None` if nobody can have learnt that.
    pub fn restored(learnt: &LearntMarket) -> Option<Self> {
        let is_possible = |numbers: &[f64]| numbers.iter().all(|one| (0.0..MOST).contains(one));
        let zones = learnt.zones.iter().map(|(name, zone)| {
            let [there_h, seen_h] = zone.hours;
            let possible =
                is_possible(&zone.lives) && is_possible(&zone.hours) && there_h <= seen_h;
            let (available, since) = zone.available;
            let lives = Lifetimes::up().with_counts(&zone.lives);
            let seen = SeenZone { lives, available, since, there_h, seen_h };
            possible.then(|| (name.clone(), seen))
        });
        let zones = zones.collect::<Option<BTreeMap<_, _>>>()?;
        let parts: [&[f64]; 3] = [&learnt.all, &learnt.none, &learnt.elsewhere];
        let [while_some, ends] = learnt.elsewhere;
        if !parts.into_iter().all(is_possible) || while_some > ends {
            return None;
        }
        Some(Self {
            zones,
            all: Lifetimes::up().with_counts(&learnt.all),
            none: Lifetimes::down(1).with_counts(&learnt.none),
            market: learnt.market,
            elsewhere: learnt.elsewhere.into(),
            seen_at: Some(learnt.seen_at),
            outlook: None,
        })
    }
}
