//! Which models fit together on accelerators that are there already.
//!
//! Each model gets one kind of accelerator; every combination is tried, so the answer is exact for that rule. With
//! four kinds and eight models that are 65,536.

use super::serve::ServeChoice;

/// One way to serve a model on one kind of accelerator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// Index of the kind.
    pub kind: usize,
    /// Index into the choices that it was made from.
    pub choice: usize,
    pub gpus_per_replica: u32,
    /// Requests per second that a replica is planned for.
    pub per_replica: f64,
    /// Replicas at least.
    pub fewest: u32,
}

impl Way {
    /// The way of a choice, planned for a share of what it carries.
    pub fn of(index: usize, choice: &ServeChoice, most_load: f64, fewest: u32) -> Self {
        Self {
            kind: choice.part,
            choice: index,
            gpus_per_replica: choice.layout.gpus().get(),
            per_replica: choice.capacity.point * most_load,
            fewest: fewest.max(1),
        }
    }

    /// Replicas for a rate.
    pub fn replicas(&self, rate: f64) -> u32 {
        ((rate / self.per_replica - 1e-9).ceil().clamp(0.0, 1e6) as u32).max(self.fewest)
    }

    fn gpus(&self, rate: f64) -> u32 {
        self.replicas(rate).saturating_mul(self.gpus_per_replica)
    }
}

/// What one model asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetDemand {
    /// Requests per second.
    pub rate: f64,
    /// Every way to serve it; none if no kind can.
    pub ways: Vec<Way>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// For each model its way, or `None` if it is left out.
    pub placed: Vec<Option<Way>>,
    /// Share of its rate that every placed model gets.
    pub share: f64,
    /// Accelerators of each kind that are left.
    pub left: Vec<u32>,
}

/// Everything at its full rate if that fits, with as few accelerators as possible.
pub fn all(demands: &[FleetDemand], stock: &[u32]) -> Option<Placement> {
    at(demands, stock, 1.0, false).filter(|found| found.placed.iter().all(Option::is_some))
}

/// Everything at the largest common share of its rate, to one part in a thousand.
pub fn scaled(demands: &[FleetDemand], stock: &[u32]) -> Option<Placement> {
    let everybody = |share: f64| {
        at(demands, stock, share, false).filter(|found| found.placed.iter().all(Option::is_some))
    };
    let mut best = everybody(1e-6)?;
    let (mut low, mut high) = (1e-6, 1.0);
    while high - low > 1e-3 {
        let middle = f64::midpoint(low, high);
        match everybody(middle) {
            Some(found) => (low, best) = (middle, found),
            None => high = middle,
        }
    }
    Some(best)
}

/// As many models as possible at their full rate.
pub fn most(demands: &[FleetDemand], stock: &[u32]) -> Placement {
    at(demands, stock, 1.0, true).unwrap_or_else(|| Placement {
        placed: vec![None; demands.len()],
        share: 1.0,
        left: stock.to_vec(),
    })
}

fn at(
    demands: &[FleetDemand],
    stock: &[u32],
    share: f64,
    may_leave_out: bool,
) -> Option<Placement> {
    let mut search = Search {
        share,
        may_leave_out,
        options: demands.iter().map(|one| cheapest_of_each(one, share, stock.len())).collect(),
        now: Vec::new(),
        left: stock.to_vec(),
        best: None,
    };
    search.try_from(0, (0, 0));
    search.best.map(|(_, placement)| placement)
}

/// The way with the fewest accelerators on each kind: nothing else matters to the others.
fn cheapest_of_each(demand: &FleetDemand, share: f64, kinds: usize) -> Vec<(u32, Way)> {
    let rate = demand.rate * share;
    let of = |kind: usize| {
        let ways = demand.ways.iter().filter(|way| way.kind == kind);
        ways.map(|way| (way.gpus(rate), *way))
            .min_by_key(|(gpus, way)| (*gpus, way.gpus_per_replica))
    };
    (0..kinds).filter_map(of).collect()
}

struct Search {
    share: f64,
    may_leave_out: bool,
    options: Vec<Vec<(u32, Way)>>,
    now: Vec<Option<Way>>,
    left: Vec<u32>,
    /// Models left out and accelerators used: fewer are better.
    best: Option<((u32, u32), Placement)>,
}

impl Search {
    fn try_from(&mut self, model: usize, cost: (u32, u32)) {
        if self.best.as_ref().is_some_and(|(best, _)| *best <= cost) {
            return;
        }
        if model == self.options.len() {
            let placement =
                Placement { placed: self.now.clone(), share: self.share, left: self.left.clone() };
            self.best = Some((cost, placement));
            return;
        }
        for (gpus, way) in self.options[model].clone() {
            if gpus <= self.left[way.kind] {
                self.left[way.kind] -= gpus;
                self.now.push(Some(way));
                self.try_from(model + 1, (cost.0, cost.1 + gpus));
                self.now.pop();
                self.left[way.kind] += gpus;
            }
        }
        if self.may_leave_out {
            self.now.push(None);
            self.try_from(model + 1, (cost.0 + 1, cost.1));
            self.now.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn way(kind: usize, gpus_per_replica: u32, per_replica: f64) -> Way {
        Way { kind, choice: 0, gpus_per_replica, per_replica, fewest: 1 }
    }

    #[test]
    fn a_model_moves_aside_for_one_that_cannot() {
        // The first needs fewer of kind 0, but the second runs nowhere else.
        let demands = [
            FleetDemand { rate: 10.0, ways: vec![way(0, 1, 5.0), way(1, 1, 2.0)] },
            FleetDemand { rate: 4.0, ways: vec![way(0, 4, 4.0)] },
        ];
        let found = all(&demands, &[4, 8]).unwrap();
        assert_eq!(found.placed[0].unwrap().kind, 1);
        assert_eq!(found.left, [0, 3]);
        assert_eq!(all(&demands, &[4, 4]), None);
    }

    #[test]
    fn what_does_not_fit_is_scaled_down_or_left_out() {
        let demands = [
            FleetDemand { rate: 10.0, ways: vec![way(0, 1, 1.0)] },
            FleetDemand { rate: 10.0, ways: vec![way(0, 1, 1.0)] },
        ];
        let half = scaled(&demands, &[10]).unwrap();
        assert!((half.share - 0.5).abs() < 0.01, "{half:?}");
        let one = most(&demands, &[10]);
        assert_eq!(one.placed.iter().flatten().count(), 1);
        assert_eq!(scaled(&demands, &[1]), None, "each needs one at least");
    }

    proptest! {
        #[test]
        fn nothing_is_given_out_twice_and_more_stock_never_serves_less(
            ways in prop::collection::vec((0_usize..3, 1_u32..5, 0.5..4.0_f64), 1..10),
            rates in prop::collection::vec(0.5..20.0_f64, 1..5),
            stock in prop::collection::vec(0_u32..30, 3),
        ) {
            let demands: Vec<FleetDemand> = rates.iter().enumerate().map(|(n, rate)| {
                let own = ways.iter().skip(n % 2).map(|(kind, gpus, each)| way(*kind, *gpus, *each));
                FleetDemand { rate: *rate, ways: own.collect() }
            }).collect();
            let found = most(&demands, &stock);
            let mut used = [0; 3];
            for (way, one) in found.placed.iter().zip(&demands) {
                if let Some(way) = way {
                    used[way.kind] += way.gpus(one.rate);
                }
            }
            for kind in 0..3 {
                prop_assert_eq!(used[kind] + found.left[kind], stock[kind]);
            }
            let more: Vec<u32> = stock.iter().map(|gpus| gpus + 5).collect();
            let served = |placement: &Placement| placement.placed.iter().flatten().count();
            prop_assert!(served(&most(&demands, &more)) >= served(&found));
        }
    }
}
