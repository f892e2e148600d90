//! What is known elsewhere of processes that have ended with something that only they had.

use crate::LedgerError;
use crate::journal::{SYNC_EVERY, SourceReport};
use crate::rows::Rows;
use crate::ship::put_batch;
use crate::source::{Source, UsageBatch};
use crate::store::Store;
use crate::table::TableLog;
use flyball_core::units::Timestamp;
use std::collections::BTreeMap;

/// The last reports of all processes. The operator has one.
///
/// A process and its witness may both put a batch: of each count the larger one counts, so it does not matter who was first,
/// nor whether a process that seemed gone comes back.
#[derive(Debug, Default)]
pub struct Witness {
    reports: BTreeMap<Source, (Timestamp, SourceReport)>,
}

/// How a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceEnd {
    /// Alone: its machine runs on, and its disk is there for the next process.
    Process,
    /// With its machine, which may come back, with its disk or without. Also of one that was taken for gone before: then the
    /// table may have less of it than its disk.
    Machine,
}

impl Witness {
    /// A process said this of itself.
    pub fn reported(&mut self, source: Source, report: SourceReport, now: Timestamp) {
        self.reports.insert(source, (now, report));
    }

    /// The processes that it knows.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.reports.keys()
    }

    /// A process has ended. To be called for each of [`Self::sources`] that has, again and again until it is none of them.
    ///
    /// If its machine has ended too, or its disk was full, what it last reported is put into the inbox as estimated, with a
    /// note that the time after the report may lack. Otherwise its report is kept until the table has all of it, because the
    /// machine may still end.
    pub async fn ended(
        &mut self,
        store: &impl Store,
        log: &mut TableLog,
        source: &Source,
        end: SourceEnd,
    ) -> Result<(), LedgerError> {
        let Some((at, report)) = self.reports.get(source) else { return Ok(()) };
        log.refresh(store).await?;
        let committed = log.committed(source);
        if end == SourceEnd::Process && !report.in_memory {
            if report.batches.keys().all(|sequence| *sequence <= committed) {
                self.reports.remove(source);
            }
            return Ok(());
        }
        let mut batches = report.batches.clone();
        // The note goes with what the table does not have yet: under a name that it has, nothing is put again.
        let none = || (committed + 1, Rows::new(log.table()));
        let open = batches.last_key_value().is_some_and(|(sequence, _)| *sequence > committed);
        let (last, mut rows) = open.then(|| batches.pop_last()).flatten().unwrap_or_else(none);
        rows.add_unsure(source.as_str(), *at, SYNC_EVERY);
        batches.insert(last, rows);
        for (sequence, rows) in batches {
            let batch = UsageBatch { source: source.clone(), sequence };
            put_batch(store, log, &batch, &rows.estimated()).await?;
        }
        self.reports.remove(source);
        Ok(())
    }
}
