//! From nodes and requests of one bucket of time to rows, without losing a microsecond or a pico-dollar.
//!
//! A node's price is cut into GPUs and host, the GPUs' part by time among those who held them, and what a model's
//! replicas spent on computing among its callers by the fair queue's own measure of work. Every cut is by largest
//! remainder over owners in their order, so that the result does not depend on the order of what came in.

use crate::money::PicoDollars;
use crate::price::{HostRates, NodePrice};
use crate::row::{CostRow, RowOwner, ServedTokens};
use crate::split::split;
use crate::uses::{GpuUse, Spending, Spent};
use flyball_core::units::{GpuMicros, Gpus, Micros, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A span of time that rows are of: an hour, or five minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBucket {
    pub start: Timestamp,
    pub length: Micros,
}

/// A node in a bucket, for as long as its price was the same: a node whose price changed comes twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTime {
    pub pool: Arc<str>,
    pub gpus: Gpus,
    /// From when to when it was paid for. What is outside of the bucket does not count.
    pub from: Timestamp,
    pub to: Timestamp,
    /// Unknown is not zero.
    pub price: Option<NodePrice>,
    pub holdings: Vec<GpuHolding>,
}

impl NodeTime {
    /// The part of its time that lies in the bucket.
    pub(crate) fn within(&self, bucket: TimeBucket) -> (Timestamp, Timestamp) {
        let end = bucket.start.saturating_add(bucket.length);
        (self.from.max(bucket.start), self.to.min(end))
    }

    /// All GPU time of it in the bucket.
    pub(crate) fn gpu_time(&self, bucket: TimeBucket) -> GpuMicros {
        let (from, to) = self.within(bucket);
        GpuMicros::of(self.gpus, to.since(from).unwrap_or_default())
    }
}

/// GPU time of a node that a pod held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuHolding {
    pub holder: GpuHolder,
    pub held: GpuMicros,
    /// Of a replica, time with requests in flight; of a run, with steps that it had not done before.
    pub computing: GpuMicros,
    /// What else was reported of the held time. Whatever is missing from it is unseen.
    pub other: BTreeMap<GpuUse, GpuMicros>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GpuHolder {
    Replica { model: Arc<str>, variant: Arc<str> },
    Run { run: Arc<str>, tenant: Option<Arc<str>> },
}

/// What the callers of one variant were served from one pool in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedBy {
    pub pool: Arc<str>,
    pub model: Arc<str>,
    pub variant: Arc<str>,
    pub callers: Vec<CallerWork>,
}

/// What one caller was served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerWork {
    pub tenant: Option<Arc<str>>,
    pub key: Option<Arc<str>>,
    pub served: ServedTokens,
    /// Work inside the objectives, in the unit of the fair queue's `Cost`.
    pub inside: u64,
    /// Work of requests that broke an objective or failed.
    pub outside: u64,
}

/// Why something could not be taken as it came. What there is gets counted all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributionProblem {
    /// Pods of a node held more GPU time than it has: all of them were cut in proportion.
    HeldTooMuch { pool: Arc<str>, held: GpuMicros, exists: GpuMicros },
    /// More was reported of a holding than was held: the parts were cut in proportion.
    ReportedTooMuch { holder: GpuHolder, reported: GpuMicros, held: GpuMicros },
    /// Replicas computed, and no caller is known: counted as unseen.
    NoCallers { model: Arc<str>, variant: Arc<str>, time: GpuMicros },
}

/// Rows of a bucket, and what was wrong with its input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// In the order of their owners, one for each.
    pub rows: Vec<CostRow>,
    pub problems: Vec<AttributionProblem>,
}

/// Who used what in a bucket, and what it cost.
pub fn attribute(
    bucket: TimeBucket,
    nodes: &[NodeTime],
    served: &[ServedBy],
    rates: HostRates,
) -> Attribution {
    let mut tables = Tables::default();
    nodes.iter().for_each(|node| tables.node(bucket, node, rates));
    let mut callers: BTreeMap<Variant, BTreeMap<Caller, CallerWork>> = BTreeMap::new();
    for one in served {
        let of =
            callers.entry((one.pool.clone(), one.model.clone(), one.variant.clone())).or_default();
        one.callers.iter().for_each(|work| merge(of, work));
    }
    for (variant, callers) in &callers {
        let computed = tables.computed.remove(variant).unwrap_or_default();
        tables.callers(variant, callers, computed);
    }
    for (variant, computed) in std::mem::take(&mut tables.computed) {
        tables.without_callers(&variant, computed);
    }
    tables.finish(bucket)
}

/// Pool, model and variant.
type Variant = (Arc<str>, Arc<str>, Arc<str>);
/// Tenant and key.
type Caller = (Option<Arc<str>>, Option<Arc<str>>);

/// Two reports of one caller are one caller: several gateways serve the same.
fn merge(callers: &mut BTreeMap<Caller, CallerWork>, work: &CallerWork) {
    let one = callers.entry((work.tenant.clone(), work.key.clone())).or_insert_with(|| {
        CallerWork { served: ServedTokens::default(), inside: 0, outside: 0, ..work.clone() }
    });
    one.served += work.served;
    one.inside = one.inside.saturating_add(work.inside);
    one.outside = one.outside.saturating_add(work.outside);
}

#[derive(Default)]
struct Tables {
    rows: BTreeMap<RowOwner, (ServedTokens, Spending, PicoDollars)>,
    computed: BTreeMap<Variant, Spent>,
    problems: Vec<AttributionProblem>,
}

impl Tables {
    fn node(&mut self, bucket: TimeBucket, node: &NodeTime, rates: HostRates) {
        let exists = node.gpu_time(bucket);
        let (from, to) = node.within(bucket);
        let parts = node.price.map(|price| price.over(node.gpus, rates, from, to));
        let of_pool = RowOwner { pool: Some(node.pool.clone()), ..RowOwner::default() };
        if let Some(parts) = parts {
            self.rows.entry(of_pool.clone()).or_default().2 += parts.host;
        }
        // Holders in their order, so that the last pico-dollar does not depend on who was reported first.
        let mut holdings: Vec<&GpuHolding> = node.holdings.iter().collect();
        holdings.sort_by(|a, b| a.holder.cmp(&b.holder));
        let held = self.fit(holdings.iter().map(|one| one.held), exists, |held| {
            AttributionProblem::HeldTooMuch { pool: node.pool.clone(), held, exists }
        });
        let free = held.iter().fold(exists, |free, one| free.saturating_sub(*one));
        let mut slices = vec![(of_pool, GpuUse::Unallocated, false, free)];
        for (holding, held) in holdings.into_iter().zip(held) {
            self.slices(&node.pool, holding, held, &mut slices);
        }
        let weights: Vec<u64> = slices.iter().map(|(.., time)| time.get()).collect();
        let money = parts.and_then(|parts| split(parts.gpus.get(), &weights));
        for (index, (owner, use_, computed, time)) in slices.into_iter().enumerate() {
            let spent = match &money {
                Some(money) => {
                    Spent { time, money: PicoDollars::new(money[index]), unpriced: GpuMicros::ZERO }
                }
                None => Spent { time, money: PicoDollars::ZERO, unpriced: time },
            };
            if computed {
                let (pool, model, variant) = (owner.pool, owner.model, owner.variant);
                let key = (
                    pool.unwrap_or_default(),
                    model.unwrap_or_default(),
                    variant.unwrap_or_default(),
                );
                *self.computed.entry(key).or_default() += spent;
            } else {
                self.rows.entry(owner).or_default().1.add(use_, spent);
            }
        }
    }

    /// The parts of one holding: owner, use, whether callers share it, and its time.
    fn slices(
        &mut self,
        pool: &Arc<str>,
        holding: &GpuHolding,
        held: GpuMicros,
        into: &mut Vec<(RowOwner, GpuUse, bool, GpuMicros)>,
    ) {
        let pool = Some(pool.clone());
        let (owner, shared) = match &holding.holder {
            GpuHolder::Replica { model, variant } => {
                let (model, variant) = (Some(model.clone()), Some(variant.clone()));
                (RowOwner { pool, model, variant, ..RowOwner::default() }, true)
            }
            GpuHolder::Run { run, tenant } => (
                RowOwner {
                    pool,
                    run: Some(run.clone()),
                    tenant: tenant.clone(),
                    ..RowOwner::default()
                },
                false,
            ),
        };
        let reported = std::iter::once(holding.computing).chain(holding.other.values().copied());
        let fitted = self.fit(reported, held, |reported| AttributionProblem::ReportedTooMuch {
            holder: holding.holder.clone(),
            reported,
            held,
        });
        let unseen = fitted.iter().fold(held, |left, one| left.saturating_sub(*one));
        let uses = std::iter::once((GpuUse::Useful, shared))
            .chain(holding.other.keys().map(|use_| (*use_, false)));
        for ((use_, shared), time) in uses.zip(fitted) {
            into.push((owner.clone(), use_, shared, time));
        }
        into.push((owner, GpuUse::Unseen, false, unseen));
    }

    /// Times as they came, or cut in proportion where they are more than there is.
    fn fit(
        &mut self,
        times: impl Iterator<Item = GpuMicros>,
        exists: GpuMicros,
        problem: impl FnOnce(GpuMicros) -> AttributionProblem,
    ) -> Vec<GpuMicros> {
        let times: Vec<GpuMicros> = times.collect();
        let sum: u128 = times.iter().map(|time| u128::from(time.get())).sum();
        if sum <= exists.get().into() {
            return times;
        }
        self.problems.push(problem(GpuMicros::new(u64::try_from(sum).unwrap_or(u64::MAX))));
        let weights: Vec<u64> = times.iter().map(|time| time.get()).collect();
        let parts = split(exists.get().into(), &weights).unwrap_or_default();
        parts.into_iter().map(|part| GpuMicros::new(part as u64)).collect()
    }

    fn callers(&mut self, of: &Variant, callers: &BTreeMap<Caller, CallerWork>, computed: Spent) {
        let (pool, model, variant) = of;
        let weights: Vec<u64> =
            callers.values().flat_map(|one| [one.inside, one.outside]).collect();
        let Some(parts) = Shares::of(computed, &weights) else {
            self.without_callers(of, computed);
            return self.served_only(of, callers);
        };
        for (index, ((tenant, key), work)) in callers.iter().enumerate() {
            let owner = RowOwner {
                tenant: tenant.clone(),
                key: key.clone(),
                model: Some(model.clone()),
                variant: Some(variant.clone()),
                run: None,
                pool: Some(pool.clone()),
            };
            let row = self.rows.entry(owner).or_default();
            row.0 += work.served;
            row.1.add(GpuUse::Useful, parts.get(2 * index));
            row.1.add(GpuUse::Missed, parts.get(2 * index + 1));
        }
    }

    /// Requests that cost no work, such as those that were all refused.
    fn served_only(
        &mut self,
        (pool, model, variant): &Variant,
        callers: &BTreeMap<Caller, CallerWork>,
    ) {
        for ((tenant, key), work) in callers {
            let owner = RowOwner {
                tenant: tenant.clone(),
                key: key.clone(),
                model: Some(model.clone()),
                variant: Some(variant.clone()),
                run: None,
                pool: Some(pool.clone()),
            };
            self.rows.entry(owner).or_default().0 += work.served;
        }
    }

    fn without_callers(&mut self, (pool, model, variant): &Variant, computed: Spent) {
        if computed.is_zero() {
            return;
        }
        let (model, variant) = (model.clone(), variant.clone());
        let owner = RowOwner {
            model: Some(model.clone()),
            variant: Some(variant.clone()),
            pool: Some(pool.clone()),
            ..RowOwner::default()
        };
        self.rows.entry(owner).or_default().1.add(GpuUse::Unseen, computed);
        let time = computed.time;
        self.problems.push(AttributionProblem::NoCallers { model, variant, time });
    }

    fn finish(self, bucket: TimeBucket) -> Attribution {
        let TimeBucket { start, length } = bucket;
        let row =
            |(owner, (served, spent, host))| CostRow { start, length, owner, served, spent, host };
        let has = |row: &CostRow| {
            row.spent != Spending::default()
                || row.served != ServedTokens::default()
                || !row.host.is_zero()
        };
        Attribution {
            rows: self.rows.into_iter().map(row).filter(has).collect(),
            problems: self.problems,
        }
    }
}

/// Time, money and time without a price, each cut by the same weights.
struct Shares([Vec<i128>; 3]);

impl Shares {
    fn of(spent: Spent, weights: &[u64]) -> Option<Self> {
        let parts = |whole: i128| split(whole, weights);
        let (time, unpriced) = (spent.time.get().into(), spent.unpriced.get().into());
        Some(Self([parts(time)?, parts(spent.money.get())?, parts(unpriced)?]))
    }

    fn get(&self, index: usize) -> Spent {
        let Self([time, money, unpriced]) = self;
        Spent {
            time: GpuMicros::new(time[index] as u64),
            money: PicoDollars::new(money[index]),
            unpriced: GpuMicros::new(unpriced[index] as u64),
        }
    }
}

#[cfg(test)]
mod tests;
