//! Points in time as files write them.

/// Seconds, and whether they count from 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stamp {
    pub(super) seconds: f64,
    pub(super) absolute: bool,
}

/// `2023-11-16 18:15:46.6805900`, with or without a zone (UTC without); or a bare number.
pub(super) fn parse(text: &str, per_second: f64) -> Option<Stamp> {
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then(|| numeric(number, per_second));
    }
    // 2024's Azure files have a blank before the zone or `+00:00`; both are one instant.
    let stamp = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let civil = text.parse::<jiff::civil::DateTime>().ok()?;
        civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })?;
    Some(Stamp { seconds: stamp.as_nanosecond() as f64 / 1e9, absolute: true })
}

/// A number of units, so many to the second. Where the column does not say the unit, a number
/// too large for seconds tells it: 10^11 seconds would be the year 5138.
pub(super) fn numeric(number: f64, per_second: f64) -> Stamp {
    let size = match number.abs() {
        _ if per_second != 1.0 => per_second,
        ..1e11 => 1.0,
        ..1e14 => 1e3,
        ..1e17 => 1e6,
        _ => 1e9,
    };
    let seconds = number / size;
    // Since September 2001; no replay lasts 31 years.
    Stamp { seconds, absolute: seconds >= 1e9 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_numbers_of_all_units_are_the_same_moment() {
        // `date -u -d '2023-11-16 18:15:46' +%s` says 1700158546.
        for text in [
            "2023-11-16 18:15:46.5",
            "2023-11-16T18:15:46.5",
            "2023-11-16 18:15:46.5000000+00:00",
            "2023-11-16T18:15:46.5Z",
            "2023-11-16 20:15:46.500000+02:00",
            "1700158546.5",
            "1700158546500",
            "1700158546500000",
            "1700158546500000000",
        ] {
            let stamp = parse(text, 1.0).unwrap_or_else(|| panic!("{text}"));
            assert!((stamp.seconds - 1_700_158_546.5).abs() < 1e-5 && stamp.absolute, "{text}");
        }
        assert_eq!(parse("500", 1e3), Some(Stamp { seconds: 0.5, absolute: false }));
        assert_eq!(parse("3", 1.0), Some(Stamp { seconds: 3.0, absolute: false }));
        for wrong in ["", "yesterday", "NaN", "2023-13-01 00:00:00"] {
            assert_eq!(parse(wrong, 1.0), None, "{wrong}");
        }
    }
}
