//! From what a run sent to what may be believed, and back.

use super::{
    Heartbeat, HeartbeatForm, HeartbeatInstructions, InstructionsForm, LOG_PREFIX, MAX_BYTES,
    MAX_COUNT, MAX_DURATION, MIN_SAVE_EVERY, VERSION,
};
use flyball_core::units::{Micros, Timestamp};
use serde::de::DeserializeOwned;

/// Characters of an attempt. A UUID has 36.
const ATTEMPT_CHARS: usize = 128;

/// Why a heartbeat or instructions are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeartbeatProblem {
    /// There is more than anybody needs to say.
    #[error("{0} bytes, more than {MAX_BYTES}")]
    Large(usize),
    /// It is not the JSON that it should be: cut short, perhaps.
    #[error("not the expected JSON: {0}")]
    Json(String),
    /// Somebody newer wrote it.
    #[error("version {0}; this program reads version {VERSION}")]
    Version(u32),
    /// A value that cannot be.
    #[error("`{field}` {what}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

impl Heartbeat {
    /// Reads and checks a heartbeat.
    pub fn read(json: &[u8]) -> Result<Self, HeartbeatProblem> {
        parse::<HeartbeatForm>(json)?.try_into()
    }

    /// The heartbeat in a line of a log, if the line has one.
    pub fn in_line(line: &str) -> Option<Result<Self, HeartbeatProblem>> {
        let (_, json) = line.split_once(LOG_PREFIX)?;
        Some(Self::read(json.trim().as_bytes()))
    }

    /// The same as JSON.
    pub fn write(&self) -> String {
        serde_json::to_string(&HeartbeatForm::from(self)).unwrap_or_default()
    }
}

impl HeartbeatInstructions {
    /// Reads and checks instructions.
    pub fn read(json: &[u8]) -> Result<Self, HeartbeatProblem> {
        parse::<InstructionsForm>(json)?.try_into()
    }

    /// The same as JSON.
    pub fn write(&self) -> String {
        serde_json::to_string(&InstructionsForm::from(self)).unwrap_or_default()
    }
}

/// Only the version is read of a form that is not ours: its other fields may be anything.
#[derive(serde::Deserialize)]
struct Versioned {
    version: u32,
}

fn parse<Form: DeserializeOwned>(json: &[u8]) -> Result<Form, HeartbeatProblem> {
    if json.len() > MAX_BYTES {
        return Err(HeartbeatProblem::Large(json.len()));
    }
    let wrong = |error: serde_json::Error| HeartbeatProblem::Json(error.to_string());
    let Versioned { version } = serde_json::from_slice(json).map_err(wrong)?;
    if version != VERSION {
        return Err(HeartbeatProblem::Version(version));
    }
    serde_json::from_slice(json).map_err(wrong)
}

impl TryFrom<HeartbeatForm> for Heartbeat {
    type Error = HeartbeatProblem;

    fn try_from(form: HeartbeatForm) -> Result<Self, HeartbeatProblem> {
        if form.version != VERSION {
            return Err(HeartbeatProblem::Version(form.version));
        }
        let step = count("step", form.step)?;
        let reached = |field, value: Option<u64>| {
            let past = value.filter(|value| *value > step);
            past.map_or(Ok(value), |value| {
                Err(wrong(field, format!("is {value}, after step {step}, which ended last")))
            })
        };
        let total_steps = optional("totalSteps", form.total_steps, count)?;
        if let Some(total) = total_steps.filter(|total| *total < step) {
            return Err(wrong("totalSteps", format!("is {total}, and step {step} has ended")));
        }
        let at = moment("at", form.at)?;
        let started_at = optional("startedAt", form.started_at, moment)?;
        if started_at.is_some_and(|started| started > at) {
            return Err(wrong("startedAt", "is after `at`"));
        }
        Ok(Self {
            step,
            total_steps,
            saved_step: reached("savedStep", form.saved_step)?,
            restored_step: reached("restoredStep", form.restored_step)?.unwrap_or(0),
            step_time: optional("stepSeconds", form.step_seconds, duration)?,
            save_time: optional("saveSeconds", form.save_seconds, duration)?,
            restore_time: optional("restoreSeconds", form.restore_seconds, duration)?,
            tokens: optional("tokens", form.tokens, count)?,
            started_at,
            at,
            attempt: optional("attempt", form.attempt, attempt)?,
            save_every: optional("saveEverySeconds", form.save_every_seconds, duration)?,
            instructions_number: optional("instructionsNumber", form.instructions_number, count)?,
            attempt_count: optional("attemptCount", form.attempt_count, count)?,
            repeated_steps: optional("repeatedSteps", form.repeated_steps, count)?,
        })
    }
}

impl From<&Heartbeat> for HeartbeatForm {
    fn from(heartbeat: &Heartbeat) -> Self {
        Self {
            version: VERSION,
            step: heartbeat.step,
            total_steps: heartbeat.total_steps,
            saved_step: heartbeat.saved_step,
            restored_step: Some(heartbeat.restored_step),
            step_seconds: heartbeat.step_time.map(Micros::as_seconds),
            save_seconds: heartbeat.save_time.map(Micros::as_seconds),
            restore_seconds: heartbeat.restore_time.map(Micros::as_seconds),
            tokens: heartbeat.tokens,
            started_at: heartbeat.started_at.map(|at| at.to_string()),
            at: heartbeat.at.to_string(),
            attempt: heartbeat.attempt.clone(),
            save_every_seconds: heartbeat.save_every.map(Micros::as_seconds),
            instructions_number: heartbeat.instructions_number,
            attempt_count: heartbeat.attempt_count,
            repeated_steps: heartbeat.repeated_steps,
        }
    }
}

impl TryFrom<InstructionsForm> for HeartbeatInstructions {
    type Error = HeartbeatProblem;

    fn try_from(form: InstructionsForm) -> Result<Self, HeartbeatProblem> {
        if form.version != VERSION {
            return Err(HeartbeatProblem::Version(form.version));
        }
        let save_every = optional("saveEverySeconds", form.save_every_seconds, duration)?;
        if save_every.is_some_and(|every| every < MIN_SAVE_EVERY) {
            return Err(wrong("saveEverySeconds", "is below 1"));
        }
        Ok(Self { number: count("number", form.number)?, save_every, save_now: form.save_now })
    }
}

impl From<&HeartbeatInstructions> for InstructionsForm {
    fn from(instructions: &HeartbeatInstructions) -> Self {
        Self {
            version: VERSION,
            number: instructions.number,
            save_every_seconds: instructions.save_every.map(Micros::as_seconds),
            save_now: instructions.save_now,
        }
    }
}

type Check<In, Out> = fn(&'static str, In) -> Result<Out, HeartbeatProblem>;

fn optional<In, Out>(
    field: &'static str,
    value: Option<In>,
    check: Check<In, Out>,
) -> Result<Option<Out>, HeartbeatProblem> {
    value.map(|value| check(field, value)).transpose()
}

fn count(field: &'static str, value: u64) -> Result<u64, HeartbeatProblem> {
    if value > MAX_COUNT {
        return Err(wrong(field, format!("is {value}, more than {MAX_COUNT}")));
    }
    Ok(value)
}

fn duration(field: &'static str, seconds: f64) -> Result<Micros, HeartbeatProblem> {
    let most = MAX_DURATION.as_seconds();
    // Not a number is not in it either.
    if !(0.0..=most).contains(&seconds) {
        return Err(wrong(field, format!("is {seconds}; it must be between 0 and {most} seconds")));
    }
    Ok(Micros::new((seconds * 1e6).round() as u64))
}

fn moment(field: &'static str, text: String) -> Result<Timestamp, HeartbeatProblem> {
    let micros = text.parse::<jiff::Timestamp>().ok().map(|at| at.as_microsecond());
    let since_the_epoch = micros.and_then(|micros| u64::try_from(micros).ok());
    let what = "is not a time in RFC 3339, such as 2026-11-15T14:02:10Z";
    since_the_epoch.map(Timestamp::from_micros).ok_or_else(|| wrong(field, what))
}

fn attempt(field: &'static str, text: String) -> Result<String, HeartbeatProblem> {
    // It goes into statuses and logs, so nothing that a terminal or a page would obey.
    let sound = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if text.is_empty() || text.len() > ATTEMPT_CHARS || !text.chars().all(sound) {
        let what = format!("must have 1 to {ATTEMPT_CHARS} letters, digits or `-_.:/`");
        return Err(wrong(field, what));
    }
    Ok(text)
}

fn wrong(field: &'static str, what: impl Into<String>) -> HeartbeatProblem {
    HeartbeatProblem::Field { field, what: what.into() }
}
