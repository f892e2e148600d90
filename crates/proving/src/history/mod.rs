//! What happened to each request, as its client saw it, and what must hold of that.
//!
//! A history is a file with one JSON object per line. [`Writer`] writes it while the load runs,
//! [`judge()`] reads it afterwards and knows nothing else: not what was broken, not when, not who was
//! in between. Start at [`HistoryRecord`].

mod judge;

pub use judge::{HistoryVerdict, judge};

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// How a request ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Answered to the end; a stream said `[DONE]`.
    Whole,
    /// A stream that ended with an error event.
    ErrorEvent,
    /// Another status than 200.
    Status,
    /// A stream that was framed whole, without `[DONE]` and without an error: silently short.
    Short,
    /// The connection broke after the head of the answer.
    Broken,
    /// The connection broke before an answer.
    Unanswered,
    /// No connection.
    Refused,
    /// Not ended by the deadline.
    Hung,
    /// The client hung up, as it meant to.
    Cancelled,
}

impl End {
    /// As reports say it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::ErrorEvent => "error-event",
            Self::Status => "status",
            Self::Short => "short",
            Self::Broken => "broken",
            Self::Unanswered => "unanswered",
            Self::Refused => "refused",
            Self::Hung => "hung",
            Self::Cancelled => "cancelled",
        }
    }
}

/// One request. Times are seconds from the start of the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryRecord {
    pub number: u64,
    /// How its client behaved.
    pub habit: String,
    pub due: f64,
    pub first_byte: Option<f64>,
    /// First event of the stream.
    pub first_event: Option<f64>,
    pub ended: f64,
    /// The same in seconds since 1970, to be held beside the logs of others.
    pub ended_unix: f64,
    pub end: End,
    /// Of the answer; 0 without one.
    pub status: u16,
    pub events: u64,
    /// Connections tried.
    pub tries: u32,
    /// What an unusual end said.
    pub note: Option<String>,
}

/// Writes a history.
pub struct Writer(Mutex<BufWriter<File>>);

impl Writer {
    /// A new file.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(Mutex::new(BufWriter::new(File::create(path)?))))
    }

    /// Adds one line. A history that cannot be written is found out when it is judged: it is short.
    pub fn write(&self, record: &HistoryRecord) {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(line) = serde_json::to_string(record) {
            let _ = writeln!(file, "{line}");
        }
    }
}
