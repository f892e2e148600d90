//! The replicas of one model: ordered, ready, draining, gone.

use super::FluidModel;
use super::pool::Accelerators;
use super::sight::{Counts, ModelView};
use crate::chance::Chance;
use crate::cold_start::ColdStart;
use crate::seconds::Seconds;
use flyball_core::decision::Action;
use flyball_core::ids::ReplicaId;
use flyball_core::snapshot::ReplicaState;

/// The replicas of one model. Each is a number; its name is made from it once.
#[derive(Clone, Debug)]
pub(super) struct Fleet {
    members: Vec<Member>,
    counts: Counts,
    chance: Chance,
    service: Seconds,
    next: u32,
    /// The earliest moment at which a member changes by itself.
    due: f64,
}

#[derive(Clone, Debug)]
struct Member {
    id: ReplicaId,
    state: ReplicaState,
    /// When it becomes ready, or has drained.
    until: Seconds,
    /// Removed by itself once drained, as Kubernetes does with a pod that was scaled away.
    leaves: bool,
}

impl Fleet {
    pub(super) fn new(model: &FluidModel, chance: Chance) -> Self {
        let mut fleet = Self {
            members: Vec::new(),
            counts: Counts::default(),
            chance,
            service: model.service,
            next: 0,
            due: f64::INFINITY,
        };
        for _ in 0..model.initial.get() {
            let id = fleet.name(model.id.namespace().as_str());
            fleet.join(id, ReplicaState::Ready, Seconds::ZERO);
        }
        fleet
    }

    pub(super) const fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) const fn ready(&self) -> u32 {
        self.counts.ready
    }

    pub(super) const fn starting(&self) -> u32 {
        self.counts.starting
    }

    pub(super) const fn draining(&self) -> u32 {
        self.counts.draining
    }

    /// All but those that drain.
    pub(super) const fn live(&self) -> u32 {
        self.counts.ready + self.counts.starting
    }

    /// All that are paid for.
    pub(super) const fn held(&self) -> u32 {
        self.live() + self.counts.draining
    }

    /// Each with its state.
    pub(super) fn members(&self) -> impl Iterator<Item = (&ReplicaId, ReplicaState)> {
        self.members.iter().map(|member| (&member.id, member.state))
    }

    /// Lets those become ready or leave whose time has come.
    pub(super) fn settle(&mut self, now: Seconds, pool: &mut Accelerators, view: &mut ModelView) {
        if now.get() >= self.due {
            self.change(now, view);
            self.sweep(now, pool, view);
        }
    }

    fn change(&mut self, now: Seconds, view: &mut ModelView) {
        self.due = f64::INFINITY;
        let mut index = 0;
        while index < self.members.len() {
            let member = &mut self.members[index];
            let due = member.until <= now;
            match member.state {
                ReplicaState::Pending | ReplicaState::Starting if due => {
                    member.state = ReplicaState::Ready;
                    view.change(&member.id, ReplicaState::Ready, now);
                    self.counts.starting -= 1;
                    self.counts.ready += 1;
                }
                ReplicaState::Draining if due => view.drained(&member.id, now),
                _ if !due => self.due = self.due.min(member.until.get()),
                _ => {}
            }
            index += 1;
        }
    }

    /// Those that Kubernetes removes by itself and that have drained.
    fn sweep(&mut self, now: Seconds, pool: &mut Accelerators, view: &mut ModelView) {
        let leaving = |member: &Member| member.leaves && member.until <= now;
        while let Some(index) = self.members.iter().position(leaving) {
            self.leave(index, now, pool, view);
        }
    }

    /// Orders one more. Says whether there is an accelerator for it.
    pub(super) fn start(
        &mut self,
        now: Seconds,
        cold: &ColdStart,
        pool: &mut Accelerators,
        view: &mut ModelView,
    ) -> bool {
        let Some(delay) = pool.acquire(now, || cold.draw(&mut self.chance)) else { return false };
        let id = self.name(view.namespace());
        view.join(&id, ReplicaState::Starting, now);
        self.join(id, ReplicaState::Starting, now + delay);
        true
    }

    /// Removes one as Kubernetes would: one that has not started if there is one, the youngest of
    /// them, else one of those that serve.
    pub(super) fn remove_any(
        &mut self,
        now: Seconds,
        pool: &mut Accelerators,
        view: &mut ModelView,
    ) {
        let last = |state| self.members.iter().rposition(|member| member.state == state);
        if let Some(index) = last(ReplicaState::Starting) {
            self.leave(index, now, pool, view);
        } else if let Some(index) = last(ReplicaState::Ready) {
            self.drain(index, now, true, view);
        }
    }

    /// Carries out one action of a decision; says how many replicas were started.
    pub(super) fn act(
        &mut self,
        action: &Action,
        now: Seconds,
        cold: &ColdStart,
        pool: &mut Accelerators,
        view: &mut ModelView,
    ) -> u32 {
        let place = |id: &ReplicaId| self.members.iter().position(|member| &member.id == id);
        match action {
            Action::Start { count, .. } => {
                (0..count.get()).take_while(|_| self.start(now, cold, pool, view)).count() as u32
            }
            Action::Drain { replica } => {
                if let Some(index) = place(replica) {
                    self.drain(index, now, false, view);
                }
                0
            }
            Action::Delete { replica } => {
                if let Some(index) = place(replica) {
                    self.leave(index, now, pool, view);
                }
                0
            }
            Action::Replace { replica } => match place(replica) {
                Some(index) => {
                    self.leave(index, now, pool, view);
                    u32::from(self.start(now, cold, pool, view))
                }
                None => 0,
            },
        }
    }

    fn name(&mut self, namespace: &str) -> ReplicaId {
        self.next += 1;
        ReplicaId::new(namespace, &format!("r{:07}", self.next))
            .expect("a letter and digits are a name")
    }

    fn join(&mut self, id: ReplicaId, state: ReplicaState, until: Seconds) {
        match state {
            ReplicaState::Ready => self.counts.ready += 1,
            _ => self.counts.starting += 1,
        }
        self.due = self.due.min(until.get());
        self.members.push(Member { id, state, until, leaves: false });
    }

    fn drain(&mut self, index: usize, now: Seconds, leaves: bool, view: &mut ModelView) {
        let member = &mut self.members[index];
        match member.state {
            ReplicaState::Ready => self.counts.ready -= 1,
            ReplicaState::Draining => return,
            _ => self.counts.starting -= 1,
        }
        self.counts.draining += 1;
        member.state = ReplicaState::Draining;
        member.until = now + self.service;
        member.leaves = leaves;
        self.due = self.due.min(member.until.get());
        view.change(&member.id, ReplicaState::Draining, now);
    }

    fn leave(&mut self, index: usize, now: Seconds, pool: &mut Accelerators, view: &mut ModelView) {
        let member = self.members.remove(index);
        match member.state {
            ReplicaState::Ready => self.counts.ready -= 1,
            ReplicaState::Draining => self.counts.draining -= 1,
            _ => self.counts.starting -= 1,
        }
        view.leave(&member.id);
        pool.release(now);
    }
}
