//! A pod is not ready and has fifty streams open while fewer replicas are wanted: none is cut.

use super::super::rig::Rig;
use anyhow::{Result, ensure};
use flyball_e2e::http::json;
use flyball_e2e::{figure, in_namespace, note, until};
use futures::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;

const STREAMS: usize = 50;

/// Half a minute of an engine with fifty streams, and ten of one that is [`SLOW`].
const TOKENS: u32 = 1_500;

/// So that no stream ends before fewer replicas are wanted, however long a machine takes until then.
const SLOW: f64 = 0.05;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn trust_an_unready_pod_with_fifty_streams_finishes_them() -> Result<()> {
    in_namespace(&[], async |story| {
        let rig = Rig::new(story, 0, &json!({ "mode": "Act", "max": 4 })).await?;
        rig.pin(Some(1)).await?;
        rig.settled(1, Duration::from_secs(120)).await?;
        let first = rig.engines().await?;
        let faults = async |faults: Value| json(first[0], "/emulator/faults", Some(&faults)).await;
        faults(json!({ "speed": SLOW })).await?;
        let streams = join_all((0..STREAMS).map(|number| rig.ask(number, TOKENS)));
        let fault = async {
            until("fifty streams at the engine", Duration::from_secs(60), async || {
                let state = json(first[0], "/emulator/state", None).await?;
                Ok((state["running"].as_u64() >= Some(STREAMS as u64)).then_some(()))
            })
            .await?;
            rig.pin(Some(2)).await?;
            rig.settled(2, Duration::from_secs(60)).await?;
            faults(json!({ "slow_start_seconds": 1e6, "speed": SLOW })).await?;
            until("the pod to be unready", Duration::from_secs(30), async || {
                Ok((rig.ready().await? == 1).then_some(()))
            })
            .await?;
            let state = json(first[0], "/emulator/state", None).await?;
            let running = state["running"].as_u64().unwrap_or(0);
            note(&format!("{running} streams open in the pod that is not ready"));
            ensure!(running > 0, "its streams have ended: this shows nothing");
            // Kubernetes takes pods that are not ready first.
            rig.pin(Some(1)).await?;
            rig.wait_for("one replica to be wanted", |model| {
                model["status"]["recommendedReplicas"] == 1
            })
            .await?;
            let state = json(first[0], "/emulator/state", None).await?;
            ensure!(
                state["running"].as_u64() > Some(0),
                "its streams have ended: this shows nothing"
            );
            faults(json!({ "slow_start_seconds": 1e6 })).await
        };
        let (outcomes, fault) = futures::future::join(streams, fault).await;
        fault?;
        let cut: Vec<String> = outcomes
            .iter()
            .filter_map(|one| one.as_ref().err())
            .map(|e| format!("{e:#}"))
            .collect();
        note(&format!("{STREAMS} streams, {} cut", cut.len()));
        figure("trust.streams_cut", cut.len() as f64, "streams", "=0")?;
        ensure!(
            cut.is_empty(),
            "{} streams were cut: {:?}\n{}",
            cut.len(),
            cut[0],
            rig.operator.log()
        );
        rig.settled(1, Duration::from_secs(120)).await
    })
    .await
}
