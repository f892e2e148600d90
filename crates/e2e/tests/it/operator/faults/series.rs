//! Prometheus says old things, nothing, or numbers that are none, while it is all that the operator hears.

use super::super::rig::{Rig, Setup, prometheus};
use super::{never_fewer, under_load};
use anyhow::{Context, Result, ensure};
use flyball_e2e::{AnswerFault, AnswerLog, in_namespace, is_long, note, until};
use serde_json::json;
use std::time::Duration;

/// Scraped, asked, decided and written: some twenty seconds, and only so that it ends.
const SEEN: Duration = Duration::from_secs(180);

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_gives_nothing_back_on_series_that_are_old_absent_or_no_numbers() -> Result<()> {
    // Fewer are given back when they were not needed for 69 seconds.
    let length = Duration::from_secs(if is_long() { 75 } else { 8 });
    in_namespace(&[], async |story| {
        let answers = AnswerLog::of(prometheus(story).await?).await?;
        let setup = Setup {
            scaling: json!({ "mode": "Act", "max": 3 }),
            decode: Some(150),
            prometheus: Some(answers.address),
            ..Setup::default()
        };
        let rig = Box::pin(Rig::of(story, setup)).await?;
        // Without an operator to wake it, the gateway turns away whoever comes before the first engine, of
        // which it may hear a moment later than we do.
        rig.settled(1, Duration::from_secs(120)).await?;
        until("the gateway answers", SEEN, async || Ok(rig.ask(0, 1).await.ok())).await?;
        let up = rig.settled(3, Duration::from_secs(120));
        let ((), load) = under_load(&rig, 200, up).await?;
        ensure!(load.errors.is_empty(), "{:?}\n{}", load.errors.first(), rig.gateway.log());
        // From now on nobody asks: whoever believed that would give two of three back.
        let faults = async {
            for (fault, reason) in [
                (AnswerFault::Stale, "SignalsStale"),
                (AnswerFault::Absent, "SignalsMissing"),
                (AnswerFault::NotANumber, "SignalsMissing"),
            ] {
                answers.set(fault);
                signals(&rig, "False", reason).await.with_context(|| format!("{fault:?}"))?;
                tokio::time::sleep(length).await;
                signals(&rig, "False", reason).await.with_context(|| format!("{fault:?}"))?;
                let decided = rig.model().await?["status"]["decision"]["reason"].clone();
                ensure!(decided == reason, "{fault:?}: {decided}");
                // The last word before the next fault is a true one.
                answers.set(AnswerFault::None);
                signals(&rig, "True", "Steady")
                    .await
                    .with_context(|| format!("after {fault:?}"))?;
            }
            Ok(())
        };
        never_fewer(&rig, 3, faults).await?;
        note("old, absent and no numbers: 3 replicas throughout");
        if is_long() {
            rig.settled(1, Duration::from_secs(180)).await?;
            note("true series again: 1 replica");
        }
        Ok(())
    })
    .await
}

/// Waits until the condition about signals is so, for this reason.
async fn signals(rig: &Rig<'_>, status: &str, reason: &str) -> Result<()> {
    let what = format!("SignalsFresh={status}, {reason}");
    let done = until(&what, SEEN, async || {
        let condition = rig.condition("SignalsFresh").await?;
        Ok((condition["status"] == status && condition["reason"] == reason).then_some(()))
    });
    done.await.with_context(|| rig.operator.log())
}
