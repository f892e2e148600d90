//! Whether the model picks the right layout.
//!
//! The question is the one that a planner is asked: of the measured layouts of a model on an
//! accelerator, which gives the most output tokens per second and GPU while each token takes no
//! longer than a bound? Rows with equal load but other layouts are easier questions that trivial
//! rules answer as well, so they are not a figure.

use super::calibrate::RowQuestion;
use flyball_perf::evidence::Spread;
use flyball_perf::layout::ServingLayout;
use std::collections::{BTreeMap, BTreeSet};

/// Seconds per token.
pub(super) const BOUNDS: [f64; 6] = [0.010, 0.015, 0.020, 0.030, 0.050, 0.075];
/// A pick counts when its best measured configuration is within this of the best of all.
const CLOSE: f64 = 0.95;

/// A measured configuration: a layout under a load.
struct Configuration {
    layout: ServingLayout,
    clients: f64,
    measured: f64,
    predicted: f64,
    spread: Option<Spread>,
}

impl Configuration {
    /// Output tokens per second and GPU at this time per token.
    fn rate(&self, tpot: f64) -> f64 {
        self.clients / (tpot * f64::from(self.layout.gpus().get()))
    }

    /// What a chooser expects of it: its rate, if it meets the bound.
    fn expected(&self, bound: f64) -> f64 {
        let chance = match self.spread {
            Some(spread) => spread.chance_within(self.predicted, bound),
            None if self.predicted <= bound => 1.0,
            None => 0.0,
        };
        self.rate(self.predicted) * chance
    }
}

/// Right picks and questions, by bound.
#[derive(Clone, Debug, Default)]
pub(super) struct Picks(pub(super) [(usize, usize); BOUNDS.len()]);

impl Picks {
    pub(super) fn right(&self) -> usize {
        self.0.iter().map(|(right, _)| right).sum()
    }

    pub(super) fn compared(&self) -> usize {
        self.0.iter().map(|(_, compared)| compared).sum()
    }

    pub(super) fn pct(&self) -> f64 {
        100.0 * self.right() as f64 / self.compared().max(1) as f64
    }
}

/// How often the layout picked by these predictions is close to the best. A prediction of `None`
/// leaves the row out. With a spread, a configuration counts by its chance of meeting the bound;
/// without, it counts if it is predicted to. Layouts that `distinguish` makes equal are one choice.
pub(super) fn picks(
    rows: &[RowQuestion],
    distinguish: fn(ServingLayout) -> ServingLayout,
    predicted: &dyn Fn(usize, &RowQuestion) -> Option<f64>,
    spread: &dyn Fn(&RowQuestion) -> Option<Spread>,
) -> Picks {
    let mut groups: BTreeMap<&str, Vec<Configuration>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (place, one) in rows.iter().enumerate() {
        let Some(clients) = one.row.clients() else { continue };
        let Some(predicted) = predicted(place, one) else { continue };
        // The same configuration measured twice is one choice; the first counts.
        if !seen.insert((&one.row.series, clients.to_bits(), one.row.layout)) {
            continue;
        }
        groups.entry(&one.row.series).or_default().push(Configuration {
            layout: distinguish(one.row.layout),
            clients,
            measured: one.row.measured,
            predicted,
            spread: spread(one),
        });
    }
    let mut picks = Picks::default();
    for group in groups.values() {
        let layouts: BTreeSet<ServingLayout> = group.iter().map(|one| one.layout).collect();
        if layouts.len() < 2 {
            continue;
        }
        for (bound, (right, compared)) in BOUNDS.into_iter().zip(&mut picks.0) {
            if let Some(good) = picked_well(group, bound) {
                *compared += 1;
                *right += usize::from(good);
            }
        }
    }
    picks
}

/// Every layout is a choice of its own.
pub(super) const fn by_layout(layout: ServingLayout) -> ServingLayout {
    layout
}

/// Only the number of GPUs is chosen.
pub(super) const fn by_gpus(layout: ServingLayout) -> ServingLayout {
    ServingLayout::tensor(layout.gpus().get())
}

/// `None` where no measured configuration meets the bound.
fn picked_well(group: &[Configuration], bound: f64) -> Option<bool> {
    let best_of = |layout: Option<ServingLayout>| {
        group
            .iter()
            .filter(|one| one.measured <= bound && layout.is_none_or(|only| one.layout == only))
            .map(|one| one.rate(one.measured))
            .fold(0.0, f64::max)
    };
    let best = best_of(None);
    if best <= 0.0 {
        return None;
    }
    let pick = group.iter().max_by(|a, b| a.expected(bound).total_cmp(&b.expected(bound)))?;
    let answered = pick.expected(bound) > 0.0;
    Some(answered && best_of(Some(pick.layout)) >= CLOSE * best)
}
