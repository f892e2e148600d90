//! Answers and errors, in the form of OpenAI's.

use crate::state::StateError;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde::Serialize;
use std::io;

/// The body of an answer.
pub(crate) type ApiBody = UnsyncBoxBody<Bytes, io::Error>;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) param: Option<&'static str>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, code: &'static str, message: &str) -> Self {
        Self { status, code, message: message.to_owned(), param: None }
    }

    pub(super) fn wrong(param: &'static str, code: &'static str, message: &str) -> Self {
        Self { param: Some(param), ..Self::new(StatusCode::BAD_REQUEST, code, message) }
    }

    pub(super) fn no_path(path: &str) -> Self {
        let path: String = path.chars().take(100).collect();
        let message = format!("There is nothing at {path}.");
        Self::new(StatusCode::NOT_FOUND, "unknown_url", &message)
    }

    pub(super) fn no_file(id: &str) -> Self {
        let id: String = id.chars().take(100).collect();
        let message = format!("No such File object: {id}");
        Self { param: Some("id"), ..Self::new(StatusCode::NOT_FOUND, "not_found", &message) }
    }

    pub(super) fn no_batch(id: &str) -> Self {
        let id: String = id.chars().take(100).collect();
        let message = format!("No batch found with id '{id}'.");
        Self { param: Some("id"), ..Self::new(StatusCode::NOT_FOUND, "not_found", &message) }
    }

    pub(super) fn internal(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
    }

    pub(super) fn response(&self) -> Response<ApiBody> {
        #[derive(Serialize)]
        struct Wrong<'a> {
            message: &'a str,
            r#type: &'a str,
            param: Option<&'a str>,
            code: &'a str,
        }
        #[derive(Serialize)]
        struct Body<'a> {
            error: Wrong<'a>,
        }
        let kind = match self.status.as_u16() {
            401 => "authentication_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        let (message, code, param) = (self.message.as_str(), self.code, self.param);
        let error = Wrong { message, r#type: kind, param, code };
        let mut response = with_status(self.status, &Body { error });
        let headers = response.headers_mut();
        let reason = HeaderName::from_static("x-flyball-reason");
        headers.insert(reason, HeaderValue::from_static(self.code));
        response
    }
}

impl From<StateError> for ApiError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Store(error) if error.may_pass() => {
                tracing::warn!(%error, "the store does not answer");
                let message = "The store does not answer. Try again.";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", message)
            }
            error => {
                tracing::error!(%error, "the store cannot be used");
                Self::internal("The store cannot be used; the log says why.")
            }
        }
    }
}

/// A document.
pub(super) fn json(value: &impl Serialize) -> Response<ApiBody> {
    with_status(StatusCode::OK, value)
}

fn with_status(status: StatusCode, value: &impl Serialize) -> Response<ApiBody> {
    // Our own forms: they can be written.
    let text = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(full(text));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A line of text.
pub(super) fn plain(text: &'static str) -> Response<ApiBody> {
    Response::new(full(text.as_bytes()))
}

fn full(bytes: impl Into<Bytes>) -> ApiBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}
