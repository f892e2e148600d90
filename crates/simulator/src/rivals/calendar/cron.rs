//! Times of the week in the notation of cron.

use crate::seconds::Seconds;

const MINUTES_A_DAY: u32 = 24 * 60;
const MINUTES_A_WEEK: u32 = 7 * MINUTES_A_DAY;
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Moments of a week, from an expression such as `0 8 * * 1-5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    /// Minutes after Monday midnight, in order.
    minutes: Vec<u32>,
}

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCron {
    /// It does not have the five fields.
    #[error("`{0}` does not have the five fields minute, hour, day, month and weekday")]
    Fields(String),
    /// It names days of months or months, and a week knows neither.
    #[error("`{0}` names days of a month or months; only times of the week are simulated")]
    NotWeekly(String),
    /// A field cannot be read.
    #[error("`{field}` in `{expression}` is not a cron field between {least} and {most}")]
    Field {
        /// The field.
        field: String,
        /// All of it.
        expression: String,
        /// The least it may say.
        least: u32,
        /// The most it may say.
        most: u32,
    },
}

impl Cron {
    /// Reads an expression of five fields.
    pub fn read(expression: &str) -> Result<Self, BadCron> {
        let fields: Vec<&str> = expression.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(BadCron::Fields(expression.to_owned()));
        };
        if !matches!(day, "*" | "?") || !matches!(month, "*" | "?") {
            return Err(BadCron::NotWeekly(expression.to_owned()));
        }
        let read = |field: &str, least, most| {
            values(field, least, most).ok_or_else(|| BadCron::Field {
                field: field.to_owned(),
                expression: expression.to_owned(),
                least,
                most,
            })
        };
        let mut minutes = Vec::new();
        for weekday in read(weekday, 0, 7)? {
            // Cron counts from Sunday, which is 0 and 7; weeks here start on Monday.
            let day = (weekday + 6) % 7;
            for hour in read(hour, 0, 23)? {
                for minute in read(minute, 0, 59)? {
                    minutes.push(day * MINUTES_A_DAY + hour * 60 + minute);
                }
            }
        }
        minutes.sort_unstable();
        minutes.dedup();
        Ok(Self { minutes })
    }

    /// Whether, at a point so long after a Monday midnight, this came after `end` did last.
    pub fn is_on(&self, end: &Self, into_week: Seconds) -> bool {
        let minute = (into_week.0 / 60.0).floor().rem_euclid(f64::from(MINUTES_A_WEEK)) as u32;
        match (self.minutes_since(minute), end.minutes_since(minute)) {
            (Some(started), Some(ended)) => started < ended,
            (started, _) => started.is_some(),
        }
    }

    fn minutes_since(&self, now: u32) -> Option<u32> {
        self.minutes.iter().map(|minute| (now + MINUTES_A_WEEK - minute) % MINUTES_A_WEEK).min()
    }
}

/// The numbers that a field stands for; `None` where it cannot be read.
fn values(field: &str, least: u32, most: u32) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse().ok().filter(|step| *step > 0)?),
            None => (part, 1),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (least, most),
            Some((from, to)) => (number(from)?, number(to)?),
            None if part.contains('/') => (number(range)?, most),
            None => (number(range)?, number(range)?),
        };
        if from < least || to > most || from > to {
            return None;
        }
        found.extend((from..=to).step_by(step));
    }
    Some(found)
}

fn number(text: &str) -> Option<u32> {
    let day = DAYS.iter().position(|day| text.eq_ignore_ascii_case(day));
    day.map(|day| day as u32).or_else(|| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{BadCron, Cron, Seconds};

    fn cron(text: &str) -> Cron {
        Cron::read(text).expect("an expression")
    }

    fn at(day: f64, hour: f64) -> Seconds {
        Seconds((day * 24.0 + hour) * 3600.0)
    }

    #[test]
    fn working_hours_are_on_from_monday_to_friday() {
        let (start, end) = (cron("0 8 * * 1-5"), cron("0 20 * * mon-fri"));
        assert!(!start.is_on(&end, at(0.0, 7.99)));
        assert!(start.is_on(&end, at(0.0, 8.0)));
        assert!(start.is_on(&end, at(4.0, 19.99)));
        assert!(!start.is_on(&end, at(4.0, 20.0)));
        assert!(!start.is_on(&end, at(6.0, 12.0)));
    }

    #[test]
    fn a_window_may_pass_midnight_and_the_end_of_the_week() {
        let (start, end) = (cron("30 22 * * 0"), cron("15 6 * * *"));
        assert!(start.is_on(&end, at(6.0, 23.0)), "Sunday is 0");
        assert!(start.is_on(&end, at(0.0, 6.0)), "and Monday comes after it");
        assert!(!start.is_on(&end, at(0.0, 6.25)));
    }

    #[test]
    fn steps_and_lists_are_read() {
        assert_eq!(cron("*/30 0-1 * * 1"), cron("0,30 0,1 * * 1"));
        assert_eq!(cron("0 0 * * 7"), cron("0 0 * * SUN"));
    }

    #[test]
    fn what_is_not_weekly_or_not_cron_is_refused() {
        assert!(matches!(Cron::read("0 8 1 * *"), Err(BadCron::NotWeekly(_))));
        assert!(matches!(Cron::read("0 8 * *"), Err(BadCron::Fields(_))));
        assert!(matches!(Cron::read("0 25 * * *"), Err(BadCron::Field { .. })));
        assert!(matches!(Cron::read("*/0 1 * * *"), Err(BadCron::Field { .. })));
    }
}
