//! A limit that several gateways share, request by request: traffic moves between them, messages are late, doubled or
//! lost, gateways die and are cut off, leaders change.

use flyball_core::units::Micros;
use flyball_quota::{
    GatewayId, RATE_LEASE, RateKey, RateKind, RateOrder, RateShare, RateSplit, Scope, ShareCounts,
};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;

/// What a world is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// Requests that come in a minute, for one that is allowed.
    pub(crate) offered: f64,
    /// Whether all traffic goes to another gateway every five seconds.
    pub(crate) moves: bool,
    /// Whether gateways die, are cut off and leaders change.
    pub(crate) storms: bool,
    /// The limit for each gateway, at least.
    pub(crate) each: u64,
    /// When the operator is away.
    pub(crate) away: Option<(Micros, Micros)>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) served: u64,
    pub(crate) refused: u64,
    /// Requests that came while the operator was away, and those of them that were refused.
    pub(crate) away: (u64, u64),
    pub(crate) killed: u64,
    pub(crate) leaders: u64,
    /// The most that was used in any minute, for one that is allowed.
    pub(crate) most: f64,
    /// What was served from the second minute on, for one that a single gateway with the whole limit would have served:
    /// chance leaves it a part of a small limit too.
    pub(crate) usable: f64,
}

struct Gateway {
    id: GatewayId,
    share: RateShare,
    /// Since when each request waits.
    queue: VecDeque<Micros>,
    /// When it last heard from the operator.
    contact: Micros,
    cut_until: Micros,
    term: u64,
}

#[derive(Clone)]
enum Message {
    /// To the leader of a term, sent then.
    Report(u64, Micros, GatewayId, ShareCounts),
    Order(u64, RateOrder),
    /// The leader has a report that was sent then.
    Received(u64, Micros, GatewayId),
}

const STEP: Micros = Micros::from_millis(10);
const LENGTH: Micros = Micros::from_minutes(5);
const MINUTE: Micros = Micros::from_minutes(1);
const PATIENCE: Micros = Micros::from_millis(250);
const READY: Micros = Micros::from_seconds(1);
const BEAT: Micros = Micros::from_millis(250);

pub(crate) struct RateWorld {
    rng: Pcg64Mcg,
    weather: Weather,
    key: RateKey,
    limit: u64,
    gateways: Vec<Gateway>,
    leader: RateSplit,
    term: u64,
    messages: Vec<(Micros, Message)>,
    /// Those that use permits were used at, within the last minute.
    uses: VecDeque<Micros>,
    now: Micros,
    names: u32,
    /// Requests that were served from the second minute on.
    late: u64,
    /// A gateway that has the whole limit and serves everybody.
    single: Single,
    outcome: Outcome,
}

#[derive(Default)]
struct Single {
    share: RateShare,
    queue: VecDeque<Micros>,
    /// Requests that it served from the second minute on.
    served: u64,
}

impl Single {
    fn serve(&mut self, now: Micros) {
        while let Some(since) = self.queue.front().copied() {
            if self.share.take(1, now).is_ok() {
                self.served += u64::from(now > MINUTE);
            } else if now.saturating_sub(since) <= PATIENCE {
                break;
            }
            self.queue.pop_front();
        }
    }
}

impl RateWorld {
    pub(crate) fn new(seed: u64, weather: Weather) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let count = rng.random_range(2..=8);
        let limit = rng.random_range(count * weather.each..6_000);
        let key = RateKey { scope: Scope::new("org/team"), kind: RateKind::Requests };
        let mut world = Self {
            rng,
            weather,
            limit,
            gateways: Vec::new(),
            leader: RateSplit::default(),
            term: 1,
            messages: Vec::new(),
            uses: VecDeque::new(),
            now: Micros::ZERO,
            names: 0,
            late: 0,
            single: Single::default(),
            outcome: Outcome::default(),
            key,
        };
        world.leader.set_limits([(world.key.clone(), limit)].into());
        world.single.share.grant(limit);
        for _ in 0..count {
            let gateway = world.gateway();
            world.gateways.push(gateway);
        }
        world
    }

    fn gateway(&mut self) -> Gateway {
        self.names += 1;
        Gateway {
            id: GatewayId::new(&format!("g{}", self.names)),
            share: RateShare::default(),
            queue: VecDeque::new(),
            contact: self.now,
            cut_until: Micros::ZERO,
            term: 0,
        }
    }

    pub(crate) fn play(mut self) -> Result<Outcome, String> {
        while self.now < LENGTH {
            self.now = self.now.saturating_add(STEP);
            if self.weather.storms {
                self.storm();
            }
            // A gateway is not ready before the operator has answered it.
            if self.now > READY {
                self.arrive();
            }
            self.serve()?;
            self.talk();
            self.deliver();
        }
        self.outcome.usable = self.late as f64 / self.single.served as f64;
        Ok(self.outcome)
    }

    fn storm(&mut self) {
        let place = self.rng.random_range(0..self.gateways.len());
        if self.rng.random_bool(0.0004) {
            self.outcome.killed += 1;
            let next = self.gateway();
            let old = std::mem::replace(&mut self.gateways[place], next);
            self.leader.gone(&old.id, self.now);
        }
        if self.rng.random_bool(0.0004) {
            let long = Micros::from_millis(self.rng.random_range(100..240_000));
            self.gateways[place].cut_until = self.now.saturating_add(long);
        }
        if self.rng.random_bool(0.0002) {
            // It knows who may have permits and which pods there are, and not how many they have.
            self.outcome.leaders += 1;
            self.term += 1;
            let written: Vec<GatewayId> = self.leader.gateways().cloned().collect();
            self.leader = RateSplit::new(written.iter().cloned(), self.now);
            self.leader.set_limits([(self.key.clone(), self.limit)].into());
            let is_there = |id: &GatewayId| self.gateways.iter().any(|gateway| gateway.id == *id);
            for gone in written.iter().filter(|id| !is_there(id)) {
                self.leader.gone(gone, self.now);
            }
        }
    }

    fn arrive(&mut self) {
        let mean =
            self.limit as f64 * self.weather.offered * STEP.get() as f64 / MINUTE.get() as f64;
        // Bernoulli trials of a tenth each are close to Poisson's.
        let tries = (mean * 10.0).ceil().max(1.0);
        let spell = (self.now.get() / Micros::from_seconds(5).get()) as usize;
        for _ in 0..tries as u64 {
            if !self.rng.random_bool(mean / tries) {
                continue;
            }
            let place = if self.weather.moves {
                spell * 3 % self.gateways.len()
            } else {
                self.rng.random_range(0..self.gateways.len())
            };
            self.gateways[place].queue.push_back(self.now);
            self.outcome.requests += 1;
            self.outcome.away.0 += u64::from(self.is_away());
            self.single.queue.push_back(self.now);
        }
    }

    fn serve(&mut self) -> Result<(), String> {
        let (now, is_away) = (self.now, self.is_away());
        self.single.serve(now);
        for gateway in &mut self.gateways {
            gateway.share.confine(now.saturating_sub(gateway.contact) >= RATE_LEASE);
            while let Some(since) = gateway.queue.front().copied() {
                if gateway.share.take(1, now).is_ok() {
                    self.outcome.served += 1;
                    self.late += u64::from(now > MINUTE);
                    self.uses.push_back(now);
                } else if now.saturating_sub(since) > PATIENCE {
                    self.outcome.refused += 1;
                    self.outcome.away.1 += u64::from(is_away);
                } else {
                    break;
                }
                gateway.queue.pop_front();
            }
            gateway.share.wait_for(gateway.queue.len() as u64);
        }
        while self.uses.front().is_some_and(|at| at.saturating_add(MINUTE) <= now) {
            self.uses.pop_front();
        }
        let most = self.uses.len() as f64 / self.limit as f64;
        self.outcome.most = self.outcome.most.max(most);
        if most > 1.0 {
            return Err(format!("{} of {} in a minute at {now}", self.uses.len(), self.limit));
        }
        Ok(())
    }

    fn is_away(&self) -> bool {
        self.weather.away.is_some_and(|(from, to)| from <= self.now && self.now < to)
    }

    fn talk(&mut self) {
        let (now, beat) = (self.now, self.now.get().is_multiple_of(BEAT.get()));
        let term = self.term;
        let mut reports = Vec::new();
        for gateway in self.gateways.iter_mut().filter(|gateway| gateway.cut_until <= now) {
            // Who is connected to a leader listens to none before it.
            gateway.term = term;
            if beat || !gateway.queue.is_empty() {
                reports.push(gateway.report(now));
            }
        }
        reports.into_iter().for_each(|report| self.post(report));
    }

    fn post(&mut self, message: Message) {
        if self.rng.random_bool(0.01) {
            return;
        }
        let after = |rng: &mut Pcg64Mcg, most: u64| Micros::from_millis(rng.random_range(1..most));
        if self.rng.random_bool(0.01) {
            let later = self.now.saturating_add(after(&mut self.rng, 4_000));
            self.messages.push((later, message.clone()));
        }
        let at = self.now.saturating_add(after(&mut self.rng, 30));
        self.messages.push((at, message));
    }

    fn deliver(&mut self) {
        let now = self.now;
        let (due, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.messages).into_iter().partition(|(at, _)| *at <= now);
        self.messages = rest;
        let mut reported = false;
        for (_, message) in due {
            match message {
                Message::Report(term, sent, from, counts) => {
                    // A pod that is gone says nothing any more.
                    let is_there = self.gateways.iter().any(|gateway| gateway.id == from);
                    if is_there && term == self.term && !self.is_away() {
                        self.leader.report(&from, &[(self.key.clone(), counts)], now);
                        self.post(Message::Received(term, sent, from));
                        reported = true;
                    }
                }
                Message::Received(term, sent, to) => {
                    let there = self.gateways.iter_mut().find(|gateway| gateway.id == to);
                    if let Some(gateway) = there.filter(|one| one.is_reached_by(term, now)) {
                        gateway.contact = gateway.contact.max(sent);
                    }
                }
                Message::Order(term, order) => self.obey(term, order),
            }
        }
        if reported {
            for order in self.leader.orders(&self.key, now) {
                self.post(Message::Order(self.term, order));
            }
        }
    }

    fn obey(&mut self, term: u64, order: RateOrder) {
        let now = self.now;
        let (RateOrder::Grant { gateway: to, .. } | RateOrder::GiveBack { gateway: to, .. }) =
            &order;
        let Some(gateway) = self.gateways.iter_mut().find(|gateway| gateway.id == *to) else {
            return;
        };
        if !gateway.is_reached_by(term, now) {
            return;
        }
        match order {
            RateOrder::Grant { granted, .. } => gateway.share.grant(granted),
            RateOrder::GiveBack { returned, .. } => {
                gateway.share.give_back(returned, now);
                let report = gateway.report(now);
                self.post(report);
            }
        }
    }
}

impl Gateway {
    fn report(&mut self, now: Micros) -> Message {
        Message::Report(self.term, now, self.id.clone(), self.share.counts(now))
    }

    fn is_reached_by(&self, term: u64, now: Micros) -> bool {
        self.cut_until <= now && term == self.term
    }
}
