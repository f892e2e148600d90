//! One pod never becomes ready while more and more is asked: growth goes on, and the pod is named.

use super::super::faults::under_load;
use super::super::rig::{Rig, Setup};
use anyhow::{Context, Result, ensure};
use flyball_e2e::http::json;
use flyball_e2e::{in_namespace, note, until};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn trust_a_pod_that_never_starts_does_not_stop_growth() -> Result<()> {
    in_namespace(&[], async |story| {
        let setup = Setup {
            start_seconds: 5,
            scaling: json!({ "mode": "Act", "max": 6 }),
            decode: Some(120),
            ..Setup::default()
        };
        let rig = Box::pin(Rig::of(story, setup)).await?;
        rig.pin(Some(1)).await?;
        rig.settled(1, Duration::from_secs(120)).await?;
        let first = rig.names().await?;
        rig.pin(Some(2)).await?;
        let wedged = until("a second pod", Duration::from_secs(60), async || {
            let new: Vec<_> = rig
                .running()
                .await?
                .into_iter()
                .filter(|(name, _)| !first.contains(name))
                .collect();
            let Some((name, address)) = new.into_iter().next() else { return Ok(None) };
            let fault = json!({ "slow_start_seconds": 1e6 });
            // It listens a moment after it runs.
            Ok(json(address, "/emulator/faults", Some(&fault)).await.is_ok().then_some(name))
        })
        .await?;
        rig.pin(None).await?;
        let grown = async {
            // Eight streams of some 60 tokens a second want four engines of 120.
            until(
                "three engines beside the one that never starts",
                Duration::from_secs(240),
                async || Ok((rig.ready().await? >= 3).then_some(())),
            )
            .await
            .with_context(|| rig.operator.log())
        };
        let ((), load) = under_load(&rig, 200, grown).await?;
        ensure!(load.errors.is_empty(), "{:?}", load.errors.first());
        let named = until("the pod to be named", Duration::from_secs(120), async || {
            let model = rig.model().await?["status"].to_string();
            let events = rig.events().await?;
            Ok((model.contains(&wedged) || events.contains(&wedged)).then_some(()))
        });
        named.await.with_context(|| rig.operator.log())?;
        note(&format!("{wedged} never started; three others serve"));
        Ok(())
    })
    .await
}
