//! A disk in memory, with what of it is durable.

use super::fault::Life;
use flyball_ledger::journal::Disk;
use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};

/// A process's hand on a disk.
#[derive(Clone, Debug)]
pub(crate) struct VirtualDisk {
    pub(crate) files: Arc<Mutex<Files>>,
    pub(crate) life: Life,
}

#[derive(Debug, Default)]
pub(crate) struct Files {
    files: BTreeMap<String, File>,
    /// Removed since the last sync: a power failure may bring them back.
    removed: BTreeMap<String, File>,
    /// Bytes that have room; `None` for many.
    pub(crate) room: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct File {
    bytes: Vec<u8>,
    /// How many of them are durable.
    durable: usize,
    /// Whether its name is.
    named: bool,
}

impl Files {
    /// The machine stops and starts: what was not durable may be there, cut, or garbage.
    pub(crate) fn power_failure(&mut self, rng: &mut Pcg64Mcg) {
        for (name, file) in std::mem::take(&mut self.removed) {
            if rng.random_bool(0.5) {
                self.files.entry(name).or_insert(file);
            }
        }
        self.files.retain(|_, file| file.named || rng.random_bool(0.5));
        for file in self.files.values_mut() {
            let keep = rng.random_range(file.durable..=file.bytes.len());
            match rng.random_range(0..3) {
                0 => file.bytes.truncate(keep),
                1 => file.bytes[keep..].fill(0),
                // Later blocks may have come to the disk before earlier ones.
                _ if keep < file.bytes.len() => file.bytes[keep] ^= 0xff,
                _ => {}
            }
            (file.durable, file.named) = (file.bytes.len(), true);
        }
    }
}

impl VirtualDisk {
    /// Does a step, unless the process ends before or right after it.
    fn step<T>(&self, step: impl FnOnce(&mut Files) -> io::Result<T>) -> io::Result<T> {
        let dead = |_| io::Error::from(ErrorKind::BrokenPipe);
        self.life.half().map_err(dead)?;
        let done = step(&mut self.files.lock().unwrap());
        self.life.half().map_err(dead)?;
        done
    }
}

impl Disk for VirtualDisk {
    fn create(&mut self, name: &str) -> io::Result<()> {
        self.step(|disk| {
            if disk.room == Some(0) {
                return Err(ErrorKind::StorageFull.into());
            }
            if disk.files.contains_key(name) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            disk.files.insert(name.to_owned(), File::default());
            Ok(())
        })
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.step(|disk| {
            let fits = disk.room.map_or(bytes.len(), |room| room.min(bytes.len()));
            disk.room = disk.room.map(|room| room - fits);
            let file = disk.files.get_mut(name).ok_or(ErrorKind::NotFound)?;
            file.bytes.extend_from_slice(&bytes[..fits]);
            if fits < bytes.len() { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
        })
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        self.step(|disk| {
            let file = disk.files.get_mut(name).ok_or(ErrorKind::NotFound)?;
            file.bytes.truncate(length as usize);
            file.durable = file.durable.min(file.bytes.len());
            Ok(())
        })
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.step(|disk| {
            disk.removed.clear();
            disk.files.values_mut().for_each(|file| file.named = true);
            let file = disk.files.get_mut(name).ok_or(ErrorKind::NotFound)?;
            file.durable = file.bytes.len();
            Ok(())
        })
    }

    fn read(&mut self, name: &str, from: u64) -> io::Result<Vec<u8>> {
        let files = self.files.lock().unwrap();
        let bytes = files.files.get(name).map(|file| file.bytes.as_slice());
        Ok(bytes.and_then(|bytes| bytes.get(from as usize..)).unwrap_or_default().to_vec())
    }

    fn list(&mut self) -> io::Result<Vec<String>> {
        Ok(self.files.lock().unwrap().files.keys().cloned().collect())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.step(|disk| {
            if let Some(file) = disk.files.remove(name) {
                disk.removed.insert(name.to_owned(), file);
            }
            Ok(())
        })
    }
}
