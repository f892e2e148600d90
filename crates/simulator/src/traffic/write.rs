//! Traffic as files, in the forms that `load` reads back.
//!
//! Gaps of rates are rows without a rate. Gaps of single requests are not written: they are where
//! nothing is, and are found again.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::loaded::{LoadedPart, Traffic};
use super::{Trace, TrafficRates};

/// CSV with a header: one row per request, or per window and client. `start` is when the traffic
/// starts, in seconds since 1970; without it times count from zero.
pub fn csv(parts: &[LoadedPart], start: Option<f64>, into: &mut impl Write) -> io::Result<()> {
    let columns = columns(parts, start);
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut writer = csv::Writer::from_writer(into);
    writer.write_record(&names)?;
    let rows = columns.first().map_or(0, |(_, cells)| cells.len());
    for row in 0..rows {
        writer.write_record(columns.iter().map(|(_, cells)| cells.text(row)))?;
    }
    writer.flush()
}

/// JSON lines as Mooncake has them, with the size of blocks; only of single requests.
pub fn jsonl(parts: &[LoadedPart], start: Option<f64>, into: &mut impl Write) -> io::Result<()> {
    for part in parts {
        let Traffic::Trace(trace) = &part.traffic else {
            let words = "rates have no single requests, which JSON lines are made of";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        };
        for request in &trace.requests {
            let mut line = serde_json::json!({
                "timestamp": (request.at.get() + start.unwrap_or(0.0)) * 1e3,
                "input_length": request.prompt,
                "output_length": request.output,
                "hash_ids": trace.blocks_of(request),
                "block_tokens": trace.block_tokens,
            });
            if let Some(model) = &part.model {
                line["model"] = model.as_str().into();
            }
            if let Some(patience) = request.patience {
                line["patience_seconds"] = patience.get().into();
            }
            writeln!(into, "{line}")?;
        }
    }
    Ok(())
}

/// Parquet with the columns of the CSV, compressed with snappy.
pub fn parquet(
    parts: &[LoadedPart],
    start: Option<f64>,
    into: &mut (impl Write + Send),
) -> io::Result<()> {
    let columns = columns(parts, start);
    let fields: Vec<String> = columns.iter().map(|(name, cells)| cells.field(name)).collect();
    let schema = format!("message traffic {{ {} }}", fields.join(" "));
    let write = || -> Result<(), ParquetError> {
        let schema = Arc::new(parse_message_type(&schema)?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut file = SerializedFileWriter::new(into, schema, Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for (_, cells) in &columns {
            cells.write(&mut group)?;
        }
        group.close()?;
        file.close()?;
        Ok(())
    };
    write().map_err(io::Error::other)
}

/// The cells of one column.
enum Cells {
    Numbers(Vec<Option<f64>>),
    Whole(Vec<u64>),
    Words(Vec<String>),
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(cells) => cells.len(),
            Self::Whole(cells) => cells.len(),
            Self::Words(cells) => cells.len(),
        }
    }

    fn text(&self, row: usize) -> String {
        match self {
            Self::Numbers(cells) => cells[row].map(|cell| cell.to_string()).unwrap_or_default(),
            Self::Whole(cells) => cells[row].to_string(),
            Self::Words(cells) => cells[row].clone(),
        }
    }

    fn field(&self, name: &str) -> String {
        match self {
            Self::Numbers(_) => format!("OPTIONAL DOUBLE {name};"),
            Self::Whole(_) => format!("REQUIRED INT64 {name};"),
            Self::Words(_) => format!("REQUIRED BYTE_ARRAY {name} (UTF8);"),
        }
    }

    fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let Some(mut column) = group.next_column()? else {
            return Err(ParquetError::General("more columns than the schema has".to_owned()));
        };
        match self {
            Self::Numbers(cells) => {
                let known: Vec<f64> = cells.iter().flatten().copied().collect();
                let there: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
                column.typed::<DoubleType>().write_batch(&known, Some(&there), None)?;
            }
            Self::Whole(cells) => {
                let cells: Vec<i64> = cells.iter().map(|cell| *cell as i64).collect();
                column.typed::<Int64Type>().write_batch(&cells, None, None)?;
            }
            Self::Words(cells) => {
                let cells: Vec<ByteArray> = cells.iter().map(|c| c.as_bytes().into()).collect();
                column.typed::<ByteArrayType>().write_batch(&cells, None, None)?;
            }
        }
        column.close()
    }
}

/// Columns that would be empty are left out. A file has requests or rates; where both are given,
/// the kind of the first part counts.
fn columns(parts: &[LoadedPart], start: Option<f64>) -> Vec<(&'static str, Cells)> {
    let start = start.unwrap_or(0.0);
    let mut traces: Vec<(&LoadedPart, &Trace)> = Vec::new();
    let mut rates: Vec<(&LoadedPart, &TrafficRates)> = Vec::new();
    for part in parts {
        match &part.traffic {
            Traffic::Trace(trace) => traces.push((part, trace)),
            Traffic::Rates(series) => rates.push((part, series)),
        }
    }
    let of_rates = matches!(parts.first().map(|part| &part.traffic), Some(Traffic::Rates(_)));
    let mut columns =
        if of_rates { rate_columns(&rates, start) } else { request_columns(&traces, start) };
    if parts.iter().any(|part| part.model.is_some()) {
        let name = |part: &LoadedPart| part.model.clone().unwrap_or_default();
        let names = if of_rates {
            let rows = |(part, series): &(&LoadedPart, &TrafficRates)| {
                vec![name(part); series.windows() * series.clients.len()]
            };
            rates.iter().flat_map(rows).collect()
        } else {
            let rows =
                |(part, trace): &(&LoadedPart, &Trace)| vec![name(part); trace.requests.len()];
            traces.iter().flat_map(rows).collect()
        };
        columns.push(("model", Cells::Words(names)));
    }
    columns
}

fn request_columns(traces: &[(&LoadedPart, &Trace)], start: f64) -> Vec<(&'static str, Cells)> {
    let all =
        || traces.iter().flat_map(|(_, trace)| trace.requests.iter().map(move |one| (*trace, one)));
    let times = all().map(|(_, one)| Some(start + one.at.get())).collect();
    let mut columns = vec![
        ("time", Cells::Numbers(times)),
        ("prompt_tokens", Cells::Whole(all().map(|(_, one)| u64::from(one.prompt)).collect())),
        ("output_tokens", Cells::Whole(all().map(|(_, one)| u64::from(one.output)).collect())),
    ];
    if all().any(|(_, one)| !one.blocks.is_empty()) {
        let names = all().map(|(trace, one)| {
            let names: Vec<String> = trace.blocks_of(one).iter().map(u64::to_string).collect();
            names.join(" ")
        });
        columns.push(("hash_ids", Cells::Words(names.collect())));
        let sizes = all().map(|(trace, _)| u64::from(trace.block_tokens));
        columns.push(("block_tokens", Cells::Whole(sizes.collect())));
    }
    if all().any(|(_, one)| one.patience.is_some()) {
        let patience = all().map(|(_, one)| one.patience.map(|patience| patience.get()));
        columns.push(("patience_seconds", Cells::Numbers(patience.collect())));
    }
    columns
}

fn rate_columns(rates: &[(&LoadedPart, &TrafficRates)], start: f64) -> Vec<(&'static str, Cells)> {
    let (mut times, mut clients, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (mut variations, mut prompts, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    for (part, series) in rates {
        let means = part.lengths.as_ref().map(super::lengths::Lengths::means);
        for place in 0..series.windows() {
            let known = !series.is_gap(place);
            for (number, client) in series.clients.iter().enumerate() {
                let window = client.get(place).filter(|_| known);
                times.push(Some(start + place as f64 * series.window.get()));
                clients.push(number as u64);
                values.push(window.map(|window| window.rate));
                variations.push(window.map(|window| window.variation));
                prompts.push(means.map(|means| means.0));
                outputs.push(means.map(|means| means.1));
            }
        }
    }
    let mut columns = vec![("time", Cells::Numbers(times))];
    if clients.iter().any(|client| *client > 0) {
        columns.push(("client", Cells::Whole(clients)));
    }
    columns.push(("requests_per_second", Cells::Numbers(values)));
    columns.push(("variation", Cells::Numbers(variations)));
    if prompts.iter().any(Option::is_some) {
        columns.push(("prompt_tokens", Cells::Numbers(prompts)));
        columns.push(("output_tokens", Cells::Numbers(outputs)));
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::load::{Form, Loaded, read};

    fn written(loaded: &Loaded, form: &str) -> Vec<u8> {
        let mut file = Vec::new();
        match form {
            "csv" => csv(&loaded.parts, loaded.start, &mut file),
            "jsonl" => jsonl(&loaded.parts, loaded.start, &mut file),
            _ => parquet(&loaded.parts, loaded.start, &mut file),
        }
        .unwrap();
        file
    }

    #[test]
    fn requests_come_back_from_every_form() {
        let text = "time,prompt_tokens,output_tokens,hash_ids,block_tokens,model,patience_seconds\n\
                    1700000000.5,40,1,7 8 9,16,a,\n1700000001.25,9,2,,16,a,30\n\
                    1700000002,17,3,18446744073709551615 4,16,\"b, c\",\n";
        let source = read("source", text.as_bytes()).unwrap();
        for (form, found) in
            [("csv", Form::Csv), ("jsonl", Form::Jsonl), ("parquet", Form::Parquet)]
        {
            let back = read(form, &written(&source, form)).unwrap();
            assert_eq!((back.form, back.start), (found, source.start), "{form}");
            assert_eq!(back.parts, source.parts, "{form}");
        }
    }

    #[test]
    fn rates_come_back_with_their_gaps() {
        let text = "time,client,rps,cv\n0,x,1,2\n0,y,2,1\n60,x,,\n120,x,3,1\n120,y,4,0.5\n";
        let source = read("source", text.as_bytes()).unwrap();
        for form in ["csv", "parquet"] {
            let back = read(form, &written(&source, form)).unwrap();
            assert_eq!(back.parts, source.parts, "{form}");
        }
        assert!(jsonl(&source.parts, None, &mut Vec::new()).is_err());
    }
}
