//! Sends copies of requests to a model whose answers nobody gets.
//!
//! A copy goes its own way: no client waits for it or fails with it. It takes room of its own, so copies
//! are the first that there is no room for, and those are dropped and counted.

use crate::aim::Job;
use crate::forward::{Worker, forward};
use crate::phase::{Granted, Open};
use crate::room::Place;
use crate::settings::RequestLimits;
use std::future::poll_fn;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Copies under way on one thread. At 10 s each these are 6 a second: enough to judge a model by,
/// and not enough to be felt.
pub(crate) const COPIES: usize = 64;

/// Sends a copy of a request, if there is room among the copies of this thread and inside.
pub(crate) fn send(
    worker: &Arc<Worker>,
    copies: &Arc<Semaphore>,
    job: Box<Job>,
    of: &Open<Granted>,
) {
    let Some((permit, place)) = room(worker, copies, &job) else {
        worker.shared.listener.copy_dropped();
        return;
    };
    let copy = of.copy(Arc::clone(job.model.name()), place);
    let worker = Arc::clone(worker);
    tokio::spawn(async move {
        let _permit = permit;
        // However it ends, the meter knows.
        if let Ok(response) = forward(&worker, job, copy).await {
            let mut relay = response.into_body();
            while let Some(Ok(_)) = poll_fn(|cx| relay.poll_next(cx)).await {}
        }
    });
}

/// Half of all that may be held is for clients alone.
fn room(
    worker: &Worker,
    copies: &Arc<Semaphore>,
    job: &Job,
) -> Option<(OwnedSemaphorePermit, Place)> {
    let permit = Arc::clone(copies).try_acquire_owned().ok()?;
    let all = worker.shared.live().limits;
    let half = RequestLimits {
        in_flight: all.in_flight.div_ceil(2),
        held_bytes: all.held_bytes / 2,
        ..all
    };
    // A copy is nobody's: it takes nothing of its caller's share.
    let mut place = Place::take(Arc::clone(&worker.shared.room), None, &half).ok()?;
    let bytes = job.pieces.iter().map(bytes::Bytes::len).sum();
    place.hold(bytes, &half).ok()?;
    Some((permit, place))
}
