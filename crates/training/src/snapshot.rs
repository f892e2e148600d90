//! What is known about one training run at one moment: the only input of a decision beside what was learnt.

use flyball_core::units::{Gpus, Micros, Price, Timestamp};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A zone of a cloud, as the cloud names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneName(Arc<str>);

impl ZoneName {
    /// A zone of this name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Whether spot machines can be had in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpotState {
    /// They can, since then as far as is known.
    Available(Timestamp),
    /// They cannot, since then as far as is known.
    Unavailable(Timestamp),
    /// Nobody has asked lately. A run does not move there.
    Unknown,
}

/// A fifth is more than zones of one region differ by on most days, and less than regions do on some.
const LITTLE_MORE: i64 = 5;

/// Spot machines of one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpotZone {
    /// What one GPU costs for an hour there.
    pub price: Price,
    /// Whether they can be had.
    pub state: SpotState,
}

impl SpotZone {
    /// How long they have been available, if they are.
    pub fn available_for(&self, now: Timestamp) -> Option<Micros> {
        match self.state {
            SpotState::Available(since) => Some(now.since(since).unwrap_or(Micros::ZERO)),
            SpotState::Unavailable(_) | SpotState::Unknown => None,
        }
    }
}

/// Where a run is, or should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrainingChoice {
    /// Nowhere: it waits for spot machines.
    Wait,
    /// On spot machines of this zone.
    Spot(ZoneName),
    /// On on-demand machines.
    OnDemand,
}

impl fmt::Display for TrainingChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait => f.write_str("wait"),
            Self::Spot(zone) => write!(f, "spot in {zone}"),
            Self::OnDemand => f.write_str("on-demand"),
        }
    }
}

/// The machines that a run has, or has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldMachine {
    /// Which; [`TrainingChoice::Wait`] for none.
    pub at: TrainingChoice,
    /// Time until it takes its next step there: what is left of the restart.
    pub ready_in: Micros,
}

impl HeldMachine {
    /// None.
    pub const NONE: Self = Self { at: TrainingChoice::Wait, ready_in: Micros::ZERO };
}

/// One run at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingSnapshot {
    /// When the picture was taken.
    pub now: Timestamp,
    /// When the run must have ended, its last save included.
    pub deadline: Timestamp,
    /// Machine time that the run still needs from where it is now, without restarts and saves.
    pub work_left: Micros,
    /// Work done since the last save: what a reclaim now would throw away.
    pub unsaved: Micros,
    /// From asking for machines until the first new step: boot, start, load the last save.
    pub restart: Micros,
    /// How long steps stand still for a save.
    pub save: Micros,
    /// The longest time until somebody decides again.
    pub tick: Micros,
    /// GPUs of the run, all of one kind.
    pub gpus: Gpus,
    /// What one GPU costs for an hour on demand.
    pub on_demand: Price,
    /// The machines that it has.
    pub held: HeldMachine,
    /// The zones in which it may use spot machines.
    pub zones: BTreeMap<ZoneName, SpotZone>,
}

impl TrainingSnapshot {
    /// Time until the deadline; zero after it.
    pub fn time_left(&self) -> Micros {
        self.deadline.since(self.now).unwrap_or(Micros::ZERO)
    }

    /// What is left to do from the last save on.
    pub fn work_from_save(&self) -> Micros {
        self.work_left.saturating_add(self.unsaved)
    }

    /// Zones in which spot machines can be had, with how long they have been there.
    pub fn available(&self) -> impl Iterator<Item = (&ZoneName, &SpotZone, Micros)> {
        self.zones
            .iter()
            .filter_map(|(name, zone)| Some((name, zone, zone.available_for(self.now)?)))
    }

    /// The same of zones that cost little more than the cheapest one: those that a run waits for. Where only others have
    /// machines it may take them, but they are no reason to expect that of the next hour.
    pub fn available_cheaply(&self) -> impl Iterator<Item = (&ZoneName, &SpotZone, Micros)> {
        let most = self.dearest_cheap();
        self.available().filter(move |(_, zone, _)| zone.price.amount().micros() <= most)
    }

    /// Whether a zone is one of those.
    pub fn is_cheap(&self, zone: &SpotZone) -> bool {
        zone.price.amount().micros() <= self.dearest_cheap()
    }

    fn dearest_cheap(&self) -> i64 {
        let prices = self.zones.values().map(|zone| zone.price.amount().micros());
        prices.min().map_or(0, |least| least.saturating_add(least / LITTLE_MORE))
    }

    /// Whether spot machines can be had in this zone.
    pub fn is_available(&self, zone: &ZoneName) -> bool {
        self.zones.get(zone).is_some_and(|zone| zone.available_for(self.now).is_some())
    }
}
