//! The last heartbeat in the log of a pod.

use super::HeartbeatError;
use flyball_resources::heartbeat::Heartbeat;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use kube::{Client, Error};

/// Lines that are looked through: a run that says much else between two heartbeats tells more often than that.
const LINES: i64 = 200;

/// Bytes that are read at most. The API server gives the first so many of those lines.
const BYTES: i64 = 256 << 10;

/// Reads it.
pub(super) async fn last(
    client: &Client,
    namespace: &str,
    pod: &str,
    prefix: &str,
) -> Result<Heartbeat, HeartbeatError> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let params =
        LogParams { tail_lines: Some(LINES), limit_bytes: Some(BYTES), ..LogParams::default() };
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
    newest(&text, prefix).ok_or_else(|| HeartbeatError::NoLine(pod.to_owned()))
}

/// The newest heartbeat of a log.
fn newest(text: &str, prefix: &str) -> Option<Heartbeat> {
    let beats = text.lines().rev().filter_map(|line| line.strip_prefix(prefix));
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
        assert_eq!(newest(&text, "flyball-heartbeat ").unwrap().step, 8);
        assert!(newest("loss 2.1\n", "flyball-heartbeat ").is_none());
    }
}
