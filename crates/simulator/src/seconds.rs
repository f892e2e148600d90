//! Virtual time.

use flyball_core::units::{Micros, Timestamp};
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A length of virtual time, or a point counted from the start of the replay, in seconds.
///
/// A float and not whole microseconds, because an engine takes tens of millions of steps a day and
/// rounding each would add up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds(pub f64);

impl Seconds {
    /// No time, and the start of the replay.
    pub const ZERO: Self = Self(0.0);
    /// One minute.
    pub const MINUTE: Self = Self(60.0);
    /// One hour.
    pub const HOUR: Self = Self(3600.0);
    /// One day.
    pub const DAY: Self = Self(86_400.0);

    /// The bare number, for formulas and output.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The earlier or shorter of the two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// The later or longer of the two.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The length in the unit of decisions, rounded to the nearest microsecond.
    pub fn to_micros(self) -> Micros {
        Micros::new((self.0.max(0.0) * 1e6).round() as u64)
    }

    /// The point so long after `start`.
    pub fn after(self, start: Timestamp) -> Timestamp {
        start.saturating_add(self.to_micros())
    }

    /// How long after `start` a point is.
    pub fn between(start: Timestamp, point: Timestamp) -> Self {
        let apart = start.apart(point).as_seconds();
        Self(if point < start { -apart } else { apart })
    }
}

impl From<Micros> for Seconds {
    fn from(length: Micros) -> Self {
        Self(length.as_seconds())
    }
}

impl Eq for Seconds {}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Add for Seconds {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Seconds {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Seconds {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<f64> for Seconds {
    type Output = Self;
    fn mul(self, times: f64) -> Self {
        Self(self.0 * times)
    }
}

impl Div<f64> for Seconds {
    type Output = Self;
    fn div(self, parts: f64) -> Self {
        Self(self.0 / parts)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_micros().fmt(f)
    }
}
