//! Who may come in, and until when.

use crate::settings::{RequestLimits, Timeouts};
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The door that all threads share.
#[derive(Debug)]
pub(crate) struct Door {
    bounds: ArcSwap<(RequestLimits, Timeouts)>,
    connections: AtomicUsize,
    closing: watch::Sender<bool>,
    cut: AtomicBool,
}

/// An open connection of a client.
#[derive(Debug)]
pub(crate) struct Open(Arc<Door>);

impl Door {
    pub(crate) fn new(limits: RequestLimits, timeouts: Timeouts) -> Self {
        Self {
            bounds: ArcSwap::from_pointee((limits, timeouts)),
            connections: AtomicUsize::new(0),
            closing: watch::Sender::new(false),
            cut: AtomicBool::new(false),
        }
    }

    /// Takes in other limits and timeouts. Connections keep what they began with.
    pub(crate) fn follow(&self, limits: RequestLimits, timeouts: Timeouts) {
        self.bounds.store(Arc::new((limits, timeouts)));
    }

    /// The limits and timeouts of now, to be kept.
    pub(super) fn bounds(&self) -> (RequestLimits, Timeouts) {
        **self.bounds.load()
    }

    /// Counts a connection, unless there are too many.
    pub(super) fn connection(self: &Arc<Self>) -> Option<Open> {
        let open = Open(Arc::clone(self));
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        (before < self.bounds.load().0.connections).then_some(open)
    }

    /// Connections that are open.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// No new requests are taken from now on.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Tells when no new requests are taken.
    pub(super) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// The time to finish is over.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Waits until no connection is open.
    pub(crate) async fn emptied(&self) {
        while self.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
