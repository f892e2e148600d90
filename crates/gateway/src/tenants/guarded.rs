//! Files that say who is let in: written whole or not at all, with a hash over all of it, and read only if nobody else may
//! have written them.

use sha2::{Digest as _, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Who may read and write the file, and who must not. A group may: Kubernetes gives it to the group of the pod's volumes.
pub(super) const OWNER: u32 = 0o600;
const OTHERS_WRITE: u32 = 0o002;

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TenantFileError {
    /// The file system says so.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is larger than any that was written.
    #[error("it is too long")]
    Long,
    /// It is of another form.
    #[error("another version wrote it")]
    Version,
    /// Something of it is missing or other than it was.
    #[error("it is damaged")]
    Damaged,
    /// Somebody else may have written it.
    #[error("everybody may write it; hint: chmod 600")]
    Permissions,
}

/// The bytes of a file that only we and our group may write, and its time of change; `None` if there is no file.
pub(crate) fn read_guarded(
    path: &Path,
    most: usize,
) -> Result<Option<(Vec<u8>, SystemTime)>, TenantFileError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let about = file.metadata()?;
    if about.permissions().mode() & OTHERS_WRITE != 0 {
        return Err(TenantFileError::Permissions);
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(TenantFileError::Long);
    }
    Ok(Some((bytes, about.modified()?)))
}

/// Puts a file in its place, or leaves none.
pub(crate) fn replace_or_remove(
    path: &Path,
    bytes: Result<Vec<u8>, TenantFileError>,
    confirmed: SystemTime,
) -> Result<(), TenantFileError> {
    let saved = bytes.and_then(|bytes| replace(path, &bytes, confirmed));
    if saved.is_err() {
        remove(path)?;
    }
    saved
}

/// A body behind its first line, which has its form and its hash.
pub(crate) fn framed(begin: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{begin}{}\n", digest(body)).into_bytes();
    bytes.extend(body);
    bytes
}

/// The body, if it is of this form and nothing of it is missing or other than it was.
pub(crate) fn unframed<'a>(begin: &str, bytes: &'a [u8]) -> Result<&'a [u8], TenantFileError> {
    let Some(rest) = bytes.strip_prefix(begin.as_bytes()) else {
        let ours = begin.rsplit_once(' ').map_or(begin, |(word, _)| word);
        let word = ours.rsplit_once(' ').map_or(ours, |(word, _)| word);
        let other = bytes.starts_with(word.as_bytes());
        return Err(if other { TenantFileError::Version } else { TenantFileError::Damaged });
    };
    let end = memchr::memchr(b'\n', rest).ok_or(TenantFileError::Damaged)?;
    let (sum, body) = (&rest[..end], &rest[end + 1..]);
    if sum == digest(body).as_bytes() { Ok(body) } else { Err(TenantFileError::Damaged) }
}

fn digest(body: &[u8]) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Puts another file in its place, so that whoever reads sees all of the one or all of the other.
fn replace(path: &Path, bytes: &[u8], confirmed: SystemTime) -> Result<(), TenantFileError> {
    let beside = beside(path, ".new");
    remove(&beside)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(OWNER).open(&beside)?;
    file.write_all(bytes)?;
    file.set_modified(confirmed)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    // The name is in the folder, which is written by itself.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(())
}

/// The file of this name with something behind it, in the same folder.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
