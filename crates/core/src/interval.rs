//! Numbers that carry their error.
//!
//! A predicted or measured number is an [`Interval`]: the best guess, how low and how high it may
//! be, and where it came from. The type cannot say how wide an interval ought to be; whoever makes
//! one states that.

use crate::closed::closed_enum;
use std::fmt;
use thiserror::Error;

closed_enum! {
    /// Where a number came from, from weakest to strongest evidence.
    pub enum Origin {
        Assumed => "A default that was not checked for this case.",
        Stated => "A person wrote it down.",
        Catalogued => "It is in the catalogue, with its source.",
        Modelled => "A formula gives it from the architecture and the accelerator.",
        Forecast => "It was extrapolated from past demand.",
        Measured => "It was measured on this workload.",
    }
}

/// A best guess with a low and a high end, and where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval<T> {
    low: T,
    point: T,
    high: T,
    origin: Origin,
}

/// The ends of an interval do not enclose its point, or cannot be compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an interval needs low <= point <= high, all comparable")]
pub struct IntervalError;

impl<T: Copy + PartialOrd> Interval<T> {
    /// An interval; refused unless `low <= point <= high`.
    ///
    /// Values that do not compare (NaN, two currencies) are refused too.
    pub fn new(low: T, point: T, high: T, origin: Origin) -> Result<Self, IntervalError> {
        if low <= point && point <= high {
            Ok(Self { low, point, high, origin })
        } else {
            Err(IntervalError)
        }
    }

    /// A number known without error, such as a price from a list.
    ///
    /// Refused only if the value does not equal itself (NaN).
    pub fn exact(value: T, origin: Origin) -> Result<Self, IntervalError> {
        Self::new(value, value, value, origin)
    }

    /// Whether the value lies inside, ends included.
    pub fn contains(&self, value: T) -> bool {
        self.low <= value && value <= self.high
    }
}

impl<T: Copy> Interval<T> {
    /// The low end.
    pub const fn low(&self) -> T {
        self.low
    }

    /// Best estimate.
    pub const fn point(&self) -> T {
        self.point
    }

    /// The high end.
    pub const fn high(&self) -> T {
        self.high
    }

    /// Where the number came from.
    pub const fn origin(&self) -> Origin {
        self.origin
    }
}

impl<T: fmt::Display> fmt::Display for Interval<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { low, point, high, origin } = self;
        write!(f, "{point} ({low} to {high}, {})", origin.name().to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Currency, Micros, Money};
    use proptest::prelude::*;

    #[test]
    fn values_that_do_not_compare_are_refused() {
        assert!(Interval::exact(f64::NAN, Origin::Measured).is_err());
        let (usd, eur) = (Money::ZERO_USD, Money::from_micros(5, Currency::EUR));
        assert!(Interval::new(usd, eur, eur, Origin::Stated).is_err());
    }

    #[test]
    fn display_shows_both_ends_and_the_origin() {
        let [low, point, high] = [360, 430, 500].map(Micros::from_millis);
        let interval = Interval::new(low, point, high, Origin::Measured).unwrap();
        assert_eq!(interval.to_string(), "430 ms (360 ms to 500 ms, measured)");
    }

    proptest! {
        #[test]
        fn an_interval_encloses_its_point(low: u32, point: u32, high: u32) {
            match Interval::new(low, point, high, Origin::Modelled) {
                Ok(interval) => prop_assert!(interval.contains(interval.point())),
                Err(IntervalError) => prop_assert!(point < low || high < point),
            }
        }
    }
}
