//! What time it is in a replay: of the day where the traffic says it, else since its start.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Turns seconds since the start into words and back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::commands) struct Clock {
    /// The moment of second zero, if the traffic knows it.
    pub(in crate::commands) origin: Option<Timestamp>,
}

/// What a day has.
const DAY: f64 = 86_400.0;

impl Clock {
    /// `Tue 13:05` in UTC, or `day 2, 13:05` since the start.
    pub(in crate::commands) fn label(&self, seconds: f64) -> String {
        match self.moment(seconds) {
            Some(moment) => moment.to_zoned(TimeZone::UTC).strftime("%a %H:%M").to_string(),
            None => {
                let day = (seconds / DAY).floor();
                format!("day {:.0}, {}", day + 1.0, self.time(seconds))
            }
        }
    }

    /// `13:05`.
    pub(in crate::commands) fn time(&self, seconds: f64) -> String {
        match self.moment(seconds) {
            Some(moment) => moment.to_zoned(TimeZone::UTC).strftime("%H:%M").to_string(),
            None => {
                let minutes = (seconds.rem_euclid(DAY) / 60.0).floor();
                format!("{:02.0}:{:02.0}", (minutes / 60.0).floor(), minutes % 60.0)
            }
        }
    }

    /// `Tue 12 Nov`, or `day 2`.
    pub(in crate::commands) fn day(&self, seconds: f64) -> String {
        match self.moment(seconds) {
            Some(moment) => moment.to_zoned(TimeZone::UTC).strftime("%a %-d %b").to_string(),
            None => format!("day {:.0}", (seconds / DAY).floor() + 1.0),
        }
    }

    /// The first midnight at or after a point.
    pub(in crate::commands) fn midnight(&self, seconds: f64) -> f64 {
        let origin = self.origin.map_or(0.0, |origin| origin.as_second().rem_euclid(86_400) as f64);
        ((seconds + origin) / DAY).ceil() * DAY - origin
    }

    /// Reads `13:05`, `2d13:05` (the second day) or a date and time, as seconds since the start.
    pub(in crate::commands) fn read(&self, text: &str) -> Result<f64, String> {
        let wrong =
            || "write 13:05, 2d13:05 for the second day, or 2026-11-10T13:05:00Z".to_owned();
        if let Ok(moment) = text.parse::<Timestamp>() {
            let origin = self.origin.ok_or("this traffic has no dates")?;
            return Ok(moment.duration_since(origin).as_secs_f64());
        }
        let (day, time) = match text.split_once('d') {
            Some((day, time)) => (day.parse::<u32>().ok().filter(|day| *day > 0), time),
            None => (Some(1), text),
        };
        let (hours, minutes) = time.split_once(':').ok_or_else(wrong)?;
        let hours = hours.parse::<u32>().ok().filter(|hours| *hours < 24);
        let minutes = minutes.parse::<u32>().ok().filter(|minutes| *minutes < 60);
        let (Some(day), Some(hours), Some(minutes)) = (day, hours, minutes) else {
            return Err(wrong());
        };
        let clock = f64::from(day - 1) * DAY + f64::from(hours * 3_600 + minutes * 60);
        match self.origin {
            // The first day may begin in its middle: the first such time that lies in the replay.
            Some(_) => {
                let at = clock + self.midnight(0.0) - DAY;
                Ok(if at < 0.0 { at + DAY } else { at })
            }
            None => Ok(clock),
        }
    }

    fn moment(&self, seconds: f64) -> Option<Timestamp> {
        let after = SignedDuration::try_from_secs_f64(seconds).ok()?;
        self.origin?.checked_add(after).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_and_read() {
        let clock = Clock::default();
        assert_eq!(clock.label(DAY + 47_100.0), "day 2, 13:05");
        assert_eq!(clock.read("2d13:05"), Ok(DAY + 47_100.0));
        assert_eq!(clock.read("13:05"), Ok(47_100.0));
        assert_eq!(clock.midnight(1.0), DAY);
        for wrong in ["25:00", "13", "0d1:00", "soon", "13:61"] {
            assert!(clock.read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_known_start_sets_the_clock() {
        let clock = Clock { origin: "2026-11-10T18:00:00Z".parse().ok() };
        assert_eq!(clock.label(3_600.0), "Tue 19:00");
        assert_eq!(clock.midnight(0.0), 6.0 * 3_600.0);
        // 13:05 comes first on the next day, 19:05 on the same.
        assert_eq!(clock.read("13:05"), Ok(19.0 * 3_600.0 + 300.0));
        assert_eq!(clock.read("19:05"), Ok(3_900.0));
        assert_eq!(clock.read("2026-11-10T19:05:00Z"), Ok(3_900.0));
        assert_eq!(clock.day(7.0 * 3_600.0), "Wed 11 Nov");
    }
}
