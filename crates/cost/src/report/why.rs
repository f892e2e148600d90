//! Why it costs what it costs: GPU time that was not useful, by cause and by who held it.

use super::shown::{aligned, hours, money_of};
use crate::row::{CostRow, RowOwner};
use crate::uses::{GpuUse, Spent};
use flyball_core::units::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A cause at one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostReason {
    pub use_: GpuUse,
    /// The model, the run, or else the pool.
    pub owner: Arc<str>,
    pub spent: Spent,
    /// Of all GPU time that was paid, in millionths.
    pub share_ppm: u64,
}

/// All causes, the largest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostReasons {
    pub reasons: Vec<CostReason>,
    pub paid: Spent,
    pub useful: Spent,
}

/// What was not useful between two times, and why.
pub fn why<'a>(
    rows: impl IntoIterator<Item = &'a CostRow>,
    from: Timestamp,
    to: Timestamp,
) -> CostReasons {
    let mut causes: BTreeMap<(GpuUse, Arc<str>), Spent> = BTreeMap::new();
    let (mut paid, mut useful) = (Spent::default(), Spent::default());
    for row in rows.into_iter().filter(|row| from <= row.start && row.start < to) {
        paid += row.spent.paid();
        useful += row.spent.useful();
        for (use_, spent) in row.spent.iter().filter(|(use_, _)| *use_ != GpuUse::Useful) {
            *causes.entry((use_, holder(&row.owner))).or_default() += spent;
        }
    }
    let all = u128::from(paid.time.get()).max(1);
    let reason = |((use_, owner), spent): ((GpuUse, Arc<str>), Spent)| {
        let share_ppm = (u128::from(spent.time.get()) * 1_000_000 / all) as u64;
        CostReason { use_, owner, spent, share_ppm }
    };
    let mut reasons: Vec<CostReason> = causes.into_iter().map(reason).collect();
    reasons.sort_by_key(|one| std::cmp::Reverse((one.spent.money, one.spent.time)));
    CostReasons { reasons, paid, useful }
}

fn holder(owner: &RowOwner) -> Arc<str> {
    let name = owner.model.as_ref().or(owner.run.as_ref()).or(owner.pool.as_ref());
    name.cloned().unwrap_or_else(|| "(none)".into())
}

impl CostReasons {
    /// The first so many as a table, with what each cause means.
    pub fn table(&self, most: usize) -> String {
        let mut lines =
            vec![["CAUSE", "OF", "GPU-HOURS", "SHARE", "COST USD"].map(str::to_owned).to_vec()];
        for one in self.reasons.iter().take(most) {
            let share = format!("{}.{} %", one.share_ppm / 10_000, one.share_ppm / 1_000 % 10);
            let (use_, owner) = (one.use_.name().to_owned(), one.owner.to_string());
            lines.push(vec![use_, owner, hours(one.spent.time), share, money_of(one.spent)]);
        }
        let mut text = aligned(&lines, 2);
        let shown: Vec<GpuUse> = self.reasons.iter().take(most).map(|one| one.use_).collect();
        text.push('\n');
        for use_ in GpuUse::ALL.into_iter().filter(|use_| shown.contains(use_)) {
            text.push_str(&format!("{use_}: {}\n", use_.summary()));
        }
        let left = self.reasons.len().saturating_sub(most);
        let more =
            if left > 0 { format!("; {left} smaller causes are not shown") } else { String::new() };
        let (paid, useful) = (hours(self.paid.time), hours(self.useful.time));
        text + &format!("{useful} of {paid} GPU-hours were useful{more}\n")
    }
}
