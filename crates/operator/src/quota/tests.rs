//! Gateways, leaders and a record that is written, in steps.

use super::allocator::{Allocator, Clock, Replies};
use flyball_core::units::{Micros, Timestamp};
use flyball_quota::{
    Amount, BankRecord, BudgetKey, BudgetSpec, BudgetUnit, GatewayId, LeaseAccount, LeaseKey,
    Period, RateKey, RateKind, RateShare, Scope,
};
use flyball_resources::stream::{LeaseRequest, QuotaReply, QuotaReport, ReplyGrant, ShareChange};
use std::collections::BTreeMap;

const fn tokens(count: u128) -> Amount {
    Amount::new(count)
}

fn at(millis: u64) -> Clock {
    let wall = Timestamp::from_millis(1_794_000_000_000 + millis);
    Clock { wall, at: Micros::from_millis(millis) }
}

fn budget(limit: u128) -> BudgetSpec {
    BudgetSpec {
        key: BudgetKey { scope: Scope::new("ml/org"), name: "month".into() },
        unit: BudgetUnit::Tokens,
        limit: tokens(limit),
        period: Period::Month,
        counts_only: false,
    }
}

fn lease(path: &str) -> LeaseKey {
    LeaseKey { scope: Scope::new(path), unit: BudgetUnit::Tokens }
}

fn requests() -> RateKey {
    RateKey { scope: Scope::new("ml/org"), kind: RateKind::Requests }
}

/// A gateway as the operator hears of it.
struct Gateway {
    id: GatewayId,
    account: LeaseAccount,
    share: RateShare,
    term: u64,
    asks: u64,
}

impl Gateway {
    fn new(id: &str) -> Self {
        Self {
            id: GatewayId::new(id),
            account: LeaseAccount::default(),
            share: RateShare::default(),
            term: 0,
            asks: 0,
        }
    }

    fn report(&mut self, lacking: Option<u128>, now: Clock) -> QuotaReport {
        self.asks += u64::from(lacking.is_some());
        let ask = |lacking| LeaseRequest {
            lease: lease("ml/org/team"),
            lacking: tokens(lacking),
            pace: Amount::ZERO,
            number: self.asks,
        };
        QuotaReport {
            gateway: self.id.clone(),
            term: self.term,
            complete: true,
            leases: vec![(lease("ml/org/team"), self.account.counts())],
            asks: lacking.map(ask).into_iter().collect(),
            shares: vec![(requests(), self.share.counts(now.at))],
            recalled: None,
        }
    }

    /// Takes in its part of the answers. Whether its ask was refused.
    fn take(&mut self, replies: &Replies, now: Clock) -> (bool, Option<u64>) {
        let Some(reply) = replies.get(&self.id) else { return (false, None) };
        self.term = reply.term;
        for (_, grant) in &reply.grants {
            let ReplyGrant::Total(total) = grant else { panic!("{grant:?}") };
            self.account.grant(*total);
        }
        for (_, change) in &reply.shares {
            match change {
                ShareChange::Grant(granted) => self.share.grant(*granted),
                ShareChange::GiveBack(returned) => self.share.give_back(*returned, now.at),
            }
        }
        if reply.recall > 0 {
            self.account.give_back();
        }
        (!reply.empty.is_empty(), (reply.recall > 0).then_some(reply.recall))
    }
}

/// A leader with a record that is written when it should be.
struct Leader {
    allocator: Allocator,
    stored: BankRecord,
}

impl Leader {
    fn new(stored: BankRecord, limit: u128, now: Clock) -> Self {
        let mut allocator = Allocator::new(stored, vec![budget(limit)], now);
        allocator.set_tenants(vec![budget(limit)], [(requests(), 100)].into(), now);
        let stored = allocator.first_record();
        allocator.written(stored.clone(), now);
        Self { allocator, stored }
    }

    fn write(&mut self, now: Clock) -> Replies {
        let Some(record) = self.allocator.due_record() else { return Replies::new() };
        self.stored = record.clone();
        self.allocator.written(record, now)
    }

    /// A gateway says hello, and is on the record.
    fn meets(&mut self, gateway: &mut Gateway, now: Clock) {
        for _ in 0..2 {
            let report = gateway.report(None, now);
            let replies = self.allocator.report(report, now);
            gateway.take(&replies, now);
        }
        let replies = self.write(now);
        gateway.take(&replies, now);
    }

    fn ask_for(&mut self, gateway: &mut Gateway, lacking: u128, now: Clock) -> Replies {
        let report = gateway.report(Some(lacking), now);
        self.allocator.report(report, now)
    }

    fn spent(&self) -> u128 {
        self.allocator.status()[&budget(0).key].spent.get()
    }
}

fn empties(replies: &Replies) -> Vec<(u64, u128)> {
    let all = replies.values().flat_map(|reply: &QuotaReply| &reply.empty);
    all.map(|empty| (empty.number, empty.spent.get())).collect()
}

#[test]
fn a_gateway_learns_the_term_then_gets_what_it_asks_for_and_never_more_than_there_is() {
    let mut leader = Leader::new(BankRecord::default(), 1_000, at(0));
    let mut a = Gateway::new("a/pod-1");
    let first = leader.ask_for(&mut a, 10, at(1));
    assert!(first[&a.id].is_empty(), "nothing before everything was reported in this term");
    a.take(&first, at(1));
    assert_eq!(a.term, 1);
    let replies = leader.ask_for(&mut a, 10, at(2));
    assert!(replies.is_empty() && leader.allocator.is_short(), "it is not on the record");
    let replies = leader.write(at(3));
    a.take(&replies, at(3));
    assert_eq!(a.account.counts().granted, tokens(10));
    let replies = leader.ask_for(&mut a, 985, at(4));
    assert!(replies.is_empty(), "beyond the mark");
    let replies = leader.write(at(5));
    a.take(&replies, at(5));
    assert_eq!(a.account.counts().granted, tokens(995));
    let replies = leader.ask_for(&mut a, 6, at(6));
    assert_eq!(empties(&replies), [(4, 0)]);
    let empty = &replies[&a.id].empty[0];
    assert_eq!((empty.limit, empty.budget.name.as_ref()), (tokens(1_000), "month"));
    assert!(empty.resets_at.is_some_and(|at| at.as_millis() > 1_794_000_000_000));
}

#[test]
fn before_a_refusal_what_others_do_not_use_is_asked_back_once_and_only_their_answer_counts() {
    let mut leader = Leader::new(BankRecord::default(), 1_000, at(0));
    let (mut a, mut b) = (Gateway::new("a/pod-1"), Gateway::new("b/pod-1"));
    leader.meets(&mut a, at(0));
    leader.meets(&mut b, at(0));
    leader.ask_for(&mut a, 900, at(1));
    let replies = leader.write(at(1));
    a.take(&replies, at(1));
    a.account.reserve(tokens(300)).unwrap();
    let replies = leader.ask_for(&mut b, 500, at(10));
    assert!(empties(&replies).is_empty());
    assert_eq!(replies[&a.id].recalls, [lease("ml/org/team")]);
    assert!(leader.ask_for(&mut b, 500, at(20)).is_empty(), "it is asked for already");
    let again = leader.allocator.tick(at(600));
    assert_eq!(again[&a.id].recalls, [lease("ml/org/team")], "it may have been lost");
    let (_, recall) = a.take(&replies, at(20));
    // What it reports without having heard of the recall says nothing.
    let before = a.report(None, at(21));
    assert!(!leader.allocator.report(before, at(21)).contains_key(&b.id));
    let report = QuotaReport { recalled: recall, ..a.report(None, at(22)) };
    let replies = leader.allocator.report(report, at(22));
    b.take(&replies, at(22));
    assert_eq!(b.account.counts().granted, tokens(500));
    assert_eq!(a.account.counts().idle(), Amount::ZERO);
    // All is held by now: 300 paid ahead at one, 500 idle at the other, who is not asked by itself.
    let replies = leader.ask_for(&mut b, 300, at(30));
    let (_, recall) = a.take(&replies, at(30));
    let report = QuotaReport { recalled: recall, ..a.report(None, at(31)) };
    assert_eq!(empties(&leader.allocator.report(report, at(31))).len(), 1);
}

#[test]
fn a_successor_grants_nothing_that_may_be_with_a_gateway_that_has_not_reported() {
    let mut leader = Leader::new(BankRecord::default(), 1_000, at(0));
    let (mut a, mut b) = (Gateway::new("a/pod-1"), Gateway::new("b/pod-1"));
    leader.meets(&mut a, at(0));
    leader.meets(&mut b, at(0));
    leader.ask_for(&mut a, 900, at(1));
    let replies = leader.write(at(1));
    a.take(&replies, at(1));
    a.account.reserve(tokens(900)).unwrap();
    a.account.settle(tokens(900), tokens(900));
    let mut next = Leader::new(leader.stored, 1_000, at(0));
    assert_eq!(next.allocator.term(), 2);
    next.meets(&mut b, at(1));
    let replies = next.ask_for(&mut b, 200, at(2));
    assert!(replies.is_empty(), "nobody can tell: {replies:?}");
    next.meets(&mut a, at(3));
    assert_eq!(next.spent(), 900);
    assert_eq!(empties(&next.ask_for(&mut b, 200, at(4))), [(b.asks, 900)]);
    let replies = next.ask_for(&mut b, 50, at(5));
    b.take(&replies, at(5));
    b.take(&next.write(at(6)), at(6));
    assert_eq!(b.account.counts().granted, tokens(50));
}

#[test]
fn a_gateway_is_gone_with_its_pod_and_not_with_its_connection() {
    let mut leader = Leader::new(BankRecord::default(), 1_000, at(0));
    let (mut pod, mut host) = (Gateway::new("a/pod-1"), Gateway::new("h/host-1"));
    leader.meets(&mut pod, at(0));
    leader.meets(&mut host, at(0));
    for gateway in [&mut pod, &mut host] {
        leader.ask_for(gateway, 100, at(1));
        let replies = leader.write(at(1));
        gateway.take(&replies, at(1));
        assert_eq!(gateway.account.counts().granted, tokens(100));
    }
    assert!(leader.allocator.silent_pods(at(14_000)).is_empty());
    let absent = ["a".to_owned(), "h".to_owned()].into();
    assert_eq!(leader.allocator.silent_pods(at(16_000)), ["a".to_owned()].into());
    leader.allocator.give_up(&[].into(), at(16_000));
    assert_eq!(leader.spent(), 0, "its pod is there");
    leader.allocator.give_up(&absent, at(16_000));
    assert_eq!(leader.spent(), 100, "what it held counts as spent");
    leader.allocator.give_up(&absent, at(599_000));
    assert_eq!(leader.spent(), 100);
    leader.allocator.give_up(&absent, at(601_000));
    assert_eq!(leader.spent(), 200, "one that is no pod was silent for ten minutes");
    // What never reported to this leader is given up when all others have reported, or a minute has passed.
    let written = leader.write(at(601_000));
    assert!(written.is_empty());
}

#[test]
fn another_process_of_a_gateway_takes_its_place_and_what_it_had_counts_as_spent() {
    let mut leader = Leader::new(BankRecord::default(), 1_000, at(0));
    let mut first = Gateway::new("a/pod-1");
    leader.meets(&mut first, at(0));
    leader.ask_for(&mut first, 100, at(1));
    let replies = leader.write(at(1));
    first.take(&replies, at(1));
    let mut second = Gateway::new("a/pod-2");
    leader.meets(&mut second, at(2));
    assert_eq!(leader.spent(), 100);
    assert_eq!(leader.stored.gateways, [second.id.clone()].into());
}

#[test]
fn permits_are_given_only_to_gateways_on_the_record_and_never_more_than_the_limit() {
    let mut leader = Leader::new(BankRecord::default(), 1_000, at(0));
    let mut gateways = ["a/pod-1", "b/pod-1", "c/host-1"].map(Gateway::new);
    for gateway in &mut gateways {
        for _ in 0..2 {
            let replies = leader.allocator.report(gateway.report(None, at(0)), at(0));
            gateway.take(&replies, at(0));
        }
    }
    for step in 1..=4 {
        let replies = leader.allocator.tick(at(step * 250));
        assert!(replies.values().all(|reply| reply.shares.is_empty()), "not on the record");
    }
    leader.write(at(1_100));
    for step in 5..=40 {
        let now = at(step * 250);
        let replies = leader.allocator.tick(now);
        for gateway in &mut gateways {
            gateway.take(&replies, now);
            let replies = leader.allocator.report(gateway.report(None, now), now);
            gateway.take(&replies, now);
        }
        let permits =
            gateways.iter_mut().map(|one| one.share.counts(now.at).permits()).collect::<Vec<_>>();
        assert!(permits.iter().sum::<u64>() <= 100, "{permits:?}");
    }
    let permits = gateways.iter_mut().map(|one| one.share.counts(at(10_000).at).permits());
    assert_eq!(permits.collect::<Vec<_>>(), [33, 33, 33]);
    // All requests come to one of them: they wait until the others have given theirs back.
    for step in 0..40 {
        let now = at(10_000 + step * 25);
        gateways[0].share.wait_for(90);
        for gateway in &mut gateways {
            let replies = leader.allocator.report(gateway.report(None, now), now);
            gateway.take(&replies, now);
        }
        let replies = leader.allocator.tick(now);
        gateways.iter_mut().for_each(|one| {
            one.take(&replies, now);
        });
    }
    assert!(gateways[0].share.counts(at(11_000).at).permits() >= 90);
}

#[test]
fn a_budget_goes_on_if_its_tenant_comes_back() {
    let mut leader = Leader::new(BankRecord::default(), 1_000, at(0));
    let mut a = Gateway::new("a/pod-1");
    leader.meets(&mut a, at(0));
    leader.ask_for(&mut a, 900, at(1));
    let replies = leader.write(at(1));
    a.take(&replies, at(1));
    leader.allocator.set_tenants(Vec::new(), BTreeMap::new(), at(2));
    let replies = leader.ask_for(&mut a, 10, at(3));
    assert_eq!(replies[&a.id].grants, [(lease("ml/org/team"), ReplyGrant::Unlimited)]);
    leader.write(at(4));
    leader.allocator.set_tenants(vec![budget(1_000)], BTreeMap::new(), at(5));
    a.account.reserve(tokens(900)).unwrap();
    a.account.settle(tokens(900), tokens(900));
    let replies = leader.ask_for(&mut a, 101, at(6));
    assert_eq!(empties(&replies), [(a.asks, 900)]);
}

#[test]
fn a_record_that_would_say_the_same_is_not_written() {
    let mut leader = Leader::new(BankRecord::default(), 1_000_000, at(0));
    let mut a = Gateway::new("a/pod-1");
    leader.meets(&mut a, at(0));
    let mut writes = 0;
    for step in 0..1_000 {
        let replies = leader.ask_for(&mut a, 100, at(step));
        a.take(&replies, at(step));
        if leader.allocator.due_record().is_some() {
            writes += 1;
            let replies = leader.write(at(step));
            a.take(&replies, at(step));
        }
    }
    assert_eq!(a.account.counts().granted, tokens(100_000));
    // A mark lasts for a 128th of the budget at least.
    assert!((1..=13).contains(&writes), "{writes}");
}

#[test]
fn gateways_are_told_what_all_have_spent_if_it_is_more_than_they_know() {
    let mut leader = Leader::new(BankRecord::default(), 1_000, at(0));
    let (mut a, mut b) = (Gateway::new("a/pod-1"), Gateway::new("b/pod-1"));
    for gateway in [&mut a, &mut b] {
        leader.meets(gateway, at(0));
        let replies = leader.ask_for(gateway, 300, at(1));
        gateway.take(&replies, at(1));
    }
    let replies = leader.write(at(1));
    a.take(&replies, at(1));
    a.account.settle(tokens(0), tokens(120));
    leader.meets(&mut a, at(2));
    let spendings = |leader: &mut Leader, from: u64| -> Vec<(GatewayId, u128)> {
        let ticks = (0..40).flat_map(|tick| leader.allocator.tick(at(from + 250 * tick)));
        let spent = ticks.flat_map(|(id, reply)| {
            reply.spent.into_iter().map(move |one| (id.clone(), one.spent.get()))
        });
        spent.collect()
    };
    let first = spendings(&mut leader, 10);
    assert_eq!(first, [(a.id.clone(), 120), (b.id.clone(), 120)]);
    assert_eq!(spendings(&mut leader, 20_000), [], "they know");
}

#[test]
fn a_grant_can_be_used_also_where_more_was_spent_than_was_granted() {
    let mut leader = Leader::new(BankRecord::default(), 1_000, at(0));
    let mut gateway = Gateway::new("a/pod-1");
    leader.meets(&mut gateway, at(0));
    // The budget only counted so far, or let streams finish.
    gateway.account.settle(tokens(0), tokens(600));
    leader.meets(&mut gateway, at(1));
    let replies = leader.ask_for(&mut gateway, 100, at(2));
    gateway.take(&replies, at(2));
    let replies = leader.write(at(3));
    gateway.take(&replies, at(3));
    assert_eq!(gateway.account.counts().idle(), tokens(100));
    assert_eq!(leader.spent(), 600);
    let replies = leader.ask_for(&mut gateway, 301, at(4));
    assert_eq!(gateway.take(&replies, at(4)), (true, None), "700 of 1000 are spent or granted");
}
