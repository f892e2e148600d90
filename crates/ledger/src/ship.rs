//! From the journal to the inbox, and away with what the table has.

use crate::LedgerError;
use crate::files;
use crate::journal::{
    Disk, OpenRequests, SYNC_EVERY, Segment, SharedJournal, leftovers, lock, sync,
};
use crate::rows::Rows;
use crate::source::{Source, UsageBatch};
use crate::store::{PutOutcome, Store};
use crate::table::{TableLog, place};
use flyball_core::units::Timestamp;
use flyball_resources::usage::LedgerTable;
use std::collections::BTreeSet;

/// How often somebody may have put less of a batch before.
const CORRECTIONS: u32 = 8;

/// Puts batches into the store. One for each journal, beside whoever writes the journal.
#[derive(Debug)]
pub struct Shipper<D> {
    journal: SharedJournal<D>,
    disk: D,
    table: &'static LedgerTable,
    source: Source,
    boot: u64,
    log: TableLog,
    /// Whether there may be files of processes that have ended.
    left: bool,
    /// Batches of theirs that are in the inbox with all that is known here.
    placed: BTreeSet<UsageBatch>,
}

impl<D: Disk> Shipper<D> {
    /// For this journal, with another hand on its disk. `boot` is which start of the machine this is.
    pub fn new(journal: SharedJournal<D>, disk: D, boot: u64) -> Self {
        let (table, source) = {
            let journal = lock(&journal);
            (journal.table(), journal.current().source.clone())
        };
        Self {
            journal,
            disk,
            table,
            source,
            boot,
            log: TableLog::new(table),
            left: true,
            placed: BTreeSet::new(),
        }
    }

    /// Puts all that has ended into the inbox, and forgets what the table has. To be called after [`Journal::rotate`]
    /// and a while later again. Every step may fail, and the next call goes on from there.
    ///
    /// [`Journal::rotate`]: crate::journal::Journal::rotate
    pub async fn ship(&mut self, store: &impl Store, now: Timestamp) -> Result<(), LedgerError> {
        // A disk that is full keeps nobody from the store, and what one source left does not keep up another.
        let carried = self.carry();
        self.log.refresh(store).await?;
        let left = if self.left { self.ship_leftovers(store, now).await } else { Ok(()) };
        let own = self.ship_own(store).await;
        carried.and(left).and(own)
    }

    /// Whether there is nothing on the disk that has ended and that the table does not have.
    pub fn is_settled(&self) -> bool {
        !self.left && lock(&self.journal).sealed().is_empty()
    }

    fn carry(&mut self) -> Result<(), LedgerError> {
        let batches = lock(&self.journal).to_carry();
        let Some(last) = batches.last() else { return Ok(()) };
        let open = OpenRequests::of(&mut self.disk, &batches)?;
        lock(&self.journal).write_again(&open)?;
        // Before the files that they were in may go.
        sync(&self.journal, &mut self.disk)?;
        lock(&self.journal).carried(last.sequence);
        Ok(())
    }

    async fn ship_own(&mut self, store: &impl Store) -> Result<(), LedgerError> {
        let (sealed, waiting) = {
            let journal = lock(&self.journal);
            (journal.sealed(), journal.to_place())
        };
        for batch in sealed.iter().filter(|batch| waiting.contains(batch)) {
            let mut segment = Segment::new(batch.clone(), self.table);
            segment.follow(&mut self.disk)?;
            let mut rows = segment.rows().clone();
            rows.add_all_of(lock(&self.journal).unwritten(batch.sequence));
            // Also if the table has it: that may be what a witness knew.
            put_batch(store, &self.log, batch, &rows).await?;
            lock(&self.journal).placed(batch.sequence);
        }
        for batch in sealed.iter().filter(|batch| self.log.has(batch)) {
            let mut journal = lock(&self.journal);
            if journal.is_carried(batch.sequence) {
                journal.forget(batch.sequence)?;
            }
        }
        Ok(())
    }

    async fn ship_leftovers(
        &mut self,
        store: &impl Store,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let (mut left, mut first) = (false, Ok(()));
        for (source, batches) in leftovers(&mut self.disk, &self.source)? {
            match self.ship_ended(store, &source, &batches, now).await {
                Ok(some) => left |= some,
                Err(error) => {
                    left = true;
                    first = first.and(Err(error));
                }
            }
        }
        self.left = left;
        first
    }

    /// Batches of a process that has ended. Its files are needed until all of them are in the table: together they say
    /// which requests have no end.
    async fn ship_ended(
        &mut self,
        store: &impl Store,
        source: &Source,
        batches: &[UsageBatch],
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let Some(last) = batches.last() else { return Ok(false) };
        let mut left = false;
        for batch in batches {
            // Its process may have ended before it did.
            self.disk.sync(&batch.segment())?;
            let mut segment = Segment::new(batch.clone(), self.table);
            segment.follow(&mut self.disk)?;
            let mut rows = segment.rows().clone();
            if batch == last {
                OpenRequests::of(&mut self.disk, batches)?.add_to(&mut rows, source);
                if segment.boot() != Some(self.boot) {
                    rows.add_unsure(source.as_str(), last_of(&rows, now), SYNC_EVERY);
                }
                if rows.is_empty() {
                    continue;
                }
            }
            if !self.placed.contains(batch) {
                put_batch(store, &self.log, batch, &rows).await?;
                self.placed.insert(batch.clone());
            }
            left |= !self.log.has(batch);
        }
        if !left {
            // From the first on: what is left after a crash in between still has the last one.
            for batch in batches {
                self.disk.remove(&batch.segment())?;
                self.placed.remove(batch);
            }
        }
        Ok(left)
    }
}

/// A time in the last bucket that rows are of, so that saying it again says the same.
fn last_of(rows: &Rows, now: Timestamp) -> Timestamp {
    let last = rows.iter().map(|(key, _)| key.start).max();
    last.map_or(now, |start| Timestamp::from_micros(start.max(0).cast_unsigned()))
}

/// Puts a batch into the inbox. If somebody has put less of it before, what is missing is put beside it: whoever comes
/// second, what counts in the end is the most that anybody knew. The log has to be fresh.
pub(crate) async fn put_batch(
    store: &impl Store,
    log: &TableLog,
    batch: &UsageBatch,
    rows: &Rows,
) -> Result<(), LedgerError> {
    let (mut batch, mut rows) = (batch.clone(), rows.clone());
    for _ in 0..CORRECTIONS {
        let path = batch.path();
        let bytes = files::write(&rows).map_err(|error| LedgerError::broken(&path, error))?;
        let at = place(rows.table(), &path);
        // One that the table has may be gone from the inbox, merged long ago. Under its name nothing must come again: whoever
        // compared with that would take for missing what is not.
        if !log.has(&batch) && store.put_new(&at, bytes.clone()).await? == PutOutcome::Created {
            return Ok(());
        }
        let Some(theirs) = store.get(&at).await? else { return Ok(()) };
        if theirs == bytes {
            return Ok(());
        }
        let theirs = files::read(rows.table(), theirs);
        rows = rows.beyond(&theirs.map_err(|error| LedgerError::broken(&path, error))?);
        if rows.is_empty() {
            return Ok(());
        }
        batch = UsageBatch { source: batch.source.correction(batch.sequence), sequence: 1 };
    }
    Err(LedgerError::Busy(CORRECTIONS))
}
