//! What was learnt about a model as a line of text in its status, so that the next leader need not learn
//! it again.
//!
//! There is one version of one form. Any other is ignored, and overwritten in time: what is lost by it is
//! learnt again. Pure.

use crate::observe::demand::Means;
use flyball_core::ids::VariantName;
use flyball_governor::Learnt;
use std::collections::BTreeMap;

/// Longer texts are neither written nor read; the schema of the resource says the same.
pub const LONGEST: usize = 4_096;

const VERSION: &str = "1";

/// What stands in a status.
#[derive(Clone, Debug, PartialEq)]
pub struct Persisted {
    /// What the governor learnt.
    pub learnt: Learnt,
    /// What requests look like, where that is known.
    pub shape: Option<Means>,
}

/// Why a text teaches nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Another version wrote it.
    #[error("status.learnt is of version {0:?} and this operator reads {VERSION:?}")]
    Version(String),
    /// It is not what an operator wrote.
    #[error("status.learnt is damaged: {0}")]
    Damaged(&'static str),
    /// It is what nobody can have learnt.
    #[error("status.learnt is out of all bounds")]
    Impossible,
}

/// The text for a status. `None` if there would be more of it than a status may hold.
pub fn write(learnt: &Learnt, shape: Option<Means>) -> Option<String> {
    let shape = shape.map(|shape| [shape.prompt, shape.output, shape.answered]);
    let variants = learnt.variants.iter();
    let variants = variants.map(|(name, known)| format!("{name} {}", line(known)));
    let parts = [
        VERSION.to_owned(),
        learnt.minutes.to_string(),
        line(&learnt.yardstick),
        line(&learnt.forecast),
        line(&learnt.feedback),
        line(&learnt.idle_s),
        shape.map_or_else(String::new, |shape| line(&shape)),
        variants.collect::<Vec<_>>().join(","),
    ];
    let body = parts.join(";");
    let text = format!("{body};{:08x}", checksum(&body));
    (text.len() <= LONGEST).then_some(text)
}

/// What a text says. Whether it could have been learnt is for the governor to tell.
pub fn read(text: &str) -> Result<Persisted, Unreadable> {
    use Unreadable::Damaged;
    if text.len() > LONGEST {
        return Err(Damaged("it is too long"));
    }
    let (body, sum) = text.rsplit_once(';').ok_or(Damaged("it has no end"))?;
    let parts: Vec<&str> = body.split(';').collect();
    if parts[0] != VERSION {
        return Err(Unreadable::Version(parts[0].chars().take(16).collect()));
    }
    if u32::from_str_radix(sum, 16) != Ok(checksum(body)) {
        return Err(Damaged("its checksum is another"));
    }
    let [_, minutes, yardstick, forecast, feedback, idle, shape, variants] = parts[..] else {
        return Err(Damaged("it has too many parts or too few"));
    };
    let parsed = || {
        let variants = variants.split(',').filter(|one| !one.is_empty()).map(|one| {
            let (name, known) = one.split_once(' ')?;
            Some((name.parse::<VariantName>().ok()?, exactly(known)?))
        });
        let shape = match shape {
            "" => None,
            shape => Some(exactly::<3>(shape)?),
        };
        // The governor knows no shapes, so that these are judged here.
        let most = [1e8, 1e8, 1e18];
        if shape.is_some_and(|shape| (0..3).any(|n| !(1.0..most[n]).contains(&shape[n]))) {
            return None;
        }
        Some(Persisted {
            learnt: Learnt {
                minutes: minutes.parse().ok()?,
                yardstick: exactly(yardstick)?,
                forecast: exactly(forecast)?,
                feedback: exactly(feedback)?,
                idle_s: numbers(idle)?,
                variants: variants.collect::<Option<BTreeMap<_, _>>>()?,
            },
            shape: shape.map(|[prompt, output, answered]| Means { prompt, output, answered }),
        })
    };
    parsed().ok_or(Damaged("it has something else where numbers should be"))
}

/// Seven digits are more than what was learnt is worth.
fn line(numbers: &[f64]) -> String {
    let texts = numbers.iter().map(|number| format!("{:?}", *number as f32));
    texts.collect::<Vec<_>>().join(" ")
}

fn numbers(text: &str) -> Option<Vec<f64>> {
    text.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
}

fn exactly<const N: usize>(text: &str) -> Option<[f64; N]> {
    numbers(text)?.try_into().ok()
}

/// FNV-1a: enough for a text that was cut or edited. It keeps nobody from writing another.
fn checksum(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests;
