//! The JSON forms. Fields that are not known are ignored, so that later versions of writers can say more.

use serde::{Deserialize, Serialize};

/// A heartbeat as it is sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatForm {
    /// Version of the form: 1.
    pub version: u32,
    /// Last step that ended.
    pub step: u64,
    /// Steps of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// Step of the last complete checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_step: Option<u64>,
    /// Step that this attempt went on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_step: Option<u64>,
    /// Seconds per step, smoothed, without saves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_seconds: Option<f64>,
    /// Seconds that the last save held up training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save_seconds: Option<f64>,
    /// Seconds from the start of the process to the first new step after a restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_seconds: Option<f64>,
    /// Tokens trained on so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Start of this attempt, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Last report of the run, RFC 3339.
    pub at: String,
    /// Unique per start of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    /// Save interval in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save_every_seconds: Option<f64>,
    /// Number of the instructions in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_number: Option<u64>,
    /// Starts of the run, this one included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_count: Option<u64>,
    /// Steps that were made again since the first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated_steps: Option<u64>,
}

/// Instructions as they are sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstructionsForm {
    /// Version of the form: 1.
    pub version: u32,
    /// Later instructions have a larger number.
    pub number: u64,
    /// Save interval; absent: the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save_every_seconds: Option<f64>,
    /// Save at the next step, once per number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub save_now: bool,
}
