//! Waiting for the cluster to do something, with a limit and a sentence.

use anyhow::{Result, bail};
use std::time::Duration;

/// Asks every 200 ms until there is an answer. An error of the question ends the wait.
pub async fn until<T>(
    what: &str,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
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
