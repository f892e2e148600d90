//! Messages about quotas as values, and back. What cannot be understood is left out: it was not told.

use super::{
    EmptyBudget, LeaseAsk, LeaseGrant, LeaseRecall, LeaseUnit, QuotaOrders, ReportedLease,
    ReportedQuota, ReportedShare, ShareKind, ShareOrder, SpentBudget, WideAmount,
};
use crate::stream::MAX_NAME;
use flyball_core::units::Timestamp;
use flyball_quota::{
    Amount, BudgetKey, BudgetUnit, GatewayId, LeaseCounts, LeaseKey, RateKey, RateKind, Scope,
    ShareCounts,
};

/// Leases, asks and shares in one message, each. With paths of 60 bytes they take about 2 MiB.
pub const MAX_ENTRIES: usize = 10_000;

/// Bytes of a path: a namespace, four Tenants and a key with the longest names.
pub const MAX_SCOPE: usize = 1_200;

/// What is before the ID of accounts, so that a successor knows how long to wait for its gateway.
const POD: &str = "pod-";
const HOST: &str = "host-";

/// What a gateway reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaReport {
    /// Whose accounts these are.
    pub gateway: GatewayId,
    /// The term of the leader that it last heard of; 0 if none.
    pub term: u64,
    /// Whether everything has been reported in that term.
    pub complete: bool,
    /// How leases stand.
    pub leases: Vec<(LeaseKey, LeaseCounts)>,
    /// Who wants more.
    pub asks: Vec<LeaseRequest>,
    /// How shares stand.
    pub shares: Vec<(RateKey, ShareCounts)>,
    /// Number of the last recall that was carried out in that term.
    pub recalled: Option<u64>,
}

/// A lease that is too small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Which one.
    pub lease: LeaseKey,
    /// What the request that waits lacks.
    pub lacking: Amount,
    /// What the gateway spends of it in a second.
    pub pace: Amount,
    /// Its number at this gateway, counted up.
    pub number: u64,
}

/// What the operator answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaReply {
    /// Which leader says so.
    pub term: u64,
    /// Larger leases.
    pub grants: Vec<(LeaseKey, ReplyGrant)>,
    /// Leases whose idle part is wanted back.
    pub recalls: Vec<LeaseKey>,
    /// The number of this recall; 0 if there is none.
    pub recall: u64,
    /// Asks that no budget covers.
    pub empty: Vec<EmptyLease>,
    /// Changes of shares.
    pub shares: Vec<(RateKey, ShareChange)>,
    /// What all gateways have spent of budgets.
    pub spent: Vec<BudgetSpending>,
}

/// What all gateways together have spent of a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetSpending {
    /// Which budget.
    pub budget: BudgetKey,
    /// What of it is spent.
    pub spent: Amount,
    /// When it begins anew.
    pub resets_at: Option<Timestamp>,
}

/// What is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyGrant {
    /// So much in all.
    Total(Amount),
    /// No budget lies above the caller.
    Unlimited,
}

/// An ask that a budget does not cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyLease {
    /// Which lease.
    pub lease: LeaseKey,
    /// The number of the ask.
    pub number: u64,
    /// Which budget.
    pub budget: BudgetKey,
    /// How much it is.
    pub limit: Amount,
    /// What of it is spent.
    pub spent: Amount,
    /// When it begins anew.
    pub resets_at: Option<Timestamp>,
}

/// A change of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareChange {
    /// So many permits are granted in all.
    Grant(u64),
    /// So many are to be given back in all.
    GiveBack(u64),
}

/// A message that says too much at once, or whose sender has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a message about quotas must name its accounts and have at most {MAX_ENTRIES} leases, asks and shares"
)]
pub struct QuotaExcess;

impl QuotaReport {
    /// The name of the gateway with these accounts, and whether it is gone when its pod is.
    pub fn name_of(gateway: &GatewayId) -> (&str, bool) {
        let (name, accounts) = gateway.as_str().rsplit_once('/').unwrap_or_default();
        (name, accounts.starts_with(POD))
    }

    /// Reads a message of the gateway with this name.
    pub fn read(gateway: &str, message: &ReportedQuota) -> Result<Self, QuotaExcess> {
        let most = message.leases.len().max(message.asks.len()).max(message.shares.len());
        let id = &message.accounts;
        let is_id =
            (1..=MAX_NAME).contains(&id.len()) && id.chars().all(|c| c.is_ascii_alphanumeric());
        if most > MAX_ENTRIES || !is_id {
            return Err(QuotaExcess);
        }
        let kind = if message.is_pod { POD } else { HOST };
        Ok(Self {
            gateway: GatewayId::new(&format!("{gateway}/{kind}{id}")),
            term: message.term,
            complete: message.complete,
            leases: message.leases.iter().filter_map(ReportedLease::value).collect(),
            asks: message.asks.iter().filter_map(LeaseAsk::value).collect(),
            shares: message.shares.iter().filter_map(ReportedShare::value).collect(),
            recalled: (message.recalled > 0).then_some(message.recalled),
        })
    }
}

impl QuotaReply {
    /// Reads a message.
    pub fn read(message: &QuotaOrders) -> Result<Self, QuotaExcess> {
        let counts = [
            message.grants.len(),
            message.recalls.len(),
            message.empty.len(),
            message.shares.len(),
            message.spent.len(),
        ];
        if counts.into_iter().any(|count| count > MAX_ENTRIES) {
            return Err(QuotaExcess);
        }
        let grant = |grant: &LeaseGrant| {
            let granted = match (grant.unlimited, grant.granted) {
                (true, _) => ReplyGrant::Unlimited,
                (false, granted) => ReplyGrant::Total(granted?.amount()),
            };
            Some((lease(&grant.scope, grant.unit)?, granted))
        };
        Ok(Self {
            term: message.term,
            grants: message.grants.iter().filter_map(grant).collect(),
            recalls: message.recalls.iter().filter_map(|one| lease(&one.scope, one.unit)).collect(),
            recall: message.recall,
            empty: message.empty.iter().filter_map(EmptyBudget::value).collect(),
            shares: message.shares.iter().flat_map(ShareOrder::values).collect(),
            spent: message.spent.iter().filter_map(SpentBudget::value).collect(),
        })
    }

    /// Whether it says nothing.
    pub const fn is_empty(&self) -> bool {
        self.grants.is_empty()
            && self.recalls.is_empty()
            && self.empty.is_empty()
            && self.shares.is_empty()
            && self.spent.is_empty()
    }

    /// As messages of which none is too large.
    pub fn write(&self) -> Vec<QuotaOrders> {
        let mut rest = (
            self.grants.as_slice(),
            self.recalls.as_slice(),
            self.empty.as_slice(),
            self.shares.as_slice(),
            self.spent.as_slice(),
        );
        let mut messages = Vec::new();
        loop {
            let message = QuotaOrders {
                term: self.term,
                grants: some(&mut rest.0).iter().map(LeaseGrant::of).collect(),
                recalls: some(&mut rest.1)
                    .iter()
                    .map(|one| LeaseRecall { scope: one.scope.to_string(), unit: unit(one.unit) })
                    .collect(),
                recall: 0,
                empty: some(&mut rest.2).iter().map(EmptyBudget::of).collect(),
                shares: some(&mut rest.3).iter().map(ShareOrder::of).collect(),
                spent: some(&mut rest.4).iter().map(SpentBudget::of).collect(),
            };
            messages.push(message);
            let lists = (rest.0.is_empty(), rest.1.is_empty(), rest.2.is_empty());
            if lists == (true, true, true) && rest.3.is_empty() && rest.4.is_empty() {
                break;
            }
        }
        // The number comes with the last part: by then everything is given back.
        messages.iter_mut().last().into_iter().for_each(|last| last.recall = self.recall);
        messages
    }
}

/// As many entries as a message holds, whatever their paths are: 2,000 of the longest are 2.4 MiB.
fn some<'a, T>(rest: &mut &'a [T]) -> &'a [T] {
    let (first, after) = rest.split_at(rest.len().min(2_000));
    *rest = after;
    first
}

impl WideAmount {
    /// Of an amount.
    pub const fn of(amount: Amount) -> Self {
        let units = amount.get();
        Self { high: (units >> 64) as u64, low: units as u64 }
    }

    /// The amount.
    pub fn amount(self) -> Amount {
        Amount::new((u128::from(self.high) << 64) | u128::from(self.low))
    }
}

impl ReportedLease {
    /// Of a lease.
    pub fn of(key: &LeaseKey, counts: &LeaseCounts) -> Self {
        Self {
            scope: key.scope.to_string(),
            unit: unit(key.unit),
            granted: Some(WideAmount::of(counts.granted)),
            returned: Some(WideAmount::of(counts.returned)),
            spent: Some(WideAmount::of(counts.spent)),
            reserved: Some(WideAmount::of(counts.reserved)),
        }
    }

    fn value(&self) -> Option<(LeaseKey, LeaseCounts)> {
        let counts = LeaseCounts {
            granted: self.granted?.amount(),
            returned: self.returned?.amount(),
            spent: self.spent?.amount(),
            reserved: self.reserved?.amount(),
        };
        Some((lease(&self.scope, self.unit)?, counts))
    }
}

impl LeaseAsk {
    /// Of a lease that is too small.
    pub fn of(request: &LeaseRequest) -> Self {
        Self {
            scope: request.lease.scope.to_string(),
            unit: unit(request.lease.unit),
            lacking: Some(WideAmount::of(request.lacking)),
            pace: Some(WideAmount::of(request.pace)),
            number: request.number,
        }
    }

    fn value(&self) -> Option<LeaseRequest> {
        Some(LeaseRequest {
            lease: lease(&self.scope, self.unit)?,
            lacking: self.lacking?.amount(),
            pace: self.pace.map_or(Amount::ZERO, WideAmount::amount),
            number: self.number,
        })
    }
}

impl ReportedShare {
    /// Of a share.
    pub fn of(key: &RateKey, counts: &ShareCounts) -> Self {
        let ShareCounts { granted, returned, used, waiting } = *counts;
        let (scope, kind) = (key.scope.to_string(), kind(key.kind));
        Self { scope, kind, granted, returned, used, waiting }
    }

    fn value(&self) -> Option<(RateKey, ShareCounts)> {
        let Self { granted, returned, used, waiting, .. } = *self;
        Some((rate(&self.scope, self.kind)?, ShareCounts { granted, returned, used, waiting }))
    }
}

impl LeaseGrant {
    fn of((key, grant): &(LeaseKey, ReplyGrant)) -> Self {
        let granted = match grant {
            ReplyGrant::Total(amount) => Some(WideAmount::of(*amount)),
            ReplyGrant::Unlimited => None,
        };
        let (scope, unit) = (key.scope.to_string(), unit(key.unit));
        Self { scope, unit, unlimited: granted.is_none(), granted }
    }
}

impl SpentBudget {
    fn of(spending: &BudgetSpending) -> Self {
        Self {
            budget_scope: spending.budget.scope.to_string(),
            budget: spending.budget.name.to_string(),
            spent: Some(WideAmount::of(spending.spent)),
            resets_at_ms: spending.resets_at.map(Timestamp::as_millis),
        }
    }

    fn value(&self) -> Option<BudgetSpending> {
        let name = (self.budget.len() <= MAX_NAME).then(|| self.budget.as_str().into())?;
        Some(BudgetSpending {
            budget: BudgetKey { scope: scope(&self.budget_scope)?, name },
            spent: self.spent?.amount(),
            resets_at: self.resets_at_ms.map(moment),
        })
    }
}

/// One that no clock reaches is as good as the last moment.
fn moment(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis.min(u64::MAX / 1_000))
}

impl EmptyBudget {
    fn of(empty: &EmptyLease) -> Self {
        Self {
            scope: empty.lease.scope.to_string(),
            unit: unit(empty.lease.unit),
            number: empty.number,
            budget_scope: empty.budget.scope.to_string(),
            budget: empty.budget.name.to_string(),
            limit: Some(WideAmount::of(empty.limit)),
            spent: Some(WideAmount::of(empty.spent)),
            resets_at_ms: empty.resets_at.map(Timestamp::as_millis),
        }
    }

    fn value(&self) -> Option<EmptyLease> {
        let name = (self.budget.len() <= MAX_NAME).then(|| self.budget.as_str().into())?;
        Some(EmptyLease {
            lease: lease(&self.scope, self.unit)?,
            number: self.number,
            budget: BudgetKey { scope: scope(&self.budget_scope)?, name },
            limit: self.limit?.amount(),
            spent: self.spent?.amount(),
            resets_at: self.resets_at_ms.map(moment),
        })
    }
}

impl ShareOrder {
    fn of((key, change): &(RateKey, ShareChange)) -> Self {
        let (granted, returned) = match change {
            ShareChange::Grant(granted) => (Some(*granted), None),
            ShareChange::GiveBack(returned) => (None, Some(*returned)),
        };
        Self { scope: key.scope.to_string(), kind: kind(key.kind), granted, returned }
    }

    fn values(&self) -> Vec<(RateKey, ShareChange)> {
        let Some(key) = rate(&self.scope, self.kind) else { return Vec::new() };
        let (granted, returned) =
            (self.granted.map(ShareChange::Grant), self.returned.map(ShareChange::GiveBack));
        granted.into_iter().chain(returned).map(|change| (key.clone(), change)).collect()
    }
}

fn scope(path: &str) -> Option<Scope> {
    let fits = (1..=MAX_SCOPE).contains(&path.len()) && !path.chars().any(char::is_control);
    fits.then(|| Scope::new(path))
}

fn lease(path: &str, unit: i32) -> Option<LeaseKey> {
    let unit = match LeaseUnit::try_from(unit).ok()? {
        LeaseUnit::Money => BudgetUnit::Money,
        LeaseUnit::Tokens => BudgetUnit::Tokens,
        LeaseUnit::Unknown => return None,
    };
    Some(LeaseKey { scope: scope(path)?, unit })
}

fn rate(path: &str, kind: i32) -> Option<RateKey> {
    let kind = match ShareKind::try_from(kind).ok()? {
        ShareKind::Requests => RateKind::Requests,
        ShareKind::InputTokens => RateKind::InputTokens,
        ShareKind::OutputTokens => RateKind::OutputTokens,
        ShareKind::Concurrency => RateKind::Concurrency,
        ShareKind::Unknown => return None,
    };
    Some(RateKey { scope: scope(path)?, kind })
}

fn unit(unit: BudgetUnit) -> i32 {
    let unit = match unit {
        BudgetUnit::Money => LeaseUnit::Money,
        BudgetUnit::Tokens => LeaseUnit::Tokens,
    };
    unit.into()
}

fn kind(kind: RateKind) -> i32 {
    let kind = match kind {
        RateKind::Requests => ShareKind::Requests,
        RateKind::InputTokens => ShareKind::InputTokens,
        RateKind::OutputTokens => ShareKind::OutputTokens,
        RateKind::Concurrency => ShareKind::Concurrency,
    };
    kind.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(scope: &str) -> LeaseKey {
        LeaseKey { scope: Scope::new(scope), unit: BudgetUnit::Money }
    }

    fn report() -> ReportedQuota {
        let amount = |units| Amount::new(units);
        let counts = LeaseCounts {
            granted: amount(u128::MAX),
            returned: amount(1 << 70),
            spent: amount(7),
            reserved: amount(0),
        };
        let request = LeaseRequest {
            lease: key("ml/team/key:app"),
            lacking: amount(1 << 64),
            pace: amount(3),
            number: 9,
        };
        let rate = RateKey { scope: Scope::new("ml/team"), kind: RateKind::Concurrency };
        let share = ShareCounts { granted: 4, returned: 3, used: 2, waiting: 1 };
        ReportedQuota {
            accounts: "1f".to_owned(),
            is_pod: true,
            complete: true,
            leases: vec![ReportedLease::of(&key("ml/team/key:app"), &counts)],
            asks: vec![LeaseAsk::of(&request)],
            shares: vec![ReportedShare::of(&rate, &share)],
            recalled: 5,
            term: 2,
        }
    }

    #[test]
    fn a_report_arrives_as_it_was_sent() {
        let read = QuotaReport::read("gateway-0", &report()).unwrap();
        assert_eq!(read.gateway, GatewayId::new("gateway-0/pod-1f"));
        assert_eq!(QuotaReport::name_of(&read.gateway), ("gateway-0", true));
        assert_eq!((read.term, read.complete, read.recalled), (2, true, Some(5)));
        assert_eq!(read.leases[0].1.granted, Amount::MAX);
        assert_eq!(read.leases[0].1.returned, Amount::new(1 << 70));
        assert_eq!((read.asks[0].lacking, read.asks[0].number), (Amount::new(1 << 64), 9));
        assert_eq!(read.shares[0].1.permits(), 1);
    }

    #[test]
    fn what_is_unknown_or_absent_or_too_long_is_not_told_and_the_rest_is() {
        let mut message = report();
        let good = message.leases[0].clone();
        let wrong = [
            ReportedLease { unit: 77, ..good.clone() },
            ReportedLease { unit: 0, ..good.clone() },
            ReportedLease { spent: None, ..good.clone() },
            ReportedLease { scope: String::new(), ..good.clone() },
            ReportedLease { scope: "a\nb".to_owned(), ..good.clone() },
            ReportedLease { scope: "a".repeat(MAX_SCOPE + 1), ..good },
        ];
        message.leases.extend(wrong);
        message.shares.push(ReportedShare { kind: 9, ..message.shares[0].clone() });
        message.asks.push(LeaseAsk { lacking: None, ..message.asks[0].clone() });
        let read = QuotaReport::read("g", &message).unwrap();
        assert_eq!((read.leases.len(), read.shares.len(), read.asks.len()), (1, 1, 1));
        let silent = ReportedQuota { accounts: "1".to_owned(), ..ReportedQuota::default() };
        let read = QuotaReport::read("g", &silent).unwrap();
        assert_eq!((read.complete, read.recalled), (false, None));
    }

    #[test]
    fn who_says_too_much_or_has_no_name_is_refused() {
        for accounts in [String::new(), "x".repeat(MAX_NAME + 1), "a b".to_owned()] {
            let message = ReportedQuota { accounts, ..report() };
            assert_eq!(QuotaReport::read("g", &message), Err(QuotaExcess));
        }
        let mut message = report();
        message.shares = vec![message.shares[0].clone(); MAX_ENTRIES + 1];
        assert_eq!(QuotaReport::read("g", &message), Err(QuotaExcess));
        let orders = QuotaOrders {
            recalls: vec![LeaseRecall::default(); MAX_ENTRIES + 1],
            ..QuotaOrders::default()
        };
        assert_eq!(QuotaReply::read(&orders), Err(QuotaExcess));
    }

    #[test]
    fn an_answer_arrives_as_it_was_sent_in_as_many_messages_as_it_needs() {
        let rate = RateKey { scope: Scope::new("ml/team"), kind: RateKind::InputTokens };
        let budget = BudgetKey { scope: Scope::new("ml"), name: "month".into() };
        let resets_at = Some(Timestamp::from_millis(1_800_000_000_000));
        let spending = BudgetSpending { budget: budget.clone(), spent: Amount::new(6), resets_at };
        let empty = EmptyLease {
            lease: key("ml/a"),
            number: 3,
            budget,
            limit: Amount::new(1 << 80),
            spent: Amount::new(5),
            resets_at,
        };
        let reply = QuotaReply {
            term: 4,
            grants: vec![
                (key("ml/a"), ReplyGrant::Total(Amount::new(1 << 90))),
                (key("ml/b"), ReplyGrant::Unlimited),
            ],
            recalls: vec![key("ml/c"); 4_001],
            recall: 6,
            empty: vec![empty],
            shares: vec![(rate.clone(), ShareChange::Grant(8)), (rate, ShareChange::GiveBack(2))],
            spent: vec![spending],
        };
        let messages = reply.write();
        assert_eq!(messages.iter().map(|one| one.recall).collect::<Vec<_>>(), [0, 0, 6]);
        let mut back = QuotaReply::default();
        for read in messages.iter().map(|one| QuotaReply::read(one).unwrap()) {
            back.term = read.term;
            back.recall = read.recall;
            back.grants.extend(read.grants);
            back.recalls.extend(read.recalls);
            back.empty.extend(read.empty);
            back.shares.extend(read.shares);
            back.spent.extend(read.spent);
        }
        assert_eq!(back, reply);
        assert!(QuotaReply::default().is_empty() && !reply.is_empty());
    }
}
