//! What a model takes of an accelerator's memory, and whether that fits.
//!
//! Nothing here is fitted: every term is counted from the shape, or is a constant with its source.
//! `serving` holds weights and cache, `weights` how the former are split; `training` holds states
//! and activations. All sums are per accelerator, of the fullest one.

pub mod serving;
pub mod training;
mod weights;

#[cfg(test)]
mod tests;

use flyball_core::units::Bytes;

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Whether something fits. Between the two answers lies a band that the model cannot decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// The most that it can need is there.
    Fits,
    /// It depends on what is not modelled: try it.
    Tight,
    /// The least that it can need is not there.
    DoesNotFit,
}

/// An answer with the numbers behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitAnswer {
    pub fit: Fit,
    /// The least and the most that it can need.
    pub least: Bytes,
    pub most: Bytes,
    /// What the least and the most are compared with.
    pub least_limit: Bytes,
    pub most_limit: Bytes,
}

impl FitAnswer {
    fn new(least: f64, least_limit: f64, most: f64, most_limit: f64) -> Self {
        let fit = if least > least_limit {
            Fit::DoesNotFit
        } else if most <= most_limit {
            Fit::Fits
        } else {
            Fit::Tight
        };
        let [least, most, least_limit, most_limit] =
            [least, most, least_limit, most_limit].map(bytes);
        Self { fit, least, most, least_limit, most_limit }
    }
}

/// Whole bytes; a negative sum is none.
fn bytes(value: f64) -> Bytes {
    Bytes::new(value.max(0.0).round() as u64)
}
