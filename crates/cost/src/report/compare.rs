//! One time beside another: what changed, and whether time or price did it.

use super::ask::{CostReport, CostSums};
use super::shown::{aligned, dollars};
use crate::money::PicoDollars;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group then and now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostChange {
    pub names: Vec<Option<Arc<str>>>,
    pub before: CostSums,
    pub after: CostSums,
    /// Of the change, what more or fewer GPU-hours did at the old price; the rest did the price. All of it for a group that
    /// had no hours before; unknown where either time has hours without a price.
    pub by_time: Option<PicoDollars>,
}

impl CostChange {
    pub fn change(&self) -> PicoDollars {
        self.after.money() - self.before.money()
    }

    /// What another price did.
    pub fn by_price(&self) -> Option<PicoDollars> {
        self.by_time.map(|by_time| self.change() - by_time)
    }
}

/// All groups of both times, the largest change first, and the totals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostComparison {
    pub changes: Vec<CostChange>,
    pub total: CostChange,
}

/// Compares two answers to the same question about two times; both with all their groups on one page.
pub fn compare(before: &CostReport, after: &CostReport) -> CostComparison {
    let mut groups: BTreeMap<Vec<Option<Arc<str>>>, (CostSums, CostSums)> = BTreeMap::new();
    for group in &before.groups {
        groups.entry(group.names.clone()).or_default().0 += &group.sums;
    }
    for group in &after.groups {
        groups.entry(group.names.clone()).or_default().1 += &group.sums;
    }
    let mut changes: Vec<CostChange> =
        groups.into_iter().map(|(names, (before, after))| changed(names, before, after)).collect();
    changes.sort_by_key(|one| std::cmp::Reverse(one.change().get().unsigned_abs()));
    CostComparison {
        changes,
        total: changed(Vec::new(), before.total.clone(), after.total.clone()),
    }
}

fn changed(names: Vec<Option<Arc<str>>>, before: CostSums, after: CostSums) -> CostChange {
    let (then, now) = (before.spent.paid(), after.spent.paid());
    let known = then.unpriced.is_zero() && now.unpriced.is_zero();
    let more = i128::from(now.time.get()) - i128::from(then.time.get());
    let at_old_price = || match i128::from(then.time.get()) {
        0 => Some((after.money() - before.money()).get()),
        time => before.money().get().checked_mul(more)?.checked_div(time),
    };
    let by_time = known.then(at_old_price).flatten().map(PicoDollars::new);
    CostChange { names, before, after, by_time }
}

impl CostComparison {
    /// The first so many changes as a table.
    pub fn table(&self, most: usize) -> String {
        let mut lines = vec![
            ["GROUP", "CHANGE", "BY HOURS", "BY PRICE", "BEFORE", "AFTER USD"]
                .map(str::to_owned)
                .to_vec(),
        ];
        let line = |name: String, one: &CostChange| {
            let signed = |money: Option<PicoDollars>| match money {
                None => "unknown".to_owned(),
                Some(money) if money.is_negative() => format!("{money:.2}"),
                Some(money) => format!("+{money:.2}"),
            };
            let has_unknown = !(one.before.spent.paid().unpriced.is_zero()
                && one.after.spent.paid().unpriced.is_zero());
            let change = signed((!has_unknown).then(|| one.change()));
            let parts = [one.by_time, one.by_price()].map(signed);
            let [by_time, by_price] = parts;
            vec![name, change, by_time, by_price, dollars(&one.before), dollars(&one.after)]
        };
        for one in self.changes.iter().take(most) {
            let names: Vec<&str> =
                one.names.iter().map(|name| name.as_deref().unwrap_or("(none)")).collect();
            lines.push(line(names.join(" "), one));
        }
        lines.push(line("total".to_owned(), &self.total));
        aligned(&lines, 1)
    }
}
