//! Whether a cell has the form that its column asks for.

use super::columns::CellFormat;
use crate::civil;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;

/// Texts that stand for nothing, which the standard forbids: null is null.
const PLACEHOLDERS: &[&str] =
    &["n/a", "na", "none", "null", "nan", "not applicable", "-", "unknown"];

const TIME_UNITS: &[&str] = &["Year", "Month", "Day", "Hour", "Minute", "Second"];

/// Why a cell is not of the form of its column; nothing if it is.
pub(super) fn wrong(format: CellFormat, text: &str) -> Option<&'static str> {
    match format {
        CellFormat::Text if PLACEHOLDERS.contains(&text.to_lowercase().as_str()) => {
            Some("is a placeholder for null")
        }
        CellFormat::Text if text.trim() != text => Some("has blanks at an end"),
        CellFormat::Text => None,
        CellFormat::Decimal => {
            (!is_number(text)).then_some("is not a number in the standard's form")
        }
        CellFormat::NotNegative if !is_number(text) => {
            Some("is not a number in the standard's form")
        }
        CellFormat::NotNegative => text.starts_with('-').then_some("is negative"),
        CellFormat::Time => (!is_time(text)).then_some("is not a time as in 2026-11-20T02:40:00Z"),
        CellFormat::NationalCurrency => {
            (!is_currency(text)).then_some("is not a currency of ISO 4217")
        }
        CellFormat::Unit => {
            (!is_unit(text)).then_some("is not a unit as in Tokens, 1000000 Tokens or GPU-Hours")
        }
        CellFormat::KeyValues => {
            keys(text).is_none().then_some("is not a flat JSON object with unique keys")
        }
        CellFormat::OneOf(values) => {
            (!values.contains(&text)).then_some("is none of the allowed values")
        }
    }
}

/// `-100.2`, `4`, `35.2E-7`; no sign for what is positive, neither here nor in the exponent.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (number, exponent) = match text.split_once('E') {
        Some((number, exponent)) => (number, exponent.strip_prefix('-').unwrap_or(exponent)),
        None => (text, "0"),
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(decimals) && digits(exponent)
}

fn is_time(text: &str) -> bool {
    text.len() == 20
        && text.as_bytes()[10] == b'T'
        && text.ends_with('Z')
        && civil::read_time(text).is_some()
}

fn is_currency(text: &str) -> bool {
    // Codes that begin with X are metals, funds and tests, but for those of several countries.
    let several = ["XAF", "XOF", "XPF", "XCD", "XCG"].contains(&text);
    text.len() == 3
        && text.bytes().all(|byte| byte.is_ascii_uppercase())
        && (!text.starts_with('X') || several)
}

/// `Tokens`, `1000000 Tokens`, `GPU-Hours`, `Requests/Day`, `Units/3 Months`.
fn is_unit(text: &str) -> bool {
    let (text, interval) =
        text.split_once('/').map_or((text, None), |(text, interval)| (text, Some(interval)));
    let noun = match text.split_once(' ') {
        Some((quantity, noun)) if quantity.parse::<u64>().is_ok() => noun,
        _ => text,
    };
    let singular_or_plural =
        |word: &str| TIME_UNITS.contains(&word.strip_suffix('s').unwrap_or(word));
    let interval_is_right = interval.is_none_or(|interval| match interval.split_once(' ') {
        Some((count, unit)) => {
            count.parse::<u64>().is_ok() && unit.ends_with('s') && singular_or_plural(unit)
        }
        None => TIME_UNITS.contains(&interval),
    });
    let noun_is_right = match noun.split_once('-') {
        Some((singular, time)) => {
            is_noun(singular) && time.ends_with('s') && singular_or_plural(time)
        }
        None => is_noun(noun) && !TIME_UNITS.contains(&noun),
    };
    interval_is_right && noun_is_right
}

fn is_noun(text: &str) -> bool {
    let letters = text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' ');
    letters && text.starts_with(|first: char| first.is_ascii_uppercase()) && !text.ends_with(' ')
}

/// The keys of a flat object; nothing if it is none, or if a key comes twice.
pub(super) fn keys(text: &str) -> Option<BTreeSet<String>> {
    let mut json = serde_json::Deserializer::from_str(text);
    let keys = json.deserialize_map(FlatKeys).ok()?;
    json.end().is_ok().then_some(keys)
}

struct FlatKeys;

impl<'de> Visitor<'de> for FlatKeys {
    type Value = BTreeSet<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a flat object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some((key, value)) = map.next_entry::<String, serde_json::Value>()? {
            if value.is_object() || value.is_array() || !keys.insert(key) {
                return Err(serde::de::Error::custom("not flat, or a key that comes twice"));
            }
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_right_or_wrong_as_the_standard_says() {
        let table: [(CellFormat, &[&str], &[&str]); 7] = [
            (
                CellFormat::Decimal,
                &["-100.2", "4", "35.2E-7", "0"],
                &["35.2E+7", "1 1/2", "$32", "3,432", "+3", ".5", "5.", "NaN", "1e3"],
            ),
            (CellFormat::NotNegative, &["0", "1.5"], &["-1", "x"]),
            (
                CellFormat::Time,
                &["2026-11-20T02:40:00Z"],
                &[
                    "2026-11-20",
                    "2026-11-20T02:40:00",
                    "2026-11-20 02:40:00Z",
                    "2026-11-31T00:00:00Z",
                ],
            ),
            (
                CellFormat::NationalCurrency,
                &["USD", "EUR", "XOF"],
                &["usd", "US", "XXX", "TOKENS", "BTC1"],
            ),
            (
                CellFormat::Unit,
                &[
                    "Tokens",
                    "1000000 Tokens",
                    "Requests",
                    "GPU-Hours",
                    "GPU-Seconds",
                    "Requests/Day",
                    "Units/3 Months",
                    "GB",
                ],
                &[
                    "tokens",
                    "1.5 Tokens",
                    "GPU-hours",
                    "GPU-Hour",
                    "Requests/Days",
                    "",
                    "Hour",
                    "Units/3 Month",
                ],
            ),
            (
                CellFormat::KeyValues,
                &["{}", r#"{"a":1,"x_b":"c"}"#],
                &["[]", "1", r#"{"a":{}}"#, r#"{"a":[1]}"#, r#"{"a":1,"a":2}"#, "{", "{} {}"],
            ),
            (CellFormat::Text, &["ml/chat"], &["N/A", "null", " x"]),
        ];
        for (format, right, not) in table {
            for text in right {
                assert_eq!(wrong(format, text), None, "{text:?} as {format:?}");
            }
            for text in not {
                assert!(wrong(format, text).is_some(), "{text:?} as {format:?}");
            }
        }
    }
}
