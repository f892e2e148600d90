//! What a journal needs of a disk, and a folder that has it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

/// A folder of files that grow. A clone is another hand on the same folder.
pub trait Disk {
    /// Makes an empty file. One that is there already is an error.
    fn create(&mut self, name: &str) -> io::Result<()>;

    /// Adds to the end of a file, so that the bytes survive the end of this process. After an error a part of them may be
    /// there.
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Cuts a file.
    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()>;

    /// What is in this file, and which files there are, survives the end of the machine.
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// What is in a file from there on; nothing of a file that is not there.
    fn read(&mut self, name: &str, from: u64) -> io::Result<Vec<u8>>;

    /// The names of all files, in order.
    fn list(&mut self) -> io::Result<Vec<String>>;

    /// Takes a file away. One that is not there is no error.
    fn remove(&mut self, name: &str) -> io::Result<()>;
}

/// A folder of this machine. No other process may have it meanwhile: to that one our files would be those of a process that
/// has ended.
#[derive(Debug)]
pub struct FolderDisk {
    folder: PathBuf,
    /// Locked as long as any hand on the folder is there, and free again when the process ends, however it ends.
    lock: Arc<File>,
    /// The file that was appended to last.
    open: Option<(String, File)>,
}

const LOCK: &str = "lock";

impl FolderDisk {
    /// This folder, which is made if it is not there.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join(LOCK))?;
        lock.try_lock().map_err(|error| {
            let why = format!("another process has {}: {error}", folder.display());
            io::Error::new(ErrorKind::ResourceBusy, why)
        })?;
        Ok(Self { folder, lock: Arc::new(lock), open: None })
    }

    fn file(&mut self, name: &str) -> io::Result<&mut File> {
        if self.open.as_ref().is_none_or(|(open, _)| open != name) {
            let file = OpenOptions::new().append(true).open(self.folder.join(name))?;
            self.open = Some((name.to_owned(), file));
        }
        match &mut self.open {
            Some((_, file)) => Ok(file),
            None => Err(ErrorKind::NotFound.into()),
        }
    }
}

impl Clone for FolderDisk {
    fn clone(&self) -> Self {
        Self { folder: self.folder.clone(), lock: Arc::clone(&self.lock), open: None }
    }
}

impl Disk for FolderDisk {
    fn create(&mut self, name: &str) -> io::Result<()> {
        let path = self.folder.join(name);
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        self.open = Some((name.to_owned(), file));
        Ok(())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.file(name)?.write_all(bytes)
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        self.file(name)?.set_len(length)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.file(name)?.sync_data()?;
        File::open(&self.folder)?.sync_all()
    }

    fn read(&mut self, name: &str, from: u64) -> io::Result<Vec<u8>> {
        let mut file = match File::open(self.folder.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&mut self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            names.extend(entry?.file_name().into_string().ok().filter(|name| name != LOCK));
        }
        names.sort_unstable();
        Ok(names)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        if self.open.as_ref().is_some_and(|(open, _)| open == name) {
            self.open = None;
        }
        match fs::remove_file(self.folder.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_does_what_a_disk_does() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = FolderDisk::open(folder.path().join("new")).unwrap();
        disk.create("b").unwrap();
        disk.create("a").unwrap();
        assert_eq!(disk.create("a").unwrap_err().kind(), ErrorKind::AlreadyExists);
        disk.append("a", b"one").unwrap();
        disk.append("b", b"x").unwrap();
        let mut other = disk.clone();
        other.append("a", b"two").unwrap();
        assert_eq!(disk.read("a", 0).unwrap(), b"onetwo");
        disk.truncate("a", 4).unwrap();
        other.append("a", b"3").unwrap();
        disk.sync("a").unwrap();
        assert_eq!(
            (disk.read("a", 3).unwrap(), disk.read("c", 0).unwrap()),
            (b"t3".to_vec(), vec![])
        );
        assert_eq!(disk.list().unwrap(), ["a", "b"]);
        disk.remove("a").unwrap();
        disk.remove("a").unwrap();
        assert_eq!(disk.list().unwrap(), ["b"]);
        assert!(disk.append("a", b"").is_err());
    }

    #[test]
    fn a_folder_has_one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let disk = FolderDisk::open(folder.path()).unwrap();
        let other = disk.clone();
        drop(disk);
        let refused = FolderDisk::open(folder.path()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
        drop(other);
        FolderDisk::open(folder.path()).unwrap();
    }
}
