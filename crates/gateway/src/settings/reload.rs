//! Takes in a changed file while the gateway runs, or refuses it and keeps the last good one.

use std::time::{SystemTime, UNIX_EPOCH};

/// What became of the last change of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Reload {
    /// Whether the file as it is now is in use.
    pub successful: bool,
    /// When the settings in use were taken in.
    pub good_since: SystemTime,
    /// When the file was last looked into because it had changed.
    pub tried: SystemTime,
    /// What is wrong with the file.
    pub problems: Vec<String>,
    /// What the file changes that this process cannot change while it runs.
    pub needs_restart: Vec<&'static str>,
}

impl Reload {
    /// Settings were taken in at this time.
    pub const fn good(at: SystemTime) -> Self {
        Self {
            successful: true,
            good_since: at,
            tried: at,
            problems: Vec::new(),
            needs_restart: Vec::new(),
        }
    }

    /// [`Self::good_since`] in seconds since 1970.
    pub fn good_since_seconds(&self) -> f64 {
        self.good_since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}
