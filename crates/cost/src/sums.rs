//! Whether rows add up to what was paid, in integers: checked before rows are stored.

use crate::attribute::{NodeTime, ServedBy, TimeBucket};
use crate::money::PicoDollars;
use crate::row::{CostRow, ServedTokens};
use crate::uses::{GpuUse, Spent};
use flyball_core::units::GpuMicros;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What does not add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SumError {
    /// GPU time or money of a pool: paid for by nodes, and in rows.
    Paid { pool: Arc<str>, paid: Spent, rows: Spent },
    /// Price of a pool's nodes, GPUs and host together.
    Price { pool: Arc<str>, paid: PicoDollars, rows: PicoDollars },
    /// Paid is not allocated and unallocated, or allocated is not its uses, in one row.
    Uses { row: usize },
    /// Requests or tokens of a model.
    Served { model: Arc<str>, served: ServedTokens, rows: ServedTokens },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PoolSum {
    spent: Spent,
    price: PicoDollars,
}

/// What of these rows does not add up to these nodes and requests; nothing if all is right.
///
/// The way here is another than that of the rows: nodes are priced whole, and no split is used.
pub fn check(
    bucket: TimeBucket,
    nodes: &[NodeTime],
    served: &[ServedBy],
    rows: &[CostRow],
) -> Vec<SumError> {
    let mut errors = Vec::new();
    errors.extend(pools(bucket, nodes, rows));
    let broken = |(_, row): &(usize, &CostRow)| !uses_add_up(row);
    errors.extend(rows.iter().enumerate().filter(broken).map(|(row, _)| SumError::Uses { row }));
    errors.extend(models(served, rows));
    errors
}

fn pools(bucket: TimeBucket, nodes: &[NodeTime], rows: &[CostRow]) -> Vec<SumError> {
    let mut sums: BTreeMap<Arc<str>, (PoolSum, PoolSum)> = BTreeMap::new();
    for node in nodes {
        let (paid, _) = sums.entry(node.pool.clone()).or_default();
        let (from, to) = node.within(bucket);
        let time = node.gpu_time(bucket);
        let unpriced = if node.price.is_some() { GpuMicros::ZERO } else { time };
        paid.spent += Spent { time, money: PicoDollars::ZERO, unpriced };
        if let Some(price) = node.price {
            paid.price += price.hourly.for_span(from, to);
        }
    }
    for row in rows {
        let (_, had) = sums.entry(row.owner.pool.clone().unwrap_or_default()).or_default();
        let all = row.spent.paid();
        had.spent += Spent { money: PicoDollars::ZERO, ..all };
        had.price += all.money + row.host;
    }
    let mut errors = Vec::new();
    for (pool, (paid, had)) in sums {
        if paid.spent != had.spent {
            errors.push(SumError::Paid { pool: pool.clone(), paid: paid.spent, rows: had.spent });
        }
        if paid.price != had.price {
            errors.push(SumError::Price { pool, paid: paid.price, rows: had.price });
        }
    }
    errors
}

/// Paid = allocated + unallocated, allocated = useful + what broke, saved or repeated + idle, and no more is unpriced
/// than there is.
fn uses_add_up(row: &CostRow) -> bool {
    let (mut paid, mut allocated) = (row.spent.allocated(), row.spent.useful());
    paid += row.spent.on(GpuUse::Unallocated);
    for use_ in GpuUse::ALL {
        if use_.is_allocated() && use_ != GpuUse::Useful {
            allocated += row.spent.on(use_);
        }
    }
    paid == row.spent.paid()
        && allocated == row.spent.allocated()
        && row.spent.iter().all(|(_, spent)| spent.unpriced <= spent.time)
}

fn models(served: &[ServedBy], rows: &[CostRow]) -> Vec<SumError> {
    let mut sums: BTreeMap<Arc<str>, (ServedTokens, ServedTokens)> = BTreeMap::new();
    for one in served {
        let (came, _) = sums.entry(one.model.clone()).or_default();
        one.callers.iter().for_each(|work| *came += work.served);
    }
    for row in rows {
        if let Some(model) = &row.owner.model {
            sums.entry(model.clone()).or_default().1 += row.served;
        }
    }
    let differ = sums.into_iter().filter(|(_, (came, had))| came != had);
    differ.map(|(model, (served, rows))| SumError::Served { model, served, rows }).collect()
}
