//! The image runs where the strictest Pod Security level is enforced.

use anyhow::{Result, ensure};
use flyball_e2e::{in_namespace, job_exit, pod_log, until};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn the_image_runs_under_the_restricted_pod_security_level() -> Result<()> {
    in_namespace(&[], async |story| {
        let client = story.cluster.client.clone();
        // First that the level is enforced here at all: the same pod without its settings is refused.
        let pods: Api<Pod> = Api::namespaced(client.clone(), &story.namespace);
        let careless = serde_json::from_value(json!({
            "metadata": { "name": "careless" },
            "spec": { "containers": [{ "name": "flyball", "image": story.cluster.image }] },
        }))?;
        let refused = pods.create(&PostParams::default(), &careless).await;
        ensure!(
            refused.as_ref().is_err_and(|e| e.to_string().contains("violates PodSecurity")),
            "the namespace took a pod that the restricted level forbids: {refused:?}"
        );

        let jobs: Api<Job> = Api::namespaced(client.clone(), &story.namespace);
        let job = serde_json::from_value(json!({
            "metadata": { "name": "version" },
            "spec": { "backoffLimit": 0, "template": { "spec": {
                "restartPolicy": "Never",
                "securityContext": {
                    "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [{
                    "name": "flyball",
                    "image": story.cluster.image,
                    "args": ["version", "-o", "json"],
                    "securityContext": {
                        "allowPrivilegeEscalation": false,
                        "readOnlyRootFilesystem": true,
                        "capabilities": { "drop": ["ALL"] },
                    },
                }],
            }}},
        }))?;
        jobs.create(&PostParams::default(), &job).await?;
        let exit = until("the job's end", Duration::from_secs(60), async || {
            job_exit(&client, &story.namespace, "version").await
        })
        .await?;
        let log = pod_log(&client, &story.namespace, "version").await?;
        ensure!(exit == 0, "`flyball version` ended with {exit}:\n{log}");
        let answer: serde_json::Value = serde_json::from_str(&log)?;
        ensure!(answer["kind"] == "Version", "not the answer of `version`: {log}");
        Ok(())
    })
    .await
}
