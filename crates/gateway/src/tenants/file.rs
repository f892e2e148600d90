//! The last list of Tenants on disk, for a gateway that starts while the API server is unreachable.
//!
//! A list that lacks the newest revocation lets in whom somebody has thrown out. So it is written whole or not at
//! all, and one that cannot be written is removed. Its time of change says when the API server stood behind it
//! last. What is cut off, changed, written by another version or writable by everybody is not read.

use super::guarded::{TenantFileError, framed, read_guarded, replace_or_remove, unframed};
use super::reading::{TenantReading, TenantReadings, Unusable};
use flyball_resources::resolve::TenantId;
use flyball_resources::tenant::TenantSpec;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Bytes of the file. A key takes about 200: this is three times 10^5 keys.
const BYTES: usize = 64 << 20;

/// How the file begins; the number is that of its form.
const BEGIN: &str = "flyball-tenants 1 ";

/// A clock may be set back a little between two processes.
const SKEW: Duration = Duration::from_secs(300);

/// A list that was read.
#[derive(Debug)]
pub(crate) struct StoredTenants {
    pub(crate) readings: TenantReadings,
    /// Since the API server stood behind it; `None` if its time is in the future.
    pub(crate) age: Option<Duration>,
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
    let Some((bytes, modified)) = read_guarded(path, BYTES)? else { return Ok(None) };
    Ok(Some(StoredTenants { readings: read(&bytes)?, age: age(modified, now) }))
}

/// Writes the list, which the API server stood behind at this time. If that is not possible, no file is left: an old
/// one would let in who was let in by it.
pub(crate) fn save(
    path: &Path,
    readings: &TenantReadings,
    confirmed: SystemTime,
) -> Result<(), TenantFileError> {
    replace_or_remove(path, write(readings), confirmed)
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
    let bytes = framed(BEGIN, &body);
    if bytes.len() > BYTES { Err(TenantFileError::Long) } else { Ok(bytes) }
}

fn read(bytes: &[u8]) -> Result<TenantReadings, TenantFileError> {
    if bytes.len() > BYTES {
        return Err(TenantFileError::Long);
    }
    let all: Vec<StoredTenant> =
        serde_json::from_slice(unframed(BEGIN, bytes)?).map_err(|_| TenantFileError::Damaged)?;
    let reading = |stored: StoredTenant| {
        let StoredTenant { namespace, name, unusable, spec } = stored;
        let id = TenantId { namespace, name };
        (id.to_string(), TenantReading::new(&id, spec, unusable))
    };
    Ok(all.into_iter().map(reading).collect())
}

#[cfg(test)]
mod tests {
    use super::super::guarded::OWNER;
    use super::super::tests::read as readings_of;
    use super::*;
    use serde_json::{Value, json};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

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
