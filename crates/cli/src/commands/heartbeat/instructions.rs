//! What is asked of the run, in a file beside its own.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flyball_resources::heartbeat::{HeartbeatInstructions, MAX_BYTES};

use super::files::whole;

/// What came of instructions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The run will find them.
    Yes,
    /// Newer ones were written before: their number.
    Older(u64),
    /// They cannot be written: why.
    No(String),
}

/// Where they are, by the run's own file.
pub(super) fn beside(file: &Path) -> PathBuf {
    with_end(file, ".instructions")
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Replaces those that are there, unless they are newer.
pub(super) fn write(path: &Path, asked: &HeartbeatInstructions) -> Written {
    // What cannot be understood was not written by an agent, and nothing is lost with it.
    let last =
        whole(path, MAX_BYTES).ok().and_then(|bytes| HeartbeatInstructions::read(&bytes).ok());
    match last {
        Some(last) if last.number > asked.number => Written::Older(last.number),
        _ => replace(path, &asked.write()).map_or_else(
            |error| Written::No(format!("{}: {error}", path.display())),
            |()| Written::Yes,
        ),
    }
}

/// Whoever reads sees the old text or the new one. A link in the place of either file is replaced and not followed.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let fresh = with_end(path, ".tmp");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&fresh, path)
}
