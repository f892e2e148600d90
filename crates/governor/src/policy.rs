//! What owners want: what a miss is worth, floors, money and limits. Every setting has a default.

use flyball_core::ids::{ModelId, PoolId};
use flyball_core::snapshot::Objectives;
use flyball_core::units::{Gpus, Micros, Money, Replicas, Timestamp};
use std::collections::BTreeMap;

/// The settings of all models and of what they share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// For models without settings of their own.
    pub default: ModelPolicy,
    /// For single models.
    pub models: BTreeMap<ModelId, ModelPolicy>,
    /// What training is lent of pools without settings of their own.
    pub lending: Lending,
    /// What it is lent of single pools.
    pub pools: BTreeMap<PoolId, Lending>,
}

/// The settings of one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelPolicy {
    /// What the number of replicas is weighed against.
    pub aim: Aim,
    /// Floors at certain times.
    pub calendar: Vec<Floor>,
    /// The most that an hour may cost, if there is a limit.
    pub hourly_budget: Option<Money>,
    /// How far one decision may go.
    pub step: StepLimits,
    /// What may run on capacity that can be taken away.
    pub spot: Spot,
    /// Which law says how many replicas the traffic takes.
    pub law: Law,
}

/// Which law says how many replicas the traffic takes. Whatever it says, owners' bounds, budgets, steps and pools hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// The forecast, weighed against misses, with what a miss is worth taken so many times.
    Forecast {
        /// 1 unless replays of past traffic showed that another number does.
        care: f64,
    },
    /// Another law, which wants so many replicas of the variant that carries most.
    Stated(Replicas),
}

impl Default for Law {
    fn default() -> Self {
        Self::Forecast { care: 1.0 }
    }
}

/// What the number of replicas is weighed against.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Aim {
    /// The share of requests that the model's objectives ask for, held by watching real misses.
    /// The default, because every model has objectives and few owners know what a miss costs.
    #[default]
    Objectives,
    /// At most this share of requests may miss, in millionths; for an owner who wants another
    /// share than the objectives say.
    MissedPerMillion(u32),
    /// One missed request costs this much.
    MissCosts(Money),
}

/// A floor at certain times. It holds from one cold start before, so that the replicas serve when
/// it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// When.
    pub when: When,
    /// At least this many replicas of the variant that carries most.
    pub replicas: Replicas,
}

/// When a floor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Every week.
    Weekly {
        /// From so long after Monday 00:00 UTC.
        from: Micros,
        /// For so long.
        length: Micros,
    },
    /// Once.
    Once {
        /// From here.
        from: Timestamp,
        /// Up to here.
        until: Timestamp,
    },
}

/// How far one decision may go. A signal that went mad should not buy a thousand replicas, nor
/// give all of them away, before a person can look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepLimits {
    /// At most this many times what there is. Four is the growth that AIBrix allows a forecast,
    /// too; real traffic (ServeGen) at most tripled in ten minutes.
    pub up_times: u32,
    /// So many may always be added, since four times nothing is nothing.
    pub up_at_least: Replicas,
    /// At most this share of what there is may be given back at once, in percent.
    pub down_percent: u32,
}

impl Default for StepLimits {
    fn default() -> Self {
        Self { up_times: 4, up_at_least: Replicas::new(8), down_percent: 50 }
    }
}

/// What may run on capacity that can be taken away at short notice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// At most this share of replicas, in percent.
    pub most_percent: u32,
    /// Reclaims that one replica sees in an hour. 0.05 is one in 20 hours, the order that clouds
    /// publish (below 5 % to 20 % of instances in a month up to several per day).
    pub reclaims_per_hour: f64,
    /// How rarely too few may survive one cold start.
    pub shortfall: f64,
}

impl Default for Spot {
    fn default() -> Self {
        Self { most_percent: 50, reclaims_per_hour: 0.05, shortfall: 0.001 }
    }
}

/// What training is lent of what serving does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lending {
    /// Whether anything is lent.
    pub on: bool,
    /// So many accelerators of each pool stay free for surprises.
    pub keep_free: Gpus,
    /// A run is not enlarged again sooner than this, because a run that is resized restarts from
    /// its last save. Ten minutes is the order of a restore of a large run.
    pub settle: Micros,
}

impl Default for Lending {
    fn default() -> Self {
        Self { on: true, keep_free: Gpus::ZERO, settle: Micros::from_minutes(10) }
    }
}

impl Policy {
    /// The settings of a model.
    pub fn of(&self, model: &ModelId) -> &ModelPolicy {
        self.models.get(model).unwrap_or(&self.default)
    }

    /// What training is lent of a pool.
    pub fn lending_of(&self, pool: &PoolId) -> &Lending {
        self.pools.get(pool).unwrap_or(&self.lending)
    }
}

impl ModelPolicy {
    /// The share of requests that may miss. At least one in a million: none at all has no price.
    pub fn may_miss(&self, objectives: &Objectives) -> f64 {
        let per_million = match self.aim {
            Aim::MissedPerMillion(missed) => missed,
            Aim::Objectives | Aim::MissCosts(_) => {
                1_000_000_u32.saturating_sub(objectives.attainment_per_million)
            }
        };
        f64::from(per_million.clamp(1, 1_000_000)) / 1e6
    }

    /// The floor that holds at some point between now and `ahead` from now.
    pub(crate) fn floor(&self, now: Timestamp, ahead: Micros) -> Replicas {
        let holds = self.calendar.iter().filter(|floor| floor.when.holds(now, ahead));
        holds.map(|floor| floor.replicas).max().unwrap_or(Replicas::ZERO)
    }
}

impl When {
    fn holds(self, now: Timestamp, ahead: Micros) -> bool {
        match self {
            Self::Once { from, until } => now < until && from <= now.saturating_add(ahead),
            Self::Weekly { from, length } => {
                let week = WEEK.get();
                // 1970-01-01 was a Thursday, three days after a Monday.
                let now = (now.as_micros() % week + THURSDAY.get()) % week;
                let since = (now + week - from.get() % week) % week;
                since < length.get() || week - since <= ahead.get()
            }
        }
    }
}

const WEEK: Micros = Micros::from_minutes(7 * 24 * 60);
const THURSDAY: Micros = Micros::from_minutes(3 * 24 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Timestamp {
        Timestamp::from_millis(hours * 3_600_000)
    }

    #[test]
    fn a_weekly_floor_holds_from_one_cold_start_before() {
        // 1970-01-05 was a Monday: hour 96. The floor is Monday 09:00 to 17:00.
        let floor = Floor {
            when: When::Weekly {
                from: Micros::from_minutes(540),
                length: Micros::from_minutes(480),
            },
            replicas: Replicas::new(5),
        };
        let policy = ModelPolicy { calendar: vec![floor], ..ModelPolicy::default() };
        let five = |hours, ahead| policy.floor(at(hours), Micros::from_minutes(ahead)).get() == 5;
        assert!(!five(96 + 8, 0));
        assert!(five(96 + 8, 60));
        assert!(five(96 + 9, 0) && five(96 + 16, 0) && five(168 + 96 + 9, 0));
        assert!(!five(96 + 17, 0));
        assert!(!five(96 + 24 + 9, 0), "Tuesday");
    }

    #[test]
    fn a_single_floor_holds_once() {
        let when = When::Once { from: at(10), until: at(12) };
        assert!(!when.holds(at(9), Micros::ZERO));
        assert!(when.holds(at(9), Micros::HOUR));
        assert!(when.holds(at(11), Micros::ZERO));
        assert!(!when.holds(at(12), Micros::HOUR));
    }
}
