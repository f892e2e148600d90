//! The operator's side of rates: which gateway has how many permits of which limit.
//!
//! For each limit: permits with gateways, as far as they are known, and permits that gateways may have of which nothing
//! is known, are never more than the limit. What is free moves to where requests wait, and ahead of that to where they
//! come.

use crate::rate_share::ShareCounts;
use crate::scope::{GatewayId, Scope};
use crate::window::MINUTE;
use flyball_core::units::Micros;
use std::collections::BTreeMap;

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RateKind {
    /// Requests in a minute.
    Requests,
    /// Tokens of prompts in a minute.
    InputTokens,
    /// Tokens of answers in a minute.
    OutputTokens,
    /// Requests at a time.
    Concurrency,
}

/// A limit: whose, and of what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RateKey {
    pub scope: Scope,
    pub kind: RateKind,
}

/// What a gateway is to do about a share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateOrder {
    /// It has been granted so many in all.
    Grant { gateway: GatewayId, granted: u64 },
    /// It is to give back what is free until it has given back so many in all, and to report.
    GiveBack { gateway: GatewayId, returned: u64 },
}

/// A gateway that has not heard from the operator for so long uses half of its permits: longer than an operator takes
/// to be replaced with its node, so that nobody is refused meanwhile who would not have been.
pub const RATE_LEASE: Micros = Micros::from_seconds(120);

/// What it used until then is in its window for a minute; a second more is for clocks that run unevenly.
const RECLAIM: Micros = Micros::from_seconds(120 + 60 + 1);

/// One that has not reported for so long gets no permits and is asked for none. Four reports are due in a second.
const SILENT: Micros = Micros::from_seconds(5);

/// Permits move ahead of demand if they are so large a part of the limit at least.
const WORTHWHILE: u64 = 100;

/// A gateway as the operator knows it.
#[derive(Clone, Copy, Debug)]
struct Contact {
    last: Micros,
    /// Its pod does not exist any more, since then.
    gone: Option<Micros>,
    /// Whether it has reported to this leader.
    is_known: bool,
}

/// A share as the operator knows it.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    counts: ShareCounts,
    /// What the gateway knows to be granted. A grant that it does not know is sent again.
    acknowledged: u64,
}

/// Who grants shares.
#[derive(Clone, Debug, Default)]
pub struct RateSplit {
    limits: BTreeMap<RateKey, u64>,
    shares: BTreeMap<RateKey, BTreeMap<GatewayId, Held>>,
    gateways: BTreeMap<GatewayId, Contact>,
}

impl RateSplit {
    /// A leader's. These gateways may have shares that a leader before it granted, those among them whose pods are gone
    /// too: what they have used is in a window for a minute.
    pub fn new(gateways: impl IntoIterator<Item = GatewayId>, now: Micros) -> Self {
        let unknown = Contact { last: now, gone: None, is_known: false };
        let gateways = gateways.into_iter().map(|gateway| (gateway, unknown)).collect();
        Self { gateways, ..Self::default() }
    }

    /// Takes in limits that were changed, added or removed.
    pub fn set_limits(&mut self, limits: BTreeMap<RateKey, u64>) {
        self.shares.retain(|key, _| limits.contains_key(key));
        self.limits = limits;
    }

    /// A gateway says how all its shares stand.
    pub fn report(&mut self, gateway: &GatewayId, shares: &[(RateKey, ShareCounts)], now: Micros) {
        let contact = Contact { last: now, gone: None, is_known: true };
        self.gateways.insert(gateway.clone(), contact);
        for (key, counts) in shares.iter().filter(|(key, _)| self.limits.contains_key(key)) {
            let of = self.shares.entry(key.clone()).or_default();
            let held = of.entry(gateway.clone()).or_default();
            held.counts.merge(counts);
            held.acknowledged = held.acknowledged.max(counts.granted);
        }
    }

    /// Gateways that may have shares. One has to be written down before it gets its first, for the next leader.
    pub fn gateways(&self) -> impl Iterator<Item = &GatewayId> {
        self.gateways.keys()
    }

    /// The pod of a gateway does not exist any more.
    pub fn gone(&mut self, gateway: &GatewayId, now: Micros) {
        if let Some(contact) = self.gateways.get_mut(gateway) {
            contact.gone.get_or_insert(now);
        }
    }

    /// What is to be done now about a limit.
    pub fn orders(&mut self, key: &RateKey, now: Micros) -> Vec<RateOrder> {
        self.forget(now);
        let Some(limit) = self.limits.get(key).copied() else { return Vec::new() };
        let (present, absent) = self.holders(key, now);
        if self.gateways.values().any(|contact| !contact.is_known) {
            // It may have any part of what others do not have, until it reports or its pod is gone.
            return Vec::new();
        }
        let limit = limit.saturating_sub(absent);
        let out: u64 = present.iter().map(|(_, held)| held.counts.permits()).sum();
        let targets = divide(limit, &present);
        let urgent = present.iter().any(|(_, held)| held.counts.waiting > 0) || out > limit;
        let worthwhile = if urgent { 1 } else { (limit / WORTHWHILE).max(1) };
        let mut pool = limit.saturating_sub(out);
        let mut orders = Vec::new();
        for ((gateway, mut held), target) in present.into_iter().zip(targets) {
            let permits = held.counts.permits();
            let (more, fewer) = (target.saturating_sub(permits), permits.saturating_sub(target));
            let grant = if more >= worthwhile { more.min(pool) } else { 0 };
            pool -= grant;
            held.counts.granted += grant;
            if held.counts.granted > held.acknowledged {
                let granted = held.counts.granted;
                self.shares.entry(key.clone()).or_default().insert(gateway.clone(), held);
                orders.push(RateOrder::Grant { gateway, granted });
            } else if fewer >= worthwhile && (urgent || held.counts.free() >= worthwhile) {
                let returned = held.counts.returned + fewer;
                orders.push(RateOrder::GiveBack { gateway, returned });
            }
        }
        orders
    }

    /// Gateways that report, with their shares; and what the others may have.
    fn holders(&self, key: &RateKey, now: Micros) -> (Vec<(GatewayId, Held)>, u64) {
        let none = BTreeMap::new();
        let shares = self.shares.get(key).unwrap_or(&none);
        let (mut present, mut absent) = (Vec::new(), 0);
        for (gateway, contact) in &self.gateways {
            let held = shares.get(gateway).copied().unwrap_or_default();
            match contact.state(now) {
                State::Present => present.push((gateway.clone(), held)),
                State::Absent => absent += held.counts.permits(),
                State::Confined => absent += held.counts.confined(),
            }
        }
        (present, absent)
    }

    /// Gateways whose pods are gone for a minute have nothing in any window.
    fn forget(&mut self, now: Micros) {
        let over =
            |contact: &Contact| contact.gone.is_some_and(|gone| now >= gone.saturating_add(MINUTE));
        let gone: Vec<GatewayId> = self
            .gateways
            .iter()
            .filter(|(_, contact)| over(contact))
            .map(|(gateway, _)| gateway.clone())
            .collect();
        for gateway in gone {
            self.gateways.remove(&gateway);
            self.shares.values_mut().for_each(|of| {
                of.remove(&gateway);
            });
        }
    }
}

/// What is known about a gateway.
enum State {
    /// It reports.
    Present,
    /// It does not, and may use all that it has.
    Absent,
    /// It does not, and has not for so long that it uses half of that.
    Confined,
}

impl Contact {
    fn state(&self, now: Micros) -> State {
        let silent = now.saturating_sub(self.last);
        match (self.gone, silent) {
            (None, silent) if silent < SILENT && self.is_known => State::Present,
            (None, silent) if silent >= RECLAIM => State::Confined,
            _ => State::Absent,
        }
    }
}

/// How many permits each should have: those that it needs, and an equal chance against chance of the rest. Needs of
/// Poisson's kind vary by their root, so that roots are the weights.
fn divide(limit: u64, holders: &[(GatewayId, Held)]) -> Vec<u64> {
    let need = |held: &Held| held.counts.used.saturating_add(held.counts.waiting);
    let needs: u128 = holders.iter().map(|(_, held)| u128::from(need(held))).sum();
    let spare = u128::from(limit).saturating_sub(needs);
    let root = |held: &Held| u128::from(need(held).saturating_add(1).isqrt());
    let roots: u128 = holders.iter().map(|(_, held)| root(held)).sum();
    let target = |held: &Held| {
        let own = u128::from(need(held));
        let own = if needs > u128::from(limit) { own * u128::from(limit) / needs } else { own };
        (own + spare * root(held) / roots.max(1)) as u64
    };
    holders.iter().map(|(_, held)| target(held)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> RateKey {
        RateKey { scope: Scope::new("org/team"), kind: RateKind::Requests }
    }

    fn split(limit: u64, gateways: &[&str]) -> RateSplit {
        let mut split = RateSplit::default();
        split.set_limits([(key(), limit)].into());
        gateways.iter().for_each(|name| split.report(&GatewayId::new(name), &[], Micros::ZERO));
        split
    }

    fn granted(orders: &[RateOrder]) -> Vec<u64> {
        let grants = orders.iter().filter_map(|order| match order {
            RateOrder::Grant { granted, .. } => Some(*granted),
            RateOrder::GiveBack { .. } => None,
        });
        grants.collect()
    }

    #[test]
    fn a_limit_is_divided_and_never_more_than_that() {
        let mut split = split(100, &["a", "b", "c"]);
        assert_eq!(granted(&split.orders(&key(), Micros::ZERO)), [33, 33, 33]);
        // A gateway that does not know it yet is told again; nobody gets more.
        let knows = ShareCounts { granted: 33, ..ShareCounts::default() };
        for name in ["a", "b"] {
            split.report(&GatewayId::new(name), &[(key(), knows)], Micros::ZERO);
        }
        let last = RateOrder::Grant { gateway: GatewayId::new("c"), granted: 33 };
        assert_eq!(split.orders(&key(), Micros::ZERO), [last]);
    }

    #[test]
    fn what_is_free_goes_where_requests_wait() {
        let mut split = split(100, &["a", "b"]);
        split.orders(&key(), Micros::ZERO);
        let (a, b) = (GatewayId::new("a"), GatewayId::new("b"));
        let waits = ShareCounts { granted: 50, returned: 0, used: 50, waiting: 10 };
        split.report(&a, &[(key(), waits)], Micros::ZERO);
        let idle = ShareCounts { granted: 50, ..ShareCounts::default() };
        split.report(&b, &[(key(), idle)], Micros::ZERO);
        let orders = split.orders(&key(), Micros::ZERO);
        let [RateOrder::GiveBack { gateway, returned }] = orders.as_slice() else {
            panic!("{orders:?}")
        };
        assert_eq!(*gateway, b);
        assert!(*returned >= 10, "{returned}");
        let idle = ShareCounts { returned: *returned, ..idle };
        split.report(&b, &[(key(), idle)], Micros::ZERO);
        assert_eq!(granted(&split.orders(&key(), Micros::ZERO)), [50 + returned]);
    }

    #[test]
    fn nothing_is_granted_while_somebody_may_have_it() {
        let first = GatewayId::new("a");
        let mut split = RateSplit::new([first.clone()], Micros::ZERO);
        split.set_limits([(key(), 100)].into());
        split.report(&GatewayId::new("b"), &[], Micros::ZERO);
        assert_eq!(split.orders(&key(), Micros::from_seconds(3)), []);
        let now = Micros::from_seconds(180);
        split.report(&GatewayId::new("b"), &[], now);
        assert_eq!(split.orders(&key(), now), []);
        split.gone(&first, now);
        let later = Micros::from_seconds(241);
        split.report(&GatewayId::new("b"), &[], later);
        assert_eq!(granted(&split.orders(&key(), later)), [100]);
    }
}
