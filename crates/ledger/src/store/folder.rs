//! A folder as a store: for one machine, or for a file system that all machines have.

use super::{ObjectStoreError, PutOutcome, Store, StoredObject};
use bytes::Bytes;
use flyball_core::units::Timestamp;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::UNIX_EPOCH;

/// A folder. Its calls wait for the disk, so they belong on a thread that may wait.
#[derive(Debug)]
pub struct FolderStore {
    root: PathBuf,
    /// Of this store, so that two never write to one name, on whatever machines they are.
    name: u64,
    count: AtomicU64,
}

/// What a name ends with as long as its object is not whole.
const PARTIAL: &str = ".partial";

impl FolderStore {
    /// This folder, which is made if it is not there.
    pub fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        fs::create_dir_all(&root)?;
        Ok(Self { root, name: RandomState::new().hash_one(0), count: AtomicU64::new(0) })
    }

    /// Writes an object beside its place, whole and on the disk.
    fn write(&self, place: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
        let folder = place.parent().ok_or(ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        let count = self.count.fetch_add(1, Relaxed);
        let name = place.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy();
        // Hidden, so that no reader of the folder takes it for a file of the table.
        let partial = folder.join(format!(".{name}.{:016x}.{count}{PARTIAL}", self.name));
        let written = File::create_new(&partial).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        if let Err(error) = written {
            // A left one is hidden and harmless.
            let _ = fs::remove_file(&partial);
            return Err(error);
        }
        Ok(partial)
    }

    fn put_new_now(&self, path: &str, bytes: &[u8]) -> io::Result<PutOutcome> {
        let place = self.root.join(path);
        if place.exists() {
            return Ok(PutOutcome::Exists);
        }
        let partial = self.write(&place, bytes)?;
        // A rename would replace what is there; a second name for the file is refused if the name is taken.
        let linked = fs::hard_link(&partial, &place);
        let _ = fs::remove_file(&partial);
        match linked {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(PutOutcome::Exists),
            Err(error) => Err(error),
            Ok(()) => sync_folder(&place).map(|()| PutOutcome::Created),
        }
    }

    fn put_now(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let place = self.root.join(path);
        let partial = self.write(&place, bytes)?;
        fs::rename(&partial, &place)?;
        sync_folder(&place)
    }

    fn get_now(&self, path: &str) -> io::Result<Option<Bytes>> {
        match fs::read(self.root.join(path)) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list_now(&self, prefix: &str) -> io::Result<Vec<StoredObject>> {
        let mut found = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let path = entry.path();
                let Some(name) = path.strip_prefix(&self.root).ok().and_then(Path::to_str) else {
                    continue;
                };
                let hidden = entry.file_name().to_string_lossy().starts_with('.');
                if hidden {
                    continue;
                } else if entry.file_type()?.is_dir() {
                    // Only folders that may have such a name in them.
                    let inside = format!("{name}/");
                    if inside.starts_with(prefix) || prefix.starts_with(&inside) {
                        folders.push(path);
                    }
                } else if name.starts_with(prefix) {
                    found.extend(object(name, &entry)?);
                }
            }
        }
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn delete_now(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.root.join(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// One that was taken away since it was listed is not there.
fn object(name: &str, entry: &fs::DirEntry) -> io::Result<Option<StoredObject>> {
    let facts = match entry.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        facts => facts?,
    };
    let since = facts.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified = Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    Ok(Some(StoredObject { path: name.to_owned(), size: facts.len(), modified }))
}

fn sync_folder(place: &Path) -> io::Result<()> {
    place.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn error(path: &str, error: &io::Error) -> ObjectStoreError {
    let (path, why) = (path.to_owned(), error.to_string());
    match error.kind() {
        ErrorKind::PermissionDenied
        | ErrorKind::StorageFull
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::Unsupported => ObjectStoreError::Refused { path, why },
        _ => ObjectStoreError::NoAnswer { path, why },
    }
}

impl Store for FolderStore {
    async fn put_new(&self, path: &str, bytes: Bytes) -> Result<PutOutcome, ObjectStoreError> {
        self.put_new_now(path, &bytes).map_err(|why| error(path, &why))
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), ObjectStoreError> {
        self.put_now(path, &bytes).map_err(|why| error(path, &why))
    }

    async fn get(&self, path: &str) -> Result<Option<Bytes>, ObjectStoreError> {
        self.get_now(path).map_err(|why| error(path, &why))
    }

    async fn list(&self, prefix: &str) -> Result<Vec<StoredObject>, ObjectStoreError> {
        self.list_now(prefix).map_err(|why| error(prefix, &why))
    }

    async fn delete(&self, path: &str) -> Result<(), ObjectStoreError> {
        self.delete_now(path).map_err(|why| error(path, &why))
    }
}
