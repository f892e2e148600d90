//! A batch request makes room for others: its connection is cut, it stands in line again, and begins again.
//!
//! Only before anything of its answer was passed on. A stream that has begun is `relay`'s, which goes on with it.

use super::sending::Sending;
use super::worker::Worker;
use crate::admit::Turn;
use crate::aim::Job;
use crate::answer::Problem;
use crate::phase::{Admitted, Open};
use futures::future::{Either, poll_fn, select};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

/// What comes of `asking`; `None` if it was told to make room before. Dropped, its connection is cut.
pub(super) async fn unless_made_room<T>(
    turn: Option<&Turn>,
    asking: impl Future<Output = T>,
) -> Option<T> {
    let Some(turn) = turn.filter(|turn| turn.is_batch()) else { return Some(asking.await) };
    let make_room = poll_fn(|context| turn.poll_make_room(context));
    // Asked first: it is at an engine, and can be told, only once it has been sent.
    match select(pin!(asking), pin!(make_room)).await {
        Either::Left((came, _)) => Some(came),
        Either::Right(_) => None,
    }
}

/// Stands in line again.
pub(super) async fn wait_again(
    worker: &Arc<Worker>,
    (mut job, sending): (Box<Job>, Open<Sending>),
) -> Result<(Box<Job>, Open<Admitted>), Problem> {
    let mut admitted = sending.then(Sending::back);
    let Some(turn) = admitted.turn.take() else { return Ok((job, admitted)) };
    let (since, made_room) = (Instant::now(), turn.made_room() + 1);
    admitted.makes_room();
    let turn = turn.again().turn().await;
    admitted.waited(made_room, since.elapsed());
    let (mut admitted, turn) = admitted.or_refuse(turn)?;
    admitted.turn = Some(turn);
    // Engines may have come and gone meanwhile.
    if let Some(model) = worker.shared.served().model(job.model.name()) {
        job.model = Arc::clone(model);
    }
    Ok((job, admitted))
}
