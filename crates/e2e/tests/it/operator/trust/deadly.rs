//! A prompt that ends every engine which reads it, sent again and again, as clients do.

use super::super::faults::under_load;
use super::super::rig::{Rig, Setup};
use anyhow::{Context, Result, ensure};
use flyball_e2e::http::HttpAnswer;
use flyball_e2e::{figure, in_namespace, note};
use serde_json::json;
use std::time::Duration;

const ENGINES: usize = 8;

/// What one prompt may take with it: the engine that met it first, and one more to be sure.
const MOST_RESTARTS: i32 = 2;

/// A library's own retries, and a person's.
const TRIES: usize = 6;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn trust_a_prompt_that_kills_engines_takes_at_most_two_of_eight() -> Result<()> {
    in_namespace(&[], async |story| {
        let setup = Setup {
            scaling: json!({ "mode": "Act", "max": 8 }),
            engine_args: vec!["--die-at-prompt-tokens=2000".into()],
            ..Setup::default()
        };
        let rig = Box::pin(Rig::of(story, setup)).await?;
        rig.pin(Some(ENGINES as u32)).await?;
        rig.settled(ENGINES, Duration::from_secs(180)).await?;
        let deadly = async {
            let mut answers = Vec::new();
            for _ in 0..TRIES {
                answers.push(ask(&rig).await);
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            // What fell must have had the time to be counted, and to come back.
            rig.settled(ENGINES, Duration::from_secs(120)).await?;
            anyhow::Ok(answers)
        };
        let (answers, load) = under_load(&rig, 40, deadly).await?;
        let restarts = rig.restarts().await?;
        note(&format!(
            "{TRIES} tries: {restarts} engines restarted; {} others answered, {} not; last said: {:?}",
            load.answered,
            load.errors.len(),
            answers.last()
        ));
        figure("trust.engines_killed_by_a_prompt", f64::from(restarts), "engines", "<=2")?;
        ensure!(restarts > 0, "the prompt killed nobody: this shows nothing");
        ensure!(restarts <= MOST_RESTARTS, "{restarts} engines restarted: {answers:?}");
        let last = answers.last().context("nothing was asked")?;
        ensure!(last.as_ref().is_ok_and(|(status, _)| *status >= 400), "{last:?}");
        Ok(())
    })
    .await
}

async fn ask(rig: &Rig<'_>) -> Result<(u16, String)> {
    let body = json!({
        "model": "model", "max_tokens": 8,
        "messages": [{ "role": "user", "content": "kill ".repeat(8_000) }],
    });
    HttpAnswer::of(rig.http, "/v1/chat/completions", Some(&body)).await?.whole().await
}
