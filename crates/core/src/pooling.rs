//! What a fleet carries: more than so many times what one replica carries.
//!
//! Requests that come at random leave some of a replica unused, or they would wait. Of many replicas a smaller part has
//! to stay unused, since a request waits only while all of them are busy: it falls with the root of their number
//! (Halfin and Whitt, 1981). With prompts that alone take most of what the objective allows that is not a detail: of
//! eight replicas each carried five to ten times what one alone did.

/// What each of very many replicas carries over what one alone does; no less than 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooling(f64);

impl Pooling {
    /// Where nothing is known: so many replicas carry so many times as much.
    pub const NONE: Self = Self(1.0);

    /// How much more replicas carry together is told of so many: few fleets are much larger, and much smaller ones
    /// would tell more of one or two than of all.
    pub const FLEET: u32 = 8;

    /// The most that is believed: beyond it one alone carries next to nothing, and nothing follows from that.
    const MOST: f64 = 50.0;

    /// As a ratio; what is none is no pooling.
    pub fn new(ratio: f64) -> Self {
        if ratio.is_finite() { Self(ratio.clamp(1.0, Self::MOST)) } else { Self::NONE }
    }

    /// From what one replica alone carries, and what each of [`Self::FLEET`] does.
    pub fn between(alone: f64, each: f64) -> Self {
        let root = f64::from(Self::FLEET).sqrt();
        Self::new((each / alone * root - 1.0) / (root - 1.0))
    }

    /// What each of very many carries over what one alone does.
    pub const fn ratio(self) -> f64 {
        self.0
    }

    /// The ratio in millionths, as a capacity has it.
    pub fn per_million(self) -> u32 {
        (1e6 * self.0).round() as u32
    }

    /// What so many replicas carry, counted in what one alone does.
    pub fn carries(self, replicas: f64) -> f64 {
        if replicas <= 1.0 {
            return replicas;
        }
        self.0 * replicas - (self.0 - 1.0) * replicas.sqrt()
    }

    /// What one of so many replicas carries, counted in what one alone does.
    pub fn each(self, replicas: f64) -> f64 {
        if replicas <= 1.0 { 1.0 } else { self.carries(replicas) / replicas }
    }

    /// The replicas that carry so much: the other way round.
    pub fn replicas(self, work: f64) -> f64 {
        if work <= 1.0 {
            return work;
        }
        let unused = self.0 - 1.0;
        let root = (unused + (unused * unused + 4.0 * self.0 * work).sqrt()) / (2.0 * self.0);
        root * root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_replica_is_one_and_many_are_more_than_as_many() {
        let pooling = Pooling::new(3.0);
        assert_eq!(pooling.carries(1.0), 1.0);
        assert_eq!(pooling.carries(0.5), 0.5);
        assert_eq!(pooling.carries(4.0), 8.0);
        assert_eq!(pooling.each(4.0), 2.0);
        assert_eq!(Pooling::NONE.carries(4.0), 4.0);
    }

    #[test]
    fn the_replicas_for_what_some_carry_are_these() {
        for ratio in [1.0, 1.5, 13.0] {
            let pooling = Pooling::new(ratio);
            for replicas in [0.3, 1.0, 2.0, 7.0, 300.0] {
                let back = pooling.replicas(pooling.carries(replicas));
                assert!((back / replicas - 1.0).abs() < 1e-9, "{ratio}: {replicas} became {back}");
            }
        }
    }

    #[test]
    fn two_points_give_the_curve() {
        let pooling = Pooling::between(2.0, 2.0 * Pooling::new(3.0).each(8.0));
        assert_eq!(pooling.per_million(), 3_000_000);
        for bad in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            assert_eq!(Pooling::between(2.0, bad), Pooling::NONE);
        }
        assert_eq!(Pooling::between(0.0, 1.0), Pooling::NONE);
    }
}
