//! What happened to each request: the truth that tests compare with.

use serde::Serialize;
use std::collections::VecDeque;

/// The longest request name that is kept.
const NAME_BYTES: usize = 128;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoggedOutcome {
    /// All its tokens came out.
    Finished,
    /// Its client hung up.
    Aborted,
}

/// One request that has ended. Times are seconds of the engine's clock, which starts with it and
/// runs `speed_up` times as fast as the wall's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineLogRecord {
    /// The engine's number of it.
    pub id: u64,
    /// Its `x-request-id`, if it had one.
    pub request_id: Option<Box<str>>,
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// Tokens that it asked for.
    pub output_tokens: u32,
    /// Tokens that came out.
    pub emitted_tokens: u32,
    /// Prompt tokens found in the cache, when it was first scheduled.
    pub cached_tokens: u32,
    /// Times that it lost its blocks.
    pub preemptions: u32,
    /// When it reached the engine.
    pub arrived: f64,
    /// When it was first in a step.
    pub scheduled: Option<f64>,
    /// When its first token was out.
    pub first_token: Option<f64>,
    /// When it ended: its place and its blocks are free.
    pub ended: f64,
    /// When its client hung up, if it did before the end.
    pub hung_up: Option<f64>,
    /// From there until its place was free.
    pub abort_to_free: Option<f64>,
    /// How it ended.
    pub outcome: LoggedOutcome,
}

/// The last requests that ended.
#[derive(Clone, Debug)]
pub(super) struct Log {
    records: VecDeque<EngineLogRecord>,
    most: usize,
}

impl Log {
    pub(super) const fn new(most: usize) -> Self {
        Self { records: VecDeque::new(), most }
    }

    pub(super) fn push(&mut self, record: EngineLogRecord) {
        if self.most == 0 {
            return;
        }
        if self.records.len() >= self.most {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }

    /// The last so many, oldest first.
    pub(super) fn last(&self, most: usize) -> Vec<EngineLogRecord> {
        let skip = self.records.len().saturating_sub(most);
        self.records.iter().skip(skip).cloned().collect()
    }
}

/// A name as it is kept.
pub(super) fn name(given: &str) -> Box<str> {
    let mut end = given.len().min(NAME_BYTES);
    while !given.is_char_boundary(end) {
        end -= 1;
    }
    given[..end].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(name("short").as_ref(), "short");
        let long = "é".repeat(100);
        assert_eq!(name(&long).len(), 128);
        assert_eq!(name(&format!("x{long}")).len(), 127);
    }
}
