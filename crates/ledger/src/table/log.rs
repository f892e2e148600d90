//! The log of a table: read on, and written.

use super::action::{self, Line, Protocol, READER, WRITER};
use super::state::{TableFile, TableState, millis};
use super::{checkpoint, place, schema};
use crate::LedgerError;
use crate::source::{Source, UsageBatch};
use crate::store::{PutOutcome, Store};
use flyball_core::units::Timestamp;
use flyball_resources::usage::LedgerTable;

/// A table as its log has it, up to a version.
#[derive(Clone, Debug, PartialEq)]
pub struct TableLog {
    pub(super) state: TableState,
    /// Commits between two checkpoints.
    every: u64,
}

impl TableLog {
    /// A table of which nothing is known yet.
    pub fn new(table: &'static LedgerTable) -> Self {
        Self { state: TableState::new(table), every: checkpoint::EVERY }
    }

    /// The same with a checkpoint after so many commits.
    #[must_use]
    pub fn with_checkpoint_every(self, commits: u64) -> Self {
        Self { every: commits.max(1), ..self }
    }

    /// Its columns.
    pub fn table(&self) -> &'static LedgerTable {
        self.state.table
    }

    /// The last commit that was read; none if there is no table.
    pub fn version(&self) -> Option<u64> {
        self.state.version
    }

    /// The files that count, by their paths.
    pub fn files(&self) -> impl Iterator<Item = &TableFile> {
        self.state.files.values()
    }

    /// The last sequence of a source that is in the table; 0 if there is none.
    pub fn committed(&self, source: &Source) -> u64 {
        let version = self.state.txns.get(source.as_str()).map_or(0, |(version, _)| *version);
        u64::try_from(version).unwrap_or(0)
    }

    /// Whether a batch is in the table.
    pub fn has(&self, batch: &UsageBatch) -> bool {
        batch.sequence <= self.committed(&batch.source)
    }

    /// Reads the commits since.
    pub async fn refresh(&mut self, store: &impl Store) -> Result<(), LedgerError> {
        if self.state.version.is_none()
            && let Some(found) = checkpoint::last(store, self.state.table).await?
        {
            self.state = found;
        }
        loop {
            let next = self.next();
            let path = commit_path(next);
            let Some(bytes) = store.get(&place(self.state.table, &path)).await? else {
                return Ok(());
            };
            let lines = action::read(&bytes).map_err(|error| LedgerError::broken(&path, error))?;
            self.state.apply(&lines)?;
            self.state.version = Some(next);
        }
    }

    /// Commits these lines as the next version, unless somebody was faster: then nothing happened, and the log has to be
    /// read on.
    pub(super) async fn commit(
        &mut self,
        store: &impl Store,
        operation: &str,
        lines: Vec<Line>,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let now_ms = millis(now);
        let mut all = vec![Line::info(operation, now_ms)];
        if self.state.meta_data.is_none() {
            let protocol = Protocol { min_reader_version: READER, min_writer_version: WRITER };
            all.push(Line { protocol: Some(protocol), ..Line::default() });
            let meta_data = Some(schema::meta_data(self.state.table, now_ms));
            all.push(Line { meta_data, ..Line::default() });
        }
        all.extend(lines);
        let next = self.next();
        let path = commit_path(next);
        let bytes = action::write(&all).map_err(|error| LedgerError::broken(&path, error))?;
        match store.put_new(&place(self.state.table, &path), bytes.into()).await? {
            PutOutcome::Exists => Ok(false),
            PutOutcome::Created => {
                self.state.apply(&all)?;
                self.state.version = Some(next);
                if next.is_multiple_of(self.every) && next > 0 {
                    // The commit stands. Without the checkpoint readers read more.
                    let _ = checkpoint::write(store, &self.state, now).await;
                }
                Ok(true)
            }
        }
    }

    fn next(&self) -> u64 {
        self.state.version.map_or(0, |version| version + 1)
    }
}

/// Twenty digits, as the specification wants them.
fn commit_path(version: u64) -> String {
    format!("_delta_log/{version:020}.json")
}
