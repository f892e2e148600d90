//! The governor as a policy of the simulator: what the operator will run, asked every 15 seconds.

use flyball_core::decision::Previous;
use flyball_governor::Memory;
use flyball_simulator::policy::{Order, Policy, Sight};
use flyball_simulator::seconds::Seconds;

/// The governor with what it remembers.
pub(super) struct Governor {
    settings: flyball_governor::Policy,
    previous: Previous,
    memory: Memory,
}

impl Governor {
    /// One that has learnt nothing yet.
    pub(super) fn new(settings: flyball_governor::Policy) -> Governor {
        Governor { settings, previous: Previous::none(), memory: Memory::new() }
    }
}

impl Policy for Governor {
    fn name(&self) -> &str {
        "governor"
    }

    fn interval(&self) -> Seconds {
        Seconds(15.0)
    }

    fn decide(&mut self, sight: &Sight<'_>) -> Order {
        let memory = std::mem::take(&mut self.memory);
        let (decision, memory) =
            flyball_governor::decide(sight.snapshot, &self.settings, &self.previous, memory);
        self.previous = self.previous.after(&decision);
        self.memory = memory;
        Order::Decision(Box::new(decision))
    }
}
