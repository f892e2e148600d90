//! What happens when a part is gone: everything stays as it is, and requests are answered.

use super::rig::Rig;
use anyhow::{Result, ensure};
use flyball_e2e::{in_namespace, note};
use futures::future::join_all;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Streams at once.
const STREAMS: usize = 8;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_is_killed_and_nothing_moves() -> Result<()> {
    in_namespace(&[], async |story| {
        let mut rig = Rig::new(story, 0, &json!({ "mode": "Act", "max": 8, "min": 2 })).await?;
        rig.settled(2, Duration::from_secs(120)).await?;
        rig.operator.kill()?;
        let answered = asked_for(&rig, Duration::from_secs(20)).await?;
        note(&format!("{answered} streams answered without an operator"));
        rig.settled(2, Duration::from_secs(1)).await?;
        // The lease of the one before lapses, its targets are in the statuses, and nothing is given back.
        rig.replace_operator().await?;
        let answered = asked_for(&rig, Duration::from_secs(20)).await?;
        ensure!(answered > 0, "nobody was answered");
        rig.settled(2, Duration::from_secs(1)).await?;
        let model = rig.model().await?;
        let decided = model["status"]["decision"]["reason"].as_str().unwrap_or_default();
        ensure!(["Steady", "Forecast", "ScaledUp"].contains(&decided), "{model}");
        Ok(())
    })
    .await
}

/// Streams one after the other for so long; the first that fails ends it.
async fn asked_for(rig: &Rig<'_>, length: Duration) -> Result<usize> {
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let load = join_all((0..STREAMS).map(|stream| {
        let (over, answered) = (&over, &answered);
        async move {
            let mut number = stream;
            while !over.load(Ordering::Relaxed) {
                rig.ask(number, 40).await?;
                answered.fetch_add(1, Ordering::Relaxed);
                number += STREAMS;
            }
            anyhow::Ok(())
        }
    }));
    let end = async {
        tokio::time::sleep(length).await;
        over.store(true, Ordering::Relaxed);
    };
    let (outcomes, ()) = futures::future::join(load, end).await;
    outcomes.into_iter().collect::<Result<Vec<()>>>()?;
    Ok(answered.load(Ordering::Relaxed))
}
