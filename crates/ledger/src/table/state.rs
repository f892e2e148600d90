//! What all commits of a table so far add up to.

use super::action::{self, Line, MetaData, Protocol, READER, WRITER};
use crate::LedgerError;
use flyball_core::units::Timestamp;
use flyball_resources::usage::{CHARGE_PERIOD_END, CHARGE_PERIOD_START, LedgerTable};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct TableState {
    pub(super) table: &'static LedgerTable,
    /// The last commit; none if the table is not there.
    pub(super) version: Option<u64>,
    pub(super) protocol: Option<Protocol>,
    pub(super) meta_data: Option<MetaData>,
    /// By source, the last sequence that is in the table, and when it came there.
    pub(super) txns: BTreeMap<String, (i64, Option<i64>)>,
    /// By path.
    pub(super) files: BTreeMap<String, TableFile>,
    /// By path, when a file was removed, in milliseconds since 1970.
    pub(super) removed: BTreeMap<String, i64>,
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

impl TableState {
    pub(super) fn new(table: &'static LedgerTable) -> Self {
        Self {
            table,
            version: None,
            protocol: None,
            meta_data: None,
            txns: BTreeMap::new(),
            files: BTreeMap::new(),
            removed: BTreeMap::new(),
        }
    }

    pub(super) fn apply(&mut self, lines: &[Line]) -> Result<(), LedgerError> {
        for line in lines {
            if let Some(protocol) = line.protocol {
                if protocol.min_reader_version > READER || protocol.min_writer_version > WRITER {
                    let Protocol { min_reader_version: reader, min_writer_version: writer } =
                        protocol;
                    let asks = format!("reader {reader} and writer {writer}");
                    return Err(LedgerError::Newer(asks));
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

pub(super) fn millis(now: Timestamp) -> i64 {
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
