//! How often a run should save: often enough that reclaims take little, rarely enough that saves take little.
//!
//! Young's rule, `sqrt(2 * save / hazard)`, with the hazard of the machine's age: spot machines that are hours old are
//! reclaimed ten times more rarely than new ones, so that one mean would save too rarely at first and too often later.

use crate::hours::{hours, micros};
use crate::lifetimes::Lifetimes;
use flyball_core::units::Micros;

/// Failures of a machine per hour that nobody reclaims: the 419 unexpected interruptions of Llama 3's 54 days on 2,048
/// machines.
const FAILURES_PER_HOUR: f64 = 419.0 / (54.0 * 24.0 * 2_048.0);

/// No rarer than this, whatever was learnt: nobody should lose a day to a save that was not worth 30 s.
const LONGEST_H: f64 = 4.0;

/// The time from one save to the next on on-demand machines.
pub fn on_demand(save: Micros) -> Micros {
    young(hours(save), FAILURES_PER_HOUR)
}

/// The time to compute until the next save on a spot machine of this age; zero where a save costs nothing.
pub fn spot(save: Micros, lifetimes: &Lifetimes, age: Micros) -> Micros {
    let (save, age) = (hours(save), hours(age));
    let first = young(save, lifetimes.hazard(age) + FAILURES_PER_HOUR);
    // The hazard falls while the interval lasts; once more with its mean over it is close enough.
    young(save, lifetimes.mean_hazard(age, hours(first)) + FAILURES_PER_HOUR)
}

fn young(save_h: f64, per_hour: f64) -> Micros {
    let every = (2.0 * save_h / per_hour).sqrt().clamp(save_h, LONGEST_H.max(save_h));
    micros(every)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_machines_save_more_rarely_than_new_ones() {
        let lifetimes = Lifetimes::up();
        let save = Micros::from_seconds(30);
        let [new, old] = [0, 20 * 60].map(|minutes| {
            spot(save, &lifetimes, Micros::from_minutes(minutes)).whole_seconds() / 60
        });
        // 1.2 reclaims an hour at first, 0.08 after 20 hours: about 7 and 27 minutes.
        assert!((6..9).contains(&new), "{new}");
        assert!((25..29).contains(&old), "{old}");
        assert_eq!(on_demand(save).whole_seconds(), 4 * 3_600);
    }

    #[test]
    fn a_save_that_costs_nothing_is_made_all_the_time() {
        assert_eq!(spot(Micros::ZERO, &Lifetimes::up(), Micros::ZERO), Micros::ZERO);
        assert_eq!(on_demand(Micros::ZERO), Micros::ZERO);
    }

    #[test]
    fn a_run_computes_at_least_as_long_as_it_saves() {
        let save = Micros::from_minutes(40);
        assert!(spot(save, &Lifetimes::up(), Micros::ZERO) >= save);
    }
}
