//! Rows, grouped and added up.

use crate::civil::{date_text, day_start};
use crate::money::PicoDollars;
use crate::row::{CostRow, ServedTokens};
use crate::uses::Spending;
use flyball_core::units::Timestamp;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

/// By what costs are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CostDimension {
    Team,
    Model,
    Run,
    Key,
    Pool,
    Day,
}

impl CostDimension {
    pub const ALL: [Self; 6] =
        [Self::Team, Self::Model, Self::Run, Self::Key, Self::Pool, Self::Day];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Team => "team",
            Self::Model => "model",
            Self::Run => "run",
            Self::Key => "key",
            Self::Pool => "pool",
            Self::Day => "day",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// What a row has there, if anything.
    fn of(self, row: &CostRow) -> Option<Arc<str>> {
        match self {
            Self::Team => row.owner.tenant.clone(),
            Self::Model => row.owner.model.clone(),
            Self::Run => row.owner.run.clone(),
            Self::Key => row.owner.key.clone(),
            Self::Pool => row.owner.pool.clone(),
            Self::Day => Some(date_text(day_start(row.start)).into()),
        }
    }
}

/// What is asked. Days are those of UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostQuestion {
    pub by: Vec<CostDimension>,
    /// Rows that begin in here, its end left out.
    pub from: Timestamp,
    pub to: Timestamp,
    /// Groups that are left out at the beginning, and how many are shown.
    pub offset: usize,
    pub limit: usize,
}

/// Everything that is added up of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostSums {
    pub served: ServedTokens,
    pub spent: Spending,
    pub host: PicoDollars,
}

impl CostSums {
    /// All money that is known, GPUs and hosts.
    pub fn money(&self) -> PicoDollars {
        self.spent.paid().money + self.host
    }
}

impl AddAssign<&Self> for CostSums {
    fn add_assign(&mut self, other: &Self) {
        self.served += other.served;
        self.spent += &other.spent;
        self.host += other.host;
    }
}

impl AddAssign<&CostRow> for CostSums {
    fn add_assign(&mut self, row: &CostRow) {
        self.served += row.served;
        self.spent += &row.spent;
        self.host += row.host;
    }
}

/// One group: its names in the order of the dimensions, absent where a row has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostGroup {
    pub names: Vec<Option<Arc<str>>>,
    pub sums: CostSums,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostReport {
    pub question: CostQuestion,
    /// The page that was asked for: by days in their order, by others the most expensive first.
    pub groups: Vec<CostGroup>,
    /// How many groups there are on all pages.
    pub group_count: usize,
    /// Of all groups.
    pub total: CostSums,
}

/// Groups rows and adds them up.
pub fn ask<'a>(rows: impl IntoIterator<Item = &'a CostRow>, question: &CostQuestion) -> CostReport {
    let mut groups: BTreeMap<Vec<Option<Arc<str>>>, CostSums> = BTreeMap::new();
    let mut total = CostSums::default();
    for row in rows.into_iter().filter(|row| question.from <= row.start && row.start < question.to)
    {
        let names = question.by.iter().map(|dimension| dimension.of(row)).collect();
        *groups.entry(names).or_default() += row;
        total += row;
    }
    let group_count = groups.len();
    let mut groups: Vec<CostGroup> =
        groups.into_iter().map(|(names, sums)| CostGroup { names, sums }).collect();
    if !question.by.contains(&CostDimension::Day) {
        // Of equal money by time, so that what has no price is not at the end for that; then by name, as they are.
        groups.sort_by_key(|group| {
            std::cmp::Reverse((group.sums.money(), group.sums.spent.paid().time))
        });
    }
    let groups = groups.into_iter().skip(question.offset).take(question.limit).collect();
    CostReport { question: question.clone(), groups, group_count, total }
}
