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
    /// Requests in engines that were cancelled and should be gone.
    pub zombies: usize,
    /// Engines without a report that is young enough.
    pub silent_engines: usize,
    /// Whether the collector that was named does not answer.
    pub collector_away: bool,
    /// Watches of the API server that fail.
    pub failing_watches: usize,
    /// Models that seem to have lost all engines and keep them until that is confirmed.
    pub doubted_models: usize,
    /// What was done about slow and broken answers so far.
    pub recoveries: Recoveries,
    /// What engines tell about their caches.
    pub kv_events: KvEvents,
}

/// How the listening to events about caches goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvEvents {
    /// Engines that are heard.
    pub heard: usize,
    /// Batches that came, since the gateway began.
    pub batches: u64,
    /// Batches that did not.
    pub missed: u64,
}

/// What was done about slow and broken answers, since the gateway began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recoveries {
    /// Requests for which a second engine was asked before the first had begun to answer.
    pub hedges: u64,
    /// Of those, whose answer came from the second one.
    pub hedges_won: u64,
    /// Times that another engine went on with what one had begun.
    pub continued: u64,
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
