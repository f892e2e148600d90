//! Who gets how much of which budget and limit, step by step. Pure: time, messages and pods are arguments.

use flyball_core::units::{Micros, Timestamp};
use flyball_quota::{
    Amount, Answer, Ask, Bank, BankRecord, BudgetKey, BudgetRecord, BudgetSpec, BudgetStatus,
    GatewayId, LeaseKey, PeriodId, RateKey, RateOrder, RateSplit, ShareCounts,
};
use flyball_resources::stream::{
    BudgetSpending, EmptyLease, LeaseRequest, QuotaReply, QuotaReport, ReplyGrant, ShareChange,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Both clocks: a period is one of the calendar, and everything else goes by the one that never goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) wall: Timestamp,
    pub(crate) at: Micros,
}

/// What each gateway is to be told.
pub(crate) type Replies = BTreeMap<GatewayId, QuotaReply>;

/// A gateway that is a pod and says nothing for so long is gone if its pod does not exist.
const SILENT: Micros = Micros::from_seconds(15);

/// A gateway that is no pod is gone when it says nothing for so long.
const HOST_GONE: Micros = Micros::from_minutes(10);

/// A leader's time for hearing from all gateways before it gives up those of which it is sure that they are gone.
const ALL_REPORTED: Micros = Micros::from_minutes(1);

/// An ask that was not repeated for so long is over.
const ASK: Micros = Micros::from_seconds(2);

/// Gateways that do not answer a recall are asked again.
const RECALL_AGAIN: Micros = Micros::from_millis(500);

/// What is written ahead of what is held of a budget, so that a request seldom waits for a write: this part of it. It is
/// what is in doubt if a leader and a gateway die together.
const AHEAD: u64 = 64;

/// A write goes at most so many times further ahead, an eighth of the budget. Without a bound it went as far as the budget
/// itself where that lasted for two minutes, and a gateway and a leader that died together took half of it with them.
const MOST_BOOST: u64 = 8;

/// Between two times that gateways are told what is spent of budgets, for those who ask: ten seconds. It is much to look at in a
/// large cluster.
const SPENT_TICKS: u64 = 40;

/// Budgets of Tenants that are not there at the moment, which go on if they come back.
const RETIRED: usize = 1_000;

/// Recalls of one gateway that it may still answer.
const RECALLS: usize = 64;

/// Gives out budgets and limits while this operator leads.
#[derive(Debug)]
pub(crate) struct Allocator {
    bank: Bank,
    split: RateSplit,
    /// As it was written last.
    record: BankRecord,
    /// What budgets came to whose Tenants are not there at the moment.
    retired: BTreeMap<BudgetKey, BudgetRecord>,
    budgets: BTreeMap<BudgetKey, BudgetSpec>,
    limits: BTreeSet<RateKey>,
    contacts: BTreeMap<GatewayId, Contact>,
    /// Those of the record that have not reported.
    missing: BTreeSet<GatewayId>,
    asks: BTreeMap<(GatewayId, LeaseKey), Pending>,
    /// Counts asks and recalls, so that it is certain which came first.
    sequence: u64,
    began: Micros,
    ticks: u64,
    /// Limits of which something was reported since the last look.
    touched: BTreeSet<RateKey>,
    /// Whether somebody waits for a write.
    short: bool,
    /// A write goes so many times further ahead: twice as far each time that somebody had to wait for it.
    boost: u64,
}

/// A gateway that talks.
#[derive(Debug, Default)]
struct Contact {
    last: Micros,
    complete: bool,
    /// Its shares, until it stands on the record.
    shares: BTreeMap<RateKey, ShareCounts>,
    /// Permits that it has given back so far, as it reported last.
    returned: BTreeMap<RateKey, u64>,
    /// Numbers of recalls that it has not answered.
    recalls: VecDeque<u64>,
    /// What it was last told that is spent of budgets above its leases.
    spent: BTreeMap<BudgetKey, (Amount, PeriodId)>,
}

/// An ask that is not answered.
#[derive(Clone, Debug)]
struct Pending {
    lacking: Amount,
    pace: Amount,
    number: u64,
    /// When gateways were first asked to give back what it lacks: its place in the sequence, and the time.
    recalled: Option<(u64, Micros)>,
    last: Micros,
}

impl Allocator {
    /// A leader's, which goes on from what the one before it wrote.
    pub(crate) fn new(record: BankRecord, budgets: Vec<BudgetSpec>, now: Clock) -> Self {
        let term = record.term.saturating_add(1);
        let budgets_of = keyed(budgets.clone());
        let retired = record.budgets.iter().filter(|(key, _)| !budgets_of.contains_key(*key));
        let retired = retired.take(RETIRED).map(|(key, state)| (key.clone(), *state)).collect();
        Self {
            bank: Bank::new(term, budgets, &record, now.wall),
            retired,
            split: RateSplit::new(record.gateways.iter().cloned(), now.at),
            missing: record.gateways.clone(),
            budgets: budgets_of,
            limits: BTreeSet::new(),
            contacts: BTreeMap::new(),
            asks: BTreeMap::new(),
            sequence: 0,
            began: now.at,
            ticks: 0,
            touched: BTreeSet::new(),
            short: false,
            boost: 1,
            record,
        }
    }

    pub(crate) const fn term(&self) -> u64 {
        self.bank.term()
    }

    /// Takes in what Tenants say.
    pub(crate) fn set_tenants(
        &mut self,
        budgets: Vec<BudgetSpec>,
        limits: BTreeMap<RateKey, u64>,
        now: Clock,
    ) {
        let known = self.ahead();
        self.bank.set_budgets(budgets.clone(), &known, now.wall);
        self.budgets = keyed(budgets);
        let gone = |(key, _): &(BudgetKey, BudgetRecord)| !self.budgets.contains_key(key);
        self.retired = known.budgets.into_iter().filter(gone).take(RETIRED).collect();
        self.limits = limits.keys().cloned().collect();
        self.split.set_limits(limits);
    }

    /// A gateway says how things stand.
    pub(crate) fn report(&mut self, report: QuotaReport, now: Clock) -> Replies {
        let mut replies = Replies::new();
        let id = report.gateway;
        let is_ours = report.term == self.term();
        let contact = self.contacts.entry(id.clone()).or_default();
        contact.last = now.at;
        let was_complete = contact.complete;
        contact.complete |= report.complete && is_ours;
        if !is_ours {
            // It learns the term by this, and reports everything in it.
            replies.insert(id, self.reply());
            return replies;
        }
        contact.shares.extend(report.shares.iter().cloned());
        let moving = contact.moving(&report.shares);
        let is_complete = contact.complete;
        if is_complete {
            self.bank.report(&id, &report.leases);
            self.missing.remove(&id);
            if !was_complete {
                self.replace(&id, now);
            }
        } else {
            self.bank.merge(&id, &report.leases);
        }
        let gave_back = report.recalled.is_some_and(|number| self.recalled(&id, number));
        if !is_complete {
            return replies;
        }
        self.take_shares(&id, report.shares.iter().map(|(key, _)| key), now);
        report.asks.into_iter().for_each(|ask| self.note(&id, ask, now));
        // Others wait for what it gave back.
        self.answer(Some(&id).filter(|_| !gave_back), now, &mut replies);
        moving.iter().for_each(|key| self.divide(key, now, &mut replies));
        replies
    }

    /// Lets time pass.
    pub(crate) fn tick(&mut self, now: Clock) -> Replies {
        let mut replies = Replies::new();
        self.bank.turn(now.wall);
        self.asks.retain(|_, ask| now.at.saturating_sub(ask.last) < ASK);
        self.answer(None, now, &mut replies);
        self.ticks += 1;
        let touched = std::mem::take(&mut self.touched);
        if self.ticks.is_multiple_of(SPENT_TICKS) {
            self.report_spent(&mut replies);
        }
        let keys = if self.ticks.is_multiple_of(4) { self.limits.clone() } else { touched };
        keys.iter().for_each(|key| self.divide(key, now, &mut replies));
        replies
    }

    /// Names of silent gateways that are gone if no pod has their name.
    pub(crate) fn silent_pods(&self, now: Clock) -> BTreeSet<String> {
        let silent = self.ids().into_iter().filter(|id| self.silence(id, now) >= SILENT);
        let named = silent.filter_map(|id| {
            let (name, is_pod) = QuotaReport::name_of(&id);
            is_pod.then(|| name.to_owned())
        });
        named.collect()
    }

    /// Gives up gateways that are gone: those without a pod, and others after a while. `absent` are names of silent ones
    /// that no pod has.
    pub(crate) fn give_up(&mut self, absent: &BTreeSet<String>, now: Clock) {
        let is_gone = |id: &GatewayId| {
            let (name, is_pod) = QuotaReport::name_of(id);
            let silence = self.silence(id, now);
            if is_pod { silence >= SILENT && absent.contains(name) } else { silence >= HOST_GONE }
        };
        let gone: BTreeSet<GatewayId> = self.ids().into_iter().filter(is_gone).collect();
        // What one had that never reported is not known before all others have: it would be counted twice.
        let is_late = now.at.saturating_sub(self.began) >= ALL_REPORTED;
        let all_reported = is_late || self.missing.is_subset(&gone);
        let gone = gone.into_iter().filter(|id| all_reported || !self.missing.contains(id));
        gone.collect::<Vec<_>>().iter().for_each(|id| self.gone(id, now));
    }

    /// What is to be written before anything is given out.
    pub(crate) fn first_record(&mut self) -> BankRecord {
        self.ahead()
    }

    /// What is to be written now, if anything is.
    pub(crate) fn due_record(&mut self) -> Option<BankRecord> {
        let pending: Vec<_> =
            self.asks.iter().map(|(key, ask)| (key.clone(), ask.clone())).collect();
        // Who has to wait for a write spends faster than it goes ahead.
        let boost = if self.short { self.boost * 2 } else { self.boost / 2 };
        for ((gateway, lease), ask) in pending.iter().filter(|_| self.short) {
            self.bank.mark(&ask.of(gateway, lease, 0));
        }
        let before = std::mem::replace(&mut self.boost, boost.clamp(1, MOST_BOOST));
        let record = self.ahead();
        if record == self.record {
            self.boost = before;
            return None;
        }
        Some(record)
    }

    /// The record was written: those who waited for it are answered.
    pub(crate) fn written(&mut self, record: BankRecord, now: Clock) -> Replies {
        self.bank.written(&record);
        self.record = record;
        self.short = false;
        let ids: Vec<GatewayId> = self.contacts.keys().cloned().collect();
        for id in ids {
            self.take_shares(&id, std::iter::empty(), now);
        }
        let mut replies = Replies::new();
        self.answer(None, now, &mut replies);
        replies
    }

    /// Whether somebody waits for a write.
    pub(crate) const fn is_short(&self) -> bool {
        self.short
    }

    /// How each budget stands.
    pub(crate) fn status(&self) -> BTreeMap<BudgetKey, BudgetStatus> {
        self.bank.status()
    }

    /// An answer that says nothing but who leads.
    pub(crate) fn reply(&self) -> QuotaReply {
        QuotaReply { term: self.term(), ..QuotaReply::default() }
    }

    fn ahead(&mut self) -> BankRecord {
        let complete = self.contacts.iter().filter(|(_, contact)| contact.complete);
        let complete: Vec<GatewayId> = complete.map(|(id, _)| id.clone()).collect();
        let boost = self.boost;
        let mut record =
            self.bank.record_ahead(complete.iter(), |spec| spec.limit.over(AHEAD).times(boost));
        record.budgets.extend(self.retired.iter().map(|(key, state)| (key.clone(), *state)));
        record
    }

    /// Whether it answers a recall by this.
    fn recalled(&mut self, id: &GatewayId, number: u64) -> bool {
        let Some(contact) = self.contacts.get_mut(id) else { return false };
        let answered = contact.recalls.iter().filter(|sent| **sent <= number).count();
        let Some(number) = contact.recalls.drain(..answered).next_back() else { return false };
        self.bank.recalled(id, Timestamp::from_micros(number));
        true
    }

    /// Another process of a gateway has the place of this one.
    fn replace(&mut self, id: &GatewayId, now: Clock) {
        let name = QuotaReport::name_of(id).0;
        let before = |other: &GatewayId| other != id && QuotaReport::name_of(other).0 == name;
        let before: Vec<GatewayId> = self.ids().into_iter().filter(before).collect();
        before.iter().for_each(|other| self.gone(other, now));
    }

    fn gone(&mut self, id: &GatewayId, now: Clock) {
        self.bank.gone(id);
        self.split.gone(id, now.at);
        self.missing.remove(id);
        self.contacts.remove(id);
        self.asks.retain(|(gateway, _), _| gateway != id);
    }

    /// Every gateway that may hold something. Those whose pods are gone have nothing but used permits.
    fn ids(&self) -> BTreeSet<GatewayId> {
        self.bank.gateways().chain(self.contacts.keys()).cloned().collect()
    }

    fn silence(&self, id: &GatewayId, now: Clock) -> Micros {
        let last = self.contacts.get(id).map_or(self.began, |contact| contact.last);
        now.at.saturating_sub(last)
    }

    /// A gateway gets its first permits once it stands on the record.
    fn take_shares<'a>(
        &mut self,
        id: &GatewayId,
        changed: impl Iterator<Item = &'a RateKey>,
        now: Clock,
    ) {
        let Some(contact) = self.contacts.get_mut(id) else { return };
        if !contact.complete || !self.bank.is_on_record(id) {
            return;
        }
        let shares: Vec<_> = std::mem::take(&mut contact.shares).into_iter().collect();
        self.touched.extend(changed.cloned());
        let is_silent = now.at.saturating_sub(contact.last) >= SILENT;
        if !is_silent {
            self.split.report(id, &shares, now.at);
        }
    }

    fn note(&mut self, id: &GatewayId, request: LeaseRequest, now: Clock) {
        let LeaseRequest { lease, lacking, pace, number } = request;
        let pending = Pending { lacking, pace, number, recalled: None, last: now.at };
        let ask = self.asks.entry((id.clone(), lease)).or_insert_with(|| pending.clone());
        // What was given back for less may not be enough for more.
        let recalled = ask.recalled.filter(|_| lacking <= ask.lacking);
        *ask = Pending { recalled, ..pending };
    }

    /// Answers the asks of one gateway, or of all.
    fn answer(&mut self, of: Option<&GatewayId>, now: Clock, replies: &mut Replies) {
        let asks = self.asks.iter().filter(|((id, _), _)| of.is_none_or(|one| one == id));
        let asks: Vec<_> = asks.map(|(key, ask)| (key.clone(), ask.clone())).collect();
        let mut recalls: BTreeMap<GatewayId, BTreeSet<LeaseKey>> = BTreeMap::new();
        for ((id, lease), mut ask) in asks {
            // Until it is waited for what others give back, nobody has been asked for it.
            let sequence = ask.recalled.map_or_else(|| self.next(), |(sequence, _)| sequence);
            let outcome = match self.bank.ask(&ask.of(&id, &lease, sequence)) {
                Answer::Granted(Amount::MAX) => Some(AskOutcome::Grant(ReplyGrant::Unlimited)),
                Answer::Granted(granted) => Some(AskOutcome::Grant(ReplyGrant::Total(granted))),
                Answer::Empty(key) => self.empty(&lease, &key, ask.number).map(AskOutcome::Empty),
                Answer::Recall(from) => {
                    let is_due = |(_, at)| now.at.saturating_sub(at) >= RECALL_AGAIN;
                    if ask.recalled.is_none_or(is_due) {
                        ask.recalled = Some((sequence, now.at));
                        self.asks.insert((id.clone(), lease.clone()), ask);
                        from.into_iter().for_each(|(holder, lease)| {
                            recalls.entry(holder).or_default().insert(lease);
                        });
                    }
                    None
                }
                Answer::Write => {
                    self.short = true;
                    None
                }
                Answer::Doubt => None,
            };
            let Some(outcome) = outcome else { continue };
            let reply = replies.entry(id.clone()).or_insert_with(|| self.reply());
            match outcome {
                AskOutcome::Grant(grant) => reply.grants.push((lease.clone(), grant)),
                AskOutcome::Empty(empty) => reply.empty.push(empty),
            }
            self.asks.remove(&(id, lease));
        }
        recalls.into_iter().for_each(|(holder, leases)| self.recall(&holder, leases, replies));
    }

    fn report_spent(&mut self, replies: &mut Replies) {
        let reply = self.reply();
        for (id, contact) in self.contacts.iter_mut().filter(|(_, contact)| contact.complete) {
            let spent = self.bank.spent_above(id);
            let is_new = |(key, spent): &(&BudgetKey, &(Amount, PeriodId))| {
                contact.spent.get(*key) != Some(*spent)
            };
            let news = spent.iter().filter(is_new).filter_map(|(key, (spent, period))| {
                let resets_at = self.budgets.get(key)?.period.end(*period);
                Some(BudgetSpending { budget: key.clone(), spent: *spent, resets_at })
            });
            let news: Vec<_> = news.collect();
            if !news.is_empty() {
                replies.entry(id.clone()).or_insert_with(|| reply.clone()).spent.extend(news);
            }
            contact.spent = spent;
        }
    }

    const fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn empty(&self, lease: &LeaseKey, key: &BudgetKey, number: u64) -> Option<EmptyLease> {
        let (spec, status) = (self.budgets.get(key)?, self.bank.status_of(key)?);
        Some(EmptyLease {
            lease: lease.clone(),
            number,
            budget: key.clone(),
            limit: status.limit,
            spent: status.spent,
            resets_at: spec.period.end(status.period),
        })
    }

    fn recall(&mut self, holder: &GatewayId, leases: BTreeSet<LeaseKey>, replies: &mut Replies) {
        let (reply, number) = (self.reply(), self.next());
        let Some(contact) = self.contacts.get_mut(holder) else { return };
        contact.recalls.push_back(number);
        if contact.recalls.len() > RECALLS {
            contact.recalls.pop_front();
        }
        let reply = replies.entry(holder.clone()).or_insert(reply);
        reply.recall = number;
        reply.recalls.extend(leases);
    }

    fn divide(&mut self, key: &RateKey, now: Clock, replies: &mut Replies) {
        for order in self.split.orders(key, now.at) {
            let (gateway, change) = match order {
                RateOrder::Grant { gateway, granted } => (gateway, ShareChange::Grant(granted)),
                RateOrder::GiveBack { gateway, returned } => {
                    (gateway, ShareChange::GiveBack(returned))
                }
            };
            let reply = replies.entry(gateway).or_insert_with(|| self.reply());
            reply.shares.push((key.clone(), change));
        }
    }
}

impl Contact {
    /// Limits of which requests wait for permits, or of which some were given back: they are divided at once.
    fn moving(&mut self, shares: &[(RateKey, ShareCounts)]) -> Vec<RateKey> {
        let mut moves = |(key, counts): &&(RateKey, ShareCounts)| {
            let before = self.returned.insert(key.clone(), counts.returned);
            counts.waiting > 0 || before.is_some_and(|before| counts.returned > before)
        };
        shares.iter().filter(|share| moves(share)).map(|(key, _)| key.clone()).collect()
    }
}

/// An answer that ends an ask.
enum AskOutcome {
    Grant(ReplyGrant),
    Empty(EmptyLease),
}

impl Pending {
    const fn of<'a>(&self, gateway: &'a GatewayId, lease: &'a LeaseKey, since: u64) -> Ask<'a> {
        let Self { lacking, pace, .. } = *self;
        Ask { gateway, lease, lacking, pace, since: Timestamp::from_micros(since) }
    }
}

fn keyed(budgets: Vec<BudgetSpec>) -> BTreeMap<BudgetKey, BudgetSpec> {
    budgets.into_iter().map(|spec| (spec.key.clone(), spec)).collect()
}
