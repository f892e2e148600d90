//! The governor with its tuner, as replays ask it: the same two calls a look as the operator makes.

use crate::tuner::Tuner;
use flyball_estimator::Estimator;
use flyball_simulator::policies::{Governor, HandedOn};
use flyball_simulator::policy::{PolicyView, ScaleOrder, ScalingPolicy};
use flyball_simulator::seconds::Seconds;

/// The governor, tuned by replays of what it has seen.
pub struct Tuned {
    governor: Governor,
    policy: flyball_governor::Policy,
    tuner: Tuner,
}

impl Tuned {
    /// One that has seen nothing yet.
    pub fn new(policy: flyball_governor::Policy) -> Self {
        Self { governor: Governor::new(policy.clone()), policy, tuner: Tuner::default() }
    }

    /// What would be handed on now.
    pub fn learnt(&self, estimator: &Estimator) -> HandedOn {
        self.governor.learnt(estimator)
    }

    /// Begins anew with what was handed on.
    pub fn succeed(&mut self, handed_on: &HandedOn, estimator: &mut Estimator) {
        self.governor.succeed(handed_on, estimator);
        // Statuses say which law decides; the record is gone.
        let mut next = Tuner::default();
        self.tuner.laws().for_each(|(id, law)| next.restore(id, law));
        self.tuner = next;
    }

    /// Who decides for which model.
    pub const fn tuner(&self) -> &Tuner {
        &self.tuner
    }
}

impl ScalingPolicy for Tuned {
    fn name(&self) -> &str {
        self.governor.name()
    }

    fn interval(&self) -> Seconds {
        self.governor.interval()
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        let snapshot = sight.snapshot;
        let mut policy = self.policy.clone();
        self.tuner.observe(snapshot, self.governor.memory(), &mut policy);
        self.governor.follow(policy);
        let mut order = self.governor.decide(sight);
        if let ScaleOrder::Decision(decision) = &mut order {
            self.tuner.sign(decision);
        }
        // In virtual time a trial takes none.
        while let Some(trial) = self.tuner.due(snapshot, self.governor.memory(), &self.policy) {
            let verdict = trial.run();
            self.tuner.settle(verdict, snapshot.taken_at);
        }
        order
    }

    fn restart(&mut self, estimator: &mut Estimator) {
        let handed_on = self.learnt(estimator);
        self.succeed(&handed_on, estimator);
    }
}
