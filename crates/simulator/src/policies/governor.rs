//! The governor as a policy: the same function as in production, with a virtual snapshot.

use crate::policy::{Order, Policy, Sight};
use crate::seconds::Seconds;
use flyball_core::decision::Previous;
use flyball_governor::{Memory, decide};

/// The governor with its settings and what it remembers.
#[derive(Clone, Debug)]
pub struct Governor {
    name: String,
    interval: Seconds,
    policy: flyball_governor::Policy,
    previous: Previous,
    memory: Memory,
}

impl Governor {
    /// A governor that has learnt nothing yet, asked every 15 seconds as the rivals are.
    pub fn new(policy: flyball_governor::Policy) -> Self {
        Self {
            name: "governor".to_owned(),
            interval: Seconds(15.0),
            policy,
            previous: Previous::none(),
            memory: Memory::new(),
        }
    }

    /// The same under another name, for tables with several.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }
}

impl Policy for Governor {
    fn name(&self) -> &str {
        &self.name
    }

    fn interval(&self) -> Seconds {
        self.interval
    }

    fn decide(&mut self, sight: &Sight<'_>) -> Order {
        let memory = std::mem::take(&mut self.memory);
        let (decision, memory) = decide(sight.snapshot, &self.policy, &self.previous, memory);
        self.previous = self.previous.after(&decision);
        self.memory = memory;
        Order::Decision(Box::new(decision))
    }
}
