//! What happens when a part is gone or wrong: nothing is given back, and requests are answered.

mod killed;
mod outage;
mod partition;
mod series;
mod unready;

use super::rig::Rig;
use anyhow::{Result, bail, ensure};
use futures::future::join_all;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Streams at once.
const STREAMS: usize = 8;

/// What became of streams that were asked for all the time.
pub(super) struct LoadOutcome {
    pub(super) answered: usize,
    pub(super) errors: Vec<String>,
}

/// Asks for streams of so many tokens, one after the other in each of several places, as long as the work
/// takes. A fault without load proves nothing, and is an error.
pub(super) async fn under_load<T>(
    rig: &Rig<'_>,
    tokens: u32,
    work: impl Future<Output = Result<T>>,
) -> Result<(T, LoadOutcome)> {
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let load = join_all((0..STREAMS).map(|stream| {
        let (over, answered) = (&over, &answered);
        async move {
            let (mut number, mut errors) = (stream, Vec::new());
            while !over.load(Ordering::Relaxed) {
                match rig.ask(number, tokens).await {
                    Ok(()) => drop(answered.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => {
                        errors.push(format!("{error:#}"));
                        tokio::time::sleep(Duration::from_millis(200)).await;
                    }
                }
                number += STREAMS;
            }
            errors
        }
    }));
    let mut load = std::pin::pin!(load);
    // Requests of a story that failed may wait for long, and for nothing.
    let done = tokio::select! {
        done = Box::pin(work) => done?,
        _ = &mut load => bail!("nobody asks any more"),
    };
    over.store(true, Ordering::Relaxed);
    let errors = load.await.concat();
    let answered = answered.load(Ordering::Relaxed);
    ensure!(answered > 0, "nobody was answered: {errors:?}");
    Ok((done, LoadOutcome { answered, errors }))
}

/// Does the work, and fails as soon as the workload asks for fewer replicas than these.
pub(super) async fn never_fewer<T>(
    rig: &Rig<'_>,
    least: i32,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let watching = async {
        loop {
            let replicas = rig.replicas().await?;
            if replicas < least {
                let model = rig.model().await?;
                let log = rig.operator.log();
                bail!("{replicas} replicas, which were {least}: {model}\n{log}");
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    tokio::select! {
        broken = Box::pin(watching) => broken,
        done = Box::pin(work) => done,
    }
}
