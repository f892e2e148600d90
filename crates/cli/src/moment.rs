//! Moments as people type and read them. All of them are UTC, as everything in a cluster is.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::output::age;

/// `14:02:10`, with the day before it if that is another one.
pub(crate) fn clock(at: Timestamp, now: Timestamp) -> String {
    let (at, now) = (at.to_zoned(TimeZone::UTC), now.to_zoned(TimeZone::UTC));
    if at.date() == now.date() {
        at.strftime("%H:%M:%S").to_string()
    } else {
        at.strftime("%Y-%m-%d %H:%M:%S").to_string()
    }
}

/// The same for a moment as the API writes it; as it is if it cannot be read.
pub(crate) fn clock_of(text: &str, now: Timestamp) -> String {
    text.parse().map_or_else(|_| text.to_owned(), |at| clock(at, now))
}

/// How long ago a moment was, as the API writes it; nothing if that cannot be read.
pub(crate) fn ago(text: &str, now: Timestamp) -> Option<Duration> {
    since(text.parse().ok()?, now)
}

pub(crate) fn since(at: Timestamp, now: Timestamp) -> Option<Duration> {
    Duration::try_from(now.duration_since(at)).ok()
}

/// `14:02:10 UTC (3 min 20 s)`.
pub(crate) fn clock_and_age(text: &str, now: Timestamp) -> String {
    let ago = ago(text, now).map(|time| format!(" ({})", age(time))).unwrap_or_default();
    format!("{} UTC{ago}", clock_of(text, now))
}

/// `2026-11-15T14:02:10Z`, `14:02` or `14:02:10` of today in UTC, or how long ago: `20m`.
pub(crate) fn parse(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    if let Ok(time) = text.parse::<jiff::civil::Time>() {
        let today = now.to_zoned(TimeZone::UTC).date();
        if let Ok(at) = today.to_datetime(time).to_zoned(TimeZone::UTC) {
            return Ok(at.timestamp());
        }
    }
    let ago = text.parse::<jiff::SignedDuration>().ok().filter(|ago| !ago.is_negative());
    ago.and_then(|ago| now.checked_sub(ago).ok())
        .ok_or_else(|| "a moment is 2026-11-15T14:02:10Z, 14:02 (UTC), or 20m (ago)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_people_type_them() {
        let now: Timestamp = "2026-11-15T14:05:30Z".parse().unwrap();
        let read = |text| parse(text, now).map(|at| at.to_string());
        assert_eq!(read("2026-11-14T01:02:03Z").unwrap(), "2026-11-14T01:02:03Z");
        assert_eq!(read("14:02").unwrap(), "2026-11-15T14:02:00Z");
        assert_eq!(read("14:02:10").unwrap(), "2026-11-15T14:02:10Z");
        assert_eq!(read("20m").unwrap(), "2026-11-15T13:45:30Z");
        for wrong in ["soon", "", "-5m", "25:00"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn another_day_is_named() {
        let now: Timestamp = "2026-11-15T14:05:30Z".parse().unwrap();
        assert_eq!(clock_of("2026-11-15T14:02:10.5Z", now), "14:02:10");
        assert_eq!(clock_of("2026-11-14T14:02:10Z", now), "2026-11-14 14:02:10");
        assert_eq!(clock_of("later", now), "later");
        assert_eq!(clock_and_age("2026-11-15T14:02:10Z", now), "14:02:10 UTC (3 min 20 s)");
    }
}
