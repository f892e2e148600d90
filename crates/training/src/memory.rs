//! What a run's zones taught: how long spot machines last in each, how long there are none, and what they cost.
//!
//! It outlives a run: the next one in the same zones starts with it.

use crate::hours::{hours, per_hour};
use crate::interval;
use crate::lifetimes::Lifetimes;
use crate::outlook::Outlook;
use crate::snapshot::{SpotState, TrainingChoice, TrainingSnapshot, ZoneName};
use flyball_core::units::{Micros, Timestamp};
use std::collections::BTreeMap;

/// Longer silences teach nothing: what happened in between is not known.
const LONGEST_GAP: Micros = Micros::from_minutes(30);

/// The prior of a reclaim that finds another zone with spot machines, in reclaims.
const PRIOR_RECLAIMS: f64 = 4.0;

/// What was learnt, and what was worked out from it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunMemory {
    /// Of each zone by itself.
    pub(crate) zones: BTreeMap<ZoneName, SeenZone>,
    /// Of all zones together.
    pub(crate) all: Lifetimes,
    /// Of times in which no zone has any.
    pub(crate) none: Lifetimes,
    /// Since when no zone has any, or some zone has.
    pub(crate) market: Option<(bool, Timestamp)>,
    /// Ends of a zone's machines while another had some, and all of them.
    pub(crate) elsewhere: (f64, f64),
    pub(crate) seen_at: Option<Timestamp>,
    /// What finishing costs from each state, as last worked out.
    pub(crate) outlook: Option<Outlook>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SeenZone {
    pub(crate) lives: Lifetimes,
    pub(crate) available: bool,
    pub(crate) since: Timestamp,
    /// Hours with machines, and all that were seen.
    pub(crate) there_h: f64,
    pub(crate) seen_h: f64,
}

/// Hours of the prior that a zone has machines half of the time.
const PRIOR_H: f64 = 6.0;

/// Far beyond any run, so that a life is whole.
pub(crate) const FAR_H: f64 = 1_000.0;

impl SeenZone {
    /// How often it has machines.
    fn share(&self) -> f64 {
        (self.there_h + 0.5 * PRIOR_H) / (self.seen_h + PRIOR_H)
    }
}

/// Spot machines as a run usually gets them.
pub(crate) struct UsualMachines {
    /// In units of the currency per hour of the run.
    pub(crate) price: f64,
    pub(crate) lives: Lifetimes,
}

impl Default for RunMemory {
    fn default() -> Self {
        Self {
            zones: BTreeMap::new(),
            all: Lifetimes::up(),
            none: Lifetimes::down(1),
            market: None,
            elsewhere: (0.0, 0.0),
            seen_at: None,
            outlook: None,
        }
    }
}

impl RunMemory {
    /// Learns from a snapshot. One that is no later than the last teaches nothing.
    pub fn see(&mut self, snapshot: &TrainingSnapshot) {
        let length = match self.seen_at {
            Some(seen) if snapshot.now <= seen => return,
            Some(seen) => snapshot.now.since(seen).unwrap_or(Micros::ZERO),
            None => Micros::ZERO,
        };
        self.seen_at = Some(snapshot.now);
        self.zones.retain(|name, _| snapshot.zones.contains_key(name));
        let any = snapshot.available_cheaply().next().is_some();
        for (name, zone) in &snapshot.zones {
            match zone.state {
                SpotState::Available(since) => self.see_zone(name, true, since, length, any),
                SpotState::Unavailable(since) => self.see_zone(name, false, since, length, any),
                // What happens there now is not known, so that the next look begins anew.
                SpotState::Unknown => drop(self.zones.remove(name)),
            }
        }
        self.see_market(any, snapshot.now, length);
    }

    fn see_zone(
        &mut self,
        name: &ZoneName,
        available: bool,
        since: Timestamp,
        length: Micros,
        any: bool,
    ) {
        let all = &mut self.all;
        let Some(seen) = self.zones.get_mut(name) else {
            let lives = Lifetimes::up();
            self.zones.insert(
                name.clone(),
                SeenZone { lives, available, since, there_h: 0.0, seen_h: 0.0 },
            );
            return;
        };
        if length <= LONGEST_GAP {
            seen.seen_h += hours(length);
            seen.there_h += if seen.available { hours(length) } else { 0.0 };
        }
        if seen.available && length <= LONGEST_GAP {
            let age = self.seen_at.and_then(|now| now.since(seen.since)).unwrap_or(Micros::ZERO);
            let age = age.saturating_sub(length);
            seen.lives.saw(age, length, !available);
            all.saw(age, length, !available);
            if !available {
                self.elsewhere.0 += f64::from(u8::from(any));
                self.elsewhere.1 += 1.0;
            }
        }
        (seen.available, seen.since) = (available, since);
    }

    fn see_market(&mut self, any: bool, now: Timestamp, length: Micros) {
        let since = match self.market {
            Some((was, since)) if was == any => since,
            _ => now,
        };
        if let Some((false, begun)) = self.market {
            let age = now.since(begun).unwrap_or(Micros::ZERO).saturating_sub(length);
            if length <= LONGEST_GAP {
                self.none.saw(age, length, any);
            }
        }
        self.market = Some((any, since));
    }

    /// How long machines of a zone last: its own lives on top of those of all zones.
    pub(crate) fn lives(&self, zone: &ZoneName) -> Lifetimes {
        self.zones.get(zone).map_or_else(|| self.all.clone(), |seen| seen.lives.within(&self.all))
    }

    /// How long there are none in any of these zones.
    pub(crate) fn none_lives(&self, snapshot: &TrainingSnapshot) -> Lifetimes {
        let zones = snapshot.zones.values().filter(|zone| snapshot.is_cheap(zone)).count();
        self.none.within(&Lifetimes::down(zones))
    }

    /// How likely another zone has machines when those of one end; at first, as if zones knew nothing of each other.
    pub(crate) fn elsewhere(&self, snapshot: &TrainingSnapshot) -> f64 {
        let cheap = || snapshot.zones.iter().filter(|(_, zone)| snapshot.is_cheap(zone));
        let zones = cheap().count();
        if zones < 2 {
            return 0.0;
        }
        let share = |name| self.zones.get(name).map_or(0.5, SeenZone::share);
        let mean = cheap().map(|(name, _)| share(name)).sum::<f64>() / zones as f64;
        let prior = 1.0 - (1.0 - mean).powi(zones as i32 - 1);
        (self.elsewhere.0 + prior * PRIOR_RECLAIMS) / (self.elsewhere.1 + PRIOR_RECLAIMS)
    }

    /// What a run usually gets: zones in order of price and of what their reclaims cost, each as often as it has machines
    /// and those before it have none. `restart` is what one restart costs.
    pub(crate) fn usual(&self, snapshot: &TrainingSnapshot, restart: f64) -> UsualMachines {
        let mut zones: Vec<(f64, f64, f64, Lifetimes)> = snapshot
            .zones
            .iter()
            .filter(|(_, zone)| snapshot.is_cheap(zone))
            .map(|(name, zone)| {
                let lives = self.lives(name);
                let price = per_hour(zone.price, snapshot.gpus);
                let dear = price + restart / lives.expected_h(0.0, FAR_H);
                (dear, price, self.zones.get(name).map_or(0.5, SeenZone::share), lives)
            })
            .collect();
        zones.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut open, mut price, mut parts) = (1.0, 0.0, Vec::new());
        for (_, dollars, share, lives) in zones {
            price += open * share * dollars;
            parts.push((open * share, lives));
            open *= 1.0 - share;
        }
        let there = 1.0 - open;
        UsualMachines { price: price / there, lives: Lifetimes::mixed(&parts) }
    }

    /// How long no zone has had any.
    pub(crate) fn none_for(&self, now: Timestamp) -> Micros {
        match self.market {
            Some((false, since)) => now.since(since).unwrap_or(Micros::ZERO),
            _ => Micros::ZERO,
        }
    }

    /// How long a run should compute from one save to the next where it is going to be.
    pub fn save_every(&self, snapshot: &TrainingSnapshot, choice: &TrainingChoice) -> Micros {
        let TrainingChoice::Spot(name) = choice else { return interval::on_demand(snapshot.save) };
        let zone = snapshot.zones.get(name).and_then(|zone| zone.available_for(snapshot.now));
        interval::spot(snapshot.save, &self.lives(name), zone.unwrap_or(Micros::ZERO))
    }

    /// Reclaims that were seen, in all zones.
    pub fn reclaims_seen(&self) -> f64 {
        self.all.ends()
    }
}
