//! What was learnt about a model as a line of text in its status, so that the next leader need not learn
//! it again.
//!
//! There is one version of one form. Any other is ignored, and overwritten in time: what is lost by it is
//! learnt again. Pure.

use flyball_core::ids::VariantName;
use flyball_estimator::{self as estimator, Means};
use flyball_governor::GovernorMemory;
use std::collections::BTreeMap;

/// Longer texts are neither written nor read; the schema of the resource says the same.
pub const LONGEST: usize = 4_096;

const VERSION: &str = "7";

/// The letters of small whole numbers: two of them are one.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What stands in a status.
#[derive(Clone, Debug, PartialEq)]
pub struct Persisted {
    /// What the governor learnt.
    pub learnt: GovernorMemory,
    /// What the estimator learnt. How long starts take stands in the status itself.
    pub estimated: estimator::EstimatorMemory,
}

/// Why a text teaches nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LearntError {
    /// Another version wrote it.
    #[error("status.learnt has version {0:?}; this operator reads {VERSION:?}")]
    Version(String),
    /// It is not what an operator wrote.
    #[error("status.learnt is damaged: {0}")]
    Damaged(&'static str),
    /// It is what nobody can have learnt.
    #[error("status.learnt has values out of range")]
    Impossible,
}

/// The text for a status. `None` if there would be more of it than a status may hold.
pub fn write(learnt: &GovernorMemory, estimated: &estimator::EstimatorMemory) -> Option<String> {
    let shape = estimated.shape.map(|shape| [shape.prompt, shape.output, shape.answered]);
    let variants = estimated.variants.iter();
    let variants = variants.map(|(name, known)| format!("{name} {}", exact(known)));
    let parts = [
        VERSION.to_owned(),
        learnt.minutes.to_string(),
        exact(&learnt.yardstick),
        exact(&learnt.forecast),
        line(&learnt.moves),
        letters(&learnt.bursts),
        line(&learnt.hindsight),
        exact(&learnt.recommendations),
        exact(&learnt.counted),
        exact(&learnt.feedback),
        line(&learnt.idle_s),
        shape.map_or_else(String::new, |shape| exact(&shape)),
        estimated.seen.map_or_else(String::new, |seen| exact(&seen)),
        variants.collect::<Vec<_>>().join(","),
    ];
    let body = parts.join(";");
    let text = format!("{body};{:08x}", checksum(&body));
    (text.len() <= LONGEST).then_some(text)
}

/// What a text says. Whether it could have been learnt is for the governor to tell.
pub fn read(text: &str) -> Result<Persisted, LearntError> {
    use LearntError::Damaged;
    if text.len() > LONGEST {
        return Err(Damaged("it is too long"));
    }
    let (body, sum) = text.rsplit_once(';').ok_or(Damaged("it has no end"))?;
    let parts: Vec<&str> = body.split(';').collect();
    if parts[0] != VERSION {
        return Err(LearntError::Version(parts[0].chars().take(16).collect()));
    }
    if u32::from_str_radix(sum, 16) != Ok(checksum(body)) {
        return Err(Damaged("its checksum does not match"));
    }
    let [
        _,
        minutes,
        yardstick,
        forecast,
        moves,
        bursts,
        hindsight,
        recommendations,
        counted,
        feedback,
        idle,
        rest @ ..,
    ] = &parts[..]
    else {
        return Err(Damaged("it has too few parts"));
    };
    let [shape, seen, variants] = *rest else {
        return Err(Damaged("it has the wrong number of parts"));
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
        let seen = match seen {
            "" => None,
            seen => Some(exactly::<5>(seen)?),
        };
        // Nobody else judges shapes.
        let most = [1e8, 1e8, 1e18];
        if shape.is_some_and(|shape| (0..3).any(|n| !(1.0..most[n]).contains(&shape[n]))) {
            return None;
        }
        Some(Persisted {
            learnt: GovernorMemory {
                minutes: minutes.parse().ok()?,
                yardstick: exactly(yardstick)?,
                forecast: exactly(forecast)?,
                moves: exactly(moves)?,
                bursts: of_letters(bursts)?,
                hindsight: exactly(hindsight)?,
                recommendations: numbers(recommendations)?,
                counted: exactly(counted)?,
                feedback: exactly(feedback)?,
                idle_s: numbers(idle)?,
            },
            estimated: estimator::EstimatorMemory {
                shape: shape.map(|[prompt, output, answered]| Means { prompt, output, answered }),
                starts: BTreeMap::new(),
                seen,
                variants: variants.collect::<Option<BTreeMap<_, _>>>()?,
            },
        })
    };
    parsed().ok_or(Damaged("it has a value that is not a number"))
}

/// Every digit: who goes on from here decides the same.
pub(crate) fn exact(numbers: &[f64]) -> String {
    numbers.iter().map(|number| format!("{number:?}")).collect::<Vec<_>>().join(" ")
}

fn letters(numbers: &[u16]) -> String {
    let letter = |place: u16| char::from(LETTERS[usize::from(place % 64)]);
    numbers.iter().flat_map(|number| [letter(number / 64), letter(*number)]).collect()
}

fn of_letters(text: &str) -> Option<Vec<u16>> {
    let place = |letter: u8| LETTERS.iter().position(|one| *one == letter);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let numbers = pairs.iter().map(|[high, low]| {
        let number = 64 * place(*high)? + place(*low)?;
        u16::try_from(number).ok()
    });
    numbers.collect::<Option<_>>().filter(|_| rest.is_empty())
}

/// Seven digits are enough of what is remembered in as many.
fn line(numbers: &[f64]) -> String {
    let texts = numbers.iter().map(|number| format!("{:?}", *number as f32));
    texts.collect::<Vec<_>>().join(" ")
}

fn numbers(text: &str) -> Option<Vec<f64>> {
    text.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
}

pub(crate) fn exactly<const N: usize>(text: &str) -> Option<[f64; N]> {
    numbers(text)?.try_into().ok()
}

/// FNV-1a: enough for a text that was cut or edited. It keeps nobody from writing another.
pub(crate) fn checksum(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests;
