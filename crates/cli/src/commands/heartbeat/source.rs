//! What the run wrote, if that can be believed.

use std::path::PathBuf;

use flyball_core::units::{Micros, Timestamp};
use flyball_resources::heartbeat::{Heartbeat, MAX_BYTES};

use super::files;
use super::log::{self, LogPattern};

/// Where the run writes.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// One heartbeat, replaced by each new one.
    File(PathBuf),
    /// Lines, of which the last ones count.
    Log(PathBuf, Option<LogPattern>),
}

impl Source {
    /// The last heartbeat, or why there is none to believe.
    pub(super) fn read(&self, now: Timestamp, max_age: Micros) -> Result<Heartbeat, String> {
        let heartbeat = match self {
            Self::File(path) => {
                let bytes = files::whole(path, MAX_BYTES)?;
                Heartbeat::read(&bytes)
                    .map_err(|problem| format!("the file is refused: {problem}"))?
            }
            Self::Log(path, pattern) => log::last(path, pattern.as_ref())?,
        };
        let at = heartbeat.at;
        match (now.since(at), at.since(now)) {
            (Some(age), _) if age > max_age => {
                Err(format!("the last heartbeat is {age} old, of step {}", heartbeat.step))
            }
            (_, Some(ahead)) if ahead > max_age => {
                Err(format!("the heartbeat's clock is {ahead} ahead of this machine's"))
            }
            _ => Ok(heartbeat),
        }
    }
}
