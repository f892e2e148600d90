//! What the gateway itself answers: errors in the words of the interface that was asked. `exhausted` has those of limits
//! and budgets.

mod exhausted;

pub(crate) use exhausted::{Exhausted, StatedBudget, StatedLimit};

use crate::scan::ScanError;
use crate::sse::write_event;
use crate::surface::Surface;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

/// Whose words an error is said in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `{"error": {...}}`.
    OpenAi,
    /// `{"type": "error", "error": {...}}`.
    Anthropic,
}

/// Why a request gets no answer of an engine. A closed list: it is also a metric's label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The path is none of ours.
    NoSuchPath,
    /// The path is ours, the method is not.
    NoSuchMethod,
    /// The body is compressed.
    Encoded,
    /// No valid key.
    NoKey,
    /// The caller's rate is used up.
    TooFast {
        /// Whole seconds until the next request may come.
        retry_after_s: u64,
    },
    /// Limits or budgets of the caller's Tenants keep it from going on.
    Exhausted(Box<Exhausted>),
    /// The gateway holds as much as it may.
    Full,
    /// It holds as much of this caller as is left for others.
    CallerFull,
    /// The body is refused.
    Body(ScanError),
    /// The client did not send the body in time.
    BodyTimeout,
    /// The body broke off.
    BodyBroken,
    /// No such model.
    NoModel {
        /// Its name.
        model: String,
    },
    /// The model has no engine that may get requests.
    NoEndpoint,
    /// Engines are busy, and a turn would come too late.
    Overloaded {
        /// Whole seconds until it is worth trying again.
        retry_after_s: u64,
    },
    /// As many wait as may.
    QueueFull {
        /// Whole seconds until it is worth trying again.
        retry_after_s: u64,
    },
    /// It waited for a turn as long as it may.
    QueueTimeout,
    /// It runs on what nobody else wants, and there was nothing of that for as long as it may wait.
    NoIdleCapacity {
        /// Whole seconds until it is worth trying again.
        retry_after_s: u64,
    },
    /// The model was woken, and no engine came in time.
    WakeTimeout {
        /// Whole seconds until it is worth trying again.
        retry_after_s: u64,
    },
    /// Engines were tried, and none answered.
    NoAnswer,
    /// No engine began to answer in time.
    TooLate,
    /// The stream broke off after it had begun.
    BrokenStream,
    /// Engines died over this prompt, and it is not sent to another.
    KillsEngines,
    /// The gateway is going away.
    Draining,
}

impl Problem {
    /// Its name in metrics, logs and the header `x-flyball-reason`.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NoSuchPath => "no_such_path",
            Self::NoSuchMethod => "no_such_method",
            Self::Encoded => "encoded_body",
            Self::NoKey => "invalid_api_key",
            Self::TooFast { .. } => "rate_limit_exceeded",
            Self::Exhausted(why) => why.code(),
            Self::Full => "gateway_full",
            Self::CallerFull => "caller_full",
            Self::Body(ScanError::TooLong { .. }) => "body_too_long",
            Self::Body(_) => "invalid_body",
            Self::BodyTimeout => "body_timeout",
            Self::BodyBroken => "body_broken",
            Self::NoModel { .. } => "model_not_found",
            Self::NoEndpoint => "no_engine",
            Self::Overloaded { .. } => "overloaded",
            Self::QueueFull { .. } => "queue_full",
            Self::QueueTimeout => "queue_timeout",
            Self::NoIdleCapacity { .. } => "no_idle_capacity",
            Self::WakeTimeout { .. } => "wake_timeout",
            Self::NoAnswer => "engine_failed",
            Self::TooLate => "engine_timeout",
            Self::BrokenStream => "stream_broken",
            Self::KillsEngines => "prompt_kills_engines",
            Self::Draining => "draining",
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPath | Self::NoModel { .. } => StatusCode::NOT_FOUND,
            Self::Exhausted(why) => why.status(),
            Self::NoSuchMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NoKey => StatusCode::UNAUTHORIZED,
            Self::TooFast { .. }
            | Self::CallerFull
            | Self::Overloaded { .. }
            | Self::QueueFull { .. }
            | Self::QueueTimeout
            | Self::NoIdleCapacity { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Body(ScanError::TooLong { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Body(_) | Self::BodyBroken => StatusCode::BAD_REQUEST,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::KillsEngines => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NoAnswer | Self::BrokenStream => StatusCode::BAD_GATEWAY,
            Self::TooLate => StatusCode::GATEWAY_TIMEOUT,
            Self::Full | Self::NoEndpoint | Self::WakeTimeout { .. } | Self::Draining => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// Seconds after which it is worth trying again; `None` if that will not help.
    pub(crate) fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::TooFast { retry_after_s }
            | Self::Overloaded { retry_after_s }
            | Self::QueueFull { retry_after_s }
            | Self::NoIdleCapacity { retry_after_s }
            | Self::WakeTimeout { retry_after_s } => Some(*retry_after_s),
            Self::Exhausted(why) => {
                why.retry_after().map(|wait| wait.as_millis().div_ceil(1_000) as u64)
            }
            Self::Full
            | Self::CallerFull
            | Self::NoEndpoint
            | Self::QueueTimeout
            | Self::NoAnswer
            | Self::Draining => Some(1),
            _ => None,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::NoSuchPath => {
                let paths = Surface::ALL.map(Surface::path).join(", ");
                format!("unknown path; known paths: {paths}, /v1/models and /v1/flyball/limits")
            }
            Self::NoSuchMethod => {
                "this path takes POST (/v1/models and /v1/flyball/limits take GET)".into()
            }
            Self::Encoded => "compressed bodies are not supported; send plain JSON".into(),
            Self::NoKey => {
                "no valid key; send it as `Authorization: Bearer KEY` or `x-api-key`".into()
            }
            Self::TooFast { retry_after_s } => {
                format!(
                    "your key exceeded its requests per minute at this gateway (each replica \
                     counts by itself); retry in {retry_after_s} s"
                )
            }
            Self::Exhausted(why) => why.message(),
            Self::Full => "the gateway is at its limit of requests; retry in 1 s".into(),
            Self::CallerFull => {
                "your key uses its share of this gateway's requests or memory; let some requests \
                 finish and retry in 1 s"
                    .into()
            }
            Self::Body(refused) => refused.to_string(),
            Self::BodyTimeout => "the body did not arrive in time".into(),
            Self::BodyBroken => "the body is incomplete or its framing is wrong".into(),
            Self::NoModel { model } => {
                format!(
                    "model `{model}` does not exist, or your key may not use it; GET /v1/models \
                     lists the models"
                )
            }
            Self::NoEndpoint => "no engine of this model accepts requests now; retry".into(),
            Self::Overloaded { retry_after_s } => format!(
                "the engines of this model are busy and the queue wait would be too long; retry in \
                 {retry_after_s} s"
            ),
            Self::QueueFull { retry_after_s } => {
                format!("the queue of this model is full; retry in {retry_after_s} s")
            }
            Self::QueueTimeout => {
                "the engines of this model were busy and the request timed out in the queue; retry"
                    .into()
            }
            Self::NoIdleCapacity { retry_after_s } => format!(
                "other requests needed all capacity of this model for as long as a batch request \
                 waits; retry in {retry_after_s} s, or without `service_tier: flex` if your budget \
                 allows it"
            ),
            Self::WakeTimeout { retry_after_s } => {
                format!("the model was asleep and is still starting; retry in {retry_after_s} s")
            }
            Self::NoAnswer => "no engine of this model answered; retry".into(),
            Self::TooLate => "no engine of this model began to respond in time; retry".into(),
            Self::BrokenStream => {
                "the engine's response broke off; nothing after this point was generated; retry"
                    .into()
            }
            Self::KillsEngines => {
                "engines of this model crashed on this prompt, so it is refused for ten minutes; \
                 do not retry it"
                    .into()
            }
            Self::Draining => "this gateway is shutting down; retry on a new connection".into(),
        }
    }

    /// What kind of error an official client makes of it.
    fn kind(&self, dialect: Dialect) -> &'static str {
        if let Self::Exhausted(why) = self
            && let Some(kind) = why.kind(dialect)
        {
            return kind;
        }
        match (dialect, self.status_in(dialect).as_u16()) {
            (_, 401) => "authentication_error",
            (Dialect::OpenAi, 429) => "rate_limit_exceeded",
            (Dialect::Anthropic, 429) => "rate_limit_error",
            (Dialect::OpenAi, 503) => "service_unavailable_error",
            (Dialect::Anthropic, 503 | 529) => "overloaded_error",
            (Dialect::OpenAi, 502 | 504) => "server_error",
            (Dialect::Anthropic, 502 | 504) => "api_error",
            (Dialect::Anthropic, 404) => "not_found_error",
            (Dialect::Anthropic, 413) => "request_too_large",
            _ => "invalid_request_error",
        }
    }

    /// The status as the interface says it: Anthropic has one of its own for a model that is
    /// overloaded, and keeps 429 for what the caller itself used up.
    fn status_in(&self, dialect: Dialect) -> StatusCode {
        let overloaded = matches!(
            self,
            Self::Overloaded { .. }
                | Self::QueueFull { .. }
                | Self::QueueTimeout
                | Self::NoIdleCapacity { .. }
        );
        if let Self::Exhausted(why) = self {
            return why.status_in(dialect);
        }
        match dialect {
            Dialect::Anthropic if overloaded => {
                StatusCode::from_u16(529).expect("a number of three digits")
            }
            _ => self.status(),
        }
    }

    /// Its body, as the interface says errors.
    pub(crate) fn body(&self, dialect: Dialect) -> String {
        let (kind, message) = (self.kind(dialect), self.message());
        let mut value = match dialect {
            Dialect::OpenAi => serde_json::json!({"error": {
                "message": message, "type": kind, "param": null, "code": self.code(),
            }}),
            Dialect::Anthropic => serde_json::json!({
                "type": "error", "error": {"type": kind, "message": message},
            }),
        };
        if let Self::Exhausted(why) = self
            && let Some(details) = why.details()
        {
            value["error"]["flyball"] = details;
        }
        value.to_string()
    }

    /// Its event, for a stream that has begun.
    pub(crate) fn event(&self, dialect: Dialect) -> Bytes {
        let name = match dialect {
            Dialect::OpenAi => None,
            Dialect::Anthropic => Some("error"),
        };
        write_event(name, &self.body(dialect))
    }

    /// The whole answer.
    pub(crate) fn answer(&self, dialect: Dialect) -> Response<Bytes> {
        let mut response = json(self.status_in(dialect), self.body(dialect));
        let headers = response.headers_mut();
        headers.insert("x-flyball-reason", HeaderValue::from_static(self.code()));
        if let Some(seconds) = self.retry_after_s() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Self::Exhausted(why) = self {
            why.headers(headers);
        }
        if *self == Self::KillsEngines {
            // Client libraries of OpenAI and Anthropic go by it, whatever the status.
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        response
    }
}

impl Dialect {
    /// The one that a path speaks.
    pub(crate) fn of(path: &str) -> Self {
        if path.starts_with(Surface::Messages.path()) { Self::Anthropic } else { Self::OpenAi }
    }
}

/// An answer of JSON.
pub(crate) fn json(status: StatusCode, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
