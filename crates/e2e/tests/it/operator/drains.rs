//! Replicas go while requests run, and no request is cut.

use super::rig::{Rig, is_long};
use anyhow::{Result, ensure};
use flyball_e2e::{figure, in_namespace, note};
use futures::future::join_all;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Replicas at the top; it goes down to one, so that each round is so many less one scale-downs.
const MOST: usize = 4;

/// Streams at once, each of about three seconds.
const STREAMS: usize = 24;

/// Rounds: six scale-downs as a story, and 200 where the figure is asked for.
fn rounds() -> usize {
    if is_long() { 200_usize.div_ceil(MOST - 1) } else { 2 }
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_scales_down_under_load_and_cuts_nothing() -> Result<()> {
    in_namespace(&[], async |story| {
        let rig = Rig::new(story, 0, &json!({ "mode": "Act", "max": 8 })).await?;
        rig.pin(Some(1)).await?;
        rig.settled(1, Duration::from_secs(120)).await?;
        let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
        let load = join_all((0..STREAMS).map(|stream| {
            let (rig, over, answered) = (&rig, &over, &answered);
            async move {
                let mut number = stream;
                while !over.load(Ordering::Relaxed) {
                    rig.ask(number, 200).await?;
                    answered.fetch_add(1, Ordering::Relaxed);
                    number += STREAMS;
                }
                anyhow::Ok(())
            }
        }));
        let scaling = async {
            for round in 0..rounds() {
                let up = rig.pin(Some(MOST as u32)).await;
                let up = up.and(rig.settled(MOST, Duration::from_secs(120)).await);
                let down = up.and(rig.pin(Some(1)).await);
                let down = down.and(rig.settled(1, Duration::from_secs(120)).await);
                if down.is_err() {
                    over.store(true, Ordering::Relaxed);
                    return down;
                }
                if round % 10 == 9 {
                    note(&format!("{} scale-downs", (round + 1) * (MOST - 1)));
                }
            }
            over.store(true, Ordering::Relaxed);
            Ok(())
        };
        let (outcomes, scaled) = futures::future::join(load, scaling).await;
        scaled?;
        let cut: Vec<String> = outcomes
            .iter()
            .filter_map(|one| one.as_ref().err())
            .map(|e| format!("{e:#}"))
            .collect();
        let answered = answered.load(Ordering::Relaxed);
        let downs = rounds() * (MOST - 1);
        note(&format!("{downs} scale-downs, {answered} streams answered, {} cut", cut.len()));
        figure("operator.requests_cut", cut.len() as f64, "requests", "=0")?;
        ensure!(cut.is_empty(), "{} streams were cut: {:?}", cut.len(), cut.first());
        ensure!(answered > downs, "only {answered} streams: that is no load");
        Ok(())
    })
    .await
}
