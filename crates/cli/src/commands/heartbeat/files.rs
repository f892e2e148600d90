//! Files in a folder that is the run's: bounded, regular, and never waited for.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use flyball_core::units::Timestamp;

/// The current time.
pub(super) fn now() -> Timestamp {
    moment(SystemTime::now())
}

/// A point in time of the system; the epoch for those before it.
pub(super) fn moment(at: SystemTime) -> Timestamp {
    let since = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    Timestamp::from_micros(u64::try_from(since).unwrap_or(u64::MAX))
}

/// A regular file of at most so many bytes.
pub(super) fn whole(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let (file, size) = open(path)?;
    if size > most as u64 {
        return Err(format!("{} has {size} bytes, more than {most}", path.display()));
    }
    // The size may have grown since.
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    if bytes.len() > most {
        return Err(format!("{} has more than {most} bytes", path.display()));
    }
    Ok(bytes)
}

/// The last so many bytes of a regular file, from the start of a line, and when it was written.
pub(super) fn tail(path: &Path, most: usize) -> Result<(Vec<u8>, SystemTime), String> {
    let problem = |error: io::Error| unreadable(path, &error);
    let (mut file, size) = open(path)?;
    let written = file.metadata().and_then(|metadata| metadata.modified()).map_err(problem)?;
    let skipped = size.saturating_sub(most as u64);
    file.seek(SeekFrom::Start(skipped)).map_err(problem)?;
    let mut bytes = Vec::new();
    file.take(most as u64).read_to_end(&mut bytes).map_err(problem)?;
    if skipped > 0 {
        let line = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.drain(..line);
    }
    Ok((bytes, written))
}

/// A file that is replaced all the time may be another one when it is opened. More often than this it is no chance.
const TRIES: usize = 4;

/// Opens a regular file and says its size. A link is not followed: the folder is the run's, and what this process may
/// read is not. A pipe is not opened: that would wait.
fn open(path: &Path) -> Result<(File, u64), String> {
    for _ in 0..TRIES {
        let seen = fs::symlink_metadata(path).map_err(|error| unreadable(path, &error))?;
        if seen.is_symlink() {
            return Err(format!("{} is a symbolic link", path.display()));
        }
        if !seen.is_file() {
            return Err(format!("{} is not a regular file", path.display()));
        }
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let opened = file.metadata().map_err(|error| unreadable(path, &error))?;
        if (opened.dev(), opened.ino()) == (seen.dev(), seen.ino()) {
            return Ok((file, opened.len()));
        }
    }
    Err(format!("{} changed while it was opened", path.display()))
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{} does not exist yet", path.display()),
        _ => format!("{} cannot be read: {error}", path.display()),
    }
}
