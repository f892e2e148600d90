//! The state of a table: what all commits so far add up to.

use super::action::{self, Line, MetaData, Protocol, READER, WRITER};
use super::{checkpoint, place, schema};
use crate::LedgerError;
use crate::source::{Batch, Source};
use crate::store::{PutOutcome, Store};
use flyball_core::units::Timestamp;
use flyball_resources::usage::{CHARGE_PERIOD_END, CHARGE_PERIOD_START, LedgerTable};
use std::collections::BTreeMap;

/// A table as its log has it, up to a version.
#[derive(Clone, Debug, PartialEq)]
pub struct TableLog {
    pub(super) table: &'static LedgerTable,
    /// The last commit; none if the table is not there.
    pub(super) version: Option<u64>,
    pub(super) protocol: Option<Protocol>,
    pub(super) meta_data: Option<MetaData>,
    /// By source, the last sequence that is in the table.
    pub(super) txns: BTreeMap<String, (i64, Option<i64>)>,
    /// By path.
    pub(super) files: BTreeMap<String, TableFile>,
    /// By path, when a file was removed, in milliseconds since 1970.
    pub(super) removed: BTreeMap<String, i64>,
    /// The last checkpoint that is known.
    pub(super) checkpoint: Option<u64>,
}

/// A file that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFile {
    /// Its path in the table's folder.
    pub path: String,
    /// When its first row begins, in microseconds since 1970; absent where nobody said so.
    pub start: Option<i64>,
    /// When its last row ends.
    pub end: Option<i64>,
    /// The first and the last of its Tenants.
    pub tenants: Option<(String, String)>,
    pub(super) add: action::Add,
}

impl TableLog {
    /// A table of which nothing is known yet.
    pub fn new(table: &'static LedgerTable) -> Self {
        Self {
            table,
            version: None,
            protocol: None,
            meta_data: None,
            txns: BTreeMap::new(),
            files: BTreeMap::new(),
            removed: BTreeMap::new(),
            checkpoint: None,
        }
    }

    /// Its columns.
    pub fn table(&self) -> &'static LedgerTable {
        self.table
    }

    /// The last commit that was read; none if there is no table.
    pub fn version(&self) -> Option<u64> {
        self.version
    }

    /// The files that count, by their paths.
    pub fn files(&self) -> impl Iterator<Item = &TableFile> {
        self.files.values()
    }

    /// The last sequence of a source that is in the table; 0 if there is none.
    pub fn committed(&self, source: &Source) -> u64 {
        let version = self.txns.get(source.as_str()).map_or(0, |(version, _)| *version);
        u64::try_from(version).unwrap_or(0)
    }

    /// Whether a batch is in the table.
    pub fn has(&self, batch: &Batch) -> bool {
        batch.sequence <= self.committed(&batch.source)
    }

    /// Reads the commits since.
    pub async fn refresh(&mut self, store: &impl Store) -> Result<(), LedgerError> {
        if self.version.is_none()
            && let Some(found) = checkpoint::last(store, self.table).await?
        {
            *self = found;
        }
        loop {
            let next = self.next();
            let path = commit_path(next);
            let Some(bytes) = store.get(&place(self.table, &path)).await? else { return Ok(()) };
            let lines = action::read(&bytes).map_err(|error| LedgerError::broken(&path, error))?;
            self.apply(&lines)?;
            self.version = Some(next);
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
        if self.meta_data.is_none() {
            let protocol = Protocol { min_reader_version: READER, min_writer_version: WRITER };
            all.push(Line { protocol: Some(protocol), ..Line::default() });
            let meta_data = Some(schema::meta_data(self.table, now_ms));
            all.push(Line { meta_data, ..Line::default() });
        }
        all.extend(lines);
        let next = self.next();
        let path = commit_path(next);
        let bytes = action::write(&all).map_err(|error| LedgerError::broken(&path, error))?;
        match store.put_new(&place(self.table, &path), bytes.into()).await? {
            PutOutcome::Exists => Ok(false),
            PutOutcome::Created => {
                self.apply(&all)?;
                self.version = Some(next);
                if next.is_multiple_of(checkpoint::EVERY) && next > 0 {
                    // The commit stands. Without the checkpoint readers read more.
                    let _ = checkpoint::write(store, self, now).await;
                }
                Ok(true)
            }
        }
    }

    fn next(&self) -> u64 {
        self.version.map_or(0, |version| version + 1)
    }

    pub(super) fn apply(&mut self, lines: &[Line]) -> Result<(), LedgerError> {
        for line in lines {
            if let Some(protocol) = line.protocol {
                if protocol.min_reader_version > READER || protocol.min_writer_version > WRITER {
                    return Err(LedgerError::Newer(format!("{protocol:?}")));
                }
                self.protocol = Some(protocol);
            }
            if let Some(meta_data) = &line.meta_data {
                if !meta_data.partition_columns.is_empty() {
                    return Err(LedgerError::Newer("partitions".to_owned()));
                }
                self.meta_data = Some(meta_data.clone());
            }
            if let Some(txn) = &line.txn {
                self.txns.insert(txn.app_id.clone(), (txn.version, txn.last_updated));
            }
            if let Some(remove) = &line.remove {
                self.files.remove(&remove.path);
                self.removed.insert(remove.path.clone(), remove.deletion_timestamp.unwrap_or(0));
            }
            if let Some(add) = &line.add {
                self.removed.remove(&add.path);
                self.files.insert(add.path.clone(), TableFile::of(add));
            }
        }
        Ok(())
    }
}

impl TableFile {
    pub(super) fn of(add: &action::Add) -> Self {
        let stats: serde_json::Value = add
            .stats
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let time = |side: &str, column: &str| {
            let text = stats.get(side)?.get(column)?.as_str()?;
            text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
        };
        let tenant = |side: &str| stats.get(side)?.get("SubAccountId")?.as_str().map(str::to_owned);
        Self {
            path: add.path.clone(),
            start: time("minValues", CHARGE_PERIOD_START),
            end: time("maxValues", CHARGE_PERIOD_END),
            tenants: tenant("minValues").zip(tenant("maxValues")),
            add: add.clone(),
        }
    }
}

/// Twenty digits, as the specification wants them.
pub(super) fn commit_path(version: u64) -> String {
    format!("_delta_log/{version:020}.json")
}

pub(super) fn millis(now: Timestamp) -> i64 {
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
