//! The stream of readings as a file: one line of JSON for each look.
//!
//! What was read can be looked at again later, by this operator's code and by any other: `form` is a line as it is
//! written. The file ends where it would become too long, and the loop goes on without it.

mod form;
#[cfg(test)]
mod tests;

use crate::settings;
use flyball_estimator::Readings;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Why a line is no reading.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is not of the form that is written.
    #[error("not a line of readings: {0}")]
    Form(#[from] serde_json::Error),
    /// It has what cannot be.
    #[error("impossible value: {0}")]
    Value(String),
}

/// Everything that was read at one moment, as a line.
pub fn line(readings: &Readings) -> Result<String, serde_json::Error> {
    serde_json::to_string(&form::Form::of(readings))
}

/// What a line says.
pub fn read(line: &str) -> Result<Readings, RecordError> {
    let form: form::Form = serde_json::from_str(line)?;
    form.readings().map_err(RecordError::Value)
}

/// A file that lines are written to.
#[derive(Debug)]
pub struct Recorder {
    file: Option<File>,
    path: PathBuf,
    written: u64,
    most: u64,
}

impl Recorder {
    /// Begins the file anew.
    pub fn begin(settings: &settings::ReadingsSettings) -> io::Result<Self> {
        let path = settings.file.clone();
        let most = u64::from(settings.most_megabytes) << 20;
        Ok(Self { file: Some(File::create(&path)?), path, written: 0, most })
    }

    /// Writes what was read. A file that is full or cannot be written to ends here, and is told of once.
    pub fn write(&mut self, readings: &Readings) {
        let Some(file) = &mut self.file else { return };
        let written = match line(readings) {
            Ok(mut line) => {
                line.push('\n');
                self.written += line.len() as u64;
                if self.written > self.most {
                    tracing::warn!(path = %self.path.display(), "readings file is full; recording stopped");
                    self.file = None;
                    return;
                }
                file.write_all(line.as_bytes())
            }
            Err(error) => Err(error.into()),
        };
        if let Err(error) = written {
            tracing::warn!(path = %self.path.display(), %error, "cannot write readings");
            self.file = None;
        }
    }
}
