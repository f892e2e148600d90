//! Rows as a Parquet file.

use super::{CHECKSUM, MOST_MONEY, schema};
use crate::rows::Rows;
use bytes::Bytes;
use flyball_resources::usage::MeasureUnit;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use std::sync::Arc;

/// What wrote the file. Without a version: the same rows should be the same bytes after an update too.
const CREATED_BY: &str = "flyball";

/// The file. The same rows give the same bytes.
pub(crate) fn write(rows: &Rows) -> Result<Bytes, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(CREATED_BY.to_owned())
        .build();
    let schema = Arc::new(schema(rows.table())?);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    if !rows.is_empty() {
        let mut group = file.next_row_group()?;
        columns(rows, &mut group)?;
        group.close()?;
    }
    file.flush()?;
    let pages = file.inner();
    let checksum = format!("{} {}", pages.len(), crc32fast::hash(pages));
    file.append_key_value_metadata(KeyValue::new(CHECKSUM.to_owned(), checksum));
    Ok(file.into_inner()?.into())
}

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

fn columns(rows: &Rows, group: &mut Group<'_>) -> Result<(), ParquetError> {
    let table = rows.table();
    column::<Int64Type>(group, rows.iter().map(|(key, _)| key.start).collect())?;
    column::<Int64Type>(group, rows.iter().map(|(key, _)| key.end).collect())?;
    for place in 0..table.texts.len() {
        let text = |key: &crate::rows::RowKey| ByteArray::from(&*key.texts[place]);
        column::<ByteArrayType>(group, rows.iter().map(|(key, _)| text(key)).collect())?;
    }
    column::<BoolType>(group, rows.iter().map(|(key, _)| key.estimated).collect())?;
    for (place, measure) in table.measures.iter().enumerate() {
        let cells: Vec<i64> = rows.iter().map(|(_, measures)| measures[place]).collect();
        let large = |cell: &&i64| cell.unsigned_abs() > MOST_MONEY.unsigned_abs();
        if let Some(cell) = cells.iter().find(large).filter(|_| measure.unit == MeasureUnit::Money)
        {
            return Err(ParquetError::General(format!(
                "{cell} does not fit into {}",
                measure.name
            )));
        }
        column::<Int64Type>(group, cells)?;
    }
    Ok(())
}

fn column<T: DataType>(group: &mut Group<'_>, cells: Vec<T::T>) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".to_owned()));
    };
    column.typed::<T>().write_batch(&cells, None, None)?;
    column.close()
}
