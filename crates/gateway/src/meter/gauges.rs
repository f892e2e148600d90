//! What is under way right now. The phases bump these; the page reads them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What is under way right now.
#[derive(Debug, Default)]
pub struct Gauges {
    /// Connections of clients.
    pub connections: Gauge,
    /// Requests.
    pub in_flight: Gauge,
    /// Bytes of bodies that are held.
    pub held_bytes: Gauge,
    /// Whether we finish what we have and take nothing new.
    pub draining: AtomicBool,
}

/// A number that rises and falls.
///
/// Each has its cache line: all threads bump them for every request, and neighbours on one line
/// would slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Gauge(AtomicU64);

/// How many engines are in which state. One in two states is counted in the later of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engines {
    /// New requests may come.
    pub open: u64,
    /// They finish what they have.
    pub draining: u64,
    /// They ignore hang-ups.
    pub quarantined: u64,
    /// They keep failing.
    pub broken: u64,
}

impl Gauge {
    /// More by this; gives what it was before, so that a limit can be held with one step.
    pub fn add(&self, by: u64) -> u64 {
        self.0.fetch_add(by, Relaxed)
    }

    /// Less by this. Never below zero: a count that is wrong by one must not read as 2^64.
    pub fn sub(&self, by: u64) {
        let before = self.0.fetch_sub(by, Relaxed);
        if before < by {
            self.0.fetch_add(by - before, Relaxed);
        }
    }

    /// What it is.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_rises_and_falls_and_stops_at_zero() {
        let gauge = Gauge::default();
        assert_eq!(gauge.add(3), 0);
        assert_eq!(gauge.add(2), 3);
        gauge.sub(4);
        assert_eq!(gauge.get(), 1);
        gauge.sub(4);
        assert_eq!(gauge.get(), 0);
    }
}
