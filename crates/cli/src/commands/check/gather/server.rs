//! The API server itself: does it answer, how fast, and what time does it have?

use std::time::{Duration, Instant};

use jiff::{Timestamp, fmt::rfc2822};
use kube::Client;
use kube::client::Body;

use super::{missed, within};
use crate::commands::check::facts::{ClockSample, Found, Server};

pub(super) async fn reach(client: &Client, limit: Duration) -> Found<Server> {
    // The first request opens the connection; the second measures the server alone.
    let first = within(limit, client.apiserver_version()).await;
    if first.known().is_none() {
        return first.missed().unwrap_or(Found::Skipped);
    }
    let start = Instant::now();
    match within(limit, client.apiserver_version()).await {
        Found::Known(info) => Found::Known(Server {
            latency: start.elapsed(),
            release: release(&info.major, &info.minor, &info.git_version),
            version: info.git_version,
        }),
        other => other.missed().unwrap_or(Found::Skipped),
    }
}

/// From the two fields made for it, else from `v1.36.1-gke.100`.
fn release(major: &str, minor: &str, git: &str) -> Option<(u32, u32)> {
    let fields = || Some((number(major)?, number(minor)?));
    let spelled = || {
        let mut parts = git.strip_prefix('v').unwrap_or(git).split('.');
        Some((number(parts.next()?)?, number(parts.next()?)?))
    };
    fields().or_else(spelled)
}

/// `36+` on some clouds. What has no digits is no number, and above all not 0.
fn number(text: &str) -> Option<u32> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

pub(super) async fn clock(client: &Client, limit: Duration) -> Found<ClockSample> {
    let request = match http::Request::get("/version").body(Body::empty()) {
        Ok(request) => request,
        Err(error) => return Found::Failed(error.to_string()),
    };
    let sent = Timestamp::now();
    let start = Instant::now();
    let response = match tokio::time::timeout(limit, client.send(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return missed(&error),
        Err(_) => return Found::TimedOut(limit),
    };
    let round_trip = start.elapsed();
    let Some(date) = response.headers().get(http::header::DATE) else {
        return Found::Absent;
    };
    // "Sun, 15 Nov 2026 02:10:00 GMT"
    let read = date.to_str().ok().and_then(|date| rfc2822::parse(date).ok());
    match read {
        Some(date) => Found::Known(ClockSample { server: date.timestamp(), sent, round_trip }),
        None => Found::Failed("the Date header of the api server makes no sense".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_or_not_but_never_guessed() {
        assert_eq!(release("1", "30+", "v1.30.4-gke.100"), Some((1, 30)));
        assert_eq!(release("1", "36", "nonsense"), Some((1, 36)));
        assert_eq!(release("", "", "v1.31.2-eks-a1b2c3"), Some((1, 31)));
        assert_eq!(release("1", "", "v1.32+"), Some((1, 32)));
        assert_eq!(release("", "", "unknown"), None);
        assert_eq!(release("1", "x", ""), None);
    }
}
