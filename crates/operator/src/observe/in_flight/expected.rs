//! Which gateways exist, whether or not they have spoken to this operator.

use super::InFlight;
use crate::observe::facts::{Facts, PodFacts};
use flyball_core::units::{Micros, Timestamp};
use std::collections::BTreeSet;

/// A pod that should have ended so long ago and is still listed is on a node that does not answer. Its streams
/// ended with it, or with their callers.
const ENDED: Micros = Micros::from_minutes(10);

/// Which gateways are to be heard before anything is taken away.
#[derive(Clone, Debug)]
pub struct ExpectedInFlight {
    /// Service accounts of gateways, as `namespace/name`.
    accounts: BTreeSet<String>,
    /// Gateways that exist have come within this time after an operator began to listen.
    within: Micros,
    listens_since: Option<Timestamp>,
}

impl ExpectedInFlight {
    /// Gateways run under these service accounts and come within this time.
    pub fn of(accounts: &[String], within: Micros) -> Self {
        Self { accounts: accounts.iter().cloned().collect(), within, listens_since: None }
    }

    /// Whether this operator listens to gateways at this moment, which only the leader does.
    pub fn listens(&mut self, listens: bool, now: Timestamp) {
        self.listens_since = listens.then(|| self.listens_since.unwrap_or(now));
    }

    /// Adds gateways that exist and that nothing was heard from: running pods of a gateway's account, and
    /// gateways that were `refused` because they speak another version.
    pub fn add(&self, in_flight: &mut InFlight, facts: &Facts, refused: &[String], now: Timestamp) {
        let pods = facts.pods.iter().flat_map(|(namespace, pods)| {
            pods.iter().filter(move |pod| self.is_gateway(namespace, pod, now))
        });
        let silent = pods.map(|pod| &pod.name).chain(refused);
        for name in silent {
            in_flight.gateways.entry(name.clone()).or_insert(None);
        }
        let since = self.listens_since.and_then(|since| now.since(since));
        if since.is_some_and(|age| age >= self.within) {
            in_flight.all_came();
        }
    }

    /// Whether gateways whose pods cannot be told from others may exist and have not come yet.
    pub fn may_still_come(&self, now: Timestamp) -> bool {
        let since = self.listens_since.filter(|_| self.accounts.is_empty());
        since.and_then(|since| now.since(since)).is_some_and(|age| age < self.within)
    }

    fn is_gateway(&self, namespace: &str, pod: &PodFacts, now: Timestamp) -> bool {
        let account = pod.account.as_ref().map(|account| format!("{namespace}/{account}"));
        let runs = pod.ip.is_some() && !pod.over && !pod.stopped && !has_ended(pod, now);
        runs && account.is_some_and(|account| self.accounts.contains(&account))
    }
}

/// Whether a pod should have ended long ago and is still listed: its node does not answer.
pub(in crate::observe) fn has_ended(pod: &PodFacts, now: Timestamp) -> bool {
    pod.ending.and_then(|ending| now.since(ending)).is_some_and(|age| age >= ENDED)
}
