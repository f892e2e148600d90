//! The journal of a process: entries in files of about five minutes, on the disk beside it.
//!
//! An entry is handed to the kernel before the last byte of an answer leaves, so it survives the end of the process, and it
//! reaches the disk within a second, so all but the last second survives the end of the machine. A disk that is full or
//! broken loses nothing either while the process lives: what cannot be written is added up in memory and written when it
//! can be, or goes to the store from there.
//!
//! A file is read up to its first entry that is not whole. So a failed write is cut off again before anything is written
//! behind it, and a file that belongs to a process that has ended is never written to.
//!
//! Start at [`Journal`]; `frame` has the bytes around an entry, `disk` what is asked of a disk, `segment` reads files back,
//! `tail` is what is done every second.

mod disk;
mod frame;
mod segment;
mod tail;
#[cfg(test)]
mod tests;

pub use disk::{Disk, FolderDisk};
pub use segment::{OpenRequests, Segment, leftovers};
pub(crate) use tail::sync;
pub use tail::{JournalTail, SYNC_EVERY, SourceReport};

use crate::rows::Rows;
use crate::source::{Source, UsageBatch};
use flyball_resources::usage::{JournalStart, LedgerTable, UsageEntry};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Numbers of requests that are remembered because their ends are in memory only.
const MOST_REMEMBERED: usize = 1 << 20;

/// A journal and who works beside it: requests that end, the second's [`JournalTail`], the five minutes' shipper.
pub type SharedJournal<D> = Arc<Mutex<Journal<D>>>;

/// The journal, for a moment.
pub fn lock<D>(journal: &SharedJournal<D>) -> MutexGuard<'_, Journal<D>> {
    // An entry is whole or not there, whatever panicked meanwhile.
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Entries of one process for one table.
#[derive(Debug)]
pub struct Journal<D> {
    disk: D,
    table: &'static LedgerTable,
    boot: u64,
    current: UsageBatch,
    /// The file's name, made once: it is needed for each entry.
    name: String,
    made: bool,
    /// Bytes of whole entries in the file.
    length: u64,
    /// Whether bytes may follow them that are none.
    torn: bool,
    /// What was not handed to the disk yet.
    buffer: Vec<u8>,
    /// Whether the current batch has anything that becomes a row.
    counts: bool,
    /// By sequence: what could not be written.
    unwritten: BTreeMap<u64, Rows>,
    /// Ends of requests among it, with the sequence in which they ended.
    ended: BTreeSet<(u64, u64)>,
    sealed: BTreeSet<u64>,
    unsynced: BTreeSet<String>,
    /// The open requests of all batches up to this one are in later ones.
    carried: u64,
    /// All batches up to this one are in the inbox.
    placed: u64,
}

impl<D: Disk> Journal<D> {
    /// Begins a journal. No other may ever have had this source. Nothing is written before the first entry.
    pub fn new(disk: D, table: &'static LedgerTable, source: Source, boot: u64) -> Self {
        let current = UsageBatch { source, sequence: 1 };
        Self {
            disk,
            table,
            boot,
            name: current.segment(),
            current,
            made: false,
            length: 0,
            torn: false,
            buffer: Vec::with_capacity(4_096),
            counts: false,
            unwritten: BTreeMap::new(),
            ended: BTreeSet::new(),
            sealed: BTreeSet::new(),
            unsynced: BTreeSet::new(),
            carried: 0,
            placed: 0,
        }
    }

    /// Its table.
    pub fn table(&self) -> &'static LedgerTable {
        self.table
    }

    /// Writes an entry down. When this returns, the end of a request survives the end of this process; that a request was
    /// opened does so from the next entry or [`Self::flush`] on.
    ///
    /// After an error it is in memory, and only this process's end can lose it.
    pub fn append(&mut self, entry: &UsageEntry<'_>) -> io::Result<()> {
        frame::append(&mut self.buffer, entry);
        if matches!(entry, UsageEntry::Open(_)) {
            return Ok(());
        }
        self.counts = true;
        self.flush()
    }

    /// Hands everything to the disk. To be called every few milliseconds.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.write();
        if written.is_err() {
            self.remember();
        }
        self.buffer.clear();
        written
    }

    /// Writes what could not be written before, as rows. To be called once a second.
    pub fn retry(&mut self) -> io::Result<()> {
        self.flush()?;
        let sequence = self.current.sequence;
        let Some(rows) = self.unwritten.get(&sequence) else { return Ok(()) };
        let mut bytes = Vec::new();
        rows.entries().for_each(|entry| frame::append(&mut bytes, &entry));
        for (_, request) in self.ended.range((sequence, 0)..) {
            frame::append(&mut bytes, &UsageEntry::Ended(*request));
        }
        self.buffer = bytes;
        let written = self.write();
        self.buffer.clear();
        if written.is_ok() {
            self.unwritten.remove(&sequence);
            self.ended.retain(|(ended, _)| *ended < sequence);
        }
        written
    }

    /// The files that have to be synced, which whoever asks does with a hand of its own, because it takes milliseconds.
    pub fn to_sync(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unsynced).into_iter().collect()
    }

    /// These could not be synced.
    pub fn not_synced(&mut self, names: Vec<String>) {
        self.unsynced.extend(names);
    }

    /// Ends the current batch, if it has anything, and begins the next. To be called at the end of each bucket.
    pub fn rotate(&mut self) {
        // What fails is in memory and belongs to the batch that ends.
        let _ = self.flush();
        if !self.counts {
            return;
        }
        self.sealed.insert(self.current.sequence);
        self.current.sequence += 1;
        self.name = self.current.segment();
        (self.made, self.length, self.torn, self.counts) = (false, 0, false, false);
    }

    /// The batch that is written now.
    pub fn current(&self) -> &UsageBatch {
        &self.current
    }

    /// The batches that have ended and are not forgotten, in order.
    pub fn sealed(&self) -> Vec<UsageBatch> {
        self.sealed.iter().map(|sequence| self.batch(*sequence)).collect()
    }

    /// The batches that are not known to be in the inbox, the current one too, in order.
    pub fn to_place(&self) -> Vec<UsageBatch> {
        (self.placed + 1..=self.current.sequence).map(|sequence| self.batch(sequence)).collect()
    }

    /// All batches up to this one are in the inbox.
    pub fn placed(&mut self, sequence: u64) {
        self.placed = self.placed.max(sequence);
    }

    /// Whether anything is in memory only.
    pub fn is_in_memory(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// What is of a batch in memory only.
    pub fn unwritten(&self, sequence: u64) -> Option<&Rows> {
        self.unwritten.get(&sequence)
    }

    /// The batches whose open requests are to be carried into the current one.
    pub fn to_carry(&self) -> Vec<UsageBatch> {
        self.sealed().into_iter().filter(|batch| batch.sequence > self.carried).collect()
    }

    /// Writes requests again that are still open.
    pub fn write_again(&mut self, open: &OpenRequests) -> io::Result<()> {
        let ended: BTreeSet<u64> = self.ended.iter().map(|(_, request)| *request).collect();
        open.entries(&ended).for_each(|entry| frame::append(&mut self.buffer, &entry));
        self.flush()
    }

    /// The open requests of all batches up to this one are durable in later ones, so that they are needed no more.
    pub fn carried(&mut self, through: u64) {
        self.carried = through;
        let current = self.current.sequence;
        self.ended.retain(|(sequence, _)| *sequence >= current);
    }

    /// Whether a batch is needed by no later one.
    pub fn is_carried(&self, sequence: u64) -> bool {
        sequence <= self.carried
    }

    /// Takes a batch away that is in the table.
    pub fn forget(&mut self, sequence: u64) -> io::Result<()> {
        let name = self.batch(sequence).segment();
        self.disk.remove(&name)?;
        self.unsynced.remove(&name);
        self.unwritten.remove(&sequence);
        self.sealed.remove(&sequence);
        Ok(())
    }

    fn batch(&self, sequence: u64) -> UsageBatch {
        UsageBatch { source: self.current.source.clone(), sequence }
    }

    fn write(&mut self) -> io::Result<()> {
        if !self.made {
            self.disk.create(&self.name)?;
            self.made = true;
        }
        if self.torn {
            self.disk.truncate(&self.name, self.length)?;
            self.torn = false;
        }
        if self.length == 0 {
            self.begin();
        }
        match self.disk.append(&self.name, &self.buffer) {
            Ok(()) => {
                self.length += self.buffer.len() as u64;
                if !self.unsynced.contains(&self.name) {
                    self.unsynced.insert(self.name.clone());
                }
                Ok(())
            }
            Err(error) => {
                // A part may be there, and nothing behind it could be read.
                self.torn = self.disk.truncate(&self.name, self.length).is_err();
                Err(error)
            }
        }
    }

    /// Puts what the file is before what is to be written.
    fn begin(&mut self) {
        let UsageBatch { source, sequence } = &self.current;
        let (table, source) = (self.table.name, source.as_str());
        let start = JournalStart { table, source, sequence: *sequence, boot: self.boot };
        let mut bytes = Vec::with_capacity(self.buffer.len() + 256);
        frame::append(&mut bytes, &UsageEntry::Begin(start));
        bytes.append(&mut self.buffer);
        self.buffer = bytes;
    }

    /// Adds up what cannot be written.
    fn remember(&mut self) {
        let UsageBatch { source, sequence } = &self.current;
        let rows = self.unwritten.entry(*sequence).or_insert_with(|| Rows::new(self.table));
        for entry in frame::Frames::new(&self.buffer) {
            rows.add_entry(source.as_str(), &entry);
            if let UsageEntry::Close(record) = entry
                && self.ended.len() < MOST_REMEMBERED
            {
                self.ended.insert((*sequence, record.request));
            }
        }
        if rows.is_empty() {
            self.unwritten.remove(sequence);
        }
    }
}
