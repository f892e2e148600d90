//! Files as clients see them.

use serde::{Deserialize, Serialize};

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    /// The input of a batch.
    Batch,
    /// Its output or its errors.
    BatchOutput,
}

impl Purpose {
    /// As it is written.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::BatchOutput => "batch_output",
        }
    }
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileObject {
    pub(crate) id: String,
    pub(crate) object: String,
    pub(crate) bytes: u64,
    /// Seconds, as all times here.
    pub(crate) created_at: u64,
    pub(crate) expires_at: Option<u64>,
    pub(crate) filename: String,
    pub(crate) purpose: Purpose,
    /// Deprecated at OpenAI, and required by its clients.
    pub(crate) status: String,
    pub(crate) status_details: Option<String>,
}

impl FileObject {
    pub(crate) fn new(id: String, filename: String, purpose: Purpose, created_at: u64) -> Self {
        Self {
            id,
            object: "file".to_owned(),
            bytes: 0,
            created_at,
            expires_at: None,
            filename,
            purpose,
            status: "processed".to_owned(),
            status_details: None,
        }
    }

    /// Whether it is over, so that nobody sees it any more.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// A file that is gone.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Deleted {
    pub(crate) id: String,
    pub(crate) object: &'static str,
    pub(crate) deleted: bool,
}

/// A page of a listing.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Page<T> {
    pub(crate) object: &'static str,
    pub(crate) data: Vec<T>,
    pub(crate) first_id: Option<String>,
    pub(crate) last_id: Option<String>,
    pub(crate) has_more: bool,
}
