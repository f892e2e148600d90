//! Two namespaces serve a model of one public name: the traffic of one does not move the other.

use super::super::faults::under_load;
use super::super::rig::{Rig, Setup};
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Story, in_namespace, note, until};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn trust_two_namespaces_with_one_public_name_are_told_apart() -> Result<()> {
    in_namespace(&[], async |story| in_namespace(&[], async |twin| play(story, twin).await).await)
        .await
}

async fn play(story: &Story, twin: &Story) -> Result<()> {
    let scaling = json!({ "mode": "Act", "max": 3 });
    let setup = Setup {
        scaling,
        decode: Some(150),
        beside: vec![twin.namespace.clone()],
        ..Setup::default()
    };
    // The same model, its engines and its Service, in the other namespace.
    super::super::rig::crds(twin)?;
    twin.apply(&setup.manifest(twin)?)?;
    let rig = Box::pin(Rig::of(story, setup)).await?;
    rig.settled(1, Duration::from_secs(120)).await?;
    let up = rig.settled(3, Duration::from_secs(120));
    let ((), load) = under_load(&rig, 200, up).await?;
    ensure!(load.errors.is_empty(), "{:?}", load.errors.first());
    let other = rig.replicas_in(&twin.namespace).await?;
    ensure!(other == 1, "the twin has {other} replicas, and nobody asked it for anything");
    for namespace in [&story.namespace, &twin.namespace] {
        let what = format!("{namespace}/model to say that its name is taken twice");
        until(&what, Duration::from_secs(60), async || {
            let model = rig.model_of(namespace, "model").await?;
            Ok(model["status"]["conditions"].to_string().contains("NameConflict").then_some(()))
        })
        .await
        .with_context(|| rig.operator.log())?;
    }
    note("one name in two namespaces: 3 replicas where it is asked for, 1 where it is not");
    Ok(())
}
