//! Waiting for the cluster to do something, with a limit and a sentence.

use anyhow::{Result, bail};
use std::time::Duration;

/// A limit is what a wait takes at most on a machine that has nothing else to do. How fast a machine is must
/// not decide: a host that took half of the time away made two stories fail.
const PATIENCE: u32 = 4;

/// Asks every 200 ms until there is an answer. An error of the question ends the wait.
pub async fn until<T>(
    what: &str,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let limit = limit * PATIENCE;
    let deadline = tokio::time::Instant::now() + limit;
    loop {
        if let Some(answer) = ask().await? {
            return Ok(answer);
        }
        if tokio::time::Instant::now() > deadline {
            bail!("waited {} s in vain for: {what}", limit.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
