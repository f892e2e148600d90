//! The life of a replica: asked for, placed, started, serving, ending, gone.

use super::World;
use super::engine::ReplicaEngine;
use super::engines::Counted;
use super::faults::Fault;
use super::gate::Gate;
use super::queue::Event;
use crate::chance::{Purpose, stream};
use crate::seconds::Seconds;
use flyball_core::ids::ReplicaId;
use flyball_core::snapshot::{Purchase, ReplicaState};

/// One copy of a model.
pub(super) struct Replica {
    pub(super) id: ReplicaId,
    pub(super) model: usize,
    pub(super) variant: usize,
    pub(super) state: State,
    /// Since when it is in that state.
    pub(super) since: Seconds,
    /// When it was asked for.
    pub(super) ordered: Seconds,
    /// When it began to serve, to end, and when it was gone.
    pub(super) served: Option<Seconds>,
    pub(super) drained: Option<Seconds>,
    pub(super) gone: Option<Seconds>,
    /// It goes by itself as soon as it is empty.
    pub(super) ends_when_empty: bool,
    /// Not before then, though.
    pub(super) stays_until: Seconds,
    pub(super) purchase: Purchase,
    /// Nodes, and the accelerators that it has on each.
    pub(super) nodes: Vec<(usize, u32)>,
    pub(super) engine: Option<Box<dyn ReplicaEngine>>,
    /// How many times as fast as it was built to it computes.
    pub(super) speed: f64,
    /// What its engine counts.
    pub(super) counted: Counted,
    /// Rises when the engine's plans change, so that alarms for older plans are ignored.
    pub(super) plan: u32,
    /// What a router knows of it: requests inside, prompt tokens unread, tokens held.
    pub(super) inside: Vec<usize>,
    pub(super) unread: u64,
    pub(super) held: u64,
    /// How much more it may be given.
    pub(super) gate: Gate,
}

/// Where a replica is in its life.
pub(super) type State = ReplicaState;

impl Replica {
    pub(super) fn is_live(&self) -> bool {
        self.gone.is_none() && self.state != State::Draining
    }
}

impl World<'_> {
    /// Asks for a replica.
    pub(super) fn start(&mut self, model: usize, variant: usize, purchase: Purchase) {
        self.born(model, variant, purchase);
        self.place_pending(self.setup.models[model].variants[variant].pool);
        self.note_standing(model);
    }

    /// A replica that serves when the world begins. If it finds no room it starts like any other.
    pub(super) fn begin_ready(&mut self, model: usize, variant: usize) {
        let details = &self.setup.models[model].variants[variant];
        let replica = self.born(model, variant, details.purchase);
        self.place_pending(details.pool);
        if self.replicas[replica].state == State::Starting {
            self.replica_ready(replica);
        }
    }

    fn born(&mut self, model: usize, variant: usize, purchase: Purchase) -> usize {
        let setup = &self.setup.models[model];
        let number = self.models[model].named;
        self.models[model].named += 1;
        let name = format!("{}-{}-{number:05}", setup.id.name(), setup.variants[variant].name);
        let id = ReplicaId::new(setup.id.namespace().as_str(), &name)
            .expect("a model's, a variant's name and a number make a name");
        self.replicas.push(Replica {
            id,
            model,
            variant,
            state: State::Pending,
            since: self.now,
            ordered: self.now,
            served: None,
            drained: None,
            gone: None,
            ends_when_empty: false,
            stays_until: Seconds::ZERO,
            purchase,
            nodes: Vec::new(),
            engine: None,
            speed: 1.0,
            counted: Counted::default(),
            plan: 0,
            inside: Vec::new(),
            unread: 0,
            held: 0,
            gate: Gate::default(),
        });
        let replica = self.replicas.len() - 1;
        self.present.push(replica);
        replica
    }

    /// It has its accelerators, and begins to start.
    pub(super) fn replica_placed(&mut self, replica: usize, has_image: bool) {
        let details = &self.replicas[replica];
        let setup = &self.setup.models[details.model].variants[details.variant];
        let mut chance = stream(self.setup.seed, Purpose::ColdStarts, replica as u64);
        let after = setup.cold_start.draw(&mut chance, has_image);
        let pool = setup.pool;
        self.enter(replica, State::Starting);
        if self.suffers(|fault| matches!(fault, Fault::BadStarts { pool: p, .. } if *p == pool)) {
            return;
        }
        self.queue.plan(self.now + after, Event::Ready { replica });
    }

    pub(super) fn replica_ready(&mut self, replica: usize) {
        if self.replicas[replica].state != State::Starting || self.replicas[replica].gone.is_some()
        {
            return;
        }
        let Replica { model, variant, ordered, .. } = self.replicas[replica];
        let speed = &self.setup.models[model].variants[variant].speed;
        self.replicas[replica].engine = Some(speed.engine());
        self.change_speed(replica);
        self.replicas[replica].served = Some(self.now);
        self.enter(replica, State::Ready);
        if self.now > ordered {
            self.models[model].account.cold_starts.push((variant, self.now - ordered));
        }
        self.hand_on_held(model);
    }

    /// Stops sending it requests. It stays until it is deleted.
    pub(super) fn drain(&mut self, replica: usize) {
        if self.replicas[replica].is_live() {
            self.replicas[replica].drained = Some(self.now);
            self.enter(replica, State::Draining);
        }
    }

    /// Sends it requests again: it drained, and is wanted.
    pub(super) fn take_back(&mut self, replica: usize) {
        self.replicas[replica].drained = None;
        self.enter(replica, State::Ready);
        self.hand_on_held(self.replicas[replica].model);
    }

    /// Tells its pod to end: no new requests, and what is not finished in time is killed.
    pub(super) fn terminate(&mut self, replica: usize, within: Seconds) {
        let Replica { gone, served, .. } = self.replicas[replica];
        if gone.is_some() {
            return;
        }
        if served.is_none() {
            self.remove(replica);
            return;
        }
        self.drain(replica);
        let stays_until = self.now + self.setup.habits.pre_stop.min(within);
        self.replicas[replica].ends_when_empty = true;
        self.replicas[replica].stays_until = stays_until;
        self.queue.plan(self.now + within, Event::GraceOver { replica });
        if stays_until > self.now {
            self.queue.plan(stays_until, Event::StopBegins { replica });
        }
        self.end_if_empty(replica);
    }

    pub(super) fn end_if_empty(&mut self, replica: usize) {
        let Replica { ends_when_empty, stays_until, gone, ref inside, .. } = self.replicas[replica];
        let may_end = ends_when_empty && self.now >= stays_until;
        if may_end && gone.is_none() && inside.is_empty() {
            self.remove(replica);
        }
    }

    pub(super) fn grace_over(&mut self, replica: usize) {
        if self.replicas[replica].gone.is_none() {
            self.kill(replica);
        }
    }

    /// Ends it at once, with everything inside.
    pub(super) fn kill(&mut self, replica: usize) {
        // What it did up to this moment counts.
        self.catch_up(replica);
        for request in std::mem::take(&mut self.replicas[replica].inside) {
            self.request_killed(request);
        }
        self.remove(replica);
    }

    fn remove(&mut self, replica: usize) {
        if self.replicas[replica].gone.is_some() {
            return;
        }
        self.replicas[replica].gone = Some(self.now);
        self.replicas[replica].plan += 1;
        self.replicas[replica].engine = None;
        self.present.retain(|present| *present != replica);
        let (pool, _, _) = self.needs(replica);
        self.release(replica);
        self.note_standing(self.replicas[replica].model);
        self.place_pending(pool);
    }

    /// Replaces what was lost: a ReplicaSet keeps the number that it was told.
    pub(super) fn reconcile(&mut self) {
        for model in 0..self.models.len() {
            for variant in 0..self.models[model].desired.len() {
                let purchase = self.setup.models[model].variants[variant].purchase;
                for _ in self.live(model, variant)..self.models[model].desired[variant] {
                    self.start(model, variant, purchase);
                }
            }
        }
    }

    /// Replicas that serve or will.
    pub(super) fn live(&self, model: usize, variant: usize) -> u32 {
        let counted = |replica: &&usize| {
            let replica = &self.replicas[**replica];
            (replica.model, replica.variant) == (model, variant) && replica.is_live()
        };
        self.present.iter().filter(counted).count() as u32
    }

    fn enter(&mut self, replica: usize, state: State) {
        self.replicas[replica].state = state;
        self.replicas[replica].since = self.now;
        self.note_standing(self.replicas[replica].model);
    }
}
