//! What must hold of a history.

use super::{End, HistoryRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a history shows.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct HistoryVerdict {
    pub requests: u64,
    /// By how they ended.
    pub ends: BTreeMap<&'static str, u64>,
    /// Not answered although nothing of an answer had come: this must not be.
    pub lost: u64,
    /// Streams that ended without `[DONE]` and without any error: this must not be.
    pub silently_short: u64,
    /// Streams whose error event does not say that one may try again: this must not be.
    pub not_retryable: u64,
    /// Streams that broke after they began, each with an error that the client can see.
    pub broken_openly: u64,
    /// Not ended by the deadline: this must not be.
    pub hung: u64,
    /// Asked again on a second connection.
    pub tried_again: u64,
    /// The first few of what must not be.
    pub examples: Vec<HistoryRecord>,
}

const EXAMPLES: usize = 10;

/// Judges a history.
pub fn judge(records: impl IntoIterator<Item = HistoryRecord>) -> HistoryVerdict {
    let mut verdict = HistoryVerdict::default();
    for record in records {
        verdict.requests += 1;
        *verdict.ends.entry(record.end.name()).or_default() += 1;
        verdict.tried_again += u64::from(record.tries > 1);
        let began = record.first_event.is_some();
        // Who closes its side may be taken for gone; it must only not be left hanging.
        let counts = record.habit != "half-closes";
        let bad = match record.end {
            End::Whole | End::Cancelled => false,
            End::Hung => {
                verdict.hung += 1;
                true
            }
            End::ErrorEvent if !is_retryable(&record) => {
                verdict.not_retryable += 1;
                true
            }
            End::Short if counts => {
                verdict.silently_short += 1;
                true
            }
            _ if began => {
                verdict.broken_openly += 1;
                false
            }
            _ if counts => {
                verdict.lost += 1;
                true
            }
            _ => false,
        };
        if bad && verdict.examples.len() < EXAMPLES {
            verdict.examples.push(record);
        }
    }
    verdict
}

/// The error event has a type that clients take for the server's fault, not for their own.
fn is_retryable(record: &HistoryRecord) -> bool {
    let note = record.note.as_deref().unwrap_or("");
    !note.contains("invalid_request") && note.contains("\"type\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(end: End, began: bool, note: &str) -> HistoryRecord {
        HistoryRecord {
            number: 1,
            habit: "plain".to_owned(),
            due: 0.0,
            first_byte: began.then_some(0.1),
            first_event: began.then_some(0.1),
            ended: 1.0,
            ended_unix: 1.0,
            end,
            status: 200,
            events: u64::from(began),
            tries: 1,
            note: Some(note.to_owned()),
        }
    }

    #[test]
    fn each_kind_of_harm_is_counted_as_itself() {
        let good = r#"{"error":{"type":"upstream_error"}}"#;
        let bad = r#"{"error":{"type":"invalid_request_error"}}"#;
        let verdict = judge([
            record(End::Whole, true, ""),
            record(End::Unanswered, false, ""),
            record(End::Status, false, ""),
            record(End::Broken, true, ""),
            record(End::Broken, false, ""),
            record(End::Short, true, ""),
            record(End::ErrorEvent, true, good),
            record(End::ErrorEvent, true, bad),
            record(End::ErrorEvent, false, good),
            record(End::Hung, true, ""),
            record(End::Cancelled, false, ""),
        ]);
        assert_eq!(verdict.requests, 11);
        assert_eq!(verdict.lost, 4);
        assert_eq!((verdict.silently_short, verdict.not_retryable, verdict.hung), (1, 1, 1));
        assert_eq!(verdict.broken_openly, 2);
        assert_eq!(verdict.examples.len(), 7);
    }

    #[test]
    fn a_client_that_closed_its_side_may_be_dropped_but_not_left_hanging() {
        let mut gone = record(End::Unanswered, false, "");
        gone.habit = "half-closes".to_owned();
        let mut hung = record(End::Hung, false, "");
        hung.habit = "half-closes".to_owned();
        let verdict = judge([gone, hung]);
        assert_eq!((verdict.lost, verdict.hung), (0, 1));
    }
}
