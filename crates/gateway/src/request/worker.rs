//! What one thread answers requests with.

use crate::forward;
use crate::mirror;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What one thread has of its own.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) forward: Arc<forward::Worker>,
    /// Room for copies.
    pub(crate) copies: Arc<Semaphore>,
}

impl Worker {
    pub(crate) fn new(forward: Arc<forward::Worker>) -> Self {
        Self { forward, copies: Arc::new(Semaphore::new(mirror::COPIES)) }
    }
}
