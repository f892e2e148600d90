//! What both searches share: a part with its price, and a number with its interval.

use crate::catalog::{Catalog, Offer, PriceKind};
use crate::evidence::Spread;
use crate::hardware::Accelerator;

/// A part that may be used, and its prices.
#[derive(Clone, Debug)]
pub struct OfferedPart<'a> {
    pub accelerator: &'a Accelerator,
    /// The lowest price by how many are connected at most, as [`Catalog::offers`] gives it.
    pub offers: Vec<(u32, &'a Offer)>,
}

impl<'a> OfferedPart<'a> {
    /// A part at what the catalogue says it costs.
    pub fn priced(
        catalog: &'a Catalog,
        accelerator: &'a Accelerator,
        provider: Option<&str>,
        purchase: PriceKind,
    ) -> Self {
        Self { accelerator, offers: catalog.offers(&accelerator.id, provider, purchase) }
    }

    /// The lowest price of so many that are connected.
    pub fn offer(&self, connected: u32) -> Option<&'a Offer> {
        self.offers.iter().find(|(most, _)| *most >= connected).map(|(_, offer)| *offer)
    }
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
