//! Replicas go while requests run, and no request is cut.

use super::rig::{Rig, Setup};
use anyhow::{Result, ensure};
use flyball_e2e::{figure, in_namespace, is_long, note};
use futures::future::join_all;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Replicas at the top; it goes down to one, so that each round is so many less one scale-downs.
const MOST: usize = 4;

/// What runs while replicas go.
struct Load {
    rounds: usize,
    /// At once.
    streams: usize,
    /// Of one stream.
    tokens: u32,
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_scales_down_under_load_and_cuts_nothing() -> Result<()> {
    in_namespace(&[], async |story| {
        let rig = Rig::new(story, 0, &json!({ "mode": "Act", "max": 8 })).await?;
        // Six scale-downs as a story, and 200 where the figure is asked for.
        let rounds = rounds(2);
        // About three seconds each.
        let cut = scaled_down(&rig, &Load { rounds, streams: 24, tokens: 200 }).await?;
        figure("operator.requests_cut", cut.len() as f64, "requests", "=0")?;
        ensure!(cut.is_empty(), "{} streams were cut: {:?}", cut.len(), cut.first());
        Ok(())
    })
    .await
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_scales_llama_servers_down_under_load_and_cuts_nothing() -> Result<()> {
    in_namespace(&[], async |story| {
        let scaling = json!({ "mode": "Act", "max": 8 });
        let rig =
            Box::pin(Rig::of(story, Setup { scaling, llama: true, ..Setup::default() })).await?;
        let rounds = rounds(1);
        // Few: four real engines share the cores of a test machine.
        let cut = scaled_down(&rig, &Load { rounds, streams: 6, tokens: 48 }).await?;
        figure("operator.requests_cut_llama", cut.len() as f64, "requests", "=0")?;
        ensure!(cut.is_empty(), "{} streams were cut: {:?}", cut.len(), cut.first());
        Ok(())
    })
    .await
}

/// Rounds of a story, or as many as make 200 scale-downs where the figure is asked for.
fn rounds(short: usize) -> usize {
    if is_long() { 200_usize.div_ceil(MOST - 1) } else { short }
}

/// Goes up and down so often under load; what became of streams that were not answered whole.
async fn scaled_down(rig: &Rig<'_>, load: &Load) -> Result<Vec<String>> {
    rig.pin(Some(1)).await?;
    rig.settled(1, Duration::from_secs(120)).await?;
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let streams = join_all((0..load.streams).map(|stream| {
        let (over, answered) = (&over, &answered);
        async move {
            let mut number = stream;
            while !over.load(Ordering::Relaxed) {
                rig.ask(number, load.tokens).await?;
                answered.fetch_add(1, Ordering::Relaxed);
                number += load.streams;
            }
            anyhow::Ok(())
        }
    }));
    let scaling = async {
        let scaled = up_and_down(rig, load.rounds).await;
        over.store(true, Ordering::Relaxed);
        scaled
    };
    let (outcomes, scaled) = futures::future::join(streams, scaling).await;
    scaled?;
    let errors = outcomes.iter().filter_map(|one| one.as_ref().err());
    let cut: Vec<String> = errors.map(|error| format!("{error:#}")).collect();
    let (answered, downs) = (answered.into_inner(), load.rounds * (MOST - 1));
    note(&format!("{downs} scale-downs, {answered} streams answered, {} cut", cut.len()));
    ensure!(answered > downs, "only {answered} streams: that is no load");
    Ok(cut)
}

async fn up_and_down(rig: &Rig<'_>, rounds: usize) -> Result<()> {
    let limit = Duration::from_secs(120);
    for round in 1..=rounds {
        rig.pin(Some(MOST as u32)).await?;
        rig.settled(MOST, limit).await?;
        rig.pin(Some(1)).await?;
        rig.settled(1, limit).await?;
        if round % 10 == 0 {
            note(&format!("{} scale-downs", round * (MOST - 1)));
        }
    }
    Ok(())
}
