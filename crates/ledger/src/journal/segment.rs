//! Files of journals, read back.

use super::disk::Disk;
use super::frame::{self, Frames};
use crate::rows::Rows;
use crate::source::{Source, UsageBatch};
use flyball_resources::usage::{LedgerTable, UsageEntry};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// One file of a journal, as far as it was read.
#[derive(Clone, Debug)]
pub struct Segment {
    batch: UsageBatch,
    read: u64,
    /// Which start of the machine it was written in, if its first entry was read.
    boot: Option<u64>,
    rows: Rows,
}

impl Segment {
    /// One that was not read yet.
    pub fn new(batch: UsageBatch, table: &'static LedgerTable) -> Self {
        Self { batch, read: 0, boot: None, rows: Rows::new(table) }
    }

    /// Reads what was written since, up to the last entry that is whole.
    pub fn follow(&mut self, disk: &mut impl Disk) -> io::Result<()> {
        let bytes = disk.read(&self.batch.segment(), self.read)?;
        let mut frames = Frames::new(&bytes);
        for entry in frames.by_ref() {
            if let UsageEntry::Begin(start) = entry {
                self.boot = Some(start.boot);
            }
            self.rows.add_entry(self.batch.source.as_str(), &entry);
        }
        self.read += frames.whole() as u64;
        Ok(())
    }

    /// The batch.
    pub fn batch(&self) -> &UsageBatch {
        &self.batch
    }

    /// What it adds up to.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Which start of the machine it was written in.
    pub fn boot(&self) -> Option<u64> {
        self.boot
    }
}

/// Requests without an end, as their entries.
#[derive(Clone, Debug, Default)]
pub struct OpenRequests(pub(super) BTreeMap<u64, Vec<u8>>);

impl OpenRequests {
    /// Those of these batches together.
    pub fn of(disk: &mut impl Disk, batches: &[UsageBatch]) -> io::Result<Self> {
        let mut open = BTreeMap::new();
        let mut ended = BTreeSet::new();
        for batch in batches {
            let bytes = disk.read(&batch.segment(), 0)?;
            for entry in Frames::new(&bytes) {
                match &entry {
                    UsageEntry::Open(request) => {
                        let mut bytes = Vec::new();
                        frame::append(&mut bytes, &entry);
                        open.insert(request.request, bytes);
                    }
                    UsageEntry::Close(record) => drop(ended.insert(record.request)),
                    UsageEntry::Ended(request) => drop(ended.insert(*request)),
                    _ => {}
                }
            }
        }
        // An entry that was carried may stand behind its end.
        open.retain(|request, _| !ended.contains(request));
        Ok(Self(open))
    }

    /// Their entries, without those of these numbers.
    pub(super) fn entries<'a>(
        &'a self,
        without: &'a BTreeSet<u64>,
    ) -> impl Iterator<Item = UsageEntry<'a>> {
        let left = self.0.iter().filter(|(request, _)| !without.contains(request));
        left.flat_map(|(_, bytes)| Frames::new(bytes))
    }

    /// Adds them as requests whose end nobody saw.
    pub fn add_to(&self, rows: &mut Rows, source: &Source) {
        for entry in self.entries(&BTreeSet::new()) {
            if let UsageEntry::Open(open) = entry {
                rows.add_unclosed(source.as_str(), &open);
            }
        }
    }
}

/// What processes that have ended left in a folder: their batches, in order. `own` is the process that asks.
pub fn leftovers(
    disk: &mut impl Disk,
    own: &Source,
) -> io::Result<BTreeMap<Source, Vec<UsageBatch>>> {
    let mut found: BTreeMap<Source, Vec<UsageBatch>> = BTreeMap::new();
    let batches = disk.list()?;
    for batch in batches.iter().filter_map(|name| UsageBatch::of_segment(name)) {
        if batch.source != *own {
            found.entry(batch.source.clone()).or_default().push(batch);
        }
    }
    found.values_mut().for_each(|batches| batches.sort_unstable());
    Ok(found)
}
