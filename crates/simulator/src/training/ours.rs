//! Our own decisions as a policy, with what the zones taught before the run began.

use flyball_training::{RunMemory, TrainingDecision, TrainingSnapshot, decide, invariants};

use super::market::SpotMarket;
use super::policy::{PolicyChoice, RunPolicy};
use super::replay::RunToReplay;

/// `decide`, with its memory.
#[derive(Clone, Debug, Default)]
pub struct OurPolicy {
    memory: RunMemory,
    previous: Option<TrainingDecision>,
}

impl OurPolicy {
    /// One that has learnt from these zones before.
    pub fn with(memory: RunMemory) -> Self {
        Self { memory, previous: None }
    }

    /// What was learnt.
    pub(super) fn memory(&self) -> &RunMemory {
        &self.memory
    }

    /// What was last decided, with its costs.
    pub fn last(&self) -> Option<&TrainingDecision> {
        self.previous.as_ref()
    }
}

impl RunPolicy for OurPolicy {
    fn choose(&mut self, snapshot: &TrainingSnapshot) -> PolicyChoice {
        // Machines that were reclaimed are not asked for any more.
        let memory = std::mem::take(&mut self.memory);
        let (decision, memory) = decide(snapshot, None, memory);
        self.memory = memory;
        let choice = PolicyChoice {
            choice: decision.choice.clone(),
            save_now: decision.save_now,
            save_every: decision.save_every,
            reason: Some(decision.reason),
            broken: invariants::broken(snapshot, &decision),
        };
        self.previous = Some(decision);
        choice
    }
}

/// What the zones of a market teach in these steps, to somebody who only watches.
pub fn watched(market: &SpotMarket, run: &RunToReplay, steps: std::ops::Range<usize>) -> RunMemory {
    let mut memory = RunMemory::default();
    let mut snapshot = super::replay::first_snapshot(market, run);
    for step in steps {
        snapshot.now = market.at(step);
        snapshot.zones = market.seen_at(step);
        memory.see(&snapshot);
    }
    memory
}
