//! `flyball trace convert`: the same traffic in another form.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flyball_simulator::traffic::load::Traffic;
use flyball_simulator::traffic::write;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::document::{Block, Document};
use crate::output::{Answer, Detail, Exit, Failure, Printer, plural};

/// Write traffic in another form
///
/// Columns of CSV and Parquet are named the same; single requests may also be JSON lines as
/// Mooncake has them. What is written can be read again by every command that takes a trace.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// File, or folder of ServeGen
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Form to write
    #[arg(long, value_name = "FORM", env = "FLYBALL_TRACE_TO", hide_env_values = true)]
    to: Form,

    /// File to write; one that exists is replaced
    #[arg(long, value_name = "FILE", env = "FLYBALL_TRACE_OUTPUT", hide_env_values = true)]
    output: PathBuf,

    /// Only this model
    #[arg(long, value_name = "NAME", env = "FLYBALL_TRACE_MODEL", hide_env_values = true)]
    model: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Csv,
    Parquet,
    Jsonl,
}

/// What was written.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Converted {
    pub(super) file: String,
    /// Format of the input.
    pub(super) form: String,
    /// The file that was written.
    pub(super) output: String,
    pub(super) models: usize,
    /// Rows that were read.
    pub(super) rows: usize,
    /// Rows that could not be read and are not in the new file.
    pub(super) unread: usize,
    /// Columns that are not in the new file.
    pub(super) remarks: Vec<String>,
}

pub(super) fn run(args: &ConvertArgs, printer: &Printer) -> Result<Exit, Failure> {
    let loaded = super::only(super::load(&args.file)?, args.model.as_deref())?;
    let rates = loaded.parts.iter().any(|part| matches!(part.traffic, Traffic::Rates(_)));
    let place = args.output.display().to_string();
    if rates && args.to == Form::Jsonl {
        return Err(Failure::new(Exit::Usage, "rates cannot be written as JSON lines")
            .at(args.file.display().to_string())
            .because("JSON lines have one request each, and the file has only rates")
            .hint("use --to csv or --to parquet"));
    }
    let refused = |error: std::io::Error| {
        Failure::new(Exit::Usage, "the file cannot be written")
            .at(&place)
            .because(error.to_string())
            .hint("name a file in a folder that exists with --output")
    };
    let mut file = BufWriter::new(File::create(&args.output).map_err(refused)?);
    match args.to {
        Form::Csv => write::csv(&loaded.parts, loaded.start, &mut file),
        Form::Parquet => write::parquet(&loaded.parts, loaded.start, &mut file),
        Form::Jsonl => write::jsonl(&loaded.parts, loaded.start, &mut file),
    }
    .and_then(|()| file.flush())
    .map_err(refused)?;
    let mut remarks = loaded.tally.notes;
    if loaded.parts.iter().any(|part| part.lengths.is_some()) {
        remarks.push("of lengths only the means are written".to_owned());
    }
    if !loaded.tally.unknown_columns.is_empty() {
        let names = loaded.tally.unknown_columns.join(", ");
        remarks.push(format!("columns that mean nothing here are left out: {names}"));
    }
    Ok(printer.answer(&Converted {
        file: loaded.tally.file,
        form: loaded.form.to_string(),
        output: place,
        models: loaded.parts.len(),
        rows: loaded.tally.read,
        unread: loaded.tally.unread,
        remarks,
    }))
}

impl Answer for Converted {
    const KIND: &'static str = "TraceConversion";

    fn view(&self, _: Detail) -> Document {
        let mut document = Document::new();
        if !self.remarks.is_empty() {
            document.push(Block::Notes(self.remarks.clone()));
            document.push(Block::Gap);
        }
        let unread = match self.unread {
            0 => String::new(),
            count => format!(", {count} could not be read"),
        };
        document.push(Block::Line(format!(
            "{} ({}): {}{unread}; written to {}",
            self.file,
            self.form,
            plural(self.rows, "row"),
            self.output
        )));
        document
    }
}
