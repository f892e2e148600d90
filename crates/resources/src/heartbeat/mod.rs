//! The heartbeat of a training run, version 1: how far it is, and what Flyball asks of it.
//!
//! The page `docs/reference/heartbeat.md` has the contract. Runs are other people's programs, so nothing that they say is
//! believed as it comes: [`Heartbeat::read`] bounds and checks it and turns it into units, and refuses the whole where one
//! field makes no sense. What is absent is unknown. [`Heartbeat::write`] is the way back, for whoever passes one on.

mod form;
mod read;
#[cfg(test)]
mod tests;

pub use form::{HeartbeatForm, InstructionsForm};
pub use read::HeartbeatProblem;

use flyball_core::units::{Micros, Timestamp};

/// The version of both forms.
pub const VERSION: u32 = 1;

/// Where the process of rank 0, or the agent beside it, answers.
pub const PORT: u16 = 9471;

/// Where it tells how far it is: `GET`.
pub const HEARTBEAT_PATH: &str = "/heartbeat";

/// Where it is told what is asked of it: `PUT`.
pub const INSTRUCTIONS_PATH: &str = "/instructions";

/// What stands before the JSON in a line of a log. Launchers may put more before it.
pub const LOG_PREFIX: &str = "flyball-heartbeat ";

/// Bytes of a heartbeat or of instructions. A full one has about 400.
pub const MAX_BYTES: usize = 16 << 10;

/// No step and no count of tokens is above this: what every reader of JSON holds exactly.
pub const MAX_COUNT: u64 = (1 << 53) - 1;

/// No duration is above this. A step, a save or a restore of a week is a mistake.
pub const MAX_DURATION: Micros = Micros::from_minutes(7 * 24 * 60);

/// The shortest interval that may be asked for.
pub const MIN_SAVE_EVERY: Micros = Micros::from_seconds(1);

/// How far a run is, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The last step that ended; 0 if none has.
    pub step: u64,
    /// Steps of the whole run.
    pub total_steps: Option<u64>,
    /// The step of the last checkpoint that is complete.
    pub saved_step: Option<u64>,
    /// The step that this attempt went on from; 0 if from nothing.
    pub restored_step: u64,
    /// One step, smoothed, without saves.
    pub step_time: Option<Micros>,
    /// How long the last save held up training.
    pub save_time: Option<Micros>,
    /// From the start of the process to the first new step after a restore.
    pub restore_time: Option<Micros>,
    /// Tokens trained on so far.
    pub tokens: Option<u64>,
    /// When this attempt started.
    pub started_at: Option<Timestamp>,
    /// When the run last said something: a step, a save or a restore.
    pub at: Timestamp,
    /// Which attempt this is: another one at each start of the process.
    pub attempt: Option<String>,
    /// How often it saves now.
    pub save_every: Option<Micros>,
    /// The number of the instructions that it follows.
    pub instructions_number: Option<u64>,
    /// Starts of the run, this one included, where the run counts them.
    pub attempt_count: Option<u64>,
    /// Steps that were made again since the first start, where the run counts them.
    pub repeated_steps: Option<u64>,
}

impl Heartbeat {
    /// The step that a restart would go on from, as far as is known.
    pub fn resumes_at(&self) -> u64 {
        self.saved_step.unwrap_or(0).max(self.restored_step)
    }

    /// Steps that a restart now would do again.
    pub fn steps_at_risk(&self) -> u64 {
        self.step.saturating_sub(self.resumes_at())
    }
}

/// What Flyball asks of a run. The run may ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatInstructions {
    /// Later instructions have a larger number.
    pub number: u64,
    /// How often to save; absent: as the run was set up.
    pub save_every: Option<Micros>,
    /// Whether to save at the next step, once for this number.
    pub save_now: bool,
}
