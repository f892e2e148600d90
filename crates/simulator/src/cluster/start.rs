//! How long a replica takes to start, part by part.

use crate::chance::Chance;
use crate::cold_start::ColdStart;
use crate::seconds::Seconds;
use flyball_core::interval::{Interval, Origin};
use flyball_core::units::Micros;

/// How long a replica takes from the moment it has a node until it serves. Waiting for a node comes
/// before and belongs to the pool.
#[derive(Clone, Debug, PartialEq)]
pub struct StartParts {
    /// Loading the image; a node that has it skips this.
    pub image: ColdStart,
    /// Loading weights into memory.
    pub weights: ColdStart,
    /// Compiling, capturing graphs, and the first health checks.
    pub warm_up: ColdStart,
}

impl StartParts {
    /// Always so long in all.
    pub const fn constant(seconds: f64) -> Self {
        let none = ColdStart::Constant(Seconds::ZERO);
        let warm_up = ColdStart::Constant(Seconds(seconds));
        Self { image: none, weights: ColdStart::Constant(Seconds::ZERO), warm_up }
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

    /// What somebody who knows the parts would expect: from all parts quick and nothing to wait
    /// for, to all parts slow at once and a node to wait for.
    pub fn expected(&self, node: &ColdStart) -> Option<Interval<Micros>> {
        let parts = [&self.weights, &self.warm_up];
        let sum = |q: f64| parts.iter().fold(Seconds::ZERO, |sum, part| sum + part.quantile(q));
        let low = sum(0.1);
        let middle = sum(0.5) + self.image.quantile(0.5);
        let high = sum(0.9) + self.image.quantile(0.9) + node.quantile(0.9);
        let [low, middle, high] = [low, middle, high].map(Seconds::to_micros);
        Interval::new(low, middle, high, Origin::Stated).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{Purpose, stream};

    #[test]
    fn a_node_with_the_image_skips_it() {
        let parts = StartParts {
            image: ColdStart::Constant(Seconds(50.0)),
            weights: ColdStart::Constant(Seconds(20.0)),
            warm_up: ColdStart::measured(vec![Seconds(3.0)]),
        };
        let mut chance = stream(1, Purpose::ColdStarts, 0);
        assert_eq!(parts.draw(&mut chance, false), Seconds(73.0));
        assert_eq!(parts.draw(&mut chance, true), Seconds(23.0));
        assert_eq!(parts.median(), Seconds(73.0));
    }
}
