//! Days, weeks and months of the calendar, in UTC.

use flyball_core::units::Timestamp;

/// How long a budget lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Period {
    Day,
    /// From Monday on.
    Week,
    Month,
    /// For good.
    Once,
}

/// Which one it is, counted up. It is part of a balance's state, so that a clock that jumps back begins none anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeriodId(pub u64);

const DAY_MICROS: u64 = 24 * 3_600 * 1_000_000;

impl Period {
    /// The one in which a moment lies.
    pub const fn at(self, now: Timestamp) -> PeriodId {
        let days = now.as_micros() / DAY_MICROS;
        PeriodId(match self {
            Self::Day => days,
            // 1970 began on a Thursday.
            Self::Week => (days + 3) / 7,
            Self::Month => {
                let (year, month) = civil(days);
                year * 12 + month - 1
            }
            Self::Once => 0,
        })
    }

    /// When the next one begins.
    pub const fn end(self, id: PeriodId) -> Option<Timestamp> {
        let days = match self {
            Self::Day => id.0 + 1,
            Self::Week => (id.0 + 1) * 7 - 3,
            Self::Month => first_day((id.0 + 1) / 12, (id.0 + 1) % 12 + 1),
            Self::Once => return None,
        };
        Some(Timestamp::from_micros(days * DAY_MICROS))
    }
}

/// Year and month of a day since 1970. Years are counted from March, so that the leap day is the last of one, and in
/// spans of 400, which are all alike (146,097 days).
const fn civil(days: u64) -> (u64, u64) {
    // From 1 March of the year 0.
    let days = days + 719_468;
    let (span, of_span) = (days / 146_097, days % 146_097);
    let year = (of_span - of_span / 1_460 + of_span / 36_524 - of_span / 146_096) / 365;
    let of_year = of_span - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (span * 400 + year + if month <= 2 { 1 } else { 0 }, month)
}

/// Days from 1970 to the first of a month.
const fn first_day(year: u64, month: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (span, of_span) = (year / 400, year % 400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5;
    span * 146_097 + of_span * 365 + of_span / 4 - of_span / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(days: u64) -> Timestamp {
        Timestamp::from_micros(days * DAY_MICROS)
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        // 31 December 1999, 29 February 2024, 1 March 2100, which has no leap day before it.
        for (days, year, month) in [(10_956, 1999, 12), (19_782, 2024, 2), (47_541, 2100, 3)] {
            assert_eq!(civil(days), (year, month), "{days}");
        }
        for days in 0..60_000 {
            let id = Period::Month.at(at(days));
            let end = Period::Month.end(id).unwrap();
            assert!(end > at(days) && Period::Month.at(end) == PeriodId(id.0 + 1), "{days}");
            let last = Timestamp::from_micros(end.as_micros() - 1);
            assert_eq!(Period::Month.at(last), id, "{days}");
        }
    }

    #[test]
    fn weeks_begin_on_mondays() {
        // Monday, 16 November 2026.
        let monday = 20_773;
        assert_eq!(Period::Week.at(at(monday)).0, Period::Week.at(at(monday - 1)).0 + 1);
        assert_eq!(Period::Week.at(at(monday)), Period::Week.at(at(monday + 6)));
        assert_eq!(Period::Week.end(Period::Week.at(at(monday))), Some(at(monday + 7)));
    }

    #[test]
    fn what_is_for_good_never_ends() {
        assert_eq!(Period::Once.at(at(9)), Period::Once.at(at(99_999)));
        assert_eq!(Period::Once.end(PeriodId(0)), None);
    }
}
