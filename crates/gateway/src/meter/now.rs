//! What is under way right now. The data plane counts it anyway; the page asks.

/// What is under way right now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Connections of clients.
    pub connections: usize,
    /// Requests.
    pub requests: usize,
    /// Bytes of bodies that are held.
    pub held_bytes: usize,
    /// Whether we finish what we have and take nothing new.
    pub draining: bool,
    /// Engines by state.
    pub engines: Engines,
}

/// How many engines are in which state. One in two states is counted in the later of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engines {
    /// New requests may come.
    pub open: usize,
    /// They finish what they have.
    pub draining: usize,
    /// They ignore hang-ups.
    pub quarantined: usize,
    /// They keep failing.
    pub broken: usize,
}
