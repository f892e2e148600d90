//! Files of a table: rows as Parquet, and back.

mod read;
mod write;

pub(crate) use read::read;
pub(crate) use write::write;

use parquet::errors::ParquetError;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;

use flyball_resources::usage::{
    CHARGE_PERIOD_END, CHARGE_PERIOD_START, ESTIMATED, LedgerTable, MeasureUnit,
};

/// Length and checksum of all pages, in the footer: the library takes what is in pages for granted and panics.
pub(crate) const CHECKSUM: &str = "flyball.crc32";

/// Digits of an amount of money, and those of them after the point: what fits into 64 bits.
pub(crate) const MONEY_DIGITS: (u32, u32) = (18, 12);

/// The largest amount of money in a row of a file, in either direction: 999,999.99 dollars.
const MOST_MONEY: i64 = 10_i64.pow(MONEY_DIGITS.0) - 1;

fn schema(table: &LedgerTable) -> Result<Type, ParquetError> {
    let (digits, places) = MONEY_DIGITS;
    let mut fields = vec![
        format!("REQUIRED INT64 {CHARGE_PERIOD_START} (TIMESTAMP(MICROS,true));"),
        format!("REQUIRED INT64 {CHARGE_PERIOD_END} (TIMESTAMP(MICROS,true));"),
    ];
    let texts = table.texts.iter();
    fields.extend(texts.map(|text| format!("REQUIRED BYTE_ARRAY {} (UTF8);", text.name)));
    fields.push(format!("REQUIRED BOOLEAN {ESTIMATED};"));
    fields.extend(table.measures.iter().map(|measure| match measure.unit {
        MeasureUnit::Count => format!("REQUIRED INT64 {};", measure.name),
        MeasureUnit::Money => {
            format!("REQUIRED INT64 {} (DECIMAL({digits},{places}));", measure.name)
        }
    }));
    parse_message_type(&format!("message {} {{ {} }}", table.name, fields.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{RowKey, Rows};
    use flyball_resources::usage::{GPU_TIME, USAGE, usage_measure};
    use std::sync::Arc;

    fn rows(table: &'static LedgerTable) -> Rows {
        let mut rows = Rows::new(table);
        for row in 0..50_i64 {
            let texts =
                (0..table.texts.len()).map(|place| Arc::from(format!("ü{place}-{}", row % 7)));
            let key = RowKey {
                start: row * 300_000_000,
                end: (row + 1) * 300_000_000,
                estimated: row % 3 == 0,
                texts: texts.collect(),
            };
            let measures: Vec<i64> =
                (0..table.measures.len() as i64).map(|place| place * row - 3).collect();
            rows.add(key, &measures);
        }
        rows
    }

    #[test]
    fn rows_come_back_and_the_same_rows_are_the_same_bytes() {
        for table in LedgerTable::ALL {
            let rows = rows(table);
            let bytes = write(&rows).unwrap();
            assert_eq!(read(table, bytes.clone()).unwrap(), rows);
            assert_eq!(write(&rows).unwrap(), bytes);
        }
        let none = Rows::new(&USAGE);
        assert_eq!(read(&USAGE, write(&none).unwrap()).unwrap(), none);
    }

    #[test]
    fn an_amount_that_no_file_can_have_is_refused() {
        let mut rows = rows(&USAGE);
        let key = rows.iter().next().unwrap().0.clone();
        let mut measures = vec![0; USAGE.measures.len()];
        measures[usage_measure::LIST_COST] = MOST_MONEY;
        rows.add(key.clone(), &measures);
        rows.add(key, &measures);
        assert!(write(&rows).is_err());
    }

    #[test]
    fn a_file_of_an_older_version_lacks_columns_and_another_tables_file_is_refused() {
        let rows = rows(&USAGE);
        static OLDER: LedgerTable = LedgerTable {
            name: "usage",
            texts: USAGE.texts,
            measures: USAGE.measures.split_at(5).0,
        };
        let mut older = Rows::new(&OLDER);
        rows.iter().for_each(|(key, measures)| older.add(key.clone(), &measures[..5]));
        let back = read(&USAGE, write(&older).unwrap()).unwrap();
        assert_eq!(back.sums()[..5], rows.sums()[..5]);
        assert_eq!(back.sums()[5..], [0; 10]);
        assert!(read(&GPU_TIME, write(&rows).unwrap()).is_err());
    }

    #[test]
    fn bytes_that_are_no_file_are_refused_wherever_they_are_cut_or_changed() {
        let bytes = write(&rows(&USAGE)).unwrap();
        for end in (0..bytes.len()).step_by(97) {
            assert!(read(&USAGE, bytes.slice(..end)).is_err(), "{end}");
        }
        // The pages; behind them are the footer and what is beside it, which have no checksum.
        for place in (4..bytes.len() / 3).step_by(31) {
            let mut wrong = bytes.to_vec();
            wrong[place] ^= 0x55;
            assert!(read(&USAGE, wrong.into()).is_err(), "{place}");
        }
    }
}
