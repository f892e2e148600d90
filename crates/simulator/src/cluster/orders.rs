//! Carrying out what a policy orders, as Kubernetes would.

use super::World;
use super::observe::LogEntry;
use super::replicas::{Replica, State};
use super::setup::Victim;
use crate::policy::{PolicyView, Reading, ScaleOrder, ScalingPolicy};
use crate::seconds::Seconds;
use flyball_core::decision::{Action, Decision, ModelDecision, Target};
use flyball_core::invariants;
use flyball_core::snapshot::Snapshot;
use rand::RngExt;
use std::cmp::Reverse;

impl World<'_> {
    /// Asks the policy, and does what it says.
    pub(super) fn tick(&mut self, policy: &mut dyn ScalingPolicy) {
        let (snapshot, readings) = self.observe();
        let now = self.believed_now();
        let order = policy.decide(&PolicyView { now, snapshot: &snapshot, readings: &readings });
        match order {
            ScaleOrder::Scale(desired) => {
                for (model, replicas) in desired.iter().enumerate().take(self.models.len()) {
                    self.scale(model, replicas.get());
                }
                self.note_decisions(&readings, None);
            }
            ScaleOrder::Decision(decision) => {
                self.carry_out(&snapshot, &decision);
                self.note_decisions(&readings, Some(&decision));
            }
        }
    }

    fn note_decisions(&mut self, readings: &[Reading], decision: Option<&Decision>) {
        for (model, reading) in readings.iter().enumerate() {
            let id = &self.setup.models[model].id;
            let own = |all: &Decision| all.models.iter().find(|entry| entry.model == *id).cloned();
            self.log.push(LogEntry {
                at: self.now,
                model,
                reading: *reading,
                ordered: self.models[model].desired.iter().sum(),
                decision: decision.and_then(own),
            });
        }
    }

    /// Replicas of the first variant by number, as the `scale` subresource takes them.
    fn scale(&mut self, model: usize, desired: u32) {
        if self.setup.models[model].variants.is_empty() {
            return;
        }
        self.models[model].desired[0] = desired;
        let purchase = self.setup.models[model].variants[0].purchase;
        let live = self.live(model, 0);
        for _ in live..desired {
            self.note_start(model);
            self.start(model, 0, purchase);
        }
        if live > desired {
            self.note_down(model);
        }
        for _ in desired..live {
            let Some(replica) = self.victim(model) else { break };
            self.note_removal(model);
            self.terminate(replica, self.setup.grace);
        }
    }

    /// The next to go: without a node first, then not ready, then by the rule of the world.
    fn victim(&mut self, model: usize) -> Option<usize> {
        let live = self.present.iter().copied().filter(|place| {
            let replica = &self.replicas[*place];
            replica.model == model && replica.variant == 0 && replica.is_live()
        });
        let rank = |replica: &Replica| match replica.state {
            State::Pending => 0,
            State::Starting | State::Unready | State::Failed | State::Lost => 1,
            State::Ready | State::Leaving | State::Draining => 2,
        };
        let mut live: Vec<usize> = live.collect();
        // The youngest of each rank first.
        live.sort_by_key(|place| {
            let replica = &self.replicas[*place];
            (rank(replica), Reverse(replica.served), Reverse(*place))
        });
        let first = *live.first()?;
        if self.setup.victim == Victim::Random && rank(&self.replicas[first]) == 2 {
            return Some(live[self.victims.random_range(0..live.len())]);
        }
        Some(first)
    }

    /// The steps of a decision, after a check that it breaks no rule.
    fn carry_out(&mut self, snapshot: &Snapshot, decision: &Decision) {
        for violation in invariants::check(snapshot, &self.previous, decision) {
            self.note_broken(violation.to_string());
        }
        self.previous = self.previous.after(decision);
        for entry in &decision.models {
            let model = self.setup.models.iter().position(|model| model.id == entry.model);
            if let Some(model) = model {
                self.carry_out_model(model, entry);
            }
        }
    }

    fn carry_out_model(&mut self, model: usize, entry: &ModelDecision) {
        let before: u32 = self.models[model].desired.iter().sum();
        for target in &entry.targets {
            let variants = &self.setup.models[model].variants;
            let variant = variants.iter().position(|v| v.name == *target.variant.name());
            if let Some(variant) = variant {
                self.carry_out_target(model, variant, target);
            }
        }
        if self.models[model].desired.iter().sum::<u32>() < before {
            self.note_down(model);
        }
        self.reconcile();
    }

    fn carry_out_target(&mut self, model: usize, variant: usize, target: &Target) {
        let mut taken_back = Vec::new();
        for action in &target.actions {
            match action {
                Action::Start { count, purchase } => {
                    for _ in 0..count.get() {
                        self.note_start(model);
                        match self.draining(model, variant, target) {
                            Some(place) => {
                                self.take_back(place);
                                taken_back.push(place);
                            }
                            None => self.start(model, variant, *purchase),
                        }
                    }
                }
                Action::Drain { replica } | Action::Delete { replica } => {
                    let named = |place: &usize| self.replicas[*place].id == *replica;
                    let Some(place) = self.present.iter().copied().find(named) else { continue };
                    if taken_back.contains(&place) {
                        continue;
                    }
                    if self.replicas[place].is_live() {
                        self.note_removal(model);
                    }
                    if matches!(action, Action::Drain { .. }) {
                        self.drain(place);
                    } else {
                        self.delete(place);
                    }
                }
                Action::Replace { replica } => {
                    let named = |place: &usize| self.replicas[*place].id == *replica;
                    let Some(place) = self.present.iter().copied().find(named) else { continue };
                    let purchase = self.replicas[place].purchase;
                    self.delete(place);
                    self.note_start(model);
                    self.start(model, variant, purchase);
                }
            }
        }
        self.models[model].desired[variant] = target.replicas.get();
    }

    /// A replica that drains and can be had back instead of a new one, as the operator does it: first one
    /// that is not to be deleted.
    fn draining(&self, model: usize, variant: usize, target: &Target) -> Option<usize> {
        let drains = |place: &usize| {
            let replica = &self.replicas[*place];
            (replica.model, replica.variant) == (model, variant)
                && replica.state == State::Draining
                && !replica.ends_when_empty
        };
        let is_deleted = |place: &usize| {
            let id = &self.replicas[*place].id;
            target.actions.iter().any(|action| *action == Action::Delete { replica: id.clone() })
        };
        self.present.iter().copied().filter(drains).min_by_key(is_deleted)
    }

    /// Deletes a pod. One that serves is given its grace period like any other.
    fn delete(&mut self, replica: usize) {
        self.catch_up(replica);
        // The rule about decisions trusts what was observed; this is what is true.
        let inside = self.replicas[replica].inside.len();
        if inside > 0 {
            let id = &self.replicas[replica].id;
            self.note_broken(format!("replica {id} is deleted with {inside} requests inside"));
        }
        self.terminate(replica, self.setup.grace);
    }

    fn note_start(&mut self, model: usize) {
        let soon = self.cold_start(model);
        let now = self.now;
        self.models[model].account.started(now, soon);
    }

    fn note_removal(&mut self, model: usize) {
        let soon = self.cold_start(model);
        let now = self.now;
        self.models[model].account.removed(now, soon);
    }

    fn note_down(&mut self, model: usize) {
        let now = self.now;
        self.models[model].account.downs.push(now);
    }

    fn cold_start(&self, model: usize) -> Seconds {
        let first = self.setup.models[model].variants.first();
        first.map_or(Seconds::ZERO, |variant| variant.cold_start.median())
    }
}
