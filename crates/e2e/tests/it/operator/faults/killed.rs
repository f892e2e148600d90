//! The operator is killed, and another comes.

use super::super::rig::Rig;
use super::under_load;
use anyhow::{Result, ensure};
use flyball_e2e::{in_namespace, note, until};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_is_killed_and_nothing_moves() -> Result<()> {
    in_namespace(&[], async |story| {
        let mut rig = Rig::new(story, 0, &json!({ "mode": "Act", "max": 8, "min": 2 })).await?;
        rig.settled(2, Duration::from_secs(120)).await?;
        rig.operator.kill()?;
        let answered = for_a_while(&rig).await?;
        note(&format!("{answered} streams answered without an operator"));
        rig.settled(2, Duration::from_secs(1)).await?;
        // The lease of the one before lapses, its targets are in the statuses, and nothing is given back.
        rig.replace_operator().await?;
        for_a_while(&rig).await?;
        rig.settled(2, Duration::from_secs(1)).await?;
        // The gateway comes back after a while, and rates take some seconds more.
        until("a decision on what the gateway says", Duration::from_secs(60), async || {
            let decided = rig.model().await?["status"]["decision"]["reason"].clone();
            let known = ["Steady", "Forecast", "ScaledUp"].map(Into::into);
            Ok(known.contains(&decided).then_some(()))
        })
        .await?;
        Ok(())
    })
    .await
}

/// Streams that were answered in a while, all of them.
async fn for_a_while(rig: &Rig<'_>) -> Result<usize> {
    let wait = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok(())
    };
    let ((), load) = under_load(rig, 40, wait).await?;
    ensure!(load.errors.is_empty(), "{:?}", load.errors);
    Ok(load.answered)
}
