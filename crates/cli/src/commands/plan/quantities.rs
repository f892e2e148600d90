//! Numbers as people write them: `12/s`, `1.5k`, `1T`, `2M`, `30d`.

/// Suffixes of counts, in powers of a thousand. Both cases, because nobody means milli-tokens.
const SCALES: [(char, f64); 4] = [('k', 1e3), ('m', 1e6), ('b', 1e9), ('t', 1e12)];

/// `1500`, `1.5k`, `300B`, `1T`: a count above zero.
pub(crate) fn count(text: &str) -> Result<f64, String> {
    let plain = text.trim().replace('_', "");
    let last = plain.chars().last().unwrap_or(' ').to_ascii_lowercase();
    let (digits, scale) = match SCALES.iter().find(|(letter, _)| *letter == last) {
        Some((_, scale)) => (&plain[..plain.len() - 1], *scale),
        None => (plain.as_str(), 1.0),
    };
    match digits.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number * scale),
        _ => Err("write a number above zero, as in 1500, 1.5k, 300B or 1T".to_owned()),
    }
}

/// The same for what comes in whole pieces, such as tokens: at least one.
pub(crate) fn at_least_one(text: &str) -> Result<f64, String> {
    match count(text)? {
        number if number >= 1.0 => Ok(number),
        _ => Err("write a number of at least 1".to_owned()),
    }
}

/// `8`: a whole number above zero, such as a number of accelerators.
pub(crate) fn whole(text: &str) -> Result<u32, String> {
    match text.trim().replace('_', "").parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("write a whole number above zero, as in 8 or 512".to_owned()),
    }
}

/// `80%` or `0.8`: above zero, and no more than all.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (digits, unit) = match text.trim().strip_suffix('%') {
        Some(digits) => (digits, 100.0),
        None => (text.trim(), 1.0),
    };
    let number = digits.trim().parse::<f64>().ok().map(|number| number / unit);
    number
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| "write a share above zero, as in 80% or 0.8".to_owned())
}

/// `12`, `12/s`, `12rps`, `720/min`, `40k/h`: requests per second.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let wrong = || "write requests per time, as in 12/s, 720/min or 40k/h".to_owned();
    let text = text.trim();
    let (number, per) = match text.strip_suffix("rps") {
        Some(number) => (number, "s"),
        None => text.split_once('/').unwrap_or((text, "s")),
    };
    let seconds = match per.trim() {
        "s" | "sec" | "second" => 1.0,
        "m" | "min" | "minute" => 60.0,
        "h" | "hour" => 3_600.0,
        "d" | "day" => 86_400.0,
        _ => return Err(wrong()),
    };
    count(number).map(|number| number / seconds).map_err(|_| wrong())
}

/// `30d`, `12h`, `2w`, `1d12h`: seconds of a run.
pub(crate) fn span(text: &str) -> Result<f64, String> {
    let wrong = || "write a time such as 30d, 12h or 1w2d".to_owned();
    let mut seconds = 0.0;
    let mut digits = String::new();
    for letter in text.trim().chars() {
        let unit = match letter {
            '0'..='9' | '.' => {
                digits.push(letter);
                continue;
            }
            'w' => 7.0 * 86_400.0,
            'd' => 86_400.0,
            'h' => 3_600.0,
            'm' => 60.0,
            's' => 1.0,
            _ => return Err(wrong()),
        };
        seconds += digits.parse::<f64>().map_err(|_| wrong())? * unit;
        digits.clear();
    }
    if digits.is_empty() && seconds > 0.0 { Ok(seconds) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_take_a_suffix() {
        assert_eq!(count("1500"), Ok(1500.0));
        assert_eq!(count("1.5k"), Ok(1500.0));
        assert_eq!(count("1T"), Ok(1e12));
        assert_eq!(count("2M"), Ok(2e6));
        assert_eq!(count("15_000"), Ok(15_000.0));
        for wrong in ["", "0", "-3", "many", "1x", "k", "NaN", "inf"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn whole_numbers_are_above_zero() {
        assert_eq!(whole("512"), Ok(512));
        for wrong in ["0", "-8", "1.5", "", "99999999999"] {
            assert!(whole(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_are_per_second() {
        assert_eq!(rate("12"), Ok(12.0));
        assert_eq!(rate("12/s"), Ok(12.0));
        assert_eq!(rate("720/min"), Ok(12.0));
        assert_eq!(rate("36k/h"), Ok(10.0));
        for wrong in ["12/year", "/s", "0/s", ""] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_add_up() {
        assert_eq!(span("30d"), Ok(30.0 * 86_400.0));
        assert_eq!(span("1d12h"), Ok(129_600.0));
        assert_eq!(span("1.5h"), Ok(5_400.0));
        for wrong in ["30", "0d", "d", "5 days", ""] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
