//! Stands in line, then goes on.

use crate::admit::InLine;
use crate::aim::Job;
use crate::answer::Problem;
use crate::forward::{Relay, Worker, forward};
use crate::phase::{Granted, Open};
use http::Response;
use std::sync::Arc;

/// Stands in line, then goes on.
pub(super) async fn wait(
    worker: &Arc<Worker>,
    line: InLine,
    mut job: Box<Job>,
    granted: Open<Granted>,
) -> Result<Response<Box<Relay>>, Problem> {
    let admitted = granted.wait(line).await?;
    // Engines may have come and gone meanwhile.
    if let Some(model) = worker.shared.served().model(job.model.name()) {
        job.model = Arc::clone(model);
    }
    forward(worker, job, admitted).await
}
