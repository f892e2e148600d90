//! Asks the governor, and keeps what it needs to be asked again.
//!
//! The governor is a plain function; what it learnt and what was decided before are held here. After a
//! restart the targets come back from the statuses, so that nothing moves because an operator did.

use crate::observe::Seen;
use crate::time;
use flyball_core::decision::{Decision, Previous, PreviousTarget};
use flyball_core::ids::VariantId;
use flyball_core::invariants::{self, Violation};
use flyball_core::snapshot::Snapshot;
use flyball_core::units::Replicas;
use flyball_governor::{Memory, Policy, decide};

/// What is remembered from decision to decision.
#[derive(Clone, Debug, Default)]
pub struct Brain {
    previous: Previous,
    memory: Memory,
}

impl Brain {
    /// Decides, and says which rules the decision breaks; there should be none.
    pub fn decide(&mut self, seen: &Seen) -> (Decision, Vec<Violation>) {
        self.recall(seen);
        let memory = std::mem::take(&mut self.memory);
        let (decision, memory) = decide(&seen.snapshot, &seen.policy, &self.previous, memory);
        let broken = invariants::check(&seen.snapshot, &self.previous, &decision);
        self.previous = self.previous.after(&decision);
        self.memory = memory;
        (decision, broken)
    }

    /// What would be decided in another world, without remembering it. Variants that are `gone` have no
    /// target to hold on to.
    pub fn imagine(
        &self,
        snapshot: &Snapshot,
        policy: &Policy,
        gone: impl Fn(&VariantId) -> bool,
    ) -> Decision {
        let mut previous = self.previous.clone();
        previous.targets.retain(|id, _| !gone(id));
        decide(snapshot, policy, &previous, self.memory.clone()).0
    }

    /// Takes targets over from statuses where nothing is remembered: after a restart, or when another
    /// operator led meanwhile.
    fn recall(&mut self, seen: &Seen) {
        for (id, _) in seen.snapshot.variants() {
            if self.previous.targets.contains_key(&id) {
                continue;
            }
            if let Some(target) = recalled(seen, &id) {
                self.previous.targets.insert(id, target);
            }
        }
    }

    /// Forgets what was decided, because another operator leads: its word stands in the statuses.
    pub fn stand_by(&mut self) {
        self.previous = Previous::none();
    }
}

fn recalled(seen: &Seen, id: &VariantId) -> Option<PreviousTarget> {
    let status = seen.models.get(id.model())?.service.status.as_ref()?;
    let variant = status.variants.iter().find(|variant| variant.name == id.name().as_str())?;
    let since = variant.since.as_ref()?.parse::<jiff::Timestamp>().ok()?;
    let replicas = Replicas::new(u32::try_from(variant.recommended).ok()?);
    Some(PreviousTarget::new(replicas, time::of_date(since)))
}
