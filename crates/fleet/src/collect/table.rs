//! What the collector knows: who the gateways are, what they have where, what engines report.
//!
//! Time is an argument and nothing here waits. The difficulty is to compare an engine's count with
//! those of gateways that were taken at other times. A report can be used as a proof once every
//! gateway has said what it had there before the question and again after the answer; of the two
//! the larger counts.

use super::GONE;
use super::messages::{Hello, News, Proof, Reply};
use super::page::ReportedLoad;
use super::rounds::Answer;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A gateway that is gone without a word may have died, or it may still serve and only not reach
/// us. Its requests would look like zombies. So for ten minutes, which is longer than nearly every
/// request takes, nothing is proven.
const BLIND: Duration = Duration::from_mins(10);

/// A report that not all gateways have commented on after so long is not used as a proof.
const STUCK: Duration = Duration::from_secs(2);

/// Gateways at once. 10^5 requests per second take some dozens.
const GATEWAYS: usize = 1024;

/// Bytes of a gateway's name: as long as a name in Kubernetes may be, and some more.
const NAME_BYTES: usize = 320;

/// Everything the collector knows.
#[derive(Debug)]
pub(super) struct Table {
    gateways: BTreeMap<String, Gateway>,
    engines: BTreeMap<SocketAddr, Line>,
    revision: u64,
    next_id: u32,
    blind_until: Instant,
    /// After which a gateway that says nothing is gone.
    gone: Duration,
}

#[derive(Debug)]
struct Gateway {
    id: u32,
    last_seen: Instant,
    in_flight: BTreeMap<SocketAddr, u32>,
    cancels: BTreeSet<SocketAddr>,
}

/// One engine.
#[derive(Debug, Default)]
struct Line {
    load: Option<ReportedLoad>,
    last_seen: Option<Instant>,
    /// The last report that can be used as a proof.
    proof: Option<Settled>,
    open: Option<Open>,
    /// When its news last changed.
    revision: u64,
}

#[derive(Clone, Copy, Debug)]
struct Settled {
    sent: Instant,
    came: Instant,
    has: u32,
    known: u32,
}

/// A report that gateways are still to comment on.
#[derive(Debug)]
struct Open {
    sent: Instant,
    answer: Option<(Instant, u32)>,
    /// The most that each gateway has said since before the question.
    most: BTreeMap<u32, u32>,
    /// Gateways that have said nothing since the answer.
    waits_for: BTreeSet<u32>,
}

/// A gateway that is not listened to.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("{GATEWAYS} gateways are connected already")]
    Full,
    #[error("a gateway's name must have 1 to {NAME_BYTES} bytes")]
    Name,
}

impl Table {
    /// An empty one. `revision` must be larger than any that an earlier collector has told, so that
    /// gateways notice that this is a new one.
    pub(super) fn new(now: Instant, revision: u64, gone: Duration) -> Self {
        let (gateways, engines) = (BTreeMap::new(), BTreeMap::new());
        // Until every gateway has had time to say hello, nothing is known of what they have.
        Self { gateways, engines, revision, next_id: 0, blind_until: now + GONE, gone }
    }

    /// These are all engines from now on.
    pub(super) fn engines_are(&mut self, engines: &BTreeSet<SocketAddr>) {
        self.engines.retain(|address, _| engines.contains(address));
        for address in engines {
            self.engines.entry(*address).or_default();
        }
    }

    /// Engines at which cancels are unproven.
    pub(super) fn hurried(&mut self, now: Instant) -> Vec<SocketAddr> {
        self.expire(now);
        let all: BTreeSet<_> =
            self.gateways.values().flat_map(|gateway| &gateway.cancels).copied().collect();
        all.into_iter().collect()
    }

    /// An engine is about to be asked.
    pub(super) fn asking(&mut self, address: SocketAddr, now: Instant) {
        let Some(line) = self.engines.get_mut(&address) else { return };
        if line.open.as_ref().is_some_and(|open| now.duration_since(open.sent) < STUCK) {
            return;
        }
        let count = |gateway: &Gateway| gateway.in_flight.get(&address).copied().unwrap_or(0);
        let most = self.gateways.values().map(|gateway| (gateway.id, count(gateway))).collect();
        line.open = Some(Open { sent: now, answer: None, most, waits_for: BTreeSet::new() });
    }

    /// An engine has answered, or not.
    pub(super) fn answered(&mut self, answer: &Answer) {
        let Some(line) = self.engines.get_mut(&answer.address) else { return };
        let unanswered = line.open.take_if(|open| open.answer.is_none());
        match &answer.load {
            Ok(load) => {
                line.last_seen = Some(answer.came);
                if line.load != Some(*load) {
                    line.load = Some(*load);
                    self.revision += 1;
                    line.revision = self.revision;
                }
                if let Some(mut open) = unanswered {
                    open.answer = Some((answer.came, load.requests()));
                    open.waits_for = self.gateways.values().map(|gateway| gateway.id).collect();
                    line.open = Some(open).filter(|open| !open.waits_for.is_empty());
                }
            }
            Err(error) => {
                let old = |at: Instant| answer.came.duration_since(at) >= super::OLD;
                if line.load.is_some() && line.last_seen.is_none_or(old) {
                    let address = answer.address;
                    tracing::warn!(%address, %error, "engine stopped reporting");
                    line.load = None;
                    self.revision += 1;
                    line.revision = self.revision;
                }
            }
        }
    }

    /// A gateway has said something; this is the answer.
    pub(super) fn hello(&mut self, hello: Hello, now: Instant) -> Result<Reply, Refused> {
        self.expire(now);
        if hello.gateway.is_empty() || hello.gateway.len() > NAME_BYTES {
            return Err(Refused::Name);
        }
        if !self.gateways.contains_key(&hello.gateway) && self.gateways.len() >= GATEWAYS {
            return Err(Refused::Full);
        }
        let (since, cancelled) = (hello.since, hello.cancels.clone());
        self.receive(hello, now);
        let seeing = now >= self.blind_until;
        let news = |(address, line): (&SocketAddr, &Line)| {
            let is_news =
                line.revision > since || since > self.revision || cancelled.contains(address);
            is_news.then(|| (*address, line.news(now, seeing)))
        };
        let engines = self.engines.iter().filter_map(news).collect();
        let hurry = self.gateways.values().any(|gateway| !gateway.cancels.is_empty());
        Ok(Reply { revision: self.revision, hurry, engines })
    }

    /// Gateways at the moment, and engines without a report.
    pub(super) fn counts(&self) -> (usize, usize) {
        let silent = self.engines.values().filter(|line| line.load.is_none()).count();
        (self.gateways.len(), silent)
    }

    fn receive(&mut self, hello: Hello, now: Instant) {
        let id = self.gateways.get(&hello.gateway).map_or(self.next_id, |gateway| gateway.id);
        self.next_id = self.next_id.max(id + 1);
        for (address, line) in &mut self.engines {
            let Some(open) = &mut line.open else { continue };
            let count = hello.in_flight.get(address).copied().unwrap_or(0);
            let most = open.most.entry(id).or_default();
            *most = count.max(*most);
            let Some((came, has)) = open.answer else { continue };
            open.waits_for.remove(&id);
            if !open.waits_for.is_empty() {
                continue;
            }
            let known = open.most.values().fold(0, |sum: u32, most| sum.saturating_add(*most));
            let new = Settled { sent: open.sent, came, has, known };
            let same = line.proof.is_some_and(|old| (old.has, old.known) == (has, known));
            line.proof = Some(new);
            line.open = None;
            if !same {
                self.revision += 1;
                line.revision = self.revision;
            }
        }
        if hello.leaving {
            self.gateways.remove(&hello.gateway);
            self.forget(id);
        } else {
            let Hello { gateway, in_flight, cancels, .. } = hello;
            self.gateways.insert(gateway, Gateway { id, last_seen: now, in_flight, cancels });
        }
    }

    /// Drops gateways that have said nothing for long.
    fn expire(&mut self, now: Instant) {
        let gone: Vec<_> = self
            .gateways
            .iter()
            .filter(|(_, gateway)| now.duration_since(gateway.last_seen) >= self.gone)
            .map(|(name, gateway)| (name.clone(), gateway.id))
            .collect();
        for (name, id) in gone {
            let minutes = BLIND.as_secs() / 60;
            tracing::warn!(
                gateway = name,
                minutes,
                "gateway disappeared; cancellation checks are paused"
            );
            self.gateways.remove(&name);
            self.forget(id);
            self.blind_until = self.blind_until.max(now + BLIND);
        }
    }

    /// Reports that only this gateway was still to comment on are no proofs.
    fn forget(&mut self, id: u32) {
        for line in self.engines.values_mut() {
            let Some(open) = &mut line.open else { continue };
            if open.waits_for.remove(&id) && open.waits_for.is_empty() {
                line.open = None;
            }
        }
    }
}

impl Line {
    fn news(&self, now: Instant, seeing: bool) -> News {
        let ago = |at: Instant| {
            u64::try_from(now.saturating_duration_since(at).as_millis()).unwrap_or(u64::MAX)
        };
        let proof = self.proof.filter(|_| seeing).map(|settled| Proof {
            has: settled.has,
            known: settled.known,
            // Rounded up: an earlier question proves less.
            sent_ago_ms: ago(settled.sent) + 1,
            came_ago_ms: ago(settled.came),
        });
        News { load: self.load, proof }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::WireError;

    fn engine() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], 8000))
    }

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn hello(gateway: &str, in_flight: u32) -> Hello {
        let in_flight = BTreeMap::from([(engine(), in_flight)]);
        Hello { gateway: gateway.to_owned(), in_flight, ..Hello::default() }
    }

    fn answer(sent: Instant, running: u32) -> Answer {
        let load = Ok(ReportedLoad { running, ..ReportedLoad::default() });
        Answer { address: engine(), sent, came: sent + ms(2), load }
    }

    /// A table with two gateways that have been there for a while.
    fn table(t: Instant) -> Table {
        let mut table = Table::new(t - GONE, 100, GONE);
        table.engines_are(&BTreeSet::from([engine()]));
        table.hello(hello("a", 2), t).unwrap();
        table.hello(hello("b", 1), t).unwrap();
        table
    }

    fn ask(table: &mut Table, at: Instant, running: u32) {
        table.asking(engine(), at);
        table.answered(&answer(at, running));
    }

    #[test]
    fn a_report_is_a_proof_once_all_gateways_have_spoken_after_it() {
        let t = Instant::now();
        let mut table = table(t);
        ask(&mut table, t + ms(10), 4);
        let reply = table.hello(hello("a", 3), t + ms(60)).unwrap();
        assert_eq!(reply.engines[&engine()].load.unwrap().running, 4);
        assert_eq!(reply.engines[&engine()].proof, None, "b is still to speak");
        let reply = table.hello(hello("b", 0), t + ms(70)).unwrap();
        // a had 2, then 3; b had 1, then 0.
        let proof = Proof { has: 4, known: 4, sent_ago_ms: 61, came_ago_ms: 58 };
        assert_eq!(reply.engines[&engine()].proof, Some(proof));
    }

    #[test]
    fn only_what_is_new_is_told_except_where_cancels_are_unproven() {
        let t = Instant::now();
        let mut table = table(t);
        ask(&mut table, t + ms(10), 3);
        table.hello(hello("a", 2), t + ms(20)).unwrap();
        let revision = table.hello(hello("b", 1), t + ms(20)).unwrap().revision;
        ask(&mut table, t + ms(30), 3);
        let again = Hello { since: revision, ..hello("a", 2) };
        assert_eq!(table.hello(again.clone(), t + ms(40)).unwrap().engines, BTreeMap::new());
        let asking = Hello { cancels: BTreeSet::from([engine()]), ..again.clone() };
        let reply = table.hello(asking, t + ms(50)).unwrap();
        assert!(reply.hurry && reply.engines.contains_key(&engine()));
        assert_eq!(table.hurried(t + ms(50)), [engine()]);
        // Another gateway is asked to hurry too, and a new collector tells everything.
        assert!(table.hello(hello("b", 1), t + ms(50)).unwrap().hurry);
        let ahead = Hello { since: u64::MAX, ..again };
        assert_eq!(table.hello(ahead, t + ms(60)).unwrap().engines.len(), 1);
    }

    #[test]
    fn a_gateway_that_leaves_takes_its_requests_along() {
        let t = Instant::now();
        let mut table = table(t);
        table.hello(Hello { leaving: true, ..hello("b", 0) }, t + ms(5)).unwrap();
        assert_eq!(table.counts().0, 1);
        ask(&mut table, t + ms(10), 3);
        let reply = table.hello(hello("a", 2), t + ms(20)).unwrap();
        assert_eq!(reply.engines[&engine()].proof.map(|proof| proof.known), Some(2));
    }

    #[test]
    fn a_gateway_that_is_gone_without_a_word_makes_the_collector_blind_for_a_while() {
        let t = Instant::now();
        let mut table = table(t);
        let prove = |table: &mut Table, at: Instant| {
            table.hello(hello("a", 2), at).unwrap();
            ask(table, at + ms(1), 3);
            let reply = table.hello(hello("a", 2), at + ms(10)).unwrap();
            reply.engines[&engine()].proof
        };
        assert_eq!(prove(&mut table, t + ms(1000)), None, "b could still have the third");
        assert_eq!(table.counts().0, 2);
        assert_eq!(prove(&mut table, t + GONE), None);
        assert_eq!(table.counts().0, 1);
        // Seen again only when what b may have had is over.
        table.gateways.get_mut("a").unwrap().last_seen = t + GONE + BLIND;
        assert!(prove(&mut table, t + GONE + BLIND).is_some());
    }

    #[test]
    fn a_new_collector_waits_for_all_gateways() {
        let t = Instant::now();
        let mut table = Table::new(t, 1, GONE);
        table.engines_are(&BTreeSet::from([engine()]));
        for (at, proven) in [(0, false), (1000, false), (1600, true)] {
            let at = t + ms(at);
            table.hello(hello("a", 2), at).unwrap();
            ask(&mut table, at, 2);
            let reply = table.hello(hello("a", 2), at + ms(10)).unwrap();
            assert_eq!(reply.engines[&engine()].proof.is_some(), proven);
        }
    }

    #[test]
    fn an_engine_that_stops_reporting_is_told_of() {
        let t = Instant::now();
        let mut table = table(t);
        ask(&mut table, t, 3);
        let revision = table.hello(hello("a", 2), t).unwrap().revision;
        let late = |after: Duration| {
            let at = t + after;
            Answer { address: engine(), sent: at, came: at, load: Err(WireError::Late) }
        };
        table.answered(&late(ms(1000)));
        assert_eq!(table.counts().1, 0, "once is nothing");
        table.answered(&late(ms(6000)));
        assert_eq!(table.counts().1, 1);
        let reply = table.hello(Hello { since: revision, ..hello("a", 2) }, t + ms(1200)).unwrap();
        assert_eq!(reply.engines[&engine()].load, None);
    }

    #[test]
    fn gateways_and_their_names_are_bounded() {
        let t = Instant::now();
        let mut table = Table::new(t, 1, GONE);
        assert_eq!(table.hello(hello("", 0), t), Err(Refused::Name));
        assert_eq!(table.hello(hello(&"x".repeat(321), 0), t), Err(Refused::Name));
        for i in 0..GATEWAYS {
            table.hello(hello(&i.to_string(), 0), t).unwrap();
        }
        assert_eq!(table.hello(hello("more", 0), t), Err(Refused::Full));
        assert!(table.hello(hello("7", 0), t).is_ok());
    }
}
