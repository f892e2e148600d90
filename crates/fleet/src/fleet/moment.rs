//! Times of a gateway.

use flyball_routing::ObservedMoment;
use std::time::Instant;

/// Milliseconds since the gateway began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

/// A moment that all who need it share: a look at the clock is short, and many are not.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// On the clock of this machine.
    pub at: Instant,
    /// The same, since the gateway began.
    pub millis: Millis,
}

impl Millis {
    /// The same in the words of routing.
    pub const fn moment(self) -> ObservedMoment {
        ObservedMoment::of_millis(self.0)
    }
}
