//! One state of a batch, as it is stored.

use crate::forms::{BatchObject, BatchStatus};
use serde::{Deserialize, Serialize};

/// A state. Nobody changes one; the next has the next number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) batch: BatchObject,
    /// As callers name it, with its `/`.
    pub(crate) tenant: String,
    /// Who works at it, and the number of the state by which it began to.
    pub(crate) owner: Option<String>,
    pub(crate) epoch: u32,
    /// How it ends, once that is known.
    pub(crate) ending: Option<Ending>,
    /// Into which files its owner would write. Nobody else ever writes into them.
    pub(crate) ids: Option<OutputIds>,
    /// How long results last.
    pub(crate) output_seconds: u64,
}

/// How a batch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    Completed,
    Expired,
    Cancelled,
}

impl Ending {
    /// What the batch is then.
    pub(crate) const fn status(self) -> BatchStatus {
        match self {
            Self::Completed => BatchStatus::Completed,
            Self::Expired => BatchStatus::Expired,
            Self::Cancelled => BatchStatus::Cancelled,
        }
    }
}

/// Files of results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OutputIds {
    pub(crate) output: String,
    pub(crate) error: String,
}

impl Record {
    /// When its window is over.
    pub(crate) fn deadline(&self) -> u64 {
        self.batch.expires_at.unwrap_or(u64::MAX)
    }
}
