//! Replicas by the calendar: a fixed number, floors by weekday and hour, and a week learned from a
//! week.
//!
//! It knows nothing of the load. Weeks start on Monday at midnight, as the traffic's clock shows
//! it. Start at [`Calendar`]; `cron.rs` reads the times of a KEDA `cron` trigger.

mod cron;

pub use cron::{BadCron, Cron};

use super::{RivalLaw, ceil};
use crate::policy::Reading;
use crate::seconds::Seconds;
use flyball_core::quantile::nearest_rank;

/// Hours of a week.
const HOURS: usize = 168;

/// The same number of replicas for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Static {
    /// How many.
    pub replicas: u32,
}

/// Replicas for each hour of a week.
#[derive(Clone, Debug, PartialEq)]
pub struct Calendar {
    /// Replicas per hour, from Monday midnight; 168 of them, or fewer that repeat.
    pub hours: Vec<u32>,
    /// How far into its week the replay starts.
    pub starts_at: Seconds,
    /// How long before an hour its replicas are ordered: what they need to start.
    pub lead: Seconds,
    /// Where the hours come from, for tables.
    pub origin: String,
}

/// Replicas for some hours on some days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarFloor {
    /// Days, Monday is 0.
    pub days: Vec<u32>,
    /// First hour, 0 to 23.
    pub from_hour: u32,
    /// Hour at which it ends, 1 to 24.
    pub to_hour: u32,
    /// How many replicas.
    pub replicas: u32,
}

/// How a week is turned into a calendar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// Which quantile of the demand within each hour counts, 0 to 1.
    pub quantile: f64,
    /// What it is multiplied by.
    pub headroom: f64,
    /// Least replicas.
    pub min: u32,
    /// Most replicas.
    pub max: u32,
}

impl Calendar {
    /// `base` replicas, and more where floors say so.
    pub fn from_floors(base: u32, floors: &[CalendarFloor], starts_at: Seconds) -> Self {
        let mut hours = vec![base; HOURS];
        for floor in floors {
            for day in &floor.days {
                for hour in floor.from_hour..floor.to_hour {
                    let slot = &mut hours[(day * 24 + hour) as usize % HOURS];
                    *slot = floor.replicas.max(*slot);
                }
            }
        }
        let origin = format!("{} floors above {base} replicas", floors.len());
        Self { hours, starts_at, lead: Seconds::ZERO, origin }
    }

    /// Learned from samples of demand, each a time since the start of the replay and the replicas
    /// that would have been busy. An hour without samples gets the most that any hour got: not
    /// known is not idle.
    pub fn learned(samples: &[(Seconds, f64)], starts_at: Seconds, how: Learning) -> Self {
        let mut by_hour = vec![Vec::new(); HOURS];
        for (at, demand) in samples.iter().filter(|(_, demand)| demand.is_finite()) {
            by_hour[hour_of_week(*at + starts_at)].push(*demand);
        }
        let counted = |demands: &mut Vec<f64>| {
            demands.sort_by(f64::total_cmp);
            let demand = nearest_rank(demands, how.quantile)?;
            Some(ceil(demand * how.headroom).clamp(how.min, how.max))
        };
        let known: Vec<Option<u32>> = by_hour.iter_mut().map(counted).collect();
        let most = known.iter().flatten().copied().max().unwrap_or(how.max);
        let hours = known.into_iter().map(|hour| hour.unwrap_or(most)).collect();
        let origin =
            format!("quantile {:.2} of each hour, times {:.2}", how.quantile, how.headroom);
        Self { hours, starts_at, lead: Seconds::ZERO, origin }
    }

    /// Replicas at a moment of the replay.
    pub fn replicas(&self, now: Seconds) -> u32 {
        let of_hour = |at: Seconds| {
            let hour = hour_of_week(at + self.starts_at);
            self.hours.get(hour % self.hours.len().max(1)).copied().unwrap_or(0)
        };
        // Until an hour ends its replicas stay, so a lead only ever adds.
        of_hour(now).max(of_hour(now + self.lead))
    }
}

impl RivalLaw for Static {
    fn desired(&mut self, _now: Seconds, _reading: &Reading, _current: u32) -> u32 {
        self.replicas
    }

    fn interval(&self) -> Seconds {
        Seconds::HOUR
    }
}

impl RivalLaw for Calendar {
    fn desired(&mut self, now: Seconds, _reading: &Reading, _current: u32) -> u32 {
        self.replicas(now)
    }

    fn interval(&self) -> Seconds {
        Seconds::MINUTE
    }
}

fn hour_of_week(at: Seconds) -> usize {
    (at.0 / Seconds::HOUR.0).floor().rem_euclid(HOURS as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::{Calendar, CalendarFloor, Learning, Seconds};

    const HOW: Learning = Learning { quantile: 1.0, headroom: 1.0, min: 1, max: 50 };

    fn hours(hours: f64) -> Seconds {
        Seconds(hours * 3600.0)
    }

    #[test]
    fn floors_hold_on_their_days_and_hours_only() {
        let working =
            CalendarFloor { days: vec![0, 1, 2, 3, 4], from_hour: 8, to_hour: 20, replicas: 9 };
        // The replay starts on Friday at midnight.
        let calendar = Calendar::from_floors(2, &[working], hours(96.0));
        assert_eq!(calendar.replicas(hours(7.9)), 2);
        assert_eq!(calendar.replicas(hours(8.0)), 9);
        assert_eq!(calendar.replicas(hours(20.0)), 2);
        assert_eq!(calendar.replicas(hours(24.0 + 12.0)), 2, "Saturday");
        assert_eq!(calendar.replicas(hours(3.0 * 24.0 + 12.0)), 9, "Monday");
    }

    #[test]
    fn a_learned_week_takes_the_quantile_of_each_hour() {
        let ten = |hour: f64, peak: f64| {
            (0..10).map(move |n| (hours(hour + f64::from(n) * 0.1), f64::from(n) + peak))
        };
        let samples: Vec<_> = ten(0.0, 0.5).chain(ten(1.0, 10.5)).collect();
        // Of 0.5, 1.5 ... 9.5 the 80 % quantile is the eighth, 7.5.
        let calendar =
            Calendar::learned(&samples, Seconds::ZERO, Learning { quantile: 0.8, ..HOW });
        assert_eq!(calendar.hours[0], 8);
        assert_eq!(calendar.hours[1], 18);
        let roomy = Learning { headroom: 1.5, ..HOW };
        assert_eq!(Calendar::learned(&samples, Seconds::ZERO, roomy).hours[0], 15);
    }

    #[test]
    fn an_hour_without_data_is_not_taken_for_idle() {
        let calendar = Calendar::learned(&[(hours(5.0), 7.0)], Seconds::ZERO, HOW);
        assert!(calendar.hours.iter().all(|replicas| *replicas == 7));
        assert_eq!(Calendar::learned(&[], Seconds::ZERO, HOW).hours[0], 50);
    }

    #[test]
    fn a_lead_orders_early_and_releases_on_time() {
        let mut calendar = Calendar::learned(&[(hours(1.0), 7.0)], Seconds::ZERO, HOW);
        calendar.hours = vec![1, 7, 1];
        calendar.lead = Seconds(600.0);
        assert_eq!(calendar.replicas(Seconds(2999.0)), 1);
        assert_eq!(calendar.replicas(Seconds(3000.0)), 7);
        assert_eq!(calendar.replicas(Seconds(7199.0)), 7);
        assert_eq!(calendar.replicas(Seconds(7200.0)), 1);
    }
}
