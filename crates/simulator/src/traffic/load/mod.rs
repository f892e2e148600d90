//! From files to traffic: public traces, plain tables, and what Prometheus recorded.
//!
//! [`open`] takes a path and [`read`] takes bytes; both find out the form from the content, not
//! from the name. Rows that cannot be read are counted and shown, never taken as zero; columns
//! that mean nothing here are named. Nothing is guessed about what a file does not say.
//!
//! Not here: which silences are gaps (`gaps`), and what a trace looks like (`shape`). Start
//! reading at [`read`].

mod builder;
mod columns;
mod csv;
mod error;
mod jsonl;
mod parquet;
mod servegen;
mod sheet;
mod stamp;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::lengths::Lengths;
use super::prometheus;
use super::{Trace, TrafficRates};

pub use error::{LoadError, LoadTally};

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The form it was found to have.
    pub form: Form,
    /// When the traffic starts, in seconds since 1970 UTC, if the source says it. All times of
    /// the traffic count from here.
    pub start: Option<f64>,
    /// One per model, in order of name.
    pub parts: Vec<LoadedPart>,
    /// What was read and what was not.
    pub tally: LoadTally,
}

/// The traffic of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedPart {
    /// Its name, if the source has names.
    pub model: Option<String>,
    /// Its requests or rates.
    pub traffic: Traffic,
    /// How long requests are, where the traffic does not say it request by request.
    pub lengths: Option<Lengths>,
}

/// Single requests, or rates.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// Single requests.
    Trace(Trace),
    /// Rates by client.
    Rates(TrafficRates),
}

/// The forms that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Azure LLM inference traces of 2023 and 2024.
    Azure,
    /// `BurstGPT`.
    BurstGpt,
    /// Mooncake: names of blocks of 512 tokens.
    Mooncake,
    /// Qwen-Bailian: names of blocks of 16 tokens.
    Bailian,
    /// `ServeGen`: rates of clients.
    ServeGen,
    /// Any CSV with known column names, one row per request.
    Csv,
    /// The same with one row per window and rate.
    RateCsv,
    /// JSON lines of ours: as Mooncake, with the size of blocks.
    Jsonl,
    /// Parquet with the column names of CSV.
    Parquet,
    /// Answers of Prometheus.
    Prometheus,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Azure => "Azure LLM trace (CSV)",
            Self::BurstGpt => "BurstGPT (CSV)",
            Self::Mooncake => "Mooncake (JSON lines)",
            Self::Bailian => "Qwen-Bailian (JSON lines)",
            Self::ServeGen => "ServeGen rates",
            Self::Csv => "CSV of requests",
            Self::RateCsv => "CSV of rates",
            Self::Jsonl => "JSON lines of requests",
            Self::Parquet => "Parquet",
            Self::Prometheus => "Prometheus range query (JSON)",
        })
    }
}

impl Loaded {
    /// The traffic of the named model; without a name the only one there is.
    pub fn part(&self, model: Option<&str>) -> Result<&LoadedPart, LoadError> {
        let found = match model {
            None if self.parts.len() == 1 => self.parts.first(),
            None => None,
            Some(name) => self.parts.iter().find(|part| part.model.as_deref() == Some(name)),
        };
        found.ok_or_else(|| {
            let names: Vec<&str> =
                self.parts.iter().filter_map(|part| part.model.as_deref()).collect();
            let what = match model {
                Some(name) => format!("no traffic of {name:?}"),
                None => format!("traffic of {} models", self.parts.len()),
            };
            let hint = match names.len() {
                0 => "the file names no models: leave the name out".to_owned(),
                _ => format!("name one of them: {}", names.join(", ")),
            };
            LoadError::new(&self.tally.file, what).hint(hint)
        })
    }
}

/// Reads a file, gzipped or not, or a folder of `ServeGen`.
pub fn open(path: &Path) -> Result<Loaded, LoadError> {
    let name = path.display().to_string();
    if path.is_dir() {
        return servegen::folder(&name, path);
    }
    read(&name, &bytes(path)?)
}

/// The bytes of a file, unpacked if it is gzipped.
pub fn bytes(path: &Path) -> Result<Vec<u8>, LoadError> {
    let name = path.display().to_string();
    let refused = |error: std::io::Error| {
        LoadError::new(&name, format!("cannot be read: {error}"))
            .hint("give a file or a folder that exists and that you may read")
    };
    unpacked(&name, std::fs::read(path).map_err(refused)?)
}

/// Reads bytes; `file` is only what errors call them.
pub fn read(file: &str, bytes: &[u8]) -> Result<Loaded, LoadError> {
    if is_gzip(bytes) {
        return read(file, &unpacked(file, bytes.to_vec())?);
    }
    if bytes.starts_with(b"PAR1") {
        return parquet::read(file, bytes);
    }
    // The mark of tar files since 1988.
    if bytes.get(257..262) == Some(b"ustar") {
        return servegen::archive(file, bytes);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| {
        LoadError::new(file, "neither text, nor Parquet, nor a tar file").hint(FORMS_HINT)
    })?;
    // Spreadsheets put a byte order mark before the first letter.
    let text = text.trim_start_matches('\u{feff}');
    let first = text.trim_start();
    if first.is_empty() {
        return Err(LoadError::new(file, "the file is empty").hint(FORMS_HINT));
    }
    if first.starts_with("model,kind,quantile,tokens") {
        let what = "this is a table of lengths, not traffic";
        return Err(LoadError::new(file, what).line(1).hint("give it together with rates"));
    }
    if !first.starts_with('{') {
        return if servegen::is_chunk(first) {
            servegen::chunk(file, text)
        } else {
            csv::read(file, text)
        };
    }
    if prometheus::is_answer(first) {
        prometheus::read(file, text)
    } else {
        jsonl::read(file, text)
    }
}

const FORMS_HINT: &str = "CSV with a header, JSON lines, Parquet, a ServeGen tar or folder, or the \
                          JSON of a Prometheus range query are read; each may be gzipped";

fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

fn unpacked(file: &str, bytes: Vec<u8>) -> Result<Vec<u8>, LoadError> {
    if !is_gzip(&bytes) {
        return Ok(bytes);
    }
    let mut plain = Vec::with_capacity(bytes.len() * 4);
    MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain).map_err(|error| {
        LoadError::new(file, format!("the gzip file is broken: {error}"))
            .hint("copy or download it again; gzip -t checks it")
    })?;
    Ok(plain)
}
