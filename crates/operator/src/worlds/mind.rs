//! One turn of the operator's loop, without the effects: what `run::round` does between the API server
//! and the writes.

use super::objects::{ACCOUNT, HOME};
use super::{Second, clock, moment};
use crate::build::{self, Built, Write};
use crate::decide::{Brain, Decided};
use crate::link::book::Book;
use crate::observe::demand::Signals;
use crate::observe::{
    Facts, InFlightCounts, ObservedCluster, ObservedMemory, Witnesses, observe, prometheus,
};
use crate::report::{self, StatusContext};
use flyball_core::decision::Decision;
use flyball_core::ids::ModelId;
use flyball_core::invariants::Violation;
use flyball_core::units::Micros;
use flyball_estimator::reading::EngineReading;
use flyball_resources::model_service::ModelServiceStatus;
use flyball_resources::stream::Orders;
use std::collections::BTreeMap;

/// How old a signal may be: the default of the settings.
pub(super) const MAX_AGE: Second = 60;

/// An operator that leads.
#[derive(Debug)]
pub(super) struct Mind {
    pub(super) book: Book,
    witnesses: Witnesses,
    learnt: ObservedMemory,
    pub(super) brain: Brain,
}

/// What one turn came to.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) seen: ObservedCluster,
    /// What the governor knew before it decided.
    pub(super) before: Brain,
    pub(super) decision: Decision,
    pub(super) broken: Vec<Violation>,
    pub(super) writes: Vec<(ModelId, Vec<Write>)>,
}

/// What engines say.
#[derive(Clone, Debug)]
pub(super) enum Series {
    /// Nobody collects it.
    NotRequested,
    /// Whoever collects it does not answer.
    Away,
    Answered(BTreeMap<(String, String), EngineReading>),
}

impl Mind {
    /// One that begins to lead.
    pub(super) fn new() -> Self {
        let accounts = [format!("{HOME}/{ACCOUNT}")];
        Self {
            book: Book::default(),
            witnesses: Witnesses::of(&accounts, Micros::from_minutes(1)),
            learnt: ObservedMemory::default(),
            brain: Brain::default(),
        }
    }

    /// Looks, decides and works out the writes.
    pub(super) fn turn(&mut self, facts: &Facts, series: Series, now: Second) -> Turn {
        let mut signals = Signals::default();
        match series {
            Series::NotRequested => {}
            Series::Away => signals.in_flight.request(InFlightCounts::Away),
            Series::Answered(engines) => prometheus::add(&mut signals, engines),
        }
        self.book.sweep(clock(now));
        let (book, waited_for) = (self.book.reports(clock(now)), self.book.waited_for(clock(now)));
        let time = (moment(now), Micros::from_seconds(MAX_AGE));
        let gone = self.witnesses.add(&mut signals, (&book, &waited_for), facts, true, time);
        gone.iter().for_each(|name| self.book.forget(name, clock(now)));
        let seen = observe(facts, &signals, &mut self.learnt, time);
        let before = self.brain.clone();
        let Decided { decision, mut broken, unread } = self.brain.decide(&seen);
        assert!(unread.is_empty(), "what was written cannot be read: {unread:?}");
        let built: Built = build::build(facts, &seen, &decision);
        broken.extend(built.broken);
        Turn { seen, before, decision, broken, writes: built.writes }
    }

    /// What gateways are told after a turn.
    pub(super) fn orders(&self, facts: &Facts, turn: &Turn, made: &[(ModelId, Write)]) -> Orders {
        build::orders(facts, &turn.seen, &turn.decision, made)
    }

    /// What the statuses say after a turn: all that the next operator knows of it.
    pub(super) fn status(&self, id: &ModelId, turn: &Turn) -> ModelServiceStatus {
        let decided = turn.decision.models.iter().find(|decided| decided.model == *id);
        let context = StatusContext {
            snapshot: &turn.seen.snapshot,
            decision: &turn.decision,
            broken: &turn.broken,
            seen: &turn.seen.models[id],
            model: turn.seen.snapshot.models.get(id),
            decided,
            attained_per_million: None,
            learnt: self.brain.learnt(id, &self.learnt.estimator),
        };
        report::status(id, &context)
    }
}
