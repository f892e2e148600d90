//! The collector inside a gateway: its own counts are all there is to know.

use super::rounds::{Answer, Office};
use super::verifier::Verifier;
use super::verify::VerifiedEngine;
use super::{CollectionStatus, LoadSource};
use crate::fleet::{Fleet, FleetEndpoint, FleetModel, FleetReport};
use crate::wire::WireError;
use flyball_engines::Engine;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An engine is lost after so many questions in a row without any answer: about 2 s if nothing
/// listens there, 4 s if it is frozen.
const LOST: u32 = 3;

/// Another engine that answered within this time shows that it is not us who cannot be reached.
const LATELY: Duration = Duration::from_secs(2);

/// From a cancel to the first question about it.
const SETTLED: Duration = Duration::from_millis(2);

/// Asks for one gateway.
pub(super) struct Within<'a> {
    fleet: &'a LoadSource,
    verifier: &'a Verifier,
    standing: &'a CollectionStatus,
    crew: Crew,
    /// What was under way when a question was sent.
    before: BTreeMap<SocketAddr, u32>,
    tidied: Instant,
}

impl<'a> Within<'a> {
    pub(super) fn new(
        fleet: &'a LoadSource,
        verifier: &'a Verifier,
        standing: &'a CollectionStatus,
    ) -> Self {
        let (crew, before) = (Crew::default(), BTreeMap::new());
        Self { fleet, verifier, standing, crew, before, tidied: Instant::now() }
    }
}

impl Office for Within<'_> {
    fn targets(&mut self) -> Option<BTreeMap<SocketAddr, Engine>> {
        self.crew.renew(self.fleet).then(|| self.crew.engines())
    }

    fn hurried(&mut self) -> Vec<SocketAddr> {
        self.verifier.open()
    }

    fn asking(&mut self, address: SocketAddr) {
        self.before.insert(address, self.crew.in_flight(address));
    }

    fn answered(&mut self, answer: Answer) {
        let address = answer.address;
        let before = self.before.remove(&address).unwrap_or(0);
        let now = answer.came;
        let answered = answer.load.as_ref().map_or_else(WireError::is_an_answer, |_| true);
        self.crew.answered(address, now, answered);
        match answer.load {
            Ok(load) => {
                let known = before.max(self.crew.in_flight(address));
                let seen =
                    VerifiedEngine { sent: answer.sent, came: now, has: load.requests(), known };
                self.crew.report(
                    address,
                    now,
                    Some(&FleetReport {
                        running: load.running,
                        waiting: load.waiting,
                        kv_used_per_thousand: load.kv_used_per_thousand,
                        context_tokens: load.context_tokens,
                        known: Some(known),
                    }),
                );
                self.verifier.report(&(self.fleet)(), self.crew.of(address), &seen);
            }
            Err(error) => {
                tracing::debug!(%address, %error, "cannot read the engine's load");
                self.crew.report(address, now, None);
            }
        }
        if now.duration_since(self.tidied) >= super::INTERVAL {
            self.tidied = now;
            self.verifier.tidy(&(self.fleet)(), now);
            self.standing.set_silent(self.crew.silent(now));
        }
    }

    async fn changed(&self) {
        self.verifier.wake.notified().await;
        // A question in the very moment of a cancel would prove nothing.
        tokio::time::sleep(SETTLED).await;
    }
}

/// The engines of a fleet by address. Two models may share an engine: it is asked once, and what
/// both have at it counts.
#[derive(Debug, Default)]
pub(super) struct Crew {
    fleet: Option<Arc<Fleet>>,
    engines: BTreeMap<SocketAddr, Member>,
}

#[derive(Debug, Default)]
struct Member {
    endpoints: Vec<Arc<FleetEndpoint>>,
    /// When it last reported.
    last_seen: Option<Instant>,
    /// When it last answered, be it with a refusal.
    answered: Option<Instant>,
    /// Questions since then.
    unanswered: u32,
}

impl Crew {
    /// Takes the fleet as it is now, and says whether it is another one.
    pub(super) fn renew(&mut self, fleet: &LoadSource) -> bool {
        let fleet = fleet();
        if self.fleet.as_ref().is_some_and(|old| Arc::ptr_eq(old, &fleet)) {
            return false;
        }
        let mut old = std::mem::take(&mut self.engines);
        for endpoint in fleet.endpoints() {
            let member = self.engines.entry(endpoint.address).or_insert_with(|| {
                let before = old.remove(&endpoint.address).unwrap_or_default();
                Member { endpoints: Vec::new(), ..before }
            });
            member.endpoints.push(Arc::clone(endpoint));
        }
        self.fleet = Some(fleet);
        true
    }

    pub(super) fn engines(&self) -> BTreeMap<SocketAddr, Engine> {
        let engine = |member: &Member| Some(member.endpoints.first()?.engine);
        self.engines.iter().filter_map(|(a, member)| Some((*a, engine(member)?))).collect()
    }

    pub(super) fn of(&self, address: SocketAddr) -> &[Arc<FleetEndpoint>] {
        self.engines.get(&address).map(|member| &*member.endpoints).unwrap_or_default()
    }

    pub(super) fn in_flight(&self, address: SocketAddr) -> u32 {
        self.of(address).iter().map(|endpoint| endpoint.in_flight()).sum()
    }

    /// What all engines have of ours, without those that have nothing.
    pub(super) fn all_in_flight(&self) -> BTreeMap<SocketAddr, u32> {
        let all = self.engines.keys().map(|address| (*address, self.in_flight(*address)));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// Takes note of whether an engine answers at all. One that does not is lost, but only if another
    /// engine of the same model does answer: otherwise there is nothing better to try, and it may
    /// well be our own network.
    fn answered(&mut self, address: SocketAddr, now: Instant, answered: bool) {
        let Some(member) = self.engines.get_mut(&address) else { return };
        if answered {
            (member.answered, member.unanswered) = (Some(now), 0);
        } else {
            member.unanswered = member.unanswered.saturating_add(1);
        }
        let suspect = member.unanswered >= LOST;
        let Some(fleet) = &self.fleet else { return };
        for endpoint in self.of(address) {
            let lost = suspect && self.has_another(fleet, endpoint, now);
            if lost != endpoint.is_lost() {
                let engine = &*endpoint.name;
                if lost {
                    tracing::warn!(engine, "engine unreachable; no new requests are sent to it");
                } else {
                    tracing::info!(engine, "engine recovered");
                }
                endpoint.lose(lost);
            }
        }
    }

    /// Whether a model of this endpoint has an engine that answered lately.
    fn has_another(&self, fleet: &Fleet, endpoint: &Arc<FleetEndpoint>, now: Instant) -> bool {
        let lately = |other: &Arc<FleetEndpoint>| {
            let answered = self.engines.get(&other.address).and_then(|member| member.answered);
            other.address != endpoint.address
                && answered.is_some_and(|at| now.saturating_duration_since(at) < LATELY)
        };
        let is_its =
            |model: &&Arc<FleetModel>| model.endpoints.iter().any(|e| Arc::ptr_eq(e, endpoint));
        fleet.models().filter(is_its).any(|model| model.endpoints.iter().any(lately))
    }

    /// Hands a report to the engine's endpoints. One that has not reported for long is taken to
    /// have nothing to tell: what this gateway counts itself is better than an old figure.
    pub(super) fn report(
        &mut self,
        address: SocketAddr,
        now: Instant,
        report: Option<&FleetReport>,
    ) {
        let Some(member) = self.engines.get_mut(&address) else { return };
        let report = match report {
            Some(report) => {
                member.last_seen = Some(now);
                *report
            }
            None if member.last_seen.is_some_and(|at| now.duration_since(at) >= super::OLD) => {
                member.last_seen = None;
                FleetReport::default()
            }
            None => return,
        };
        for endpoint in &member.endpoints {
            endpoint.report(&report);
        }
    }

    /// Tells every engine's endpoints when its report has become too old.
    pub(super) fn forget_old(&mut self, now: Instant) {
        let all: Vec<_> = self.engines.keys().copied().collect();
        for address in all {
            self.report(address, now, None);
        }
    }

    /// The collector answered: what it told last still holds.
    pub(super) fn reset_silence(&mut self, now: Instant) {
        for last_seen in self.engines.values_mut().filter_map(|member| member.last_seen.as_mut()) {
            *last_seen = now;
        }
    }

    /// The engine stopped reporting.
    pub(super) fn silence(&mut self, address: SocketAddr) {
        let Some(member) = self.engines.get_mut(&address) else { return };
        member.last_seen = None;
        for endpoint in &member.endpoints {
            endpoint.report(&FleetReport::default());
        }
    }

    /// Engines without a report that is young enough to be used.
    pub(super) fn silent(&self, now: Instant) -> usize {
        let old = |member: &&Member| {
            member.last_seen.is_none_or(|at| now.duration_since(at) >= super::OLD)
        };
        self.engines.values().filter(old).count()
    }
}
