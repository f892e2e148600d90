//! What came out of a file: the traffic of models, and the form that it had.

use std::fmt;

use super::lengths::Lengths;
use super::load_error::{LoadError, LoadTally};
use super::{Trace, TrafficRates};

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
