//! One world: gateways with journals, a leader with a record, a network, and requests.

use flyball_core::units::Timestamp;
use flyball_quota::{
    Amount, Answer, Ask, Bank, BankRecord, BudgetKey, BudgetSpec, BudgetUnit, GatewayId,
    LeaseAccount, LeaseCounts, LeaseKey, Period, Scope,
};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    requests: u64,
    finished: u64,
    cancelled: u64,
    /// Told that the budget is empty, which was true each time.
    refused: u64,
    /// Told to come again.
    put_off: u64,
    grants: u64,
    recalls: u64,
    writes: u64,
    gateways_killed: u64,
    journals_lost: u64,
    leaders_killed: u64,
    lost: u64,
    doubled: u64,
    turns: u64,
}

impl Tally {
    pub(crate) fn counts(&self) -> [(&'static str, u64); 14] {
        [
            ("requests", self.requests),
            ("finished", self.finished),
            ("cancelled", self.cancelled),
            ("refused", self.refused),
            ("put_off", self.put_off),
            ("grants", self.grants),
            ("recalls", self.recalls),
            ("writes", self.writes),
            ("gateways_killed", self.gateways_killed),
            ("journals_lost", self.journals_lost),
            ("leaders_killed", self.leaders_killed),
            ("lost", self.lost),
            ("doubled", self.doubled),
            ("turns", self.turns),
        ]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.finished += other.finished;
        self.cancelled += other.cancelled;
        self.refused += other.refused;
        self.put_off += other.put_off;
        self.grants += other.grants;
        self.recalls += other.recalls;
        self.writes += other.writes;
        self.gateways_killed += other.gateways_killed;
        self.journals_lost += other.journals_lost;
        self.leaders_killed += other.leaders_killed;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.turns += other.turns;
    }
}

/// A request that runs: what it has paid ahead, what of that is sent, and what is still to come.
struct Stream {
    lease: LeaseKey,
    reserved: Amount,
    sent: Amount,
    left: u64,
    /// Since when it waits for more money.
    waits: Option<(u64, Amount)>,
}

struct Gateway {
    id: GatewayId,
    accounts: BTreeMap<LeaseKey, LeaseAccount>,
    streams: Vec<Stream>,
    /// When it is there again.
    down_until: u64,
    cut_until: u64,
    term: u64,
}

enum Message {
    /// To the leader: how leases stand, what is lacking, whether it answers a recall.
    Report {
        from: GatewayId,
        /// Of the leader that it has heard last.
        term: u64,
        leases: Vec<(LeaseKey, LeaseCounts)>,
        asks: Vec<(LeaseKey, Amount, u64)>,
        recalled: bool,
    },
    /// To a gateway.
    Grant {
        to: GatewayId,
        term: u64,
        lease: LeaseKey,
        granted: Amount,
    },
    Recall {
        to: GatewayId,
        term: u64,
        leases: Vec<LeaseKey>,
    },
    /// Says who leads, and nothing else.
    Lead {
        to: GatewayId,
        term: u64,
    },
    Empty {
        to: GatewayId,
        term: u64,
        lease: LeaseKey,
        lacking: Amount,
    },
}

pub(crate) struct World {
    rng: Pcg64Mcg,
    specs: Vec<BudgetSpec>,
    leaves: Vec<LeaseKey>,
    gateways: Vec<Gateway>,
    /// Slices whose journals are lost, with what their gateways had spent.
    lost_journals: Vec<(GatewayId, BTreeMap<LeaseKey, LeaseCounts>)>,
    /// Those of which the leader is to hear.
    gone: Vec<(u64, GatewayId)>,
    leader: Option<Bank>,
    leader_back_at: u64,
    /// One that does not know yet that another leads.
    zombie: Option<(Bank, u64)>,
    term: u64,
    record: BankRecord,
    /// Who may write it.
    writer: u64,
    messages: Vec<(u64, Message)>,
    /// Asks that the leader has heard of, by gateway and lease: since when.
    asks: BTreeMap<(GatewayId, LeaseKey), (Amount, u64)>,
    now: u64,
    jump: i64,
    names: u32,
    pub(crate) tally: Tally,
}

const STEP_MS: u64 = 20;
const LENGTH_MS: u64 = 60_000;
/// One day into 2026, so that a clock may jump back by one.
const BEGIN_MS: u64 = 1_767_312_000_000;
const DAY_MS: i64 = 86_400_000;
const PATIENCE_MS: u64 = 250;
const LAST_PATIENCE_MS: u64 = 1_500;
const CHUNK: u128 = 256;

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let budget = |path: &str, limit: u128, period| BudgetSpec {
            key: BudgetKey { scope: Scope::new(path), name: "b".into() },
            unit: BudgetUnit::Tokens,
            limit: Amount::new(limit),
            period,
            counts_only: false,
        };
        let limit = rng.random_range(5_000..200_000_u128);
        let mut specs = vec![budget("org", limit, Period::Once)];
        for team in ["org/a", "org/b"] {
            if rng.random_bool(0.6) {
                let limit = rng.random_range(2_000..limit);
                let period = if rng.random_bool(0.5) { Period::Once } else { Period::Day };
                specs.push(budget(team, limit, period));
            }
        }
        specs.push(budget("org/a/1", rng.random_range(1_000..limit), Period::Once));
        let leaf = |path: &str| LeaseKey { scope: Scope::new(path), unit: BudgetUnit::Tokens };
        let leaves = ["org/a/1", "org/a/2", "org/b/1", "org/b/2"].map(leaf).to_vec();
        let count = rng.random_range(1..=8_u32);
        let mut world = Self {
            rng,
            specs,
            leaves,
            gateways: Vec::new(),
            lost_journals: Vec::new(),
            gone: Vec::new(),
            leader: None,
            leader_back_at: 0,
            zombie: None,
            term: 0,
            record: BankRecord::default(),
            writer: 0,
            messages: Vec::new(),
            asks: BTreeMap::new(),
            now: 0,
            jump: 0,
            names: 0,
            tally: Tally::default(),
        };
        for _ in 0..count {
            let gateway = world.new_gateway();
            world.gateways.push(gateway);
        }
        world
    }

    fn new_gateway(&mut self) -> Gateway {
        self.names += 1;
        Gateway {
            id: GatewayId::new(&format!("g{}", self.names)),
            accounts: BTreeMap::new(),
            streams: Vec::new(),
            down_until: 0,
            cut_until: 0,
            term: 0,
        }
    }

    /// The leader's clock, which may be wrong.
    fn clock(&self) -> Timestamp {
        let now = BEGIN_MS as i64 + self.now as i64 + self.jump;
        Timestamp::from_millis(now as u64)
    }

    pub(crate) fn play(&mut self) -> Result<(), String> {
        while self.now < LENGTH_MS {
            self.now += STEP_MS;
            self.trouble();
            self.lead();
            self.arrive();
            self.stream();
            self.talk();
            self.deliver()?;
            self.check()?;
        }
        Ok(())
    }

    /// Whatever goes wrong.
    fn trouble(&mut self) {
        for place in 0..self.gateways.len() {
            if self.rng.random_bool(0.001) {
                self.kill(place);
            }
            if self.rng.random_bool(0.001) {
                self.gateways[place].cut_until = self.now + self.rng.random_range(100..20_000);
            }
        }
        if self.rng.random_bool(0.0008) && self.leader.is_some() {
            self.tally.leaders_killed += 1;
            let old = self.leader.take();
            // It may be paused only, and go on for a while as if it led.
            if let Some(old) = old.filter(|_| self.rng.random_bool(0.5)) {
                self.zombie = Some((old, self.now + self.rng.random_range(100..10_000)));
            }
            self.asks.clear();
            self.leader_back_at = self.now + self.rng.random_range(500..15_000);
        }
        if self.rng.random_bool(0.0005) {
            self.jump += self.rng.random_range(-DAY_MS..DAY_MS);
        }
        let now = self.now;
        if self.zombie.as_ref().is_some_and(|(_, until)| *until < now) {
            self.zombie = None;
        }
    }

    /// Kills a gateway; its pod may go with it.
    fn kill(&mut self, place: usize) {
        self.tally.gateways_killed += 1;
        let back = self.now + self.rng.random_range(200..5_000);
        let dies = self.rng.random_bool(0.3);
        let gateway = &mut self.gateways[place];
        gateway.streams.clear();
        if !dies {
            gateway.down_until = back;
            for account in gateway.accounts.values_mut() {
                *account = LeaseAccount::of_journal(account.counts());
            }
            return;
        }
        self.tally.journals_lost += 1;
        let mut next = self.new_gateway();
        next.down_until = back;
        let old = std::mem::replace(&mut self.gateways[place], next);
        let counts = old.accounts.iter().map(|(key, account)| {
            (key.clone(), LeaseAccount::of_journal(account.counts()).counts())
        });
        self.lost_journals.push((old.id.clone(), counts.collect()));
        self.gone.push((self.now + self.rng.random_range(100..8_000), old.id));
    }

    /// Somebody leads, and hears of pods that are gone.
    fn lead(&mut self) {
        if self.leader.is_none() && self.now >= self.leader_back_at {
            self.term += 1;
            self.writer = self.term;
            self.leader =
                Some(Bank::new(self.term, self.specs.clone(), &self.record, self.clock()));
            // It learns of all pods that exist; those that do not are gone.
            let there: Vec<GatewayId> = self.gateways.iter().map(|one| one.id.clone()).collect();
            let listed = self.record.gateways.clone();
            for id in listed.into_iter().filter(|id| !there.contains(id)) {
                self.gone.push((self.now, id));
            }
        }
        let clock = self.clock();
        let Some(leader) = &mut self.leader else { return };
        let before: Vec<_> = leader.status().into_values().map(|one| one.period).collect();
        leader.turn(clock);
        let after: Vec<_> = leader.status().into_values().map(|one| one.period).collect();
        self.tally.turns += u64::from(before != after);
        let now = self.now;
        let due: Vec<GatewayId> =
            self.gone.iter().filter(|(at, _)| *at <= now).map(|(_, id)| id.clone()).collect();
        self.gone.retain(|(at, _)| *at > now);
        due.iter().for_each(|id| leader.gone(id));
    }

    fn arrive(&mut self) {
        for place in 0..self.gateways.len() {
            if self.gateways[place].down_until > self.now || !self.rng.random_bool(0.05) {
                continue;
            }
            self.tally.requests += 1;
            let lease = self.leaves[self.rng.random_range(0..self.leaves.len())].clone();
            let prompt = Amount::new(self.rng.random_range(1..1_000_u128));
            let first = prompt + Amount::new(CHUNK);
            let left = self.rng.random_range(1..2_000_u64);
            let stream = Stream {
                lease,
                reserved: Amount::ZERO,
                sent: prompt,
                left,
                waits: Some((self.now, first)),
            };
            self.gateways[place].streams.push(stream);
        }
    }

    /// Streams go on as far as they are paid.
    fn stream(&mut self) {
        let now = self.now;
        for gateway in self.gateways.iter_mut().filter(|gateway| gateway.down_until <= now) {
            let mut streams = std::mem::take(&mut gateway.streams);
            streams.retain_mut(|stream| {
                let account = gateway.accounts.entry(stream.lease.clone()).or_default();
                if let Some((since, amount)) = stream.waits {
                    if account.reserve(amount).is_ok() {
                        stream.reserved += amount;
                        stream.waits = None;
                    } else if now > since + LAST_PATIENCE_MS {
                        self.tally.put_off += 1;
                        account.settle(stream.reserved, stream.settled());
                        return false;
                    }
                    return true;
                }
                if self.rng.random_bool(0.01) {
                    self.tally.cancelled += 1;
                    account.settle(stream.reserved, stream.sent);
                    return false;
                }
                let paid = stream.reserved.less(stream.sent).get() as u64;
                let some = self.rng.random_range(1..80_u64).min(stream.left).min(paid);
                stream.sent += Amount::new(u128::from(some));
                stream.left -= some;
                if stream.left == 0 {
                    self.tally.finished += 1;
                    account.settle(stream.reserved, stream.sent);
                    return false;
                }
                if stream.reserved == stream.sent {
                    stream.waits = Some((now, Amount::new(CHUNK)));
                }
                true
            });
            gateway.streams = streams;
        }
    }

    /// Gateways report four times a second, and ask at once.
    fn talk(&mut self) {
        let now = self.now;
        let mut out = Vec::new();
        for gateway in self.gateways.iter().filter(|gateway| gateway.down_until <= now) {
            let mut asks: BTreeMap<&LeaseKey, (Amount, u64)> = BTreeMap::new();
            for stream in &gateway.streams {
                let Some((since, amount)) = stream.waits else { continue };
                let ask = asks.entry(&stream.lease).or_insert((Amount::ZERO, since));
                // One after the other: what is lacking for the first of them.
                if ask.0.is_zero() {
                    let idle = gateway
                        .accounts
                        .get(&stream.lease)
                        .map_or(Amount::ZERO, |one| one.counts().idle());
                    ask.0 = amount.less(idle);
                }
            }
            if asks.is_empty() && !now.is_multiple_of(240) {
                continue;
            }
            out.push(
                gateway.report(
                    asks.into_iter()
                        .map(|(key, (lacking, since))| (key.clone(), lacking, since))
                        .collect(),
                    false,
                ),
            );
        }
        out.into_iter().for_each(|message| self.post(message));
    }

    fn post(&mut self, message: Message) {
        let at = self.now + self.rng.random_range(1..40);
        if self.rng.random_bool(0.01) {
            self.tally.lost += 1;
            return;
        }
        if self.rng.random_bool(0.01) {
            self.tally.doubled += 1;
            let later = self.now + self.rng.random_range(1..4_000);
            self.messages.push((later, message.again()));
        }
        self.messages.push((at, message));
    }

    fn deliver(&mut self) -> Result<(), String> {
        let now = self.now;
        let (due, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.messages).into_iter().partition(|(at, _)| *at <= now);
        self.messages = rest;
        for (_, message) in due {
            match message {
                Message::Report { from, term, leases, asks, recalled } => {
                    // A pod that is gone says nothing any more, and one that is cut off is not heard.
                    let Some(gateway) = self.gateways.iter().find(|one| one.id == from) else {
                        continue;
                    };
                    if gateway.cut_until <= now {
                        self.reported((&from, term), &leases, asks, recalled)?;
                    }
                }
                other => self.received(other),
            }
        }
        Ok(())
    }

    /// The leader, and one that thinks it is.
    fn reported(
        &mut self,
        (from, term): (&GatewayId, u64),
        leases: &[(LeaseKey, LeaseCounts)],
        asks: Vec<(LeaseKey, Amount, u64)>,
        recalled: bool,
    ) -> Result<(), String> {
        let to_zombie =
            self.zombie.is_some() && (self.leader.is_none() || self.rng.random_bool(0.3));
        let (mut bank, is_zombie) = match (to_zombie, self.zombie.take(), self.leader.take()) {
            (true, Some((bank, until)), leader) => {
                self.leader = leader;
                (bank, Some(until))
            }
            (_, zombie, Some(bank)) => {
                self.zombie = zombie;
                (bank, None)
            }
            (_, zombie, None) => {
                self.zombie = zombie;
                return Ok(());
            }
        };
        if term == bank.term() {
            bank.report(from, leases);
        } else {
            // A grant of an earlier leader may still reach it: it has to hear of this one before all of it is known.
            bank.merge(from, leases);
            let lead = Message::Lead { to: from.clone(), term: bank.term() };
            self.messages.push((self.now + STEP_MS, lead));
        }
        if recalled {
            bank.recalled(from, Timestamp::from_millis(self.now));
        }
        let mut result = Ok(());
        for (lease, lacking, since) in asks {
            let answered = self.answer(&mut bank, from, &lease, lacking, since);
            result = result.and(answered);
        }
        match is_zombie {
            Some(until) => self.zombie = Some((bank, until)),
            None => self.leader = Some(bank),
        }
        result
    }

    fn answer(
        &mut self,
        bank: &mut Bank,
        from: &GatewayId,
        lease: &LeaseKey,
        lacking: Amount,
        since: u64,
    ) -> Result<(), String> {
        // As they spend here: five requests in two seconds of some 1,500 tokens on four leases.
        let pace = Amount::new(self.rng.random_range(0..2_000));
        let ask = Ask { gateway: from, lease, lacking, pace, since: Timestamp::from_millis(since) };
        let term = bank.term();
        loop {
            match bank.ask(&ask) {
                Answer::Granted(granted) => {
                    self.tally.grants += 1;
                    self.post(Message::Grant {
                        to: from.clone(),
                        term,
                        lease: lease.clone(),
                        granted,
                    });
                }
                Answer::Write => {
                    let record = bank.record(&ask);
                    // Of two leaders the later one writes; the other is told so and stops.
                    if self.writer != term || self.rng.random_bool(0.1) {
                        return Ok(());
                    }
                    self.tally.writes += 1;
                    self.record = record.clone();
                    // It may die between the two.
                    if self.rng.random_bool(0.01) {
                        return Ok(());
                    }
                    bank.written(&record);
                    continue;
                }
                Answer::Recall(from_whom) => {
                    self.tally.recalls += 1;
                    let mut each: BTreeMap<GatewayId, Vec<LeaseKey>> = BTreeMap::new();
                    for (gateway, lease) in from_whom {
                        each.entry(gateway).or_default().push(lease);
                    }
                    for (to, leases) in each {
                        self.post(Message::Recall { to, term, leases });
                    }
                }
                Answer::Doubt => {}
                Answer::Empty(key) => {
                    if bank.term() == self.term {
                        self.is_true(bank, &key, lacking)?;
                    }
                    self.post(Message::Empty {
                        to: from.clone(),
                        term,
                        lease: lease.clone(),
                        lacking,
                    });
                }
            }
            return Ok(());
        }
    }

    /// A refusal must be true: what is not spent and not paid ahead is less than what is lacking.
    fn is_true(&self, bank: &Bank, key: &BudgetKey, lacking: Amount) -> Result<(), String> {
        let spec = self.specs.iter().find(|spec| spec.key == *key).ok_or("an unknown budget")?;
        if spec.period != Period::Once {
            return Ok(());
        }
        let below = |lease: &LeaseKey| key.scope.covers(&lease.scope);
        let used: Amount = self
            .gateways
            .iter()
            .flat_map(|gateway| &gateway.accounts)
            .filter(|(lease, _)| below(lease))
            .map(|(_, account)| account.counts().spent + account.counts().reserved)
            .sum();
        let lost: Amount = self
            .lost_journals
            .iter()
            .flat_map(|(_, counts)| counts)
            .filter(|(lease, _)| below(lease))
            .map(|(_, counts)| counts.spent)
            .sum();
        let status = bank.status()[key];
        let left = spec.limit.less(used).less(lost).less(status.written_off);
        // What is granted and under way, and what requests gave back since their gateway was asked, is held.
        if left >= lacking + status.held {
            return Err(format!(
                "refused {lacking:?} of {key:?} with {left:?} left of {:?}; used {used:?}, lost {lost:?}, {status:?}",
                spec.limit
            ));
        }
        Ok(())
    }

    fn received(&mut self, message: Message) {
        let now = self.now;
        let (to, term) = match &message {
            Message::Grant { to, term, .. }
            | Message::Recall { to, term, .. }
            | Message::Lead { to, term }
            | Message::Empty { to, term, .. } => (to, *term),
            Message::Report { .. } => return,
        };
        let Some(gateway) = self.gateways.iter_mut().find(|one| one.id == *to) else { return };
        // What an earlier leader says is void.
        if gateway.down_until > now || gateway.cut_until > now || term < gateway.term {
            return;
        }
        gateway.term = term;
        match message {
            Message::Grant { lease, granted, .. } => {
                gateway.accounts.entry(lease).or_default().grant(granted)
            }
            Message::Recall { leases, .. } => {
                for lease in leases {
                    if let Some(account) = gateway.accounts.get_mut(&lease) {
                        account.give_back();
                    }
                }
                let report = gateway.report(Vec::new(), true);
                self.post(report);
            }
            Message::Empty { lease, .. } => {
                let first = gateway.streams.iter().position(|one| {
                    one.lease == lease
                        && one.waits.is_some_and(|(since, _)| now > since + PATIENCE_MS)
                });
                if let Some(place) = first {
                    let stream = gateway.streams.remove(place);
                    let account = gateway.accounts.entry(lease).or_default();
                    account.settle(stream.reserved, stream.settled());
                    self.tally.refused += 1;
                }
            }
            Message::Lead { .. } | Message::Report { .. } => {}
        }
    }

    /// Nothing that was sent exceeds a budget.
    fn check(&self) -> Result<(), String> {
        for spec in self.specs.iter().filter(|spec| spec.period == Period::Once) {
            let below = |lease: &LeaseKey| spec.key.scope.covers(&lease.scope);
            let there = self.gateways.iter().flat_map(|gateway| &gateway.accounts);
            let spent: Amount =
                there.filter(|(lease, _)| below(lease)).map(|(_, one)| one.counts().spent).sum();
            let gone = self.lost_journals.iter().flat_map(|(_, counts)| counts);
            let gone: Amount =
                gone.filter(|(lease, _)| below(lease)).map(|(_, counts)| counts.spent).sum();
            if spent + gone > spec.limit {
                return Err(format!("{:?}: {:?} of {:?}", spec.key, spent + gone, spec.limit));
            }
        }
        Ok(())
    }
}

impl Stream {
    /// What it costs if it ends now: nothing if it was never begun.
    fn settled(&self) -> Amount {
        if self.reserved.is_zero() { Amount::ZERO } else { self.sent }
    }
}

impl Gateway {
    fn report(&self, asks: Vec<(LeaseKey, Amount, u64)>, recalled: bool) -> Message {
        let leases = self.accounts.iter().map(|(key, account)| (key.clone(), account.counts()));
        let (from, term) = (self.id.clone(), self.term);
        Message::Report { from, term, leases: leases.collect(), asks, recalled }
    }
}

impl Message {
    fn again(&self) -> Self {
        match self {
            Self::Report { from, term, leases, asks: _, recalled: _ } => {
                // A doubled question would be answered twice, which is no harm; what it reported is old by then.
                Self::Report {
                    from: from.clone(),
                    term: *term,
                    leases: leases.clone(),
                    asks: Vec::new(),
                    recalled: false,
                }
            }
            Self::Grant { to, term, lease, granted } => {
                Self::Grant { to: to.clone(), term: *term, lease: lease.clone(), granted: *granted }
            }
            Self::Lead { to, term } => Self::Lead { to: to.clone(), term: *term },
            Self::Recall { to, term, leases } => {
                Self::Recall { to: to.clone(), term: *term, leases: leases.clone() }
            }
            Self::Empty { to, term, lease, lacking } => {
                Self::Empty { to: to.clone(), term: *term, lease: lease.clone(), lacking: *lacking }
            }
        }
    }
}
