//! What one thread forwards with, and what all threads know of tries.

use super::connection::Pool;
use super::recovered::Recovered;
use super::suspects::{Key, Suspects};
use crate::answer::Problem;
use crate::answer_cache::AnswerCache;
use crate::settings::GatewaySettingsFile;
use crate::shadow::Shadows;
use crate::shared::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Requests that may be tried again at once, beyond a fifth of those under way: a brown-out must
/// not double its own load.
const FREE_RETRIES: usize = 20;

/// What one thread forwards with.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tried: Arc<Tried>,
    /// Answers that may be given again.
    pub(crate) cache: Arc<AnswerCache>,
    pub(crate) pool: Pool,
    numbers: AtomicU64,
}

/// What all threads know of tries.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) recovered: Recovered,
    /// Prompts that engines died over.
    pub(crate) suspects: Suspects,
    pub(crate) shadows: Arc<Shadows>,
    retries: AtomicUsize,
}

/// A try after a failed one, until its answer begins.
pub(super) struct Retry<'a>(&'a Tried);

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        tried: Arc<Tried>,
        cache: Arc<AnswerCache>,
        seed: u64,
    ) -> Self {
        Self { shared, tried, cache, pool: Pool::default(), numbers: AtomicU64::new(seed) }
    }

    /// A number that no other request of this thread has, and hardly any other of all gateways.
    pub(crate) fn next_number(&self) -> u64 {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes())
    }

    /// Why this prompt is not sent to any engine; `None` if it is.
    pub(crate) fn refusal(&self, key: Key) -> Option<Problem> {
        self.tried.suspects.refuses(key, self.shared.now()).then_some(Problem::KillsEngines)
    }

    /// A failed try may be made again, unless too many are.
    pub(super) fn retry(&self) -> Option<Retry<'_>> {
        let before = self.tried.retries.fetch_add(1, Ordering::Relaxed);
        let retry = Retry(&self.tried);
        (before < FREE_RETRIES + self.shared.room.requests() / 5).then_some(retry)
    }
}

impl Tried {
    /// Nothing yet.
    pub(crate) fn new(settings: &GatewaySettingsFile) -> Self {
        Self {
            recovered: Recovered::default(),
            suspects: Suspects::default(),
            shadows: Arc::new(Shadows::new(settings)),
            retries: AtomicUsize::new(0),
        }
    }
}

impl Drop for Retry<'_> {
    fn drop(&mut self) {
        self.0.retries.fetch_sub(1, Ordering::Relaxed);
    }
}
