//! A model sleeps when nobody asks, and whoever asks wakes it.

use super::rig::Rig;
use anyhow::{Result, ensure};
use flyball_e2e::{figure, in_namespace, is_long, note};
use futures::future::join_all;
use serde_json::json;
use std::time::{Duration, Instant};

/// From a pod's start to its readiness.
const START_SECONDS: u32 = 5;

/// Requests that wait for it at once.
const WAITING: usize = 10;

fn rounds() -> usize {
    if is_long() { 50 } else { 2 }
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_wakes_a_model_that_sleeps() -> Result<()> {
    in_namespace(&[], async |story| {
        let scaling = json!({ "mode": "Act", "max": 4, "sleep": "WhenIdle" });
        let rig = Rig::new(story, START_SECONDS, &scaling).await?;
        let (mut inside, mut late) = (0, Vec::new());
        for round in 0..rounds() {
            // A person sends it to sleep; that it does so by itself is the governor's own test.
            rig.pin(Some(0)).await?;
            rig.settled(0, Duration::from_secs(120)).await?;
            rig.pin(None).await?;
            let began = Instant::now();
            let answers = join_all((0..WAITING).map(|one| rig.ask(round * WAITING + one, 8))).await;
            let took = began.elapsed();
            let failed = answers.iter().filter_map(|one| one.as_ref().err()).next();
            ensure!(failed.is_none(), "a request was not answered: {failed:?}");
            // A cold start as Kubernetes' clock has it, in whole seconds, and a tenth.
            let longest = (rig.slowest_start().await? + Duration::from_secs(1)).mul_f64(1.1);
            if took <= longest { inside += WAITING } else { late.push((took, longest)) }
        }
        let all = rounds() * WAITING;
        let percent = 100.0 * inside as f64 / all as f64;
        note(&format!("{} wake-ups: {inside} of {all} answered in time; late: {late:?}", rounds()));
        figure("operator.wakeups_answered_pct", percent, "%", "=100")?;
        let status = rig.model().await?;
        ensure!(status["status"]["variants"][0]["startsMeasured"].as_i64() > Some(0), "{status}");
        Ok(())
    })
    .await
}
