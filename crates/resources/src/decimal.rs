//! Decimal numbers as text, because the API has no floating point numbers and money needs none.

use flyball_core::units::{Currency, Money};

/// What a decimal looks like: up to nine digits, and up to six behind the point.
pub const PATTERN: &str = r"^[0-9]{1,9}(\.[0-9]{1,6})?$";

const MICROS: i64 = 1_000_000;

/// Millionths of a decimal, if it is one.
pub fn micros(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str, most: usize| {
        let plain =
            !text.is_empty() && text.len() <= most && text.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| text.parse::<i64>().ok()).flatten()
    };
    let scale = 10_i64.pow(6 - u32::try_from(part.len()).ok()?.min(6));
    Some(digits(whole, 9)? * MICROS + digits(part, 6)? * scale)
}

/// An amount of money, if the text is a decimal.
pub fn money(text: &str, currency: Currency) -> Option<Money> {
    Some(Money::from_micros(micros(text)?, currency))
}

/// Millionths as a decimal with so many digits behind the point, rounded to the nearest.
pub fn text(micros: i64, digits: u32) -> String {
    let digits = digits.min(6);
    let unit = 10_i64.pow(6 - digits);
    let rounded = (micros.unsigned_abs() + unit.unsigned_abs() / 2) / unit.unsigned_abs();
    let scale = 10_u64.pow(digits);
    let sign = if micros < 0 && rounded > 0 { "-" } else { "" };
    let whole = format!("{sign}{}", rounded / scale);
    match digits {
        0 => whole,
        _ => format!("{whole}.{:0width$}", rounded % scale, width = digits as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_and_written() {
        for (decimal, expected) in [
            ("6.88", Some(6_880_000)),
            ("0.000001", Some(1)),
            ("3", Some(3_000_000)),
            ("", None),
            (".5", None),
            ("1.", None),
            ("-1", None),
            ("1e3", None),
            ("1.2345678", None),
            ("1234567890", None),
        ] {
            assert_eq!(micros(decimal), expected, "{decimal:?}");
        }
        assert_eq!(text(6_880_000, 2), "6.88");
        assert_eq!(text(6_885_000, 2), "6.89");
        assert_eq!(text(999_999, 2), "1.00");
        assert_eq!(text(-1, 2), "0.00");
        assert_eq!(text(-1_500_000, 1), "-1.5");
        assert_eq!(text(1_400_000, 0), "1");
    }
}
