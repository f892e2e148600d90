//! What GPU time went into: useful work, or a cause why it did not.

use crate::money::PicoDollars;
use flyball_core::units::GpuMicros;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

/// What a GPU did for a while. Every microsecond of every GPU that is paid for has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GpuUse {
    Useful,
    Missed,
    Saving,
    RedoingLostWork,
    Starting,
    WaitingForGang,
    Quiet,
    Parked,
    Lent,
    Drained,
    Unseen,
    Unallocated,
}

impl GpuUse {
    /// In the order in which they are shown.
    pub const ALL: [Self; 12] = [
        Self::Useful,
        Self::Missed,
        Self::Saving,
        Self::RedoingLostWork,
        Self::Starting,
        Self::WaitingForGang,
        Self::Quiet,
        Self::Parked,
        Self::Lent,
        Self::Drained,
        Self::Unseen,
        Self::Unallocated,
    ];

    /// The stable name, in files, labels and columns.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Useful => "useful",
            Self::Missed => "missed",
            Self::Saving => "saving",
            Self::RedoingLostWork => "redoing-lost-work",
            Self::Starting => "starting",
            Self::WaitingForGang => "waiting-for-gang",
            Self::Quiet => "quiet",
            Self::Parked => "parked",
            Self::Lent => "lent",
            Self::Drained => "drained",
            Self::Unseen => "unseen",
            Self::Unallocated => "unallocated",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// One sentence for people.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Useful => {
                "Requests that kept their objectives, and steps of training that were kept."
            }
            Self::Missed => "Requests that broke an objective.",
            Self::Saving => "A training run wrote a checkpoint and did not step.",
            Self::RedoingLostWork => "A training run did steps again that it had not saved.",
            Self::Starting => "An engine or a run was starting and did no work yet.",
            Self::WaitingForGang => {
                "Some ranks of a training run had GPUs and waited for the others."
            }
            Self::Quiet => "A replica was ready and had nothing to do.",
            Self::Parked => "An engine was asleep and held its GPUs.",
            Self::Lent => "On loan to a run that had stopped for the take-back, or had not begun.",
            Self::Drained => "Draining: finishing, or finished and not given back yet.",
            Self::Unseen => "Held by a pod, and nobody reported what it did.",
            Self::Unallocated => "Paid for, and held by no pod.",
        }
    }

    /// Whether a pod held the GPU.
    pub const fn is_allocated(self) -> bool {
        !matches!(self, Self::Unallocated)
    }

    /// Whether the GPU did nothing that anybody wanted. What broke an objective, saved or was done again is not useful
    /// and not idle either.
    pub const fn is_idle(self) -> bool {
        !matches!(self, Self::Useful | Self::Missed | Self::Saving | Self::RedoingLostWork)
    }
}

impl fmt::Display for GpuUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// GPU time and what it cost, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub time: GpuMicros,
    /// Of the time that has a price.
    pub money: PicoDollars,
    /// The part of the time that has none.
    pub unpriced: GpuMicros,
}

impl Spent {
    pub const fn is_zero(&self) -> bool {
        self.time.is_zero() && self.money.is_zero() && self.unpriced.is_zero()
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.time = self.time.saturating_add(other.time);
        self.money += other.money;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

impl std::iter::Sum for Spent {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        let mut sum = Self::default();
        all.for_each(|one| sum += one);
        sum
    }
}

/// What was spent on each use; uses without anything are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spending(BTreeMap<GpuUse, Spent>);

impl Spending {
    pub fn of(use_: GpuUse, spent: Spent) -> Self {
        let mut all = Self::default();
        all.add(use_, spent);
        all
    }

    pub fn add(&mut self, use_: GpuUse, spent: Spent) {
        if !spent.is_zero() {
            *self.0.entry(use_).or_default() += spent;
        }
    }

    pub fn on(&self, use_: GpuUse) -> Spent {
        self.0.get(&use_).copied().unwrap_or_default()
    }

    /// In the order in which uses are shown.
    pub fn iter(&self) -> impl Iterator<Item = (GpuUse, Spent)> + '_ {
        self.0.iter().map(|(use_, spent)| (*use_, *spent))
    }

    pub fn paid(&self) -> Spent {
        self.where_(|_| true)
    }

    pub fn allocated(&self) -> Spent {
        self.where_(GpuUse::is_allocated)
    }

    pub fn useful(&self) -> Spent {
        self.on(GpuUse::Useful)
    }

    pub fn idle(&self) -> Spent {
        self.where_(GpuUse::is_idle)
    }

    fn where_(&self, counts: impl Fn(GpuUse) -> bool) -> Spent {
        self.iter().filter(|(use_, _)| counts(*use_)).map(|(_, spent)| spent).sum()
    }
}

impl AddAssign<&Self> for Spending {
    fn add_assign(&mut self, other: &Self) {
        other.iter().for_each(|(use_, spent)| self.add(use_, spent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_use_is_listed_once_in_its_order_and_found_by_its_name() {
        assert!(GpuUse::ALL.is_sorted());
        for one in GpuUse::ALL {
            assert_eq!(GpuUse::named(one.name()), Some(one));
        }
        assert_eq!(GpuUse::named("Useful"), None);
    }
}
