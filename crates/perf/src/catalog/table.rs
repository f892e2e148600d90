//! Reading a CSV file of the catalogue: the header first, then row by row as text.
//!
//! Cells stay text here. Whoever knows what a cell means turns it into a number, so that every
//! wrong cell of a row is told and not only the first.

use super::problems::Reader;
use serde::de::DeserializeOwned;

/// The rows with their lines. `columns` is what the header must say, in that order.
pub(super) fn rows<T: DeserializeOwned>(
    reader: &mut Reader<'_>,
    text: &str,
    columns: &[&str],
) -> Vec<(usize, T)> {
    let mut file = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = match file.headers() {
        Ok(header) => header.iter().map(str::to_owned).collect(),
        Err(error) => {
            reader.wrong(error.to_string(), "fix the first line");
            return Vec::new();
        }
    };
    if header != columns {
        reader.wrong(
            format!("the columns are `{}`", header.join(",")),
            format!("write `{}`", columns.join(",")),
        );
        return Vec::new();
    }
    let mut found = Vec::new();
    for record in file.records() {
        let read = record.and_then(|record| {
            let line = record.position().map_or(0, csv::Position::line) as usize;
            Ok((line, record.deserialize::<T>(Some(&header.clone().into()))?))
        });
        match read {
            Ok(row) => found.push(row),
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                reader.line = line as usize;
                let mend = format!("write {} cells, with quotes around commas", columns.len());
                reader.wrong(reason(&error), mend);
            }
        }
    }
    found
}

/// Without csv's own position, which we say in our way.
fn reason(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { len, .. } => format!("the row has {len} cells"),
        csv::ErrorKind::Utf8 { .. } => "the row is not UTF-8".to_owned(),
        _ => error.to_string(),
    }
}
