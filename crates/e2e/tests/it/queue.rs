//! Two gangs of 2 x 2 GPUs and a quota of 4: Kueue lets the second start when the first has ended.

use anyhow::{Result, ensure};
use flyball_e2e::{Story, add_queue, create, dynamic, in_namespace, remove_queue, until};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_jobset_waits_in_kueue_behind_another() -> Result<()> {
    in_namespace(&[], async |story| {
        add_queue(story, "queue", 4, &json!({})).await?;
        let outcome = play(story).await;
        remove(story).await?;
        outcome
    })
    .await
}

async fn play(story: &Story) -> Result<()> {
    create(story, "jobset.x-k8s.io/v1alpha2", "JobSet", jobset("first")).await?;
    until("the first gang's two pods", Duration::from_secs(60), async || {
        Ok((running(story, "first").await?.len() == 2).then_some(()))
    })
    .await?;
    create(story, "jobset.x-k8s.io/v1alpha2", "JobSet", jobset("second")).await?;
    // Three seconds are long enough for a queue that does not hold to show it: the first gang was
    // admitted in less. Asked in this order, an answer counts only if the first still runs after it.
    let mut held = 0;
    while held < 10 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let (early, suspended) =
            (running(story, "second").await?, suspended(story, "second").await?);
        ensure!(running(story, "first").await?.len() == 2, "the first gang ended before the proof");
        ensure!(early.is_empty(), "the second gang has pods beside the first: {early:?}");
        ensure!(suspended, "the second JobSet is not suspended by Kueue");
        held += 1;
    }
    until("the second gang's two pods", Duration::from_secs(90), async || {
        Ok((running(story, "second").await?.len() == 2).then_some(()))
    })
    .await?;
    ensure!(running(story, "first").await?.is_empty(), "both gangs run on a quota for one");
    until("the end of the second gang", Duration::from_secs(90), async || {
        Ok(finished(story, "second").await?.then_some(()))
    })
    .await
}

/// Two jobs of one pod, two GPUs each; a gang works for a while and ends by itself.
fn jobset(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "labels": { "kueue.x-k8s.io/queue-name": "queue" },
        },
        "spec": { "replicatedJobs": [{ "name": "workers", "replicas": 2, "template": { "spec": {
            "parallelism": 1, "completions": 1, "backoffLimit": 0,
            "template": {
                "metadata": { "labels": { "gang": name } },
                "spec": {
                    "restartPolicy": "Never",
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 65532,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "containers": [{
                        "name": "worker",
                        "image": worker_image(),
                        "args": ["15"],
                        "resources": { "limits": { "nvidia.com/gpu": 2 } },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": { "drop": ["ALL"] },
                        },
                    }],
                },
            },
        }}}]},
    })
}

/// A program that sleeps its argument in seconds; on other clusters any image may be named.
fn worker_image() -> String {
    std::env::var("FLYBALL_E2E_SLEEPER").unwrap_or_else(|_| "flyball.test/pause:v1".into())
}

async fn remove(story: &Story) -> Result<()> {
    let sets = dynamic(
        &story.cluster.client,
        Some(&story.namespace),
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
    );
    sets.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    remove_queue(story).await
}

async fn running(story: &Story, gang: &str) -> Result<Vec<String>> {
    let pods: Api<Pod> = Api::namespaced(story.cluster.client.clone(), &story.namespace);
    let params =
        ListParams::default().labels(&format!("gang={gang}")).fields("status.phase=Running");
    Ok(pods.list(&params).await?.items.into_iter().filter_map(|pod| pod.metadata.name).collect())
}

async fn suspended(story: &Story, name: &str) -> Result<bool> {
    Ok(get_jobset(story, name).await?.data["spec"]["suspend"] == true)
}

async fn finished(story: &Story, name: &str) -> Result<bool> {
    Ok(get_jobset(story, name).await?.data["status"]["terminalState"] == "Completed")
}

async fn get_jobset(story: &Story, name: &str) -> Result<DynamicObject> {
    let api = dynamic(
        &story.cluster.client,
        Some(&story.namespace),
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
    );
    Ok(api.get(name).await?)
}
