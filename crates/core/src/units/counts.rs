//! Things that are counted.

use std::fmt;

/// Declares a counted unit over an unsigned integer.
macro_rules! count {
    ($(#[$meta:meta])* $type:ident($inner:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type($inner);

        impl $type {
            /// None of it.
            pub const ZERO: Self = Self(0);
            /// The largest value; where saturating arithmetic stops.
            pub const MAX: Self = Self(<$inner>::MAX);

            /// This many.
            pub const fn new(value: $inner) -> Self {
                Self(value)
            }

            /// The bare number, for formulas and output.
            pub const fn get(self) -> $inner {
                self.0
            }

            /// Whether there is none.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// The sum, or `None` when it does not fit.
            pub fn checked_add(self, other: Self) -> Option<Self> {
                self.0.checked_add(other.0).map(Self)
            }

            /// The difference, or `None` when it would be negative.
            pub fn checked_sub(self, other: Self) -> Option<Self> {
                self.0.checked_sub(other.0).map(Self)
            }

            /// The sum, at most [`Self::MAX`].
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// The difference, at least zero.
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// This many times as much, at most [`Self::MAX`].
            pub const fn saturating_mul(self, times: $inner) -> Self {
                Self(self.0.saturating_mul(times))
            }
        }

        /// Adds up, stopping at the largest value instead of wrapping.
        impl std::iter::Sum for $type {
            fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
                values.fold(Self::ZERO, Self::saturating_add)
            }
        }
    };
}
pub(super) use count;

/// Adds `from_sample` to units that arrive as floating-point readings.
macro_rules! sampled {
    ($type:ident) => {
        impl $type {
            /// A reading from a metrics source, rounded up to a whole.
            ///
            /// A zero means idleness and scales things down, so only a zero reads as zero: a third
            /// of a token per second is one, and NaN, infinities, negative and too large readings
            /// are `None`.
            pub fn from_sample(reading: f64) -> Option<Self> {
                // The end is 2^64, the first float that does not fit.
                (0.0..18_446_744_073_709_551_616.0)
                    .contains(&reading)
                    .then(|| Self::new(reading.ceil() as u64))
            }
        }
    };
}

count! {
    /// Whole accelerators.
    Gpus(u32)
}
count! {
    /// Copies of a model that serve requests. One replica may use several [`Gpus`].
    Replicas(u32)
}
count! {
    /// Work in thousandths of what one replica can do, where whole replicas are too coarse.
    MilliReplicas(u64)
}
count! {
    /// Requests from clients.
    Requests(u64)
}
count! {
    /// Tokens of work, read or written by a model.
    Tokens(u64)
}
count! {
    /// Memory or data.
    Bytes(u64)
}
count! {
    /// A rate of work, or the capacity to do it.
    TokensPerSecond(u64)
}

sampled!(MilliReplicas);
sampled!(Requests);
sampled!(Tokens);
sampled!(Bytes);
sampled!(TokensPerSecond);

impl Gpus {
    /// The accelerators that so many replicas use, at most [`Gpus::MAX`].
    pub const fn for_replicas(per_replica: Gpus, replicas: Replicas) -> Gpus {
        per_replica.saturating_mul(replicas.get())
    }
}

/// Writes `value` with one decimal and the largest prefix that keeps it at or above one.
///
/// Truncates, so that a display never claims more than there is.
fn write_scaled(
    f: &mut fmt::Formatter<'_>,
    value: u64,
    step: u64,
    prefixes: &[&str],
) -> fmt::Result {
    let mut unit: u64 = 1;
    let mut chosen = None;
    for prefix in prefixes {
        match unit.checked_mul(step) {
            Some(larger) if value >= larger => (unit, chosen) = (larger, Some(prefix)),
            _ => break,
        }
    }
    match chosen {
        None => write!(f, "{value} "),
        Some(prefix) => {
            // The remainder is below 2^60, so ten times it fits.
            write!(f, "{}.{} {prefix}", value / unit, value % unit * 10 / unit)
        }
    }
}

const DECIMAL: &[&str] = &["k ", "M ", "G ", "T "];
const BINARY: &[&str] = &["Ki", "Mi", "Gi", "Ti", "Pi"];

fn plural(f: &mut fmt::Formatter<'_>, value: u64, one: &str, many: &str) -> fmt::Result {
    write!(f, "{value} {}", if value == 1 { one } else { many })
}

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        plural(f, self.0.into(), "GPU", "GPUs")
    }
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        plural(f, self.0.into(), "replica", "replicas")
    }
}

/// One decimal, such as `4.2 replicas`; truncated.
impl fmt::Display for MilliReplicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, tenth) = (self.0 / 1000, self.0 % 1000 / 100);
        write!(f, "{whole}.{tenth} replica{}", if self.0 == 1000 { "" } else { "s" })
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        plural(f, self.0, "request", "requests")
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, 1000, DECIMAL)?;
        f.write_str(if self.0 == 1 { "token" } else { "tokens" })
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, 1024, BINARY)?;
        f.write_str("B")
    }
}

impl fmt::Display for TokensPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, 1000, DECIMAL)?;
        f.write_str("tokens/s")
    }
}
