//! Days of the calendar, in UTC: enough to say when something was measured.

use anyhow::{Context, Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// A day, written `2026-09-30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Day {
    year: u64,
    month: u64,
    day: u64,
}

impl Day {
    /// The day that it is now.
    pub fn today() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::after(since.as_secs() / 86_400)
    }

    /// So many days after the first of 1970.
    fn after(mut days: u64) -> Self {
        let (mut year, mut month) = (1970, 1);
        while days >= days_of(year, month) {
            days -= days_of(year, month);
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        }
        Self { year, month, day: days + 1 }
    }
}

/// How long a month is.
const fn days_of(year: u64, month: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl fmt::Display for Day {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl FromStr for Day {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts: Vec<u64> = text.split('-').filter_map(|part| part.parse().ok()).collect();
        let exists = |&day: &Self| {
            (1..=12).contains(&day.month)
                && (1..=days_of(day.year, day.month)).contains(&day.day)
                && day.to_string() == text
        };
        let day = match parts[..] {
            [year, month, day] => Some(Self { year, month, day }).filter(exists),
            _ => None,
        };
        day.with_context(|| format!("{text:?} is not a day such as 2026-09-30"))
    }
}

impl TryFrom<String> for Day {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_over_leap_years_and_ends_of_months() {
        // As `date --utc --date @SECONDS +%F` says.
        for (days, text) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (20_454, "2026-01-01"),
            (20_775, "2026-11-18"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(Day::after(days).to_string(), text);
        }
        assert!(Day::today() > "2026-01-01".parse().unwrap());
    }

    #[test]
    fn what_is_no_day_is_refused() {
        assert_eq!("2024-02-29".parse::<Day>().unwrap().to_string(), "2024-02-29");
        for wrong in ["", "2026", "2026-13-01", "2026-02-29", "2026-09-31", "26-9-1", "2026-01-01-"]
        {
            assert!(wrong.parse::<Day>().is_err(), "{wrong}");
        }
    }
}
