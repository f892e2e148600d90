//! One story, one namespace: made before, judged after, removed in any case.

use crate::account;
use crate::cluster::{Cluster, kubectl};
use anyhow::{Context, Result, anyhow, bail};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// What a story is given.
pub struct Story {
    pub cluster: Cluster,
    pub namespace: String,
}

impl Story {
    /// `kubectl apply` of a manifest in its namespace.
    pub fn apply(&self, manifest: &str) -> Result<()> {
        kubectl(
            &self.cluster,
            &["--namespace", &self.namespace, "apply", "--filename", "-"],
            manifest,
        )
    }
}

/// Runs `play` in a new namespace under the strictest Pod Security level.
///
/// On failure it prints pod states, events and logs. Even a story that succeeds fails if a pod of
/// its namespace logged an ERROR line that contains none of `expected_errors`: an ERROR means that
/// a person should look.
pub async fn in_namespace(
    expected_errors: &[&str],
    play: impl AsyncFnOnce(&Story) -> Result<()>,
) -> Result<()> {
    let cluster = Cluster::connect().await?;
    let namespace = create(&cluster).await?;
    let story = Story { cluster, namespace };
    // On the heap: a test's stack is small, and a story that waits for many things at once is not.
    let played = AssertUnwindSafe(Box::pin(play(&story))).catch_unwind().await;
    let judged = match played {
        Ok(Ok(())) => no_unlisted_errors(&story, expected_errors).await,
        Ok(Err(error)) => Err(error),
        Err(_) => Err(anyhow!("the story panicked; its message is above")),
    };
    if judged.is_err() {
        account::print(&story.cluster.client, &story.namespace).await;
    }
    // The story's own failure is the one to report.
    let removed = remove(&story.cluster, &story.namespace).await;
    judged.and(removed)
}

async fn create(cluster: &Cluster) -> Result<String> {
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let manifest = serde_json::from_value(json!({
        "metadata": {
            "generateName": "story-",
            "labels": { "pod-security.kubernetes.io/enforce": "restricted" },
        },
    }))?;
    let created = namespaces.create(&PostParams::default(), &manifest).await?;
    let name = created.metadata.name.context("a namespace without a name")?;
    // Pods are refused until the controller manager has made the default service account.
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), &name);
    let ready = crate::until("the default service account", Duration::from_secs(30), async || {
        Ok(accounts.get_opt("default").await?)
    })
    .await;
    match ready {
        Ok(_) => Ok(name),
        Err(error) => {
            remove(cluster, &name).await?;
            Err(error)
        }
    }
}

async fn remove(cluster: &Cluster, namespace: &str) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    namespaces.delete(namespace, &DeleteParams::default()).await?;
    Ok(())
}

async fn no_unlisted_errors(story: &Story, expected: &[&str]) -> Result<()> {
    let unlisted: Vec<String> = account::log_lines(&story.cluster.client, &story.namespace)
        .await?
        .into_iter()
        .filter(|line| is_error(line) && !expected.iter().any(|known| line.contains(known)))
        .collect();
    if unlisted.is_empty() {
        return Ok(());
    }
    bail!("pods logged ERROR lines that the story does not expect:\n{}", unlisted.join("\n"));
}

/// As `telemetry` writes them, in text and in JSON.
fn is_error(line: &str) -> bool {
    line.contains(" ERROR ") || line.contains(r#""level":"ERROR""#)
}

#[cfg(test)]
mod tests {
    use super::is_error;

    #[test]
    fn error_lines_of_both_formats_are_seen_and_words_are_not() {
        assert!(is_error("node-a/x: 2026-11-15T00:00:00Z ERROR flyball: lost the lease"));
        assert!(is_error(r#"{"timestamp":"…","level":"ERROR","fields":{}}"#));
        assert!(!is_error("kind Error, see docs/errors"));
    }
}
