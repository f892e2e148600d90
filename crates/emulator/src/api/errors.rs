//! What went wrong, in the form that clients of a path expect.

use super::Form;
use http::StatusCode;
use serde_json::json;

/// A request that gets no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// The field at fault.
    pub(crate) param: Option<&'static str>,
    pub(crate) code: Option<&'static str>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: None }
    }

    /// The request is wrong at this field.
    pub(crate) fn field(param: &'static str, message: impl Into<String>) -> Self {
        Self { param: Some(param), ..Self::new(StatusCode::BAD_REQUEST, message) }
    }

    pub(crate) fn coded(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The body of the answer.
    pub(crate) fn body(&self, form: Form) -> String {
        let Self { status, message, param, code } = self;
        if form == Form::Messages {
            let kind = match status.as_u16() {
                404 => "not_found_error",
                429 => "rate_limit_error",
                503 | 529 => "overloaded_error",
                400..500 => "invalid_request_error",
                _ => "api_error",
            };
            return json!({"type": "error", "error": {"type": kind, "message": message}})
                .to_string();
        }
        let kind = match status.as_u16() {
            404 => "NotFoundError",
            400..500 => "BadRequestError",
            503 => "ServiceUnavailableError",
            _ => "InternalServerError",
        };
        let code = code.map_or_else(|| json!(status.as_u16()), |code| json!(code));
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_its_own_error() {
        let problem = Problem::field("max_tokens", "too many");
        let openai: serde_json::Value = serde_json::from_str(&problem.body(Form::Chat)).unwrap();
        assert_eq!(openai["error"]["param"], "max_tokens");
        assert_eq!(openai["error"]["code"], 400);
        let anthropic: serde_json::Value =
            serde_json::from_str(&problem.body(Form::Messages)).unwrap();
        assert_eq!(anthropic["error"]["type"], "invalid_request_error");
    }
}
