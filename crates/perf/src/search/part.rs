//! What both searches share: a part with its price, and a number with its interval.

use crate::catalog::Offer;
use crate::evidence::Spread;
use crate::hardware::Accelerator;

/// A part that may be used, and its price.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    pub accelerator: &'a Accelerator,
    pub offer: Option<&'a Offer>,
}

/// A number with its low and high end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranged {
    pub low: f64,
    pub point: f64,
    pub high: f64,
}

impl Ranged {
    pub(super) fn new(point: f64, spread: Spread) -> Self {
        let (low, high) = spread.around(point);
        Self { low, point, high }
    }

    /// The same of each of the three.
    pub(super) fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { low: of(self.low), point: of(self.point), high: of(self.high) }
    }
}
