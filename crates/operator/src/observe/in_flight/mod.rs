//! Requests inside pods, as gateways count them and as engines do, and who can tell.
//!
//! Silence is not absence: a gateway that exists and has not spoken may have requests in any pod, so that
//! nothing is known of a pod before every gateway that exists has spoken. An engine's own count is the only
//! witness of clients that go around gateways. What each says counts from a moment on: what was counted
//! before a pod was told to drain says nothing about who came in between.

mod expected;

pub use expected::ExpectedInFlight;
pub(super) use expected::has_ended;

use super::facts::PodFacts;
use flyball_core::units::{Micros, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// An engine's count is believed if it was taken so long after the mark: the clocks of the one who marks and
/// of the one who scrapes need not agree, and gateways hear of the mark a moment later.
const SETTLED: Micros = Micros::from_seconds(5);

/// Requests inside pods, by address as gateways know them and by name as Prometheus does.
#[derive(Clone, Debug, Default)]
pub struct InFlight {
    /// Gateways that exist, and when each told of its engines; `None` of one that has not.
    gateways: BTreeMap<String, Option<Timestamp>>,
    /// Whether every gateway that exists has had the time to come.
    all_came: bool,
    /// What gateways named that could not name all of their engines.
    partial: BTreeMap<String, BTreeSet<String>>,
    by_address: BTreeMap<String, Routed>,
    by_pod: BTreeMap<(String, String), (f64, Timestamp)>,
    counts: InFlightCounts,
}

/// Whether engines' own series were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InFlightCounts {
    /// Nobody collects them.
    #[default]
    NotRequested,
    /// Whoever collects them did not answer.
    Away,
    /// They were told.
    Answered,
}

/// What all gateways together say of an address.
#[derive(Clone, Copy, Debug)]
struct Routed {
    count: f64,
    /// When the oldest of them said it.
    at: Timestamp,
    /// Whether one of them would still send something new.
    open: bool,
}

/// What one kind of witness says of the requests inside a pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Side {
    /// So many, and when that was so.
    Count(f64, Timestamp),
    /// There is a witness, and it has not spoken.
    Unknown,
    /// There is no such witness.
    Nobody,
}

impl Side {
    /// What is said of two pods together.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Count(one, at), Self::Count(other, then)) => {
                Self::Count(one + other, at.min(then))
            }
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Nobody, one) | (one, Self::Nobody) => one,
        }
    }
}

/// Whether engines have series: those that lead or are alone, and the other pods of groups.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speaks {
    leaders: bool,
    members: bool,
}

/// What both kinds of witnesses say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Inside {
    pub(super) gateways: Side,
    pub(super) engine: Side,
}

impl InFlight {
    /// A gateway exists. It told at this moment of all engines that it sends to or has requests in, or has not
    /// told yet.
    pub fn gateway(&mut self, name: &str, reported: Option<Timestamp>) {
        self.gateways.insert(name.to_owned(), reported);
    }

    /// This gateway could name only some of its engines: these.
    pub fn names_only(&mut self, name: &str, addresses: impl Iterator<Item = String>) {
        self.partial.insert(name.to_owned(), addresses.collect());
    }

    /// Whoever has not come by now does not exist.
    pub fn all_came(&mut self) {
        self.all_came = true;
    }

    /// Gateways that exist and have not told yet.
    pub(super) fn unreported(&self) -> impl Iterator<Item = &String> {
        self.gateways.iter().filter(|(_, reported)| reported.is_none()).map(|(name, _)| name)
    }

    /// All gateways together have so many at this address.
    pub fn at_address(&mut self, address: &str, count: f64, at: Timestamp) {
        let none = Routed { count: 0.0, at, open: false };
        let routed = self.by_address.entry(address.to_owned()).or_insert(none);
        routed.count += count;
        routed.at = routed.at.min(at);
    }

    /// A gateway would still send something new to this address.
    pub fn still_open(&mut self, address: &str) {
        if let Some(routed) = self.by_address.get_mut(address) {
            routed.open = true;
        }
    }

    /// An engine says that it has so many.
    pub fn in_pod(&mut self, namespace: &str, pod: &str, count: f64, at: Timestamp) {
        self.by_pod.insert((namespace.to_owned(), pod.to_owned()), (count, at));
    }

    /// Whether engines' own series were asked for.
    pub const fn request(&mut self, counts: InFlightCounts) {
        self.counts = counts;
    }

    /// Requests inside a pod and its group, from its mark on if it has one.
    pub(super) fn of(
        &self,
        namespace: &str,
        pod: &PodFacts,
        speaks: Speaks,
        (now, max_age): (Timestamp, Micros),
    ) -> Inside {
        let fresh = |at: Timestamp| now.apart(at) <= max_age;
        let (mark, members) = (pod.draining, &pod.members);
        let gateways = self.routed(pod.ip.as_ref(), mark, fresh);
        let engine = self.own(namespace, &pod.name, mark, speaks.leaders);
        members.iter().fold(Inside { gateways, engine }, |all, member| Inside {
            gateways: all.gateways.with(self.routed(member.ip.as_ref(), mark, fresh)),
            engine: all.engine.with(self.own(namespace, &member.name, mark, speaks.members)),
        })
    }

    /// Whether engines like these have series: where one of them has, all should.
    pub(super) fn speaks<'a>(
        &self,
        namespace: &str,
        pods: impl Iterator<Item = &'a PodFacts>,
    ) -> Speaks {
        let has = |name: &str| self.by_pod.contains_key(&(namespace.to_owned(), name.to_owned()));
        pods.fold(Speaks::default(), |speaks, pod| Speaks {
            leaders: speaks.leaders || has(&pod.name),
            members: speaks.members || pod.members.iter().any(|member| has(&member.name)),
        })
    }

    fn routed(
        &self,
        ip: Option<&String>,
        mark: Option<Timestamp>,
        fresh: impl Fn(Timestamp) -> bool,
    ) -> Side {
        let Some(ip) = ip else { return Side::Nobody };
        let routed = self.by_address.get(ip);
        let Some(mark) = mark else {
            return routed.map_or(Side::Nobody, |routed| Side::Count(routed.count, routed.at));
        };
        let since =
            |reported: &Option<Timestamp>| reported.is_some_and(|at| at > mark && fresh(at));
        let all_reported = self.all_came && self.gateways.values().all(since);
        if !all_reported || !self.partial.values().all(|named| named.contains(ip)) {
            return Side::Unknown;
        }
        let oldest = self.gateways.values().flatten().min();
        match routed {
            None => oldest.map_or(Side::Nobody, |at| Side::Count(0.0, *at)),
            Some(routed) if routed.open || routed.at <= mark => Side::Unknown,
            Some(routed) => Side::Count(routed.count, routed.at),
        }
    }

    /// The gateway that a pod that drains waits for: it exists and has said nothing since.
    pub(super) fn silent_since(&self, mark: Timestamp) -> Option<&str> {
        let silent = |reported: &Option<Timestamp>| reported.is_none_or(|at| at <= mark);
        self.gateways.iter().find(|(_, reported)| silent(reported)).map(|(name, _)| name.as_str())
    }

    fn own(&self, namespace: &str, pod: &str, mark: Option<Timestamp>, speaks: bool) -> Side {
        let own = self.by_pod.get(&(namespace.to_owned(), pod.to_owned()));
        let since =
            |at: Timestamp| mark.is_none_or(|mark| at.since(mark).is_some_and(|age| age > SETTLED));
        match (own, self.counts) {
            (Some((count, at)), _) if since(*at) && count.is_finite() => Side::Count(*count, *at),
            (Some(_), _) | (None, InFlightCounts::Away) => Side::Unknown,
            (None, InFlightCounts::Answered) if speaks => Side::Unknown,
            (None, InFlightCounts::Answered | InFlightCounts::NotRequested) => Side::Nobody,
        }
    }
}

impl Inside {
    /// The larger of both counts, as old as the older; `None` while a witness that exists has not spoken or
    /// where there is none.
    pub(super) fn count(&self) -> Option<(f64, Timestamp)> {
        match (self.gateways, self.engine) {
            (Side::Count(routed, at), Side::Count(own, then)) => {
                Some((routed.max(own), at.min(then)))
            }
            (Side::Count(count, at), Side::Nobody) | (Side::Nobody, Side::Count(count, at)) => {
                Some((count, at))
            }
            _ => None,
        }
    }

    /// The larger of what is known of both, to compare pods by.
    pub(super) fn at_least(&self) -> Option<(f64, Timestamp)> {
        match (self.gateways, self.engine) {
            (Side::Count(count, at), Side::Unknown) | (Side::Unknown, Side::Count(count, at)) => {
                Some((count, at))
            }
            _ => self.count(),
        }
    }
}
