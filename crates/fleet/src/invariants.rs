//! What must hold at every moment in a gateway, counted when it does not.
//!
//! Most are balances: what was taken comes back once, however a request ends. They are checked where
//! something comes back, because that is where a balance breaks; tests and soaks look that the sums are
//! zero when nothing is under way. A broken one is counted and the sum put right, so that a mistake of
//! ours refuses nobody.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An invariant of the gateway. The list is also in `docs/invariants.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayInvariant {
    /// `GW-01`
    Requests,
    /// `GW-02`
    Bytes,
    /// `GW-03`
    Flights,
    /// `GW-04`
    Unread,
    /// `GW-05`
    Grants,
    /// `GW-06`
    Line,
    /// `GW-07`
    Reported,
    /// `GW-08`
    Deaths,
    /// `GW-09`
    Shares,
    /// `GW-10`
    Turns,
}

impl GatewayInvariant {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Requests,
        Self::Bytes,
        Self::Flights,
        Self::Unread,
        Self::Grants,
        Self::Line,
        Self::Reported,
        Self::Deaths,
        Self::Shares,
        Self::Turns,
    ];

    /// Its id, which is also a metric's label.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Requests => "GW-01",
            Self::Bytes => "GW-02",
            Self::Flights => "GW-03",
            Self::Unread => "GW-04",
            Self::Grants => "GW-05",
            Self::Line => "GW-06",
            Self::Reported => "GW-07",
            Self::Deaths => "GW-08",
            Self::Shares => "GW-09",
            Self::Turns => "GW-10",
        }
    }

    /// What must hold.
    pub const fn statement(self) -> &'static str {
        match self {
            Self::Requests => "A request releases its place in the gateway exactly once.",
            Self::Bytes => "Bytes of bodies are released as often as they were held.",
            Self::Flights => "An engine's requests in flight end as often as they began.",
            Self::Unread => "A prompt sent to an engine is processed or cancelled exactly once.",
            Self::Grants => {
                "A granted queue slot starts at an engine or is returned, exactly once."
            }
            Self::Line => "The counted length of a queue equals its actual length.",
            Self::Reported => {
                "An engine with requests in flight is reported until they end, listed or not."
            }
            Self::Deaths => "A request that crashed two engines is not sent to a third.",
            Self::Shares => {
                "A caller's requests and bytes are released as often as they were taken."
            }
            Self::Turns => {
                "A turn that began at an engine is counted as under way until it is over, once."
            }
        }
    }

    /// How often it did not hold.
    pub fn broken(self) -> u64 {
        BROKEN[self as usize].load(Relaxed)
    }

    /// Counts it as broken if it does not hold; ends the process where assertions are on.
    pub fn hold(self, holds: bool) {
        if !holds {
            BROKEN[self as usize].fetch_add(1, Relaxed);
            debug_assert!(holds, "{}: {}", self.id(), self.statement());
        }
    }
}

static BROKEN: [AtomicU64; GatewayInvariant::ALL.len()] =
    [const { AtomicU64::new(0) }; GatewayInvariant::ALL.len()];

/// Takes from a count what was once added to it: `give_back!(count, less, invariant)`.
#[macro_export]
macro_rules! give_back {
    ($count:expr, $less:expr, $invariant:expr) => {{
        let less = $less;
        let before = $count.fetch_sub(less, std::sync::atomic::Ordering::Relaxed);
        if before < less {
            $count.fetch_add(less - before, std::sync::atomic::Ordering::Relaxed);
        }
        $invariant.hold(before >= less);
    }};
}

pub use give_back;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_that_of_the_document() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/invariants.md");
        let text = std::fs::read_to_string(file).unwrap();
        let listed: Vec<_> = text.lines().filter(|line| line.starts_with("| GW-")).collect();
        let ours =
            GatewayInvariant::ALL.map(|one| format!("| {} | {} |", one.id(), one.statement()));
        assert_eq!(listed, ours);
    }
}
