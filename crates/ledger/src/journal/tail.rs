//! What is done beside a journal every second: its bytes become durable, and somebody elsewhere learns what they add up to.

use super::{Disk, Segment, SharedJournal, lock};
use crate::rows::Rows;
use flyball_core::units::Micros;
use std::collections::BTreeMap;
use std::io;

/// What may lack at most when a machine dies: the time between two syncs, and between two reports.
pub const SYNC_EVERY: Micros = Micros::from_seconds(1);

/// Follows a journal, with a hand of its own on the disk: nothing of it holds up requests.
#[derive(Debug)]
pub struct JournalTail<D> {
    journal: SharedJournal<D>,
    disk: D,
    segments: BTreeMap<u64, Segment>,
}

/// What a process says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceReport {
    /// By sequence, what of its journal is not known to be in the inbox.
    pub batches: BTreeMap<u64, Rows>,
    /// Whether some of it is in its memory only, because its disk is full.
    pub in_memory: bool,
}

impl<D: Disk> JournalTail<D> {
    /// Of this journal.
    pub fn new(journal: SharedJournal<D>, disk: D) -> Self {
        Self { journal, disk, segments: BTreeMap::new() }
    }

    /// Makes durable what was written. To be called every [`SYNC_EVERY`].
    pub fn sync(&mut self) -> io::Result<()> {
        sync(&self.journal, &mut self.disk)
    }

    /// What the operator should know. To be sent every [`SYNC_EVERY`].
    pub fn report(&mut self) -> io::Result<SourceReport> {
        let (batches, table) = {
            let journal = lock(&self.journal);
            (journal.to_place(), journal.table())
        };
        let first = batches.first().map_or(0, |batch| batch.sequence);
        self.segments.retain(|sequence, _| *sequence >= first);
        for batch in batches {
            let segment = self.segments.entry(batch.sequence);
            segment.or_insert_with(|| Segment::new(batch, table)).follow(&mut self.disk)?;
        }
        let journal = lock(&self.journal);
        let mut report = SourceReport { in_memory: journal.is_in_memory(), ..Default::default() };
        for (sequence, segment) in &self.segments {
            let mut rows = segment.rows().clone();
            rows.add_all_of(journal.unwritten(*sequence));
            if !rows.is_empty() {
                report.batches.insert(*sequence, rows);
            }
        }
        Ok(report)
    }
}

/// Makes durable what was written to a journal, and first tries to write what could not be written before.
pub(crate) fn sync<D: Disk>(journal: &SharedJournal<D>, disk: &mut D) -> io::Result<()> {
    let names = {
        let mut journal = lock(journal);
        // What still cannot be written is in memory, and is tried again in a second.
        let _ = journal.retry();
        journal.to_sync()
    };
    for (place, name) in names.iter().enumerate() {
        if let Err(error) = disk.sync(name) {
            lock(journal).not_synced(names[place..].to_vec());
            return Err(error);
        }
    }
    Ok(())
}
