//! Lengths of time and points in time, in whole milliseconds.

use super::counts::count;
use std::fmt;

count! {
    /// A length of time in milliseconds.
    Millis(u64)
}

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

impl Millis {
    /// One hour, the unit that accelerators are priced in.
    pub const HOUR: Self = Self(HOUR);

    /// So many seconds, at most [`Millis::MAX`].
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(SECOND.saturating_mul(seconds))
    }

    /// So many minutes, at most [`Millis::MAX`].
    pub const fn from_minutes(minutes: u64) -> Self {
        Self(MINUTE.saturating_mul(minutes))
    }
}

/// The two largest units, so `6 min 40 s` and not `6 min 40 s 12 ms`: the rest is noise to a reader.
impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (1, "ms")];
        let Some(largest) = units.iter().position(|(unit, _)| self.0 >= *unit) else {
            return f.write_str("0 ms");
        };
        let (unit, name) = units[largest];
        write!(f, "{} {name}", self.0 / unit)?;
        match units.get(largest + 1) {
            Some((next, next_name)) if self.0 % unit >= *next => {
                write!(f, " {} {next_name}", self.0 % unit / next)
            }
            _ => Ok(()),
        }
    }
}

/// A point in time: milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
///
/// Nothing in this crate can make one out of the current time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// A point so many milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this, or `None` when `earlier` is later.
    pub fn since(self, earlier: Self) -> Option<Millis> {
        self.0.checked_sub(earlier.0).map(Millis)
    }

    /// The point so much later, at most the last that can be written.
    pub const fn saturating_add(self, length: Millis) -> Self {
        Self(self.0.saturating_add(length.0))
    }

    /// The point so much earlier, at least the epoch.
    pub const fn saturating_sub(self, length: Millis) -> Self {
        Self(self.0.saturating_sub(length.0))
    }
}

/// RFC 3339 in UTC, such as `2026-11-15T14:02:10.000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_date(self.0 / DAY);
        let rest = self.0 % DAY;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
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
