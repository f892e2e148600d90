//! How a run tells how far it is; the form itself is in [`crate::heartbeat`].

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run reports progress, and what is assumed until it does.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.logPrefix == 'flyball-heartbeat ' || self.heartbeat == 'Log'")
        .message("`logPrefix` has an effect only if `heartbeat` is Log"),
    validation = Rule::new("!has(self.logPatterns) || self.heartbeat == 'Log'")
        .message("`logPatterns` has an effect only if `heartbeat` is Log")
)]
pub struct CheckpointSpec {
    /// Where heartbeats come from.
    #[serde(default)]
    pub heartbeat: HeartbeatSource,
    /// Port at which the pod of rank 0 answers `GET /heartbeat`.
    #[serde(default = "port")]
    #[schemars(range(min = 1_024, max = 65_535))]
    pub port: i32,
    /// Start of the log lines that are heartbeats; a JSON object follows it.
    #[serde(default = "prefix")]
    #[schemars(length(min = 1, max = 128))]
    pub log_prefix: String,
    /// Regular expressions for a run that writes lines of its own. A line with the prefix counts more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_patterns: Option<LogPatternsSpec>,
    /// Assumed seconds that a save holds up training, until a heartbeat has measured one.
    #[serde(default = "save")]
    #[schemars(range(min = 0, max = 86_400))]
    pub save_seconds: i32,
    /// Assumed seconds between saves, for runs that do not report them.
    #[serde(default = "interval")]
    #[schemars(range(min = 1, max = 604_800))]
    pub interval_seconds: i32,
    /// Assumed seconds from a request for machines to the first new step, until a restart was measured.
    #[serde(default = "restart")]
    #[schemars(range(min = 0, max = 86_400))]
    pub restart_seconds: i32,
}

/// Lines of a log that say how far a run is, as regular expressions in the syntax of RE2. Numbers may have commas.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.step.contains('(?P<step>') || self.step.contains('(?<step>')")
        .message("`step` must have a named group `step`, such as (?P<step>[0-9]+)")
)]
pub struct LogPatternsSpec {
    /// A line about a step, with the named group `step` and, if the line has them, `total` (steps of the whole run),
    /// `seconds` (of one step), `tokens` (so far) and `saved` (the last saved step). Example:
    /// `step (?P<step>[0-9,]+)/(?P<total>[0-9,]+)`.
    #[schemars(length(min = 1, max = 512))]
    pub step: String,
    /// A line about a complete checkpoint, with the named group `saved` (its step) and, if the line has it, `seconds` (that the
    /// save held up training). Without the group, the last step before the line was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub saved: Option<String>,
}

/// Where heartbeats come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HeartbeatSource {
    /// The pod of rank 0 answers `GET /heartbeat`.
    #[default]
    Http,
    /// The log of the pod of rank 0 has lines with a prefix.
    Log,
    /// The run reports nothing.
    None,
}

impl HeartbeatSource {
    /// The name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "Http",
            Self::Log => "Log",
            Self::None => "None",
        }
    }
}

impl Default for CheckpointSpec {
    fn default() -> Self {
        Self {
            heartbeat: HeartbeatSource::default(),
            port: port(),
            log_prefix: prefix(),
            log_patterns: None,
            save_seconds: save(),
            interval_seconds: interval(),
            restart_seconds: restart(),
        }
    }
}

const fn port() -> i32 {
    9_471
}

fn prefix() -> String {
    "flyball-heartbeat ".to_owned()
}

/// A large model's state on a shared file system, written by all nodes at once.
const fn save() -> i32 {
    60
}

/// What frameworks' examples do: often enough that nobody loses a morning.
const fn interval() -> i32 {
    1_800
}

/// A machine, an image of some gigabytes, and loading a checkpoint.
const fn restart() -> i32 {
    600
}
