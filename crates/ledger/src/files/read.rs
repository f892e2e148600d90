//! A Parquet file as rows.

use super::CHECKSUM;
use crate::rows::{RowKey, Rows};
use bytes::Bytes;
use flyball_resources::usage::{CHARGE_PERIOD_END, CHARGE_PERIOD_START, ESTIMATED, LedgerTable};
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::sync::Arc;

/// Rows of a file that may have more. No file of ours comes near.
const MOST_ROWS: i64 = 50_000_000;

/// The rows of a file. Columns that an older version did not write are empty or zero.
pub(crate) fn read(table: &'static LedgerTable, bytes: Bytes) -> Result<Rows, ParquetError> {
    let file = SerializedFileReader::new(bytes.clone())?;
    check(&file, &bytes)?;
    let mut rows = Rows::new(table);
    for number in 0..file.num_row_groups() {
        let group = file.get_row_group(number)?;
        add_group(&mut rows, group.as_ref())?;
    }
    Ok(rows)
}

/// Whether what is before the footer is what was written. Files that somebody else merged have no checksum.
fn check(file: &SerializedFileReader<Bytes>, bytes: &[u8]) -> Result<(), ParquetError> {
    let notes = file.metadata().file_metadata().key_value_metadata();
    let note = notes.into_iter().flatten().find(|note| note.key == CHECKSUM);
    let Some(stated) = note.and_then(|note| note.value.as_deref()) else { return Ok(()) };
    let sum = |(length, sum): (&str, &str)| {
        let pages = bytes.get(..length.parse().ok()?)?;
        Some(crc32fast::hash(pages).to_string() == sum)
    };
    if stated.split_once(' ').and_then(sum) == Some(true) {
        Ok(())
    } else {
        Err(ParquetError::General("its checksum differs".to_owned()))
    }
}

fn add_group(rows: &mut Rows, group: &dyn RowGroupReader) -> Result<(), ParquetError> {
    let table = rows.table();
    let count = group.metadata().num_rows();
    if !(0..=MOST_ROWS).contains(&count) {
        return Err(ParquetError::General(format!("{count} rows")));
    }
    let group = Group { group, count: count as usize };
    let needed = |name: &str| {
        group.column::<Int64Type>(name)?.ok_or_else(|| {
            ParquetError::General(format!("no column {name}: a file of another table"))
        })
    };
    let (starts, ends) = (needed(CHARGE_PERIOD_START)?, needed(CHARGE_PERIOD_END)?);
    let estimated = group.column::<BoolType>(ESTIMATED)?;
    let mut texts: Vec<Vec<Arc<str>>> = Vec::with_capacity(table.texts.len());
    for column in table.texts {
        texts.push(group.texts(column.name)?);
    }
    let mut measures = Vec::with_capacity(table.measures.len());
    for column in table.measures {
        measures
            .push(group.column::<Int64Type>(column.name)?.unwrap_or_else(|| vec![0; group.count]));
    }
    if measures.first().is_none_or(|_| group.place(table.measures[0].name).is_none()) {
        return Err(ParquetError::General("a file of another table".to_owned()));
    }
    for row in 0..group.count {
        let key = RowKey {
            start: starts[row],
            end: ends[row],
            estimated: estimated.as_ref().is_some_and(|cells| cells[row]),
            texts: texts.iter().map(|cells| Arc::clone(&cells[row])).collect(),
        };
        let measures: Vec<i64> = measures.iter().map(|cells| cells[row]).collect();
        rows.add(key, &measures);
    }
    Ok(())
}

struct Group<'a> {
    group: &'a dyn RowGroupReader,
    count: usize,
}

impl Group<'_> {
    fn place(&self, name: &str) -> Option<usize> {
        let columns = self.group.metadata().columns();
        columns.iter().position(|column| column.column_path().string() == name)
    }

    fn column<T: DataType>(&self, name: &str) -> Result<Option<Vec<T::T>>, ParquetError> {
        let Some(place) = self.place(name) else { return Ok(None) };
        let column = self.group.metadata().column(place);
        let starts = [Some(column.data_page_offset()), column.dictionary_page_offset()];
        // The library takes these for granted and panics.
        if column.compressed_size() < 0 || starts.into_iter().flatten().any(|start| start < 0) {
            return Err(ParquetError::General(format!("column {name} is nowhere")));
        }
        let reader = self.group.get_column_reader(place)?;
        if reader_type(&reader) != T::get_physical_type() {
            return Err(ParquetError::General(format!("column {name} has another type")));
        }
        let mut reader = get_typed_column_reader::<T>(reader);
        let mut cells = Vec::new();
        let (mut there, mut filled) = (Vec::new(), 0);
        while filled < self.count {
            let (records, ..) =
                reader.read_records(self.count - filled, Some(&mut there), None, &mut cells)?;
            if records == 0 {
                break;
            }
            filled += records;
        }
        if cells.len() == self.count {
            Ok(Some(cells))
        } else {
            Err(ParquetError::General(format!("column {name} has {} cells", cells.len())))
        }
    }

    /// Texts repeat in runs, and one that is the same as before is the same in memory.
    fn texts(&self, name: &str) -> Result<Vec<Arc<str>>, ParquetError> {
        let Some(cells) = self.column::<ByteArrayType>(name)? else {
            return Ok(vec![Arc::default(); self.count]);
        };
        let mut texts: Vec<Arc<str>> = Vec::with_capacity(cells.len());
        for cell in &cells {
            let text = cell.as_utf8()?;
            let next = match texts.last() {
                Some(last) if **last == *text => Arc::clone(last),
                _ => text.into(),
            };
            texts.push(next);
        }
        Ok(texts)
    }
}

fn reader_type(reader: &ColumnReader) -> parquet::basic::Type {
    use parquet::basic::Type;
    match reader {
        ColumnReader::BoolColumnReader(_) => Type::BOOLEAN,
        ColumnReader::Int32ColumnReader(_) => Type::INT32,
        ColumnReader::Int64ColumnReader(_) => Type::INT64,
        ColumnReader::Int96ColumnReader(_) => Type::INT96,
        ColumnReader::FloatColumnReader(_) => Type::FLOAT,
        ColumnReader::DoubleColumnReader(_) => Type::DOUBLE,
        ColumnReader::ByteArrayColumnReader(_) => Type::BYTE_ARRAY,
        ColumnReader::FixedLenByteArrayColumnReader(_) => Type::FIXED_LEN_BYTE_ARRAY,
    }
}
