//! Parquet with the column names of CSV.

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::sheet::{Cell, Sheet};
use super::{Form, LoadError, Loaded};

const HINT: &str = "it must be flat, and compressed with snappy, gzip or not at all";

pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Loaded, LoadError> {
    let broken = |error: parquet::errors::ParquetError| {
        LoadError::new(file, format!("cannot be read as Parquet: {error}")).hint(HINT)
    };
    let reader = SerializedFileReader::new(Bytes::copy_from_slice(bytes)).map_err(broken)?;
    let schema = reader.metadata().file_metadata().schema_descr().root_schema_ptr();
    let header: Vec<&str> = schema.get_fields().iter().map(|field| field.name()).collect();
    let mut sheet = Sheet::new(file, &header)?;
    for (number, row) in reader.get_row_iter(None).map_err(broken)?.enumerate() {
        // A broken page ends the file: what follows it cannot be found.
        let row = row.map_err(broken)?;
        let fields: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
        sheet.row(number as u64 + 1, |place| fields.get(place).map_or(Cell::Empty, |f| cell(f)));
    }
    sheet.finish(Form::Parquet)
}

fn cell(field: &Field) -> Cell<'_> {
    match field {
        Field::Str(text) => Cell::Text(text),
        Field::Byte(n) => Cell::Number(f64::from(*n)),
        Field::Short(n) => Cell::Number(f64::from(*n)),
        Field::Int(n) => Cell::Number(f64::from(*n)),
        Field::Long(n) => Cell::Number(*n as f64),
        Field::UByte(n) => Cell::Number(f64::from(*n)),
        Field::UShort(n) => Cell::Number(f64::from(*n)),
        Field::UInt(n) => Cell::Number(f64::from(*n)),
        Field::ULong(n) => Cell::Number(*n as f64),
        Field::Float(n) => Cell::Number(f64::from(*n)),
        Field::Double(n) => Cell::Number(*n),
        // Moments are as large as the unit makes them, and are told by that.
        Field::TimestampMillis(n) | Field::TimestampMicros(n) => Cell::Number(*n as f64),
        Field::ListInternal(list) => {
            Cell::Names(list.elements().iter().filter_map(whole).collect())
        }
        _ => Cell::Empty,
    }
}

fn whole(field: &Field) -> Option<u64> {
    match field {
        // Names are told apart, not counted: all 64 bits stay.
        Field::Long(n) => Some(*n as u64),
        Field::ULong(n) => Some(*n),
        Field::Int(n) => Some(*n as u64),
        Field::UInt(n) => Some(u64::from(*n)),
        _ => None,
    }
}
