//! Lines of input and of results.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A line of an input file. The body stays as it was written: the order of its keys is part of some prompts.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RequestLine<'a> {
    #[serde(borrow)]
    pub(crate) custom_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) body: &'a RawValue,
}

/// What became of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LineResult {
    /// The gateway answered, with whatever status.
    Answer { status: u16, request_id: String, body: String },
    /// Nobody did.
    Failure(LineError),
}

/// Why a line has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineError {
    /// The window was over.
    BatchExpired,
    /// Somebody cancelled the batch.
    BatchCancelled,
    /// It took too long.
    RequestTimeout,
}

impl LineError {
    const fn code(self) -> &'static str {
        match self {
            Self::BatchExpired => "batch_expired",
            Self::BatchCancelled => "batch_cancelled",
            Self::RequestTimeout => "request_timeout",
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::BatchExpired => {
                "This request could not be executed before the completion window expired."
            }
            Self::BatchCancelled => "This request was not executed: the batch was cancelled.",
            Self::RequestTimeout => "This request was not answered in time.",
        }
    }
}

impl LineResult {
    /// Whether it belongs into the output file, and not into that of errors.
    pub(crate) const fn is_success(&self) -> bool {
        matches!(self, Self::Answer { status: 200..=299, .. })
    }

    /// The line of the result file, without its end. `id` is this line's own.
    pub(crate) fn line(&self, id: &str, custom_id: &str) -> String {
        #[derive(Serialize)]
        struct Response<'a> {
            status_code: u16,
            request_id: &'a str,
            body: &'a RawValue,
        }
        #[derive(Serialize)]
        struct Wrong {
            code: &'static str,
            message: &'static str,
        }
        #[derive(Serialize)]
        struct Line<'a> {
            id: &'a str,
            custom_id: &'a str,
            response: Option<Response<'a>>,
            error: Option<Wrong>,
        }
        let mut line = Line { id, custom_id, response: None, error: None };
        let raw;
        match self {
            Self::Failure(error) => {
                line.error = Some(Wrong { code: error.code(), message: error.message() });
            }
            Self::Answer { status, request_id, body } => {
                raw = one_line(body);
                line.response = Some(Response { status_code: *status, request_id, body: &raw });
            }
        }
        // Strings and raw JSON: it cannot fail.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

/// JSON without line breaks; what is no JSON as a string.
fn one_line(body: &str) -> Box<RawValue> {
    // Line breaks of valid JSON stand between its tokens only.
    let flat = if body.contains(['\n', '\r']) {
        Cow::Owned(body.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(body)
    };
    match RawValue::from_string(flat.into_owned()) {
        Ok(raw) => raw,
        Err(_) => serde_json::value::to_raw_value(body).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_form_of_openai() {
        let answer = |status, body: &str| LineResult::Answer {
            status,
            request_id: "r1".to_owned(),
            body: body.to_owned(),
        };
        assert_eq!(
            answer(200, "{\n\"b\":1,\r\n\"a\":2}").line("batch_req_1", "a\"b"),
            r#"{"id":"batch_req_1","custom_id":"a\"b","response":{"status_code":200,"request_id":"r1","body":{ "b":1,  "a":2}},"error":null}"#
        );
        assert!(answer(204, "").is_success() && !answer(404, "{}").is_success());
        let odd = answer(502, "<html>\n").line("i", "c");
        assert!(odd.contains(r#""body":"<html>\n""#), "{odd}");
        assert_eq!(
            LineResult::Failure(LineError::BatchExpired).line("i", "c"),
            r#"{"id":"i","custom_id":"c","response":null,"error":{"code":"batch_expired","message":"This request could not be executed before the completion window expired."}}"#
        );
    }
}
