//! CSV with a header: Azure's traces, `BurstGPT`, and any file with the same or plain names.

use super::sheet::{Cell, Sheet};
use super::{Form, LoadError, Loaded};

pub(super) fn read(file: &str, text: &str) -> Result<Loaded, LoadError> {
    // Rows of another length are told apart below, where it is said which cell is missing.
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    let broken = |error: &csv::Error| LoadError::new(file, error.to_string());
    let header = reader.headers().map_err(|error| broken(&error))?.clone();
    let header: Vec<&str> = header.iter().collect();
    let mut sheet = Sheet::new(file, &header)?;
    let mut row = csv::StringRecord::new();
    loop {
        match reader.read_record(&mut row) {
            Ok(false) => break,
            Ok(true) => {
                let line = row.position().map_or(0, csv::Position::line);
                sheet.row(line, |place| row.get(place).map_or(Cell::Empty, Cell::Text));
            }
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                sheet.unread(line, "not text in UTF-8");
            }
        }
    }
    sheet.finish(form(&header))
}

fn form(header: &[&str]) -> Form {
    let has = |column: &str| header.iter().any(|name| name.eq_ignore_ascii_case(column));
    match () {
        () if has("ContextTokens") && has("GeneratedTokens") => Form::Azure,
        () if has("Log Type") && has("Response tokens") => Form::BurstGpt,
        () if ["requests_per_second", "rps", "request_rate", "rate"].iter().any(|n| has(n)) => {
            Form::RateCsv
        }
        () => Form::Csv,
    }
}
