//! The window of an engine, with its clock and its lock.

use flyball_routing::fair::{AdmissionWindow, EngineCapacity, Reported};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Reports that come sooner than this are not learned from: after a hang-up they come ten times as
/// often, and the window would move ten times as fast.
const STEP: Duration = Duration::from_millis(350);

/// Without a report for so long, an engine is one that does not tell.
const SILENT: Duration = Duration::from_secs(5);

/// A window that learns.
#[derive(Debug)]
pub(super) struct Learned {
    limit: AtomicU32,
    /// Requests that the engine bears at once, as far as it reports.
    bears: AtomicU32,
    /// Whether that was learned.
    is_known: AtomicBool,
    /// Whether batch was sent since the last report.
    filling: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    window: AdmissionWindow,
    capacity: EngineCapacity,
    /// The last report, or the last time that there should have been one.
    last: Instant,
    reported: bool,
}

impl Learned {
    pub(super) fn limit(&self) -> u32 {
        self.limit.load(Relaxed)
    }

    /// Requests that the engine bears at once; as many as the smallest if it never reported.
    pub(super) fn bears(&self) -> u32 {
        self.bears.load(Relaxed)
    }

    /// Whether it was learned what it bears.
    pub(super) fn is_known(&self) -> bool {
        self.is_known.load(Relaxed)
    }

    /// A batch request was sent.
    pub(super) fn filled(&self) {
        self.filling.store(true, Relaxed);
    }

    pub(super) fn reported(&self, reported: &Reported, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.reported && now.saturating_duration_since(state.last) < STEP {
            return;
        }
        (state.last, state.reported) = (now, true);
        state.capacity =
            state.capacity.after(reported, state.window.limit(), self.filling.swap(false, Relaxed));
        state.window = state.window.after(reported);
        self.limit.store(state.window.limit(), Relaxed);
        self.is_known.store(state.capacity.is_known(), Relaxed);
        self.bears.store(state.capacity.bears(state.window.limit()), Relaxed);
    }

    /// Looks whether it ever reported; if not and it is full, it gets more.
    pub(super) fn unreported(&self, in_flight: u32, now: Instant) {
        if in_flight < self.limit() {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(state.last) >= SILENT {
            state.last = now;
            state.window = state.window.unreported();
            self.limit.store(state.window.limit(), Relaxed);
        }
    }
}

impl Default for Learned {
    fn default() -> Self {
        Self {
            limit: AtomicU32::new(AdmissionWindow::NEW.limit()),
            bears: AtomicU32::new(EngineCapacity::unreported()),
            is_known: AtomicBool::new(false),
            filling: AtomicBool::new(false),
            state: Mutex::new(State {
                window: AdmissionWindow::NEW,
                capacity: EngineCapacity::default(),
                last: Instant::now(),
                reported: false,
            }),
        }
    }
}
