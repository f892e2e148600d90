//! The last list of Tenants on disk, for a gateway that starts while the API server is unreachable.
//!
//! A list that lacks the newest revocation lets in whom somebody has thrown out. So it is written whole or not at
//! all, and one that cannot be written is removed. Its time of change says when the API server stood behind it
//! last. What is cut off, changed, written by another version or writable by everybody is not read.

use super::reading::{TenantReading, TenantReadings, Unusable};
use flyball_resources::resolve::TenantId;
use flyball_resources::tenant::TenantSpec;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Bytes of the file. A key takes about 200: this is three times 10^5 keys.
const BYTES: usize = 64 << 20;

/// How the file begins; the number is that of its form.
const BEGIN: &str = "flyball-tenants 1 ";

/// A clock may be set back a little between two processes.
const SKEW: Duration = Duration::from_secs(300);

/// Who may read and write the file, and who must not. A group may: Kubernetes gives it to the group of the pod's volumes.
const OWNER: u32 = 0o600;
const OTHERS_WRITE: u32 = 0o002;

/// A list that was read.
#[derive(Debug)]
pub(crate) struct StoredTenants {
    pub(crate) readings: TenantReadings,
    /// Since the API server stood behind it; `None` if its time is in the future.
    pub(crate) age: Option<Duration>,
}

/// Why a list cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TenantFileError {
    /// The file system says so.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is larger than any that was written.
    #[error("it has more than {BYTES} bytes")]
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

/// A Tenant as the file has it.
#[derive(Serialize, Deserialize)]
struct StoredTenant {
    namespace: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unusable: Option<Unusable>,
    spec: TenantSpec,
}

/// Reads the list; `None` if there is no file.
pub(crate) fn load(path: &Path, now: SystemTime) -> Result<Option<StoredTenants>, TenantFileError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let about = file.metadata()?;
    if about.permissions().mode() & OTHERS_WRITE != 0 {
        return Err(TenantFileError::Permissions);
    }
    let mut bytes = Vec::new();
    file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let readings = read(&bytes)?;
    Ok(Some(StoredTenants { readings, age: age(about.modified()?, now) }))
}

/// Writes the list, which the API server stood behind at this time. If that is not possible, no file is left: an old
/// one would let in who was let in by it.
pub(crate) fn save(
    path: &Path,
    readings: &TenantReadings,
    confirmed: SystemTime,
) -> Result<(), TenantFileError> {
    let saved = write(readings).and_then(|bytes| replace(path, &bytes, confirmed));
    if saved.is_err() {
        remove(path)?;
    }
    saved
}

/// The API server stood behind the list at this time too.
pub(crate) fn confirm(path: &Path, confirmed: SystemTime) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.set_modified(confirmed)
}

fn age(modified: SystemTime, now: SystemTime) -> Option<Duration> {
    match now.duration_since(modified) {
        Ok(age) => Some(age),
        Err(ahead) if ahead.duration() <= SKEW => Some(Duration::ZERO),
        Err(_) => None,
    }
}

fn write(readings: &TenantReadings) -> Result<Vec<u8>, TenantFileError> {
    let stored = |reading: &TenantReading| {
        let TenantId { namespace, name } = TenantId::of(&reading.tenant);
        let spec = reading.tenant.spec.clone();
        StoredTenant { namespace, name, unusable: reading.unusable, spec }
    };
    let all: Vec<StoredTenant> = readings.values().map(stored).collect();
    let body = serde_json::to_vec(&all).map_err(io::Error::from)?;
    let mut bytes = format!("{BEGIN}{}\n", digest(&body)).into_bytes();
    bytes.extend(body);
    if bytes.len() > BYTES { Err(TenantFileError::Long) } else { Ok(bytes) }
}

fn read(bytes: &[u8]) -> Result<TenantReadings, TenantFileError> {
    if bytes.len() > BYTES {
        return Err(TenantFileError::Long);
    }
    let Some(rest) = bytes.strip_prefix(BEGIN.as_bytes()) else {
        let ours = BEGIN.rsplit_once(' ').map_or(BEGIN, |(word, _)| word);
        let word = ours.rsplit_once(' ').map_or(ours, |(word, _)| word);
        let other = bytes.starts_with(word.as_bytes());
        return Err(if other { TenantFileError::Version } else { TenantFileError::Damaged });
    };
    let end = memchr::memchr(b'\n', rest).ok_or(TenantFileError::Damaged)?;
    let (sum, body) = (&rest[..end], &rest[end + 1..]);
    if sum != digest(body).as_bytes() {
        return Err(TenantFileError::Damaged);
    }
    let all: Vec<StoredTenant> =
        serde_json::from_slice(body).map_err(|_| TenantFileError::Damaged)?;
    let reading = |stored: StoredTenant| {
        let StoredTenant { namespace, name, unusable, spec } = stored;
        let id = TenantId { namespace, name };
        (id.to_string(), TenantReading::new(&id, spec, unusable))
    };
    Ok(all.into_iter().map(reading).collect())
}

fn digest(body: &[u8]) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Puts another file in its place, so that whoever reads sees all of the one or all of the other.
fn replace(path: &Path, bytes: &[u8], confirmed: SystemTime) -> Result<(), TenantFileError> {
    let beside = beside(path);
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

/// What a process that died here has left is written over.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read as readings_of;
    use super::*;
    use serde_json::{Value, json};

    fn tenant(name: &str) -> Value {
        json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
            "metadata": { "namespace": "ml", "name": name, "annotations": { "note": "canary" } },
            "spec": { "models": ["*"], "keys": [
                { "name": "a", "id": "0123456789", "sha256": "0f".repeat(32) },
            ] },
        })
    }

    fn some() -> TenantReadings {
        let mut later = tenant("later");
        later["spec"]["weight"] = json!("canary");
        readings_of(&[tenant("one"), later])
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_written_is_read_with_its_age_and_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenants");
        assert!(load(&path, at(0)).unwrap().is_none());
        save(&path, &some(), at(1_000)).unwrap();
        let stored = load(&path, at(1_060)).unwrap().unwrap();
        assert_eq!((stored.readings, stored.age), (some(), Some(Duration::from_secs(60))));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, OWNER);
        assert!(!fs::read_to_string(&path).unwrap().contains("canary"));
        confirm(&path, at(2_000)).unwrap();
        let age = |now| load(&path, at(now)).unwrap().unwrap().age;
        assert_eq!(age(2_001), Some(Duration::from_secs(1)));
        // A clock that was set back: a little, and so much that nobody knows.
        assert_eq!((age(1_990), age(1_000)), (Some(Duration::ZERO), None));
        // What a process that died while it wrote has left.
        fs::write(folder.path().join("tenants.new"), "half").unwrap();
        save(&path, &TenantReadings::new(), at(3_000)).unwrap();
        assert!(load(&path, at(3_000)).unwrap().unwrap().readings.is_empty());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_cut_off_or_changed_anywhere_is_not_read() {
        let whole = write(&some()).unwrap();
        assert_eq!(read(&whole).unwrap(), some());
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            assert!(read(&changed).is_err(), "{place}");
        }
        assert!(read(&[&whole[..], b" "].concat()).is_err());
    }

    #[test]
    fn a_file_of_another_version_says_so() {
        let whole = String::from_utf8(write(&some()).unwrap()).unwrap();
        for version in ["flyball-tenants 2 ", "flyball-tenants 10 ", "flyball-tenants next "] {
            let other = whole.replacen(BEGIN, version, 1);
            let error = read(other.as_bytes()).unwrap_err();
            assert!(matches!(error, TenantFileError::Version), "{version}: {error}");
        }
        assert!(matches!(read(b"other"), Err(TenantFileError::Damaged)));
        assert!(matches!(read(&vec![b'x'; BYTES + 1]), Err(TenantFileError::Long)));
    }

    #[test]
    fn a_file_that_everybody_may_write_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenants");
        save(&path, &some(), at(1)).unwrap();
        let loaded = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            load(&path, at(2))
        };
        assert!(loaded(0o660).unwrap().is_some(), "as the group of a volume has it");
        for mode in [0o602, 0o666] {
            assert!(matches!(loaded(mode), Err(TenantFileError::Permissions)), "{mode:o}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_written_leaves_no_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenants");
        save(&path, &some(), at(1)).unwrap();
        // A folder where the new file should be cannot be written over.
        fs::create_dir(folder.path().join("tenants.new")).unwrap();
        assert!(save(&path, &TenantReadings::new(), at(2)).is_err());
        assert!(load(&path, at(3)).unwrap().is_none());
    }
}
