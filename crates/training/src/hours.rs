//! Times and money as floats, for expectations; what must hold is checked in whole microseconds.

use flyball_core::units::{Gpus, Micros, Price};

pub(crate) fn hours(length: Micros) -> f64 {
    length.as_seconds() / 3_600.0
}

pub(crate) fn micros(hours: f64) -> Micros {
    Micros::new((hours.max(0.0) * 3.6e9).round() as u64)
}

/// What all GPUs of a run cost in an hour, in units of the currency.
pub(crate) fn per_hour(price: Price, gpus: Gpus) -> f64 {
    price.amount().micros() as f64 / 1e6 * f64::from(gpus.get())
}
