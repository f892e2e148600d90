//! Lengths of time and points in time, in whole microseconds.

use super::counts::count;
use std::fmt;

count! {
    /// A length of time in microseconds.
    Micros(u64)
}

const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

impl Micros {
    /// One hour, the unit that accelerators are priced in.
    pub const HOUR: Self = Self(HOUR);

    /// So many milliseconds, at most [`Micros::MAX`].
    pub const fn from_millis(millis: u64) -> Self {
        Self(MILLISECOND.saturating_mul(millis))
    }

    /// So many seconds, at most [`Micros::MAX`].
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(SECOND.saturating_mul(seconds))
    }

    /// So many minutes, at most [`Micros::MAX`].
    pub const fn from_minutes(minutes: u64) -> Self {
        Self(MINUTE.saturating_mul(minutes))
    }

    /// The same in seconds, for formulas and metrics.
    pub const fn as_seconds(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// Whole seconds, truncated.
    pub const fn whole_seconds(self) -> u64 {
        self.0 / SECOND
    }
}

/// As much as a reader can use, truncated: one decimal below a minute (`7.5 ms`), and the two
/// largest units from there (`6 min 40 s`, not `6 min 40 s 12 ms`).
impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name, next, next_name) = match self.0 {
            0 => return f.write_str("0 ms"),
            1..MILLISECOND => return write!(f, "{} µs", self.0),
            MILLISECOND..SECOND => return write_decimal(f, self.0, MILLISECOND, "ms"),
            SECOND..MINUTE => return write_decimal(f, self.0, SECOND, "s"),
            MINUTE..HOUR => (MINUTE, "min", SECOND, "s"),
            HOUR..DAY => (HOUR, "h", MINUTE, "min"),
            DAY.. => (DAY, "d", HOUR, "h"),
        };
        write!(f, "{} {name}", self.0 / unit)?;
        match self.0 % unit / next {
            0 => Ok(()),
            rest => write!(f, " {rest} {next_name}"),
        }
    }
}

fn write_decimal(f: &mut fmt::Formatter<'_>, value: u64, unit: u64, name: &str) -> fmt::Result {
    match value % unit * 10 / unit {
        0 => write!(f, "{} {name}", value / unit),
        tenth => write!(f, "{}.{tenth} {name}", value / unit),
    }
}

/// A point in time: microseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
///
/// It counts in the unit of [`Micros`], so that adding a length and taking it away is exact.
/// Nothing in this crate can make one out of the current time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// A point so many microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// A point so many milliseconds after the epoch, at most the last that can be written.
    pub const fn from_millis(millis: u64) -> Self {
        Self(MILLISECOND.saturating_mul(millis))
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0 / MILLISECOND
    }

    /// Seconds since the epoch, for metrics.
    pub const fn as_seconds(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// The time from `earlier` to this, or `None` when `earlier` is later.
    pub fn since(self, earlier: Self) -> Option<Micros> {
        self.0.checked_sub(earlier.0).map(Micros)
    }

    /// The time between the two, whichever is earlier.
    pub const fn apart(self, other: Self) -> Micros {
        Micros(self.0.abs_diff(other.0))
    }

    /// The point so much later, at most the last that can be written.
    pub const fn saturating_add(self, length: Micros) -> Self {
        Self(self.0.saturating_add(length.0))
    }

    /// The point so much earlier, at least the epoch.
    pub const fn saturating_sub(self, length: Micros) -> Self {
        Self(self.0.saturating_sub(length.0))
    }
}

/// RFC 3339 in UTC as Kubernetes writes fine times, such as `2026-11-15T14:02:10.000000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_date(self.0 / DAY);
        let rest = self.0 % DAY;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
            rest / HOUR,
            rest % HOUR / MINUTE,
            rest % MINUTE / SECOND,
            rest % SECOND,
        )
    }
}

/// Year, month and day of a day number counted from 1970-01-01, in the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last of its year. 719,468 days lie
/// between 0000-03-01 and 1970-01-01; 400 years have 146,097 days.
fn civil_date(days_since_epoch: u64) -> (u64, u64, u64) {
    let days = days_since_epoch + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    // Take out the leap days that have passed: one per 4 years, less per 100, plus per 400.
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March, months run 31 30 31 30 31 twice over: 153 days per five months.
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}
