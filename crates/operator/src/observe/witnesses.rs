//! Everybody who can tell of requests through gateways: those that spoke, those that were refused, and those
//! that should have come.

use super::demand::Signals;
use super::{ExpectedInFlight, Facts, Gateways};
use crate::link::ReportBook;
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::stream::PublicName;
use std::collections::BTreeSet;

/// What is remembered of them from look to look.
#[derive(Debug)]
pub struct Witnesses {
    gateways: Gateways,
    expected: ExpectedInFlight,
}

impl Witnesses {
    /// Gateways run as these accounts, each as `namespace/name`, and come within this time.
    pub fn of(accounts: &[String], within: Micros) -> Self {
        Self { gateways: Gateways::default(), expected: ExpectedInFlight::of(accounts, within) }
    }

    /// Adds what they said, and who has not said anything yet. `listens` if this operator is the one that
    /// they talk to. Returns those that are no more.
    pub fn add(
        &mut self,
        signals: &mut Signals,
        (book, waited_for): (&ReportBook, &BTreeSet<PublicName>),
        facts: &Facts,
        listens: bool,
        time: (Timestamp, Micros),
    ) -> BTreeSet<String> {
        let gone = self.gateways.add(signals, book, waited_for, facts, time);
        let refused: Vec<String> = book.refused.difference(&gone).cloned().collect();
        self.expected.listens(listens, time.0);
        self.expected.add(&mut signals.in_flight, facts, &refused, time.0);
        signals.count_unreported(book.crowded || self.expected.may_still_come(time.0));
        gone
    }
}
