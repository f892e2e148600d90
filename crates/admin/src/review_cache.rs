//! Verdicts that hold for a while.

use crate::AccessVerdict;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a verdict holds: a thousand gateways that all come back are then a thousand questions, and
/// one that is refused asks no more often than once a minute.
pub(crate) const HOLDS: Duration = Duration::from_mins(1);

/// Verdicts that are kept: two for each of a thousand gateways, whose tokens change every hour.
const MOST: usize = 2_048;

/// Verdicts by the hash of a token and of what was asked for, so that no token stays in memory.
#[derive(Default)]
pub struct ReviewCache(Mutex<BTreeMap<[u8; 32], (Instant, AccessVerdict)>>);

impl ReviewCache {
    /// The verdict about this token for this purpose, asked for if none holds.
    pub async fn or_ask(
        &self,
        token: &str,
        what: &str,
        ask: impl Future<Output = AccessVerdict>,
    ) -> AccessVerdict {
        let hash = Sha256::new().chain_update(what).chain_update([0_u8]).chain_update(token);
        let hash: [u8; 32] = hash.finalize().into();
        let found = self.lock().get(&hash).filter(|(since, _)| since.elapsed() < HOLDS).cloned();
        if let Some((_, verdict)) = found {
            return verdict;
        }
        let verdict = ask.await;
        if !matches!(verdict, AccessVerdict::Unknown(_)) {
            self.keep(hash, verdict.clone());
        }
        verdict
    }

    fn keep(&self, hash: [u8; 32], verdict: AccessVerdict) {
        let mut verdicts = self.lock();
        if verdicts.len() >= MOST {
            verdicts.retain(|_, (since, _)| since.elapsed() < HOLDS);
        }
        if verdicts.len() < MOST {
            verdicts.insert(hash, (Instant::now(), verdict));
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], (Instant, AccessVerdict)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ReviewCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReviewCache").finish_non_exhaustive()
    }
}
