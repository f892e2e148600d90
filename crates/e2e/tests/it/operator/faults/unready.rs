//! Every engine is unready at once, and comes back.

use super::super::rig::{Rig, Setup};
use super::{never_fewer, under_load};
use anyhow::{Context, Result, ensure};
use flyball_e2e::http::json;
use flyball_e2e::{in_namespace, is_long, note, until};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_gives_nothing_back_while_every_engine_is_unready() -> Result<()> {
    // Fewer are given back when they were not needed for 69 seconds, and rates are those of 30.
    let length = Duration::from_secs(if is_long() { 120 } else { 15 });
    in_namespace(&[], async |story| {
        let scaling = json!({ "mode": "Act", "max": 3 });
        let rig =
            Box::pin(Rig::of(story, Setup { scaling, decode: Some(150), ..Setup::default() }))
                .await?;
        let fault = async {
            rig.settled(3, Duration::from_secs(120)).await?;
            never_fewer(&rig, 3, unready(&rig, length)).await
        };
        let ((), load) = under_load(&rig, 200, fault).await?;
        note(&format!(
            "{} s without an engine: {} streams answered, {} refused in words",
            length.as_secs(),
            load.answered,
            load.errors.len()
        ));
        // Kubernetes needs three seconds to see it. Until then engines refuse, and that is passed on; no
        // answer that began is broken off.
        let silent = load.errors.iter().find(|error| !error.contains("\"error\""));
        ensure!(silent.is_none(), "refused without a word: {silent:?}");
        let broken = load.errors.iter().find(|error| error.contains("broken off"));
        ensure!(broken.is_none(), "{broken:?}");
        Ok(())
    })
    .await
}

async fn unready(rig: &Rig<'_>, length: Duration) -> Result<()> {
    let engines = rig.engines().await?;
    let faults = async |faults: Value| {
        for engine in &engines {
            json(*engine, "/emulator/faults", Some(&faults)).await?;
        }
        anyhow::Ok(())
    };
    faults(json!({ "slow_start_seconds": 1e6 })).await?;
    let done = until("every engine to be unready", Duration::from_secs(30), async || {
        let ready = rig.model().await?["status"]["readyReplicas"].clone();
        Ok((ready == json!(0)).then_some(()))
    });
    done.await.with_context(|| rig.operator.log())?;
    tokio::time::sleep(length).await;
    let signals = rig.condition("SignalsFresh").await?;
    ensure!(signals["reason"] == "SignalsMissing", "{signals}");
    faults(json!({})).await?;
    rig.settled(3, Duration::from_secs(60)).await?;
    // The first answers after it, and rates that are known again.
    let done = until("signals that are fresh", Duration::from_secs(180), async || {
        Ok((rig.condition("SignalsFresh").await?["status"] == "True").then_some(()))
    });
    let waited = done.await;
    let signals = rig.condition("SignalsFresh").await?;
    waited.with_context(|| format!("{signals}"))
}
