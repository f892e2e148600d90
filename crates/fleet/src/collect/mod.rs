//! Asks engines what they have to do, once for all gateways, and proves that cancelled requests
//! have let go of their slots.
//!
//! `page` reads an engine's metrics, `wire` is a connection to ask on, `rounds` asks all engines in
//! turn. `verify` draws conclusions about cancels, and `verifier` is what the data plane tells of
//! them. Who asks is one of two: `within`, a gateway that asks engines itself; or one collector
//! (`serve`, with its `table`) that gateways talk to (`apart`), so that engines are asked once and
//! not once per gateway.
//!
//! It chooses nothing: it writes reports into [`FleetEndpoint`](crate::FleetEndpoint)s and closes the
//! door of those that ignore cancels. Start at [`run`].

mod apart;
mod messages;
mod page;
mod rounds;
mod serve;
mod table;
#[cfg(test)]
mod tests;
mod verifier;
pub mod verify;
mod within;

pub use crate::fleet::FleetReport;
pub use crate::wire::WireError;
pub use page::{ReportedLoad, read};
pub use serve::{Ended, serve};
pub use verifier::{Verifier, VerifierEvent};

use crate::fleet::Fleet;
use apart::Apart;
use rounds::{Pace, rounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use within::Within;

/// Between two questions to an engine, and between two talks of a gateway with the collector.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// The same while cancels are unproven. Half of it is the mean error of what we call the time from
/// cancel to free slot.
pub const HURRIED: Duration = Duration::from_millis(50);

/// A gateway that has said nothing for three intervals is gone.
const GONE: Duration = INTERVAL.saturating_mul(3);

/// A report older than this is worth less than what the gateway counts itself: ten missed rounds.
pub const OLD: Duration = Duration::from_secs(5);

/// Gives the fleet as it is now.
pub type LoadSource = dyn Fn() -> Arc<Fleet> + Send + Sync;

/// How collecting stands, for the page of metrics.
#[derive(Debug, Default)]
pub struct CollectionStatus {
    silent: AtomicUsize,
    away: AtomicBool,
}

impl CollectionStatus {
    /// Engines without a report that is young enough. They are chosen by own counts alone.
    pub fn silent_engines(&self) -> usize {
        self.silent.load(Ordering::Relaxed)
    }

    /// Whether the collector that was named does not answer.
    pub fn collector_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    fn set_silent(&self, count: usize) {
        self.silent.store(count, Ordering::Relaxed);
    }
}

/// Keeps a gateway's engines informed until `until`: asks them itself, or talks to the collector at
/// `collector` (`http://host:port`).
pub async fn run(
    fleet: &LoadSource,
    verifier: &Verifier,
    standing: &CollectionStatus,
    collector: Option<&str>,
    until: impl Future<Output = ()>,
) {
    if let Some(collector) = collector {
        let gateway = Apart::new(fleet, verifier, standing, collector);
        return gateway.talk(Pace::default(), until).await;
    }
    let mut office = Within::new(fleet, verifier, standing);
    tokio::select! {
        never = rounds(&mut office, Pace::default()) => match never {},
        () = until => {}
    }
}
