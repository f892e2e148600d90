//! How long things take to come: a distribution for each part.

use crate::chance::Chance;
use crate::seconds::Seconds;
use flyball_core::interval::{Interval, Origin};
use flyball_core::units::Micros;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// How long one part takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    /// Always the same.
    Constant(Seconds),
    /// The logarithm is normal: never negative, and now and then much longer.
    LogNormal {
        /// Half take longer.
        median: Seconds,
        /// One in ten takes longer.
        p90: Seconds,
    },
    /// One of these, each as likely. In rising order.
    Empirical(Vec<Seconds>),
}

/// How long a replica takes from the moment it has a node until it serves. Waiting for a node comes
/// before and belongs to the pool.
#[derive(Clone, Debug, PartialEq)]
pub struct ColdStart {
    /// Loading the image; a node that has it skips this.
    pub image: Length,
    /// Loading weights into memory.
    pub weights: Length,
    /// Compiling, capturing graphs, and the first health checks.
    pub warm_up: Length,
}

impl ColdStart {
    /// Always so long in all.
    pub const fn constant(seconds: f64) -> Self {
        Self {
            image: Length::NONE,
            weights: Length::NONE,
            warm_up: Length::Constant(Seconds(seconds)),
        }
    }

    /// A draw. Each part is drawn whether or not it is needed, so that a node that has the image
    /// changes nothing about the others.
    pub fn draw(&self, chance: &mut Chance, has_image: bool) -> Seconds {
        let image = self.image.draw(chance);
        let rest = self.weights.draw(chance) + self.warm_up.draw(chance);
        if has_image { rest } else { image + rest }
    }

    /// The middle of all parts together.
    pub fn median(&self) -> Seconds {
        self.image.quantile(0.5) + self.weights.quantile(0.5) + self.warm_up.quantile(0.5)
    }

    /// What somebody who knows the parts would expect, node included: from all parts quick and
    /// nothing to wait for, to all parts slow at once.
    pub fn expected(&self, node: &Length) -> Option<Interval<Micros>> {
        let parts = [&self.weights, &self.warm_up];
        let sum = |q: f64| parts.iter().fold(Seconds::ZERO, |sum, part| sum + part.quantile(q));
        let low = sum(0.1);
        let middle = sum(0.5) + self.image.quantile(0.5);
        let high = sum(0.9) + self.image.quantile(0.9) + node.quantile(0.9);
        let [low, middle, high] = [low, middle, high].map(Seconds::to_micros);
        Interval::new(low, middle, high, Origin::Stated).ok()
    }
}

impl Length {
    /// No time at all.
    pub const NONE: Self = Self::Constant(Seconds::ZERO);

    /// A draw.
    pub fn draw(&self, chance: &mut Chance) -> Seconds {
        match self {
            Self::Constant(length) => *length,
            Self::LogNormal { median, .. } => {
                let normal: f64 = StandardNormal.sample(chance);
                Seconds(median.get() * (normal * self.spread()).exp())
            }
            Self::Empirical(all) if all.is_empty() => Seconds::ZERO,
            Self::Empirical(all) => all[chance.random_range(0..all.len())],
        }
    }

    /// The length that this share of draws stays below.
    pub fn quantile(&self, share: f64) -> Seconds {
        match self {
            Self::Constant(length) => *length,
            Self::LogNormal { median, .. } => {
                Seconds(median.get() * (self.spread() * normal_quantile(share)).exp())
            }
            Self::Empirical(all) => {
                let place = (share * all.len() as f64).ceil() as usize;
                all.get(place.saturating_sub(1)).copied().unwrap_or_default()
            }
        }
    }

    /// Standard deviation of the logarithm: the 90th percentile of a normal lies 1.2816 of them
    /// above its middle.
    fn spread(&self) -> f64 {
        match self {
            Self::LogNormal { median, p90 } if median.get() > 0.0 => {
                (p90.get() / median.get()).max(1.0).ln() / 1.281_551_565_5
            }
            _ => 0.0,
        }
    }
}

/// The normal quantiles that are asked for; between them along a straight line.
fn normal_quantile(share: f64) -> f64 {
    const TABLE: [(f64, f64); 7] = [
        (0.01, -2.326_35),
        (0.1, -1.281_55),
        (0.25, -0.674_49),
        (0.5, 0.0),
        (0.75, 0.674_49),
        (0.9, 1.281_55),
        (0.99, 2.326_35),
    ];
    let share = share.clamp(TABLE[0].0, TABLE[6].0);
    let above = TABLE.iter().position(|(at, _)| *at >= share).unwrap_or(6).max(1);
    let ((low, at_low), (high, at_high)) = (TABLE[above - 1], TABLE[above]);
    at_low + (at_high - at_low) * (share - low) / (high - low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{Purpose, stream};

    #[test]
    fn draws_of_a_lognormal_lie_about_its_quantiles() {
        let length = Length::LogNormal { median: Seconds(30.0), p90: Seconds(60.0) };
        let mut chance = stream(1, Purpose::ColdStarts, 0);
        let draws: Vec<f64> = (0..10_000).map(|_| length.draw(&mut chance).get()).collect();
        // Standard deviations of a share of 10,000 draws: 0.005 at one half and 0.003 at nine tenths.
        let below = |limit| draws.iter().filter(|d| **d < limit).count() as f64 / 10_000.0;
        assert!((below(30.0) - 0.5).abs() < 0.02, "{}", below(30.0));
        assert!((below(60.0) - 0.9).abs() < 0.012, "{}", below(60.0));
        assert!((length.quantile(0.9).get() - 60.0).abs() < 0.01);
    }

    #[test]
    fn a_node_with_the_image_skips_it() {
        let parts = ColdStart {
            image: Length::Constant(Seconds(50.0)),
            weights: Length::Constant(Seconds(20.0)),
            warm_up: Length::Empirical(vec![Seconds(3.0)]),
        };
        let mut chance = stream(1, Purpose::ColdStarts, 0);
        assert_eq!(parts.draw(&mut chance, false), Seconds(73.0));
        assert_eq!(parts.draw(&mut chance, true), Seconds(23.0));
        assert_eq!(parts.median(), Seconds(73.0));
    }
}
