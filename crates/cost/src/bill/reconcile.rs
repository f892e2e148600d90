//! The bill beside what we saw, in classes with their money; never one number.

use super::import::BillLine;
use super::names::resource_name;
use crate::civil::{BillingMonth, day_start};
use crate::money::PicoDollars;
use flyball_core::units::{Micros, Timestamp};
use std::collections::BTreeMap;

/// A node as we saw it, for as long as its price was the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenNode {
    /// The provider id of the node.
    pub id: String,
    pub from: Timestamp,
    pub to: Timestamp,
    /// For an hour; unknown is not zero.
    pub hourly: Option<PicoDollars>,
}

/// How finely a bill is cut in time, which is how finely it can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BillGrain {
    Hour,
    Day,
    Month,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// Both have it, for the same money within the tolerance.
    Matched,
    /// Both have it, for another money.
    PriceDiffers,
    /// Both have it, and we knew no price.
    PriceUnknown,
    /// The bill has it and we never saw it: machines outside of all Pools, disks, networks.
    NotSeen,
    /// We saw it and the bill lacks it: late, or free.
    NotBilled,
    /// A charge of no resource: taxes, credits, purchases.
    NoResource,
}

impl DifferenceKind {
    pub const ALL: [Self; 6] = [
        Self::Matched,
        Self::PriceDiffers,
        Self::PriceUnknown,
        Self::NotSeen,
        Self::NotBilled,
        Self::NoResource,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::PriceDiffers => "price-differs",
            Self::PriceUnknown => "price-unknown",
            Self::NotSeen => "not-seen",
            Self::NotBilled => "not-billed",
            Self::NoResource => "no-resource",
        }
    }
}

/// One resource in one hour, day or month, or one charge without a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub kind: DifferenceKind,
    pub resource: Option<String>,
    pub from: Timestamp,
    /// What the bill says.
    pub billed: PicoDollars,
    /// What we say, as far as prices are known.
    pub seen: PicoDollars,
}

/// Everything, in classes. What the bill says adds up to the bill, what we say to what we saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciliation {
    pub grain: BillGrain,
    pub all: Vec<Difference>,
}

impl Reconciliation {
    /// How many of a kind, what the bill has for them and what we have.
    pub fn sum(&self, kind: DifferenceKind) -> (usize, PicoDollars, PicoDollars) {
        let of = self.all.iter().filter(|one| one.kind == kind);
        let add = |(count, billed, seen), one: &Difference| {
            (count + 1, billed + one.billed, seen + one.seen)
        };
        of.fold((0, PicoDollars::ZERO, PicoDollars::ZERO), add)
    }
}

#[derive(Default)]
struct Cell {
    billed: Option<PicoDollars>,
    seen: Option<PicoDollars>,
    is_unpriced: bool,
}

/// Compares a bill with the nodes of the same time. Amounts that differ by no more than so many millionths match.
pub fn reconcile(lines: &[BillLine], nodes: &[SeenNode], tolerance_ppm: u32) -> Reconciliation {
    let grain = grain(lines);
    let mut cells: BTreeMap<(String, Timestamp), Cell> = BTreeMap::new();
    let mut all = Vec::new();
    for line in lines {
        match &line.resource {
            Some(resource) => {
                let cell = cells.entry((resource.clone(), grain.start(line.from))).or_default();
                *cell.billed.get_or_insert_default() += line.effective;
            }
            None => all.push(Difference {
                kind: DifferenceKind::NoResource,
                resource: None,
                from: line.from,
                billed: line.effective,
                seen: PicoDollars::ZERO,
            }),
        }
    }
    for node in nodes {
        let name = resource_name(&node.id);
        let mut from = node.from;
        while from < node.to {
            let start = grain.start(from);
            let to = grain.end(start).min(node.to);
            let cell = cells.entry((name.clone(), start)).or_default();
            let money = node.hourly.map_or(PicoDollars::ZERO, |hourly| hourly.for_span(from, to));
            *cell.seen.get_or_insert_default() += money;
            cell.is_unpriced |= node.hourly.is_none();
            from = to;
        }
    }
    all.extend(
        cells
            .into_iter()
            .map(|((resource, from), cell)| cell.difference(resource, from, tolerance_ppm)),
    );
    Reconciliation { grain, all }
}

impl Cell {
    fn difference(&self, resource: String, from: Timestamp, tolerance_ppm: u32) -> Difference {
        let (billed, seen) = (self.billed.unwrap_or_default(), self.seen.unwrap_or_default());
        let kind = match (self.billed, self.seen) {
            (None, _) => DifferenceKind::NotBilled,
            (_, None) => DifferenceKind::NotSeen,
            _ if self.is_unpriced => DifferenceKind::PriceUnknown,
            _ => {
                let apart = (billed - seen).get().unsigned_abs();
                let allowed = billed.get().unsigned_abs() / 1_000_000 * u128::from(tolerance_ppm);
                if apart <= allowed {
                    DifferenceKind::Matched
                } else {
                    DifferenceKind::PriceDiffers
                }
            }
        };
        Difference { kind, resource: Some(resource), from, billed, seen }
    }
}

/// As fine as the longest usage of a resource allows.
fn grain(lines: &[BillLine]) -> BillGrain {
    let usage = lines.iter().filter(|line| line.category == "Usage" && line.resource.is_some());
    let longest = usage.filter_map(|line| line.to.since(line.from)).max().unwrap_or(Micros::HOUR);
    match longest {
        length if length <= Micros::HOUR => BillGrain::Hour,
        length if length <= Micros::HOUR.saturating_mul(24) => BillGrain::Day,
        _ => BillGrain::Month,
    }
}

impl BillGrain {
    fn start(self, time: Timestamp) -> Timestamp {
        let hour = Micros::HOUR.get();
        match self {
            Self::Hour => Timestamp::from_micros(time.as_micros() / hour * hour),
            Self::Day => day_start(time),
            Self::Month => BillingMonth::of(time).start(),
        }
    }

    fn end(self, start: Timestamp) -> Timestamp {
        match self {
            Self::Hour => start.saturating_add(Micros::HOUR),
            Self::Day => start.saturating_add(Micros::HOUR.saturating_mul(24)),
            Self::Month => BillingMonth::of(start).end(),
        }
    }
}
