//! A signal from outside, and how far to trust it.

use crate::closed::closed_enum;
use crate::units::{Micros, Timestamp};

closed_enum! {
    /// How far a signal can be trusted, from best to worst.
    pub enum Freshness {
        Fresh => "The signal is fresh enough to act on.",
        Stale => "The signal is too old to act on.",
        Missing => "The signal is missing or not a number.",
    }
}

/// A value from outside: recent, old, or not there.
///
/// There is no default and no way to read a missing value as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed<T> {
    /// Seen recently enough to act on.
    Fresh {
        /// What was seen.
        value: T,
        /// When.
        at: Timestamp,
    },
    /// Seen, but too long ago to give anything away on the strength of it.
    Stale {
        /// What was last seen.
        value: T,
        /// When.
        at: Timestamp,
    },
    /// Never seen, or not a number.
    Missing,
}

impl<T> Observed<T> {
    /// Judges a reading made at `at` as of `now`.
    ///
    /// No reading is `Missing`. A reading older than `max_age` is `Stale`; so is one from further
    /// than `max_age` in the future, because a source with a wrong clock would stay fresh for ever.
    pub fn judge(reading: Option<T>, at: Timestamp, now: Timestamp, max_age: Micros) -> Self {
        let Some(value) = reading else { return Self::Missing };
        if now.apart(at) <= max_age { Self::Fresh { value, at } } else { Self::Stale { value, at } }
    }

    /// How far the signal can be trusted.
    pub const fn freshness(&self) -> Freshness {
        match self {
            Self::Fresh { .. } => Freshness::Fresh,
            Self::Stale { .. } => Freshness::Stale,
            Self::Missing => Freshness::Missing,
        }
    }

    /// The same, known in part only: too little to give anything away on.
    pub fn partial(self) -> Self {
        match self {
            Self::Fresh { value, at } => Self::Stale { value, at },
            other => other,
        }
    }

    /// The same, in part where `is` says so.
    pub fn partial_if(self, is: bool) -> Self {
        if is { self.partial() } else { self }
    }

    /// The value, only if it is fresh. Use this for anything that gives capacity away.
    pub const fn fresh(&self) -> Option<&T> {
        match self {
            Self::Fresh { value, .. } => Some(value),
            Self::Stale { .. } | Self::Missing => None,
        }
    }

    /// The value last seen, fresh or stale. Use this only to hold or to add capacity.
    pub const fn last_seen(&self) -> Option<&T> {
        match self {
            Self::Fresh { value, .. } | Self::Stale { value, .. } => Some(value),
            Self::Missing => None,
        }
    }

    /// When the value was seen.
    pub const fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Fresh { at, .. } | Self::Stale { at, .. } => Some(*at),
            Self::Missing => None,
        }
    }

    /// One signal out of two: missing if either is, stale if either is, seen when the older was.
    pub fn join<U, V>(self, other: Observed<U>, combine: impl FnOnce(T, U) -> V) -> Observed<V> {
        let fresh = self.freshness().max(other.freshness()) == Freshness::Fresh;
        match (self, other) {
            (
                Self::Fresh { value: left, at } | Self::Stale { value: left, at },
                Observed::Fresh { value: right, at: other_at }
                | Observed::Stale { value: right, at: other_at },
            ) => {
                let (value, at) = (combine(left, right), at.min(other_at));
                if fresh { Observed::Fresh { value, at } } else { Observed::Stale { value, at } }
            }
            (Self::Missing, _) | (_, Observed::Missing) => Observed::Missing,
        }
    }

    /// The same signal in another unit.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Observed<U> {
        match self {
            Self::Fresh { value, at } => Observed::Fresh { value: convert(value), at },
            Self::Stale { value, at } => Observed::Stale { value: convert(value), at },
            Self::Missing => Observed::Missing,
        }
    }
}
