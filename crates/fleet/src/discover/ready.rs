//! Whether requests may come, as far as engines are looked for.
//!
//! Readiness is about what is served, not about what the settings ask for: a model whose engines cannot
//! be looked for is refused by itself and named, and never makes the gateway unready. So Envoy does it:
//! a cluster that is new warms, and the others serve on.

use super::{DiscoveryStatus, Listing};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// After a start, the longest wait for models that were not listed, if others were. A successor that
/// knows less than its predecessor should not hurry; one that waits for ever serves nobody. Envoy's
/// `initial_fetch_timeout` is as long.
const WARMING: Duration = Duration::from_secs(15);

/// Models that are named where several are not listed.
const NAMED: usize = 3;

/// Whether requests may come. Once they may, no change of settings takes that back.
#[derive(Debug)]
pub struct Readiness {
    began: Instant,
    reached: AtomicBool,
    /// ModelServices are watched and were not listed.
    awaits: AtomicBool,
}

impl Readiness {
    /// Of a process that began at this moment.
    pub const fn since(began: Instant) -> Self {
        Self { began, reached: AtomicBool::new(false), awaits: AtomicBool::new(false) }
    }

    /// Whether ModelServices are still to be listed: until then nobody knows all models.
    pub fn await_model_services(&self, awaits: bool) {
        self.awaits.store(awaits, Ordering::Relaxed);
    }

    /// Whether requests may come for models of these names, or why not.
    pub fn judge(
        &self,
        listing: &Listing,
        models: &[&str],
        standing: &DiscoveryStatus,
        now: Instant,
    ) -> Result<(), String> {
        if self.reached.load(Ordering::Relaxed) {
            return Ok(());
        }
        let missing = || models.iter().filter(|model| !listing.models.contains_key(**model));
        let count = missing().count();
        let waited = now.saturating_duration_since(self.began);
        let awaits = self.awaits.load(Ordering::Relaxed);
        if (count == 0 && !awaits) || (count < models.len() && waited >= WARMING) {
            self.reached.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let why = |model: &&str| match standing.failing_model(model) {
            Some(why) => format!("{model}: {why}"),
            None => format!("{model}: not listed yet"),
        };
        let mut words: Vec<_> = missing().take(NAMED).map(why).collect();
        if count > NAMED {
            words.push(format!("and {} more", count - NAMED));
        }
        let engines =
            || format!("engines of {count} of {} models: {}", models.len(), words.join("; "));
        let engines = (count > 0).then(engines);
        let failing = standing.failing_model_services();
        let services = awaits.then(|| match failing {
            Some(why) => format!("ModelServices: {why}"),
            None => "ModelServices: not listed yet".to_owned(),
        });
        Err(services.into_iter().chain(engines).collect::<Vec<_>>().join("; "))
    }
}
