//! The last key sets on disk, beside the list of Tenants, for a gateway that starts while an issuer is unreachable.
//!
//! Keys are public, but whoever writes this file says whose tokens are good. So it has the form, the rights and the
//! hash of the list of Tenants, and a set is good for as long after it was fetched as one in memory.

use super::sources::StoredKeySet;
use crate::tenants::guarded::{
    self, TenantFileError, framed, read_guarded, replace_or_remove, unframed,
};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes of the file: all sets that settings can name, each as long as is read, with every byte escaped.
const BYTES: usize = 5 << 20;

/// How the file begins; the number is that of its form.
const BEGIN: &str = "flyball-key-sets 1 ";

/// Where it is, beside the list of Tenants.
pub(crate) fn beside(list: &Path) -> PathBuf {
    guarded::beside(list, ".key-sets")
}

/// Reads what there is; nothing if there is no file.
pub(crate) fn load(path: &Path) -> Result<Vec<StoredKeySet>, TenantFileError> {
    let Some((bytes, _)) = read_guarded(path, BYTES)? else { return Ok(Vec::new()) };
    serde_json::from_slice(unframed(BEGIN, &bytes)?).map_err(|_| TenantFileError::Damaged)
}

/// Writes all of it, or leaves no file.
pub(crate) fn save(path: &Path, sets: &[StoredKeySet]) -> Result<(), TenantFileError> {
    let body = serde_json::to_vec(sets).map_err(io::Error::from)?;
    let bytes = framed(BEGIN, &body);
    let bytes = if bytes.len() > BYTES { Err(TenantFileError::Long) } else { Ok(bytes) };
    replace_or_remove(path, bytes, SystemTime::now())
}
