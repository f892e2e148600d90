//! Days, as prices carry them. Kept as text: nothing here needs a calendar or a clock.

use std::fmt;

/// A day, written `YYYY-MM-DD`. Orders as the calendar does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(String);

impl Date {
    /// The day, or `None` when the text is not one: `2026-02-30` is not.
    pub fn new(text: &str) -> Option<Self> {
        let plain = |c: (usize, char)| {
            if [4, 7].contains(&c.0) { c.1 == '-' } else { c.1.is_ascii_digit() }
        };
        if text.len() != 10 || !text.char_indices().all(plain) {
            return None;
        }
        let [year, month, day] =
            [&text[..4], &text[5..7], &text[8..]].map(|part| part.parse::<u32>().unwrap_or(0));
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        (1..=days).contains(&day).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for day in ["2026-08-22", "2024-02-29", "2000-02-29"] {
            assert_eq!(Date::new(day).map(|date| date.to_string()).as_deref(), Some(day));
        }
        for wrong in [
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-04-31",
            "2026-1-1",
            "2026/08/22",
            "2026-08",
            "20260-8-22",
            "２026-08-22",
        ] {
            assert_eq!(Date::new(wrong), None, "{wrong}");
        }
    }
}
