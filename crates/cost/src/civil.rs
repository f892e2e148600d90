//! Points in time as bills write them, in UTC, and the months of the calendar.

use flyball_core::units::Timestamp;

const SECOND: u64 = 1_000_000;
const DAY_SECONDS: u64 = 86_400;

/// A calendar month: the year, and the month from 1 to 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BillingMonth {
    pub year: u64,
    pub month: u64,
}

impl BillingMonth {
    pub const fn of(time: Timestamp) -> Self {
        let (year, month, _) = date(time.as_micros() / SECOND / DAY_SECONDS);
        Self { year, month }
    }

    pub const fn start(self) -> Timestamp {
        Timestamp::from_micros(days(self.year, self.month, 1) * DAY_SECONDS * SECOND)
    }

    /// When the next one starts.
    pub const fn end(self) -> Timestamp {
        self.next().start()
    }

    pub const fn next(self) -> Self {
        let (year, month) =
            if self.month == 12 { (self.year + 1, 1) } else { (self.year, self.month + 1) };
        Self { year, month }
    }
}

/// The start of the day of a moment.
pub const fn day_start(time: Timestamp) -> Timestamp {
    let day = DAY_SECONDS * SECOND;
    Timestamp::from_micros(time.as_micros() / day * day)
}

/// `2026-11-20`.
pub fn date_text(time: Timestamp) -> String {
    let (year, month, day) = date(time.as_micros() / SECOND / DAY_SECONDS);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `2026-11-20T02:40:00Z`; parts of a second are cut off.
pub fn time_text(time: Timestamp) -> String {
    let seconds = time.as_micros() / SECOND % DAY_SECONDS;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{}T{hours:02}:{minutes:02}:{:02}Z", date_text(time), seconds % 60)
}

/// Reads `2026-11-20T02:40:00Z`, also with parts of a second, a space for the `T` or without the `Z`, and a bare date:
/// clouds write all of these, and mean UTC.
pub fn read_time(text: &str) -> Option<Timestamp> {
    let text = text.strip_suffix('Z').or_else(|| text.strip_suffix(" UTC")).unwrap_or(text);
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let known = (1970..=9_999).contains(&year) && (1..=12).contains(&month) && day >= 1;
    let right = known && day <= month_days(year, month) && hour < 24 && minute < 60 && second < 60;
    if !right || fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros: u64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let seconds = days(year, month, day) * DAY_SECONDS + hour * 3_600 + minute * 60 + second;
    Some(Timestamp::from_micros(seconds * SECOND + micros))
}

fn numbers(text: &str, mark: char, widths: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(mark);
    let mut all = [0; 3];
    for (number, width) in all.iter_mut().zip(widths) {
        let part = parts.next()?;
        let right = part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = right.then(|| part.parse().ok()).flatten()?;
    }
    parts.next().is_none().then_some(all)
}

const fn month_days(year: u64, month: u64) -> u64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days(next_year, next, 1) - days(year, month, 1)
}

/// Days since 1970. Years are counted from March, so that the leap day is the last of one.
const fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let leap_days = year / 4 - year / 100 + year / 400;
    365 * year + leap_days + (153 * from_march + 2) / 5 + day - 1 - 719_468
}

const fn date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let (span, of_span) = (days / 146_097, days % 146_097);
    let year = (of_span - of_span / 1_460 + of_span / 36_524 - of_span / 146_096) / 365;
    let of_year = of_span - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (span * 400 + year + if month <= 2 { 1 } else { 0 }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_four_centuries_is_written_and_read_again() {
        let mut before = String::new();
        for day in 0..150_000 {
            let time = Timestamp::from_micros((day * DAY_SECONDS + 86_399) * SECOND);
            let text = time_text(time);
            assert_eq!(read_time(&text), Some(time), "{text}");
            assert!(text > before, "{text} after {before}");
            let month = BillingMonth::of(time);
            assert!(month.start() <= time && time < month.end(), "{text}");
            before = text;
        }
    }

    #[test]
    fn known_days_and_the_forms_of_clouds() {
        assert_eq!(time_text(Timestamp::from_millis(951_782_400_000)), "2000-02-29T00:00:00Z");
        let expected = Timestamp::from_micros(1_795_142_400_000_000);
        for text in ["2026-11-20T02:40:00Z", "2026-11-20 02:40:00 UTC", "2026-11-20T02:40:00.000Z"]
        {
            assert_eq!(read_time(text), Some(expected), "{text}");
        }
        assert_eq!(read_time("2026-11-20"), Some(day_start(expected)));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let wrong = [
            "",
            "2026-02-29",
            "2026-13-01",
            "2026-1-1",
            "2026-11-20T24:00:00Z",
            "20.11.2026",
            "2026-11-20T02:40Z",
            "2026-11-20T02:40:00+01:00",
            "2026-11-20T02:40:00.Z",
            "-026-11-20",
            "1969-12-31",
            "2026-11-20-01",
        ];
        for text in wrong {
            assert_eq!(read_time(text), None, "{text}");
        }
    }
}
