//! What an answer says, as far as it is compared: a number with its interval, or words.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// What an answer says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Number {
        low: f64,
        point: f64,
        high: f64,
    },
    /// A verdict, or everything that a list says.
    Words(Vec<String>),
}

/// Low, point and high.
pub(super) type Range = [f64; 3];

pub(super) fn number(value: &Value) -> Result<f64> {
    let number = value.as_f64().with_context(|| format!("{value} is no number"))?;
    ensure!(number.is_finite(), "{number} is no number");
    Ok(number)
}

pub(super) fn range(value: &Value) -> Result<Range> {
    Ok([number(&value["low"])?, number(&value["point"])?, number(&value["high"])?])
}

pub(super) fn exactly(point: f64) -> Answer {
    Answer::Number { low: point, point, high: point }
}

pub(super) fn between([low, point, high]: Range) -> Answer {
    Answer::Number { low, point, high }
}
