//! Batches as clients see them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BatchStatus {
    Validating,
    /// The input file was wrong.
    Failed,
    InProgress,
    /// All lines are done, or time is up; results are put together.
    Finalizing,
    Completed,
    Expired,
    Cancelling,
    Cancelled,
}

impl BatchStatus {
    /// Whether nothing changes any more.
    pub(crate) const fn is_terminal(self) -> bool {
        matches!(self, Self::Failed | Self::Completed | Self::Expired | Self::Cancelled)
    }

    /// As it is written.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Failed => "failed",
            Self::InProgress => "in_progress",
            Self::Finalizing => "finalizing",
            Self::Completed => "completed",
            Self::Expired => "expired",
            Self::Cancelling => "cancelling",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BatchObject {
    pub(crate) id: String,
    pub(crate) object: String,
    pub(crate) endpoint: String,
    pub(crate) model: Option<String>,
    pub(crate) errors: Option<BatchErrors>,
    pub(crate) input_file_id: String,
    pub(crate) completion_window: String,
    pub(crate) status: BatchStatus,
    pub(crate) output_file_id: Option<String>,
    pub(crate) error_file_id: Option<String>,
    pub(crate) created_at: u64,
    pub(crate) in_progress_at: Option<u64>,
    pub(crate) expires_at: Option<u64>,
    pub(crate) finalizing_at: Option<u64>,
    pub(crate) completed_at: Option<u64>,
    pub(crate) failed_at: Option<u64>,
    pub(crate) expired_at: Option<u64>,
    pub(crate) cancelling_at: Option<u64>,
    pub(crate) cancelled_at: Option<u64>,
    pub(crate) request_counts: RequestCounts,
    /// Only once it is over.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) usage: Option<Usage>,
    pub(crate) metadata: Option<BTreeMap<String, String>>,
}

impl BatchObject {
    /// It is in this state since then.
    pub(crate) fn enter(&mut self, status: BatchStatus, now: u64) {
        self.status = status;
        let at = match status {
            BatchStatus::Validating => return,
            BatchStatus::Failed => &mut self.failed_at,
            BatchStatus::InProgress => &mut self.in_progress_at,
            BatchStatus::Finalizing => &mut self.finalizing_at,
            BatchStatus::Completed => &mut self.completed_at,
            BatchStatus::Expired => &mut self.expired_at,
            BatchStatus::Cancelling => &mut self.cancelling_at,
            BatchStatus::Cancelled => &mut self.cancelled_at,
        };
        *at = Some(now);
    }
}

/// Lines by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestCounts {
    pub(crate) total: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
}

/// What is wrong with an input file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BatchErrors {
    pub(crate) object: String,
    pub(crate) data: Vec<LineProblem>,
}

impl BatchErrors {
    pub(crate) fn of(data: Vec<LineProblem>) -> Self {
        Self { object: "list".to_owned(), data }
    }
}

/// One thing that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineProblem {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) param: Option<String>,
    /// From 1; none if it is the file as a whole.
    pub(crate) line: Option<u64>,
}

/// Tokens of all lines with an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) input_tokens: u64,
    pub(crate) input_tokens_details: CachedTokens,
    pub(crate) output_tokens: u64,
    pub(crate) output_tokens_details: ReasoningTokens,
    pub(crate) total_tokens: u64,
}

/// Of the prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CachedTokens {
    pub(crate) cached_tokens: u64,
}

/// Of the outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReasoningTokens {
    pub(crate) reasoning_tokens: u64,
}
