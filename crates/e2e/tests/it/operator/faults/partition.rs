//! The leader is cut off from the API server, and another leads.

use super::super::cut::{api_server, through};
use super::super::rig::{LEADS, Rig, Setup};
use super::under_load;
use anyhow::{Result, bail, ensure};
use flyball_e2e::process::ServiceProcess;
use flyball_e2e::{Relay, Story, in_namespace, note, until};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Everything that an operator wrote.
const WRITES: &str = "flyball_operator_writes_total";

/// More than a lease of five seconds.
const LAPSE: Duration = Duration::from_secs(30);

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_that_is_cut_off_stops_before_another_begins() -> Result<()> {
    in_namespace(&[], async |story| {
        let (server, name) = api_server(story)?;
        let relay = Relay::to(server).await?;
        let kubeconfig = through(story, &relay, &name)?;
        let outcome = Box::pin(play(story, &relay, kubeconfig.clone())).await;
        std::fs::remove_file(kubeconfig)?;
        outcome
    })
    .await
}

async fn play(story: &Story, relay: &Relay, kubeconfig: PathBuf) -> Result<()> {
    // Three at most, which are pinned later: what the load asks for meanwhile is never given back.
    let scaling = json!({ "mode": "Act", "max": 3, "min": 2 });
    let setup = Setup { scaling, kubeconfig: Some(kubeconfig), ..Setup::default() };
    let rig = Box::pin(Rig::of(story, setup)).await?;
    rig.leads(&rig.operator, LAPSE).await?;
    rig.settled(2, Duration::from_secs(120)).await?;
    let second = rig.second_operator().await?;
    let pods = rig.names().await?;
    let fault = async {
        tokio::select! {
            broken = Box::pin(never_both(&rig.operator, &second)) => broken,
            done = Box::pin(cut_off(&rig, &second, relay)) => done,
        }
    };
    let ((), load) = under_load(&rig, 40, fault).await?;
    ensure!(load.errors.is_empty(), "{:?}", load.errors.first());
    ensure!(rig.names().await?.is_superset(&pods), "some of {pods:?} went");
    note(&format!("{} streams answered while another came to lead", load.answered));
    Ok(())
}

async fn cut_off(rig: &Rig<'_>, second: &ServiceProcess, relay: &Relay) -> Result<()> {
    relay.cut();
    let began = Instant::now();
    rig.leads(second, LAPSE).await?;
    note(&format!("another led after {} ms", began.elapsed().as_millis()));
    let wrote = rig.operator.metric(WRITES).await?;
    // The next decision is the other's, and gateways hear of it from the other.
    rig.pin(Some(3)).await?;
    rig.settled(3, Duration::from_secs(60)).await?;
    until("the gateway to talk to the one that leads", LAPSE, async || {
        Ok((second.metric("flyball_operator_gateways").await? > 0.0).then_some(()))
    })
    .await?;
    // Whatever it sent while it was cut off arrives now.
    relay.mend();
    tokio::time::sleep(Duration::from_secs(8)).await;
    ensure!(rig.operator.metric(LEADS).await? == 0.0, "it leads again, and the other does too");
    ensure!(second.metric(LEADS).await? > 0.0, "the other does not lead any more");
    let writes = rig.operator.metric(WRITES).await?;
    ensure!(writes == wrote, "it wrote {} times after another led", writes - wrote);
    ensure!(rig.replicas().await? == 3, "the replicas changed");
    rig.settled(3, Duration::from_secs(1)).await
}

/// Fails as soon as both say that they lead. The first, which stops, is asked after the second, which
/// begins: asked the other way round, one that stops in between, on a machine that stood still for a
/// moment, would be taken for one that leads beside it.
async fn never_both(first: &ServiceProcess, second: &ServiceProcess) -> Result<()> {
    loop {
        if second.metric(LEADS).await? > 0.0 && first.metric(LEADS).await? > 0.0 {
            bail!("both lead");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
