//! The last heartbeat in the log of a pod.

use super::HeartbeatError;
use super::pattern::{KnownOfRun, LogPatterns, dated};
use flyball_resources::heartbeat::Heartbeat;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use kube::{Client, Error};
use std::sync::Arc;

/// Lines that are looked through: a run that says much else between two heartbeats tells more often than that.
const LINES: i64 = 200;

/// Bytes that are read at most. The API server gives the first so many of those lines.
const BYTES: i64 = 256 << 10;

/// Where it is.
#[derive(Clone, Debug)]
pub(super) struct LogPlace {
    pub(super) namespace: String,
    pub(super) pod: String,
    /// The start that the log is of.
    pub(super) uid: String,
    /// What lines with a heartbeat begin with.
    pub(super) prefix: String,
    /// What other lines say, or why that is not known.
    pub(super) patterns: Option<Arc<Result<LogPatterns, String>>>,
    /// The last saved step that the run has reported before.
    pub(super) saved_step: Option<u64>,
}

/// Reads it.
pub(super) async fn last(client: &Client, place: &LogPlace) -> Result<Heartbeat, HeartbeatError> {
    let LogPlace { namespace, pod, prefix, .. } = place;
    let patterns = match place.patterns.as_deref() {
        Some(Err(why)) => return Err(HeartbeatError::Pattern(why.clone())),
        Some(Ok(patterns)) => Some(patterns),
        None => None,
    };
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let params = LogParams {
        tail_lines: Some(LINES),
        limit_bytes: Some(BYTES),
        timestamps: patterns.is_some(),
        ..LogParams::default()
    };
    let text = pods.logs(pod, &params).await.map_err(|error| {
        let why = match &error {
            Error::Api(status) if status.code == 403 => {
                "not allowed; hint: install the chart with rbac.runLogs=true".to_owned()
            }
            Error::Api(status) => format!("the API server answered with status {}", status.code),
            other => other.to_string(),
        };
        HeartbeatError::Log(pod.to_owned(), why)
    })?;
    let known = KnownOfRun { attempt: &place.uid, saved_step: place.saved_step };
    let by_pattern = || patterns.and_then(|patterns| patterns.newest(&text, known));
    let found = newest(&text, prefix, patterns.is_some()).or_else(by_pattern);
    found.ok_or_else(|| HeartbeatError::NoLine(pod.to_owned()))
}

/// The newest heartbeat of a log, whose lines may begin with their time.
fn newest(text: &str, prefix: &str, has_times: bool) -> Option<Heartbeat> {
    let lines = text.lines().rev();
    let undated =
        lines.filter_map(|line| if has_times { Some(dated(line)?.1) } else { Some(line) });
    let beats = undated.filter_map(|line| line.strip_prefix(prefix));
    beats.filter_map(|beat| Heartbeat::read(beat.as_bytes()).ok()).next()
}

#[cfg(test)]
mod tests {
    use super::newest;

    #[test]
    fn the_newest_line_that_is_a_heartbeat_counts() {
        let beat = |step| {
            format!(
                "flyball-heartbeat {{\"version\":1,\"step\":{step},\"at\":\"2026-11-15T14:00:00Z\"}}"
            )
        };
        let text =
            format!("loss 2.1\n{}\nloss 2.0\n{}\nflyball-heartbeat {{broken", beat(7), beat(8));
        assert_eq!(newest(&text, "flyball-heartbeat ", false).unwrap().step, 8);
        assert!(newest("loss 2.1\n", "flyball-heartbeat ", false).is_none());
        let dated = format!("2026-11-15T14:00:01.25Z {}\n", beat(9));
        assert_eq!(newest(&dated, "flyball-heartbeat ", true).unwrap().step, 9);
        assert!(newest(&dated, "flyball-heartbeat ", false).is_none());
    }
}
