//! The governor as a policy: the same function as in production, with a virtual snapshot.

use crate::policy::{PolicyView, ScaleOrder, ScalingPolicy};
use crate::seconds::Seconds;
use flyball_core::decision::Previous;
use flyball_core::ids::ModelId;
use flyball_estimator::{self as estimator, Estimator};
use flyball_governor::{GovernorMemory, Memory, decide};
use std::collections::BTreeMap;

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

    /// Decides by other settings from now on.
    pub fn follow(&mut self, policy: flyball_governor::Policy) {
        self.policy = policy;
    }

    /// What it has learnt.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The same under another name, for tables with several.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }
}

/// What a process hands on of each model when it ends: what the governor learnt, and the estimator.
pub type HandedOn = BTreeMap<ModelId, (Option<GovernorMemory>, estimator::EstimatorMemory)>;

impl Governor {
    /// What would be handed on now.
    pub fn learnt(&self, estimator: &Estimator) -> HandedOn {
        let ids = self.memory.minutes().map(|(id, _)| id.clone());
        let each = ids.map(|id| {
            let estimated = estimator.learnt(&id).unwrap_or_default();
            let learnt = self.memory.learnt(&id);
            (id, (learnt, estimated))
        });
        each.collect()
    }

    /// Begins anew with what was handed on. What was decided last stands in the statuses and is read there.
    pub fn succeed(&mut self, handed_on: &HandedOn, estimator: &mut Estimator) {
        self.memory = Memory::new();
        *estimator = Estimator::default();
        for (id, (learnt, estimated)) in handed_on {
            // What cannot have been learnt is refused, and learnt again.
            let _ = learnt.as_ref().is_some_and(|learnt| self.memory.restore(id, learnt));
            let _ = estimator.restore(id, estimated);
        }
    }
}

impl ScalingPolicy for Governor {
    fn name(&self) -> &str {
        &self.name
    }

    fn interval(&self) -> Seconds {
        self.interval
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        let memory = std::mem::take(&mut self.memory);
        let (decision, memory) = decide(sight.snapshot, &self.policy, &self.previous, memory);
        self.previous = self.previous.after(&decision);
        self.memory = memory;
        ScaleOrder::Decision(Box::new(decision))
    }

    fn restart(&mut self, estimator: &mut Estimator) {
        let handed_on = self.learnt(estimator);
        self.succeed(&handed_on, estimator);
    }
}
