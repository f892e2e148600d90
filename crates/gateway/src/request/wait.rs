//! Stands in line, then goes on.

use crate::admit::InLine;
use crate::aim::Job;
use crate::answer::Problem;
use crate::forward::{Record, Relay, Worker, forward};
use http::Response;
use std::sync::Arc;
use std::time::Instant;

/// Stands in line, then goes on.
pub(super) async fn wait(
    worker: &Arc<Worker>,
    line: InLine,
    mut job: Job,
    mut record: Box<Record>,
) -> Result<Response<Box<Relay>>, (Problem, Box<Record>)> {
    let since = Instant::now();
    record.held = line.held;
    let told = line.turn().await;
    record.queued = since.elapsed();
    match told {
        Ok(turn) => record.turn = Some(turn),
        Err(problem) => return Err((problem, record)),
    }
    // Engines may have come and gone meanwhile.
    if let Some(model) = worker.shared.served().model(job.model.name()) {
        job.model = Arc::clone(model);
    }
    forward(worker, job, record).await
}
