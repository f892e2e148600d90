//! What accelerators cost once they are ordered the way they are sold.

use crate::catalog::Offer;
use flyball_core::units::{Gpus, Money};

/// An order of accelerators at one price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PurchaseOrder {
    /// What is used.
    pub gpus: Gpus,
    /// What is paid for: whole hosts, where they are sold whole.
    pub billed: Gpus,
    /// For one hour, of all that is paid for.
    pub per_hour: Money,
}

impl PurchaseOrder {
    /// Whole SKUs for so many accelerators; `None` if the sum does not fit.
    pub fn of(offer: &Offer, gpus: Gpus) -> Option<Self> {
        let sold = offer.gpus_per_sku.get().max(1);
        let billed = Gpus::new(gpus.get().div_ceil(sold).checked_mul(sold)?);
        let per_hour = offer.price.amount().checked_mul(billed.get()).ok()?;
        Some(Self { gpus, billed, per_hour })
    }

    /// Dollars per hour as a plain number, for ratios.
    pub fn usd_per_hour(&self) -> f64 {
        usd(self.per_hour)
    }
}

/// The amount as a plain number, for ratios and pictures. Never add such numbers up into a bill.
pub fn usd(amount: Money) -> f64 {
    amount.micros() as f64 / 1e6
}
