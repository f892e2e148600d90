//! The API server stands still: what runs goes on, and nothing is decided on what nobody can see.

use super::super::rig::{LEADS, Rig};
use super::under_load;
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Stopped, Story, figure, in_namespace, is_long, note, until};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// For what a cluster does after it was away: leases, statuses, watches that begin again.
const RECOVERY: Duration = Duration::from_secs(120);

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_without_an_api_server_changes_nothing_and_nobody_notices() -> Result<()> {
    let Ok(pid) = std::env::var("FLYBALL_E2E_APISERVER_PID") else {
        note("left out: FLYBALL_E2E_APISERVER_PID is not set; only our own API server is stopped");
        return Ok(());
    };
    let pid: u32 = pid.parse().context("FLYBALL_E2E_APISERVER_PID")?;
    // The short form is longer than our lease of five seconds and shorter than the ten after which Kueue
    // gives its own up and ends, so that the stories after this one need not wait for it.
    let length = Duration::from_secs(if is_long() { 300 } else { 8 });
    in_namespace(&[], async |story| {
        let rig = Rig::new(story, 0, &json!({ "mode": "Act", "max": 8, "min": 2 })).await?;
        rig.settled(2, Duration::from_secs(120)).await?;
        rig.leads(&rig.operator, Duration::from_secs(30)).await?;
        let (pods, nodes) = (rig.names().await?, ready_nodes(story).await?);
        let outage = async {
            let stopped = Stopped::new(pid, length + RECOVERY)?;
            tokio::time::sleep(length).await;
            let model_read = tokio::time::timeout(Duration::from_secs(1), rig.model()).await;
            ensure!(model_read.is_err(), "the API server answers, so that this shows nothing");
            ensure!(
                rig.operator.metric(LEADS).await? == 0.0,
                "it believes to lead without a lease"
            );
            stopped.go_on();
            until("the nodes to be ready again", RECOVERY, async || {
                let ready = tokio::time::timeout(Duration::from_secs(5), ready_nodes(story)).await;
                Ok(ready.is_ok_and(|ready| ready.is_ok_and(|ready| ready == nodes)).then_some(()))
            })
            .await?;
            rig.leads(&rig.operator, RECOVERY).await?;
            // What a node controller takes away, it takes now.
            tokio::time::sleep(Duration::from_secs(10)).await;
            rig.settled(2, RECOVERY).await
        };
        let ((), load) = under_load(&rig, 40, outage).await?;
        let (answered, errors) = (load.answered, load.errors);
        let seconds = length.as_secs();
        note(&format!(
            "{seconds} s without an API server: {answered} streams answered, {} errors",
            errors.len()
        ));
        figure("operator.outage_errors", errors.len() as f64, "requests", "=0")?;
        ensure!(errors.is_empty(), "{:?}\n{}", errors.first(), rig.gateway.log());
        ensure!(rig.names().await? == pods, "these were other pods: {pods:?}");
        Ok(())
    })
    .await
}

async fn ready_nodes(story: &Story) -> Result<BTreeSet<String>> {
    let nodes: Api<Node> = Api::all(story.cluster.client.clone());
    let all = nodes.list(&ListParams::default()).await?.items;
    let ready = all.iter().filter(|node| {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions
            .is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
    });
    Ok(ready.map(|node| node.name_any()).collect())
}
