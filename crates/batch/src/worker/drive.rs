//! A worker in real time: its lines are tasks, which end with it.

use super::{EndedLine, Worker};
use crate::lease::Leases;
use crate::lines::{GatewayLines, LineOutcome, LineToSend};
use crate::state::BatchKey;
use flyball_core::units::{Micros, Timestamp};
use flyball_ledger::store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

/// A turn comes at least so often.
const TICK: Duration = Duration::from_millis(250);

/// After a line whose task broke.
const AFTER_PANIC: Micros = Micros::from_seconds(60);

/// Now, by this machine's clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// Works until it is to stop, and hands over what it has.
pub(crate) async fn drive<S: Store, L: Leases>(
    mut worker: Worker<S, L>,
    gateway: Arc<GatewayLines>,
    stop: impl Future<Output = ()>,
) {
    let mut lines = Lines { gateway, tasks: JoinSet::new(), sent: BTreeMap::new() };
    let mut stop = std::pin::pin!(stop);
    loop {
        let first = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(ended) = lines.tasks.join_next_with_id() => Some(ended),
            () = tokio::time::sleep(TICK) => None,
        };
        let mut ended: Vec<EndedLine> =
            first.and_then(|line| lines.ended(line)).into_iter().collect();
        while let Some(line) = lines.tasks.try_join_next_with_id() {
            ended.extend(lines.ended(line));
        }
        let outcome = worker.turn(now(), ended).await;
        outcome.stop.iter().for_each(|key| lines.stop(key));
        outcome.send.into_iter().for_each(|line| lines.send(line));
    }
    lines.tasks.shutdown().await;
    worker.stop().await;
}

/// Lines at the gateway.
struct Lines {
    gateway: Arc<GatewayLines>,
    tasks: JoinSet<EndedLine>,
    sent: BTreeMap<Id, (BatchKey, u32, AbortHandle)>,
}

impl Lines {
    fn send(&mut self, line: LineToSend) {
        let gateway = Arc::clone(&self.gateway);
        let (key, index) = (line.key.clone(), line.index);
        let handle = self.tasks.spawn(async move {
            let became = gateway.send(&line).await;
            EndedLine { key: line.key, index: line.index, became }
        });
        self.sent.insert(handle.id(), (key, index, handle));
    }

    /// Cuts their connections, so that their engines stop.
    fn stop(&mut self, key: &BatchKey) {
        self.sent.values().filter(|(of, ..)| of == key).for_each(|(.., handle)| handle.abort());
    }

    fn ended(&mut self, line: Result<(Id, EndedLine), JoinError>) -> Option<EndedLine> {
        match line {
            Ok((id, line)) => {
                self.sent.remove(&id);
                Some(line)
            }
            Err(error) => {
                let (key, index, _) = self.sent.remove(&error.id())?;
                if error.is_cancelled() {
                    return None;
                }
                tracing::error!(batch = key.id, line = index, %error, "sending a line broke");
                Some(EndedLine { key, index, became: LineOutcome::Later(AFTER_PANIC) })
            }
        }
    }
}
