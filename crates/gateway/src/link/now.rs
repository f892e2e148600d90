//! How the talk with the operator goes, for the page of metrics and the state.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// How the talk with the operator goes. All zero where the settings name none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkNow {
    /// Whether it is named and not heard.
    pub away: bool,
    /// Engines that get no new requests because it says so.
    pub drained: usize,
    /// Tries to talk to it, in the order of [`Came::ALL`].
    pub tries: [u64; Came::ALL.len()],
    /// Messages sent, and received.
    pub messages: [u64; 2],
}

/// What came of a try to talk to the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Came {
    /// It answered, and they talked.
    Welcomed,
    /// Nobody was there.
    Unreachable,
    /// It does not want to talk to this gateway, or the gateway has nothing to show.
    Refused,
    /// It speaks another version.
    Incompatible,
}

impl Came {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Welcomed, Self::Unreachable, Self::Refused, Self::Incompatible];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Welcomed => "accepted",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Incompatible => "incompatible",
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Welcomed => 0,
            Self::Unreachable => 1,
            Self::Refused => 2,
            Self::Incompatible => 3,
        }
    }
}

/// The counts behind `Now`.
#[derive(Debug, Default)]
pub(super) struct Standing {
    here: AtomicBool,
    tries: [AtomicU64; Came::ALL.len()],
    sent: AtomicU64,
    received: AtomicU64,
}

impl Standing {
    /// It has answered a hello.
    pub(super) fn welcomed(&self) {
        self.tries[Came::Welcomed.index()].fetch_add(1, Relaxed);
        if !self.here.swap(true, Relaxed) {
            tracing::info!("connected to the operator");
        }
    }

    /// A try is over; whether it ended as talks usually do.
    pub(super) fn tried(&self, came: Came, usual: bool) {
        // A talk that was welcomed was counted when it began.
        if came != Came::Welcomed {
            self.tries[came.index()].fetch_add(1, Relaxed);
        }
        // Whoever asks to come again is not away.
        if !usual {
            self.here.store(false, Relaxed);
        }
    }

    pub(super) fn count_sent(&self) {
        self.sent.fetch_add(1, Relaxed);
    }

    pub(super) fn count_received(&self) {
        self.received.fetch_add(1, Relaxed);
    }

    pub(super) fn now(&self) -> LinkNow {
        LinkNow {
            away: !self.here.load(Relaxed),
            drained: 0,
            tries: Came::ALL.map(|came| self.tries[came.index()].load(Relaxed)),
            messages: [&self.sent, &self.received].map(|count| count.load(Relaxed)),
        }
    }
}
