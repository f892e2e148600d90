//! How long something lasts, by how long it has lasted: a hazard per hour for each class of ages.
//!
//! It is learnt from what was seen: ends and hours in each class. Before anything was seen, and as long as little was, it
//! is the prior: a few ends at the rates of the first half of 45 recorded days of one GPU type in nine zones
//! (docs/data.md). Everything after that half, and every other recording, had no part in it.

use crate::hours::hours;
use flyball_core::units::Micros;

/// Classes of ages.
pub(crate) const AGES: usize = 7;

/// Where each class ends, in hours. Half of all recorded lives end within the first two.
const ENDS_H: [f64; AGES] = [0.25, 0.75, 2.0, 5.0, 12.0, 30.0, f64::INFINITY];

/// Ends per hour of spot machines that are available: heavy-tailed, so that old ones are safer.
const UP: [f64; AGES] = [1.22, 1.21, 0.42, 0.20, 0.13, 0.08, 0.03];

/// Ends per hour of times in which none are.
const DOWN: [f64; AGES] = [1.10, 1.14, 0.37, 0.30, 0.21, 0.13, 0.03];

/// The prior counts like so many ends in each class.
const PRIOR_ENDS: f64 = 4.0;

/// How often something ended, by its age.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifetimes {
    ends: [f64; AGES],
    hours: [f64; AGES],
    prior: [f64; AGES],
}

impl Lifetimes {
    /// Of available spot machines, with nothing seen yet.
    pub fn up() -> Self {
        Self::with_prior(UP)
    }

    /// Of times without any in so many zones, with nothing seen yet. Any of them ends it, as if they knew nothing of each
    /// other: too hopeful, and soon outweighed by what is seen.
    pub fn down(zones: usize) -> Self {
        Self::with_prior(DOWN.map(|rate| rate * zones.max(1) as f64))
    }

    fn with_prior(prior: [f64; AGES]) -> Self {
        Self { ends: [0.0; AGES], hours: [0.0; AGES], prior }
    }

    /// The same counts on top of another prior, such as a zone's own on top of those of all zones.
    pub(crate) fn within(&self, all: &Self) -> Self {
        Self { prior: std::array::from_fn(|class| all.rate(class)), ..self.clone() }
    }

    /// What one of these shows, each met as often as its weight says.
    pub(crate) fn mixed(parts: &[(f64, Self)]) -> Self {
        let all: f64 = parts.iter().map(|(weight, _)| weight).sum();
        let rate = |class| {
            let sum: f64 = parts.iter().map(|(weight, lives)| weight * lives.rate(class)).sum();
            sum / all.max(f64::MIN_POSITIVE)
        };
        Self::with_prior(std::array::from_fn(rate))
    }

    /// It was seen for so long at this age, and it ended or went on.
    pub fn saw(&mut self, age: Micros, length: Micros, ended: bool) {
        let class = class_of(hours(age));
        self.hours[class] += hours(length);
        self.ends[class] += f64::from(u8::from(ended));
    }

    /// Ends per hour at this age, in hours.
    pub fn hazard(&self, age_h: f64) -> f64 {
        self.rate(class_of(age_h))
    }

    pub(crate) fn rate(&self, class: usize) -> f64 {
        (self.ends[class] + PRIOR_ENDS) / (self.hours[class] + PRIOR_ENDS / self.prior[class])
    }

    /// What was seen: ends in each class, and then hours.
    pub(crate) fn counts(&self) -> [f64; 2 * AGES] {
        std::array::from_fn(|place| match place.checked_sub(AGES) {
            Some(class) => self.hours[class],
            None => self.ends[place],
        })
    }

    /// The same prior, and this was seen.
    pub(crate) fn with_counts(&self, counts: &[f64; 2 * AGES]) -> Self {
        Self {
            ends: std::array::from_fn(|class| counts[class]),
            hours: std::array::from_fn(|class| counts[AGES + class]),
            prior: self.prior,
        }
    }

    /// Ends that were seen.
    pub fn ends(&self) -> f64 {
        self.ends.iter().sum()
    }

    /// The mean hazard over a time that begins at this age.
    pub fn mean_hazard(&self, age_h: f64, length_h: f64) -> f64 {
        if length_h <= 0.0 {
            return self.hazard(age_h);
        }
        let mut sum = 0.0;
        self.each_part(age_h, length_h, |rate, part| sum += rate * part);
        sum / length_h
    }

    /// How much longer it lasts from this age on, but at most so long.
    pub fn expected_h(&self, age_h: f64, most_h: f64) -> f64 {
        let (mut left, mut sum) = (1.0, 0.0);
        self.each_part(age_h, most_h, |rate, part| {
            let stays = (-rate * part).exp();
            sum += left * (1.0 - stays) / rate;
            left *= stays;
        });
        sum
    }

    /// Parts of a time by class of age.
    fn each_part(&self, age_h: f64, length_h: f64, mut with: impl FnMut(f64, f64)) {
        let end = age_h + length_h;
        let mut at = age_h;
        for (class, class_end) in ENDS_H.iter().enumerate().skip(class_of(age_h)) {
            let until = class_end.min(end);
            with(self.rate(class), until - at);
            at = until;
            if at >= end {
                return;
            }
        }
    }
}

/// The class of an age in hours.
pub(crate) fn class_of(age_h: f64) -> usize {
    ENDS_H.iter().position(|end| age_h < *end).unwrap_or(AGES - 1)
}

/// The part of a class that passes into the next in so many hours.
pub(crate) fn ages_by(class: usize, length_h: f64) -> f64 {
    let begin = class.checked_sub(1).map_or(0.0, |before| ENDS_H[before]);
    (length_h / (ENDS_H[class] - begin)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_outweighs_the_prior() {
        let mut lifetimes = Lifetimes::up();
        assert_eq!(lifetimes.hazard(0.1), 1.22);
        for _ in 0..400 {
            lifetimes.saw(Micros::ZERO, Micros::from_minutes(15), false);
        }
        lifetimes.saw(Micros::ZERO, Micros::ZERO, true);
        // One end in a hundred hours, with a prior of four ends in three hours.
        assert!((lifetimes.hazard(0.1) - 5.0 / (100.0 + 4.0 / 1.22)).abs() < 1e-12);
        assert_eq!(lifetimes.hazard(0.5), 1.21);
    }

    #[test]
    fn old_machines_last_longer() {
        let lifetimes = Lifetimes::up();
        let [new, old] = [0.0, 20.0].map(|age| lifetimes.expected_h(age, 1e9));
        assert!(new > 1.5 && new < 6.0, "{new}");
        assert!(old > 15.0, "{old}");
        assert!(lifetimes.expected_h(0.0, 0.1) < 0.1);
    }

    #[test]
    fn a_constant_hazard_has_the_mean_of_an_exponential() {
        let flat = Lifetimes::with_prior([0.5; AGES]);
        assert!((flat.expected_h(3.0, 1e9) - 2.0).abs() < 1e-9);
        assert!((flat.mean_hazard(0.1, 10.0) - 0.5).abs() < 1e-12);
    }
}
