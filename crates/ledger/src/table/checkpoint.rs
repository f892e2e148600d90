//! The state of a table as one Parquet file, so that nobody reads its log from the beginning.
//!
//! Lists and maps of the specification are always empty here, because tables have no partitions and no settings; a table
//! that somebody else gave some is not written as a checkpoint.

use super::action::{Add, Format, Line, MetaData, Protocol, Remove, Txn};
use super::state::{TableState, millis};
use super::{KEEP_REMOVED, place};
use crate::LedgerError;
use crate::store::Store;
use bytes::Bytes;
use flyball_core::units::Timestamp;
use flyball_resources::usage::LedgerTable;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::{Field, Row};
use parquet::schema::parser::parse_message_type;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Commits between two checkpoints.
pub(super) const EVERY: u64 = 100;

const LAST: &str = "_delta_log/_last_checkpoint";

/// Where readers begin.
#[derive(Serialize, Deserialize)]
struct LastCheckpoint {
    version: u64,
    size: u64,
}

const SCHEMA: &str = "message checkpoint {
  OPTIONAL group protocol {
    OPTIONAL INT32 minReaderVersion; OPTIONAL INT32 minWriterVersion;
  }
  OPTIONAL group metaData {
    OPTIONAL BYTE_ARRAY id (UTF8); OPTIONAL BYTE_ARRAY name (UTF8);
    OPTIONAL group format {
      OPTIONAL BYTE_ARRAY provider (UTF8);
      OPTIONAL group options (MAP) { REPEATED group key_value { REQUIRED BYTE_ARRAY key (UTF8); OPTIONAL BYTE_ARRAY value (UTF8); } }
    }
    OPTIONAL BYTE_ARRAY schemaString (UTF8);
    OPTIONAL group partitionColumns (LIST) { REPEATED group list { OPTIONAL BYTE_ARRAY element (UTF8); } }
    OPTIONAL group configuration (MAP) { REPEATED group key_value { REQUIRED BYTE_ARRAY key (UTF8); OPTIONAL BYTE_ARRAY value (UTF8); } }
    OPTIONAL INT64 createdTime;
  }
  OPTIONAL group txn {
    OPTIONAL BYTE_ARRAY appId (UTF8); OPTIONAL INT64 version; OPTIONAL INT64 lastUpdated;
  }
  OPTIONAL group add {
    OPTIONAL BYTE_ARRAY path (UTF8);
    OPTIONAL group partitionValues (MAP) { REPEATED group key_value { REQUIRED BYTE_ARRAY key (UTF8); OPTIONAL BYTE_ARRAY value (UTF8); } }
    OPTIONAL INT64 size; OPTIONAL INT64 modificationTime; OPTIONAL BOOLEAN dataChange; OPTIONAL BYTE_ARRAY stats (UTF8);
  }
  OPTIONAL group remove {
    OPTIONAL BYTE_ARRAY path (UTF8); OPTIONAL INT64 deletionTimestamp; OPTIONAL BOOLEAN dataChange;
  }
}";

/// Writes the state after a commit.
pub(super) async fn write(
    store: &impl Store,
    log: &TableState,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let (Some(version), Some(lines)) = (log.version, lines(log, now)) else { return Ok(()) };
    let path = path(version);
    let bytes = encode(&lines).map_err(|error| LedgerError::broken(&path, error))?;
    // Two who write the same version write the same state.
    store.put_new(&place(log.table, &path), bytes).await?;
    let last = LastCheckpoint { version, size: lines.len() as u64 };
    let last = serde_json::to_vec(&last).map_err(|error| LedgerError::broken(LAST, error))?;
    store.put(&place(log.table, LAST), last.into()).await?;
    Ok(())
}

/// The state of the last checkpoint, if there is one that can be read: the log itself has all of it too.
pub(super) async fn last(
    store: &impl Store,
    table: &'static LedgerTable,
) -> Result<Option<TableState>, LedgerError> {
    let Some(bytes) = store.get(&place(table, LAST)).await? else { return Ok(None) };
    let Ok(last) = serde_json::from_slice::<LastCheckpoint>(&bytes) else { return Ok(None) };
    let Some(bytes) = store.get(&place(table, &path(last.version))).await? else { return Ok(None) };
    let Ok(lines) = decode(bytes) else { return Ok(None) };
    let mut log = TableState::new(table);
    log.apply(&lines)?;
    log.version = Some(last.version);
    Ok(log.meta_data.is_some().then_some(log))
}

fn path(version: u64) -> String {
    format!("_delta_log/{version:020}.checkpoint.parquet")
}

/// The state as lines, or none if the table has something of somebody else that would be lost.
fn lines(log: &TableState, now: Timestamp) -> Option<Vec<Line>> {
    let meta_data = log.meta_data.clone()?;
    let foreign = !meta_data.configuration.is_empty()
        || !meta_data.format.options.is_empty()
        || log
            .files
            .values()
            .any(|file| !file.add.others.is_empty() || !file.add.partition_values.is_empty());
    if foreign {
        return None;
    }
    let mut lines = vec![Line { protocol: log.protocol, ..Line::default() }];
    lines.push(Line { meta_data: Some(meta_data), ..Line::default() });
    lines.extend(log.txns.iter().map(|(app_id, (version, last_updated))| {
        let txn = Txn { app_id: app_id.clone(), version: *version, last_updated: *last_updated };
        Line { txn: Some(txn), ..Line::default() }
    }));
    // In a checkpoint nothing changes data.
    lines.extend(
        log.files.values().map(|file| Line::add(Add { data_change: false, ..file.add.clone() })),
    );
    let lately = millis(now.saturating_sub(KEEP_REMOVED));
    let removed = log.removed.iter().filter(|(_, at)| **at >= lately);
    lines.extend(removed.map(|(path, at)| Line::remove(path, *at, false)));
    Some(lines)
}

fn encode(lines: &[Line]) -> Result<Bytes, ParquetError> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    {
        let mut to = Group { group: file.next_row_group()?, lines };
        columns(&mut to)?;
        to.group.close()?;
    }
    Ok(file.into_inner()?.into())
}

fn columns(to: &mut Group<'_>) -> Result<(), ParquetError> {
    let protocol = |line: &Line| line.protocol;
    to.whole::<Int32Type>(|line| protocol(line).map(|one| Some(one.min_reader_version)))?;
    to.whole::<Int32Type>(|line| protocol(line).map(|one| Some(one.min_writer_version)))?;
    meta_data(to)?;
    let txn = |line: &Line| line.txn.clone();
    to.text(|line| txn(line).map(|one| Some(one.app_id)))?;
    to.whole::<Int64Type>(|line| txn(line).map(|one| Some(one.version)))?;
    to.whole::<Int64Type>(|line| txn(line).map(|one| one.last_updated))?;
    to.text(|line| line.add.as_ref().map(|one| Some(one.path.clone())))?;
    to.empty(|line| line.add.is_some(), 2)?;
    to.empty(|line| line.add.is_some(), 2)?;
    to.whole::<Int64Type>(|line| line.add.as_ref().map(|one| Some(one.size)))?;
    to.whole::<Int64Type>(|line| line.add.as_ref().map(|one| Some(one.modification_time)))?;
    to.whole::<BoolType>(|line| line.add.as_ref().map(|one| Some(one.data_change)))?;
    to.text(|line| line.add.as_ref().map(|one| one.stats.clone()))?;
    to.text(|line| line.remove.as_ref().map(|one| Some(one.path.clone())))?;
    to.whole::<Int64Type>(|line| line.remove.as_ref().map(|one| one.deletion_timestamp))?;
    to.whole::<BoolType>(|line| line.remove.as_ref().map(|one| Some(one.data_change)))
}

fn meta_data(to: &mut Group<'_>) -> Result<(), ParquetError> {
    fn of(line: &Line) -> Option<&MetaData> {
        line.meta_data.as_ref()
    }
    let has = |line: &Line| line.meta_data.is_some();
    to.text(|line| of(line).map(|one| Some(one.id.clone())))?;
    to.text(|line| of(line).map(|one| one.name.clone()))?;
    // Inside of `format`, which is there with it: one level deeper than the others.
    to.leaf::<ByteArrayType>(3, |line| {
        of(line).map(|one| Some(ByteArray::from(one.format.provider.as_str())))
    })?;
    to.empty(has, 3)?;
    to.empty(has, 3)?;
    to.text(|line| of(line).map(|one| Some(one.schema_string.clone())))?;
    to.empty(has, 2)?;
    to.empty(has, 2)?;
    to.empty(has, 2)?;
    to.whole::<Int64Type>(|line| of(line).map(|one| one.created_time))
}

struct Group<'a> {
    group: SerializedRowGroupWriter<'a, Vec<u8>>,
    lines: &'a [Line],
}

impl Group<'_> {
    fn text(&mut self, cell: impl Fn(&Line) -> Option<Option<String>>) -> Result<(), ParquetError> {
        self.leaf::<ByteArrayType>(2, |line| {
            cell(line).map(|text| text.map(|text| text.into_bytes().into()))
        })
    }

    fn whole<T: DataType>(
        &mut self,
        cell: impl Fn(&Line) -> Option<Option<T::T>>,
    ) -> Result<(), ParquetError> {
        self.leaf::<T>(2, cell)
    }

    /// A column below groups that are there or not, all at once. `levels` counts the column itself.
    fn leaf<T: DataType>(
        &mut self,
        levels: i16,
        cell: impl Fn(&Line) -> Option<Option<T::T>>,
    ) -> Result<(), ParquetError> {
        let (mut cells, mut there) = (Vec::new(), Vec::new());
        for line in self.lines {
            there.push(match cell(line) {
                None => 0,
                Some(None) => levels - 1,
                Some(Some(value)) => {
                    cells.push(value);
                    levels
                }
            });
        }
        self.column::<T>(&cells, &there, None)
    }

    /// A column of a list or map that is empty wherever its group is there.
    fn empty(&mut self, has: impl Fn(&Line) -> bool, levels: i16) -> Result<(), ParquetError> {
        let there: Vec<i16> =
            self.lines.iter().map(|line| if has(line) { levels } else { 0 }).collect();
        let repeated = vec![0; there.len()];
        self.column::<ByteArrayType>(&[], &there, Some(&repeated))
    }

    fn column<T: DataType>(
        &mut self,
        cells: &[T::T],
        there: &[i16],
        repeated: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let Some(mut column) = self.group.next_column()? else {
            return Err(ParquetError::General("more columns than the schema has".to_owned()));
        };
        column.typed::<T>().write_batch(cells, Some(there), repeated)?;
        column.close()
    }
}

fn decode(bytes: Bytes) -> Result<Vec<Line>, ParquetError> {
    let file = SerializedFileReader::new(bytes)?;
    file.get_row_iter(None)?.map(|row| Ok(line(&row?))).collect()
}

fn line(row: &Row) -> Line {
    let mut line = Line::default();
    for (name, field) in row.get_column_iter() {
        let Field::Group(group) = field else { continue };
        let of = Cells(group);
        match name.as_str() {
            "protocol" => line.protocol = protocol(&of),
            "metaData" => line.meta_data = read_meta_data(&of),
            "txn" => {
                let (app_id, version) = (of.text("appId"), of.whole("version"));
                line.txn = app_id.zip(version).map(|(app_id, version)| Txn {
                    app_id,
                    version,
                    last_updated: of.whole("lastUpdated"),
                });
            }
            "add" => line.add = read_add(&of),
            "remove" => {
                line.remove = of.text("path").map(|path| Remove {
                    path,
                    deletion_timestamp: of.whole("deletionTimestamp"),
                    data_change: false,
                });
            }
            _ => {}
        }
    }
    line
}

fn protocol(of: &Cells<'_>) -> Option<Protocol> {
    let version = |name| of.whole(name).and_then(|version| i32::try_from(version).ok());
    Some(Protocol {
        min_reader_version: version("minReaderVersion")?,
        min_writer_version: version("minWriterVersion")?,
    })
}

fn read_meta_data(of: &Cells<'_>) -> Option<MetaData> {
    let Some(Field::Group(format)) = of.field("format") else { return None };
    Some(MetaData {
        id: of.text("id")?,
        name: of.text("name"),
        format: Format { provider: Cells(format).text("provider")?, options: BTreeMap::new() },
        schema_string: of.text("schemaString")?,
        partition_columns: Vec::new(),
        configuration: BTreeMap::new(),
        created_time: of.whole("createdTime"),
    })
}

fn read_add(of: &Cells<'_>) -> Option<Add> {
    Some(Add {
        path: of.text("path")?,
        partition_values: BTreeMap::new(),
        size: of.whole("size")?,
        modification_time: of.whole("modificationTime")?,
        data_change: false,
        stats: of.text("stats"),
        others: Map::new(),
    })
}

struct Cells<'a>(&'a Row);

impl<'a> Cells<'a> {
    fn field(&self, name: &str) -> Option<&'a Field> {
        self.0.get_column_iter().find_map(|(one, field)| (one == name).then_some(field))
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.field(name) {
            Some(Field::Str(text)) => Some(text.clone()),
            _ => None,
        }
    }

    fn whole(&self, name: &str) -> Option<i64> {
        match self.field(name) {
            Some(Field::Long(number)) => Some(*number),
            Some(Field::Int(number)) => Some(i64::from(*number)),
            _ => None,
        }
    }
}
