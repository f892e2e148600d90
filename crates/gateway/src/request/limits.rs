//! What a caller has left of its limits: in the headers of each answer, and at a path of its own.

use crate::answer::{Dialect, json};
use crate::identify::Caller;
use crate::quota::{QuotaLeft, RateLeft};
use crate::shared::Shared;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use std::time::{Duration, SystemTime};

/// Where a caller asks for all limits and budgets that apply to it.
pub(super) const PATH: &str = "/v1/flyball/limits";

/// Names of one limit in one interface: the limit, what is left, when all of it is there again.
type Names = [HeaderName; 3];

static REQUESTS: Names = [
    HeaderName::from_static("x-ratelimit-limit-requests"),
    HeaderName::from_static("x-ratelimit-remaining-requests"),
    HeaderName::from_static("x-ratelimit-reset-requests"),
];
static TOKENS: Names = [
    HeaderName::from_static("x-ratelimit-limit-tokens"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];
static ANTHROPIC_REQUESTS: Names = [
    HeaderName::from_static("anthropic-ratelimit-requests-limit"),
    HeaderName::from_static("anthropic-ratelimit-requests-remaining"),
    HeaderName::from_static("anthropic-ratelimit-requests-reset"),
];
static ANTHROPIC_TOKENS: Names = [
    HeaderName::from_static("anthropic-ratelimit-tokens-limit"),
    HeaderName::from_static("anthropic-ratelimit-tokens-remaining"),
    HeaderName::from_static("anthropic-ratelimit-tokens-reset"),
];
static ANTHROPIC_INPUT: Names = [
    HeaderName::from_static("anthropic-ratelimit-input-tokens-limit"),
    HeaderName::from_static("anthropic-ratelimit-input-tokens-remaining"),
    HeaderName::from_static("anthropic-ratelimit-input-tokens-reset"),
];
static ANTHROPIC_OUTPUT: Names = [
    HeaderName::from_static("anthropic-ratelimit-output-tokens-limit"),
    HeaderName::from_static("anthropic-ratelimit-output-tokens-remaining"),
    HeaderName::from_static("anthropic-ratelimit-output-tokens-reset"),
];
static POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static LEFT: HeaderName = HeaderName::from_static("ratelimit");

/// Says what is left, in the words of the interface that was asked, and in those of the IETF's draft for what that has
/// units for: requests, and requests in flight.
pub(super) fn headers(headers: &mut HeaderMap, left: &QuotaLeft, dialect: Dialect) {
    match dialect {
        Dialect::OpenAi => {
            let each = [(&REQUESTS, left.requests), (&TOKENS, left.tokens())];
            for (names, left) in each {
                put(headers, names, left, span);
            }
        }
        Dialect::Anthropic => {
            let each = [
                (&ANTHROPIC_REQUESTS, left.requests),
                (&ANTHROPIC_TOKENS, left.tokens()),
                (&ANTHROPIC_INPUT, left.input_tokens),
                (&ANTHROPIC_OUTPUT, left.output_tokens),
            ];
            for (names, left) in each {
                put(headers, names, left, moment);
            }
        }
    }
    let (mut policy, mut rest) = (Vec::new(), Vec::new());
    if let Some(RateLeft { limit, remaining, reset }) = left.requests {
        policy.push(format!(r#""requests";q={limit};w=60"#));
        rest.push(format!(r#""requests";r={remaining};t={}"#, seconds(time(reset))));
    }
    if let Some(RateLeft { limit, remaining, .. }) = left.concurrency {
        policy.push(format!(r#""concurrency";q={limit};qu="concurrent-requests""#));
        rest.push(format!(r#""concurrency";r={remaining}"#));
    }
    if !policy.is_empty() {
        insert(headers, &POLICY, &policy.join(", "));
        insert(headers, &LEFT, &rest.join(", "));
    }
}

/// All limits and budgets that apply to a caller.
pub(super) fn answer(shared: &Shared, caller: &Caller) -> Response<Bytes> {
    let access = caller.access.as_ref().map(|own| &own.access);
    let body = match access {
        Some(access) => shared.quota.describe(access, SystemTime::now()),
        None => serde_json::json!({
            "object": "limits", "tenant": null, "limits": [], "budgets": [],
        }),
    };
    json(StatusCode::OK, body.to_string())
}

fn put(
    headers: &mut HeaderMap,
    names: &Names,
    left: Option<RateLeft>,
    reset: fn(Duration) -> String,
) {
    let Some(left) = left else { return };
    headers.insert(names[0].clone(), left.limit.into());
    headers.insert(names[1].clone(), left.remaining.into());
    insert(headers, &names[2], &reset(time(left.reset)));
}

fn insert(headers: &mut HeaderMap, name: &HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name.clone(), value);
    }
}

const fn time(micros: flyball_core::units::Micros) -> Duration {
    Duration::from_micros(micros.get())
}

/// No earlier than it is.
const fn seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1_000) as u64
}

/// As OpenAI says it: `6m0s`, `12s`, `20ms`.
fn span(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{}ms", time.as_millis()),
        _ if seconds(time) >= 60 => format!("{}m{}s", seconds(time) / 60, seconds(time) % 60),
        _ => format!("{}s", seconds(time)),
    }
}

/// As Anthropic says it: RFC 3339.
fn moment(time: Duration) -> String {
    let at = SystemTime::now().checked_add(Duration::from_secs(seconds(time)));
    let second = at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let second = second.and_then(|time| i64::try_from(time.as_secs()).ok()).unwrap_or_default();
    jiff::Timestamp::from_second(second).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::units::Micros;

    fn limit_headers(dialect: Dialect, left: &QuotaLeft) -> Vec<(String, String)> {
        let mut map = HeaderMap::new();
        headers(&mut map, left, dialect);
        let pair = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        let mut all: Vec<_> = map.iter().map(pair).collect();
        all.sort();
        all
    }

    #[test]
    fn each_interface_has_its_own_names_and_times() {
        let left = |limit, remaining, millis| {
            Some(RateLeft { limit, remaining, reset: Micros::from_millis(millis) })
        };
        let all = QuotaLeft {
            requests: left(600, 41, 59_200),
            input_tokens: left(10_000, 9_000, 60_250),
            output_tokens: None,
            concurrency: left(8, 3, 0),
        };
        let names = limit_headers(Dialect::OpenAi, &all);
        let value =
            |name: &str| names.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
        assert_eq!(value("x-ratelimit-limit-requests"), Some("600"));
        assert_eq!(value("x-ratelimit-remaining-requests"), Some("41"));
        assert_eq!(value("x-ratelimit-reset-requests"), Some("1m0s"));
        assert_eq!(value("x-ratelimit-remaining-tokens"), Some("9000"));
        assert_eq!(value("x-ratelimit-reset-tokens"), Some("1m1s"));
        let policy = r#""requests";q=600;w=60, "concurrency";q=8;qu="concurrent-requests""#;
        assert_eq!(value("ratelimit-policy"), Some(policy));
        assert_eq!(value("ratelimit"), Some(r#""requests";r=41;t=60, "concurrency";r=3"#));
        let names: Vec<_> =
            limit_headers(Dialect::Anthropic, &all).into_iter().map(|one| one.0).collect();
        assert!(names.contains(&"anthropic-ratelimit-input-tokens-remaining".to_owned()));
        assert!(!names.iter().any(|name| name.contains("output") || name.starts_with("x-")));
        assert_eq!(span(Duration::from_millis(250)), "250ms");
        assert_eq!(limit_headers(Dialect::OpenAi, &QuotaLeft::default()), []);
    }
}
