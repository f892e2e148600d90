//! The least cost for each share of misses: the lower hull of what any plan can reach.
//!
//! Each price of a miss gives one corner of the hull. The price at which two known corners cost
//! the same either finds a corner between them or proves that there is none.

use super::sizing::{self, SizedLoad};

/// One plan's cost and misses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Time paid for, in replica seconds (of `pool`: money).
    pub cost: f64,
    /// Requests missed.
    pub missed: f64,
    /// The price of a miss, in units of the cost, at which this is best.
    pub lambda: f64,
}

/// Corners of the hull.
#[derive(Clone, Debug, PartialEq)]
pub struct Hull {
    /// From no misses to the most, so from the dearest to the cheapest.
    pub points: Vec<Point>,
    /// Requests of which they were missed.
    pub requests: f64,
    /// Whether these are all corners. If not, lines between them lie above the true hull.
    pub complete: bool,
}

/// Corners of one variant's hull, the most telling `limit` of them.
pub fn hull(load: &SizedLoad<'_>, limit: usize) -> Hull {
    corners(load.total(), limit, |price| {
        let plan = sizing::best(load, price);
        (plan.replica_seconds, plan.missed)
    })
}

/// The exact hull of one variant at one share of misses, without the rest of it.
pub fn at_budget(load: &SizedLoad<'_>, missed_share: f64) -> Point {
    narrow(missed_share * load.total(), |price| {
        let plan = sizing::best(load, price);
        (plan.replica_seconds, plan.missed)
    })
}

impl Hull {
    /// The hull at a share of misses, between corners on the line that joins them.
    pub fn at_budget(&self, missed_share: f64) -> Point {
        let budget = missed_share * self.requests;
        let after = self.points.partition_point(|point| point.missed <= budget);
        match (after.checked_sub(1).map(|at| self.points[at]), self.points.get(after)) {
            (Some(left), Some(&right)) => between(left, right, budget),
            (Some(only), None) => only,
            (None, Some(&only)) => only,
            (None, None) => Point { cost: 0.0, missed: 0.0, lambda: 0.0 },
        }
    }
}

/// Corners of any hull: `solve` gives cost and misses of the best plan at a price, which is 0 and
/// infinite at the ends.
pub fn corners(requests: f64, limit: usize, mut solve: impl FnMut(f64) -> (f64, f64)) -> Hull {
    let (left, right) = ends(&mut solve);
    if left.missed >= right.missed {
        return Hull { points: vec![left], requests, complete: true };
    }
    // Open lines, the one under which most may hide first.
    let mut open = vec![(left, right)];
    let mut points = vec![left, right];
    while points.len() < limit {
        let hidden = |(left, right): &(Point, Point)| {
            (left.cost - right.cost) * (right.missed - left.missed)
        };
        let largest =
            (0..open.len()).max_by(|&a, &b| hidden(&open[a]).total_cmp(&hidden(&open[b])));
        let Some(largest) = largest else { break };
        let (left, right) = open.swap_remove(largest);
        if let Some(corner) = corner_between(left, right, &mut solve) {
            open.extend([(left, corner), (corner, right)]);
            points.push(corner);
        }
    }
    points.sort_by(|a, b| a.missed.total_cmp(&b.missed));
    Hull { points, requests, complete: open.is_empty() }
}

/// The exact hull at one number of misses.
pub fn narrow(budget: f64, mut solve: impl FnMut(f64) -> (f64, f64)) -> Point {
    let (mut left, mut right) = ends(&mut solve);
    if budget <= left.missed {
        return left;
    }
    if budget >= right.missed {
        return right;
    }
    while let Some(corner) = corner_between(left, right, &mut solve) {
        if corner.missed <= budget {
            left = corner;
        } else {
            right = corner;
        }
    }
    between(left, right, budget)
}

fn ends(solve: &mut impl FnMut(f64) -> (f64, f64)) -> (Point, Point) {
    let mut at = |lambda| {
        let (cost, missed) = solve(lambda);
        Point { cost, missed, lambda }
    };
    (at(f64::INFINITY), at(0.0))
}

fn corner_between(
    left: Point,
    right: Point,
    solve: &mut impl FnMut(f64) -> (f64, f64),
) -> Option<Point> {
    let lambda = (left.cost - right.cost) / (right.missed - left.missed);
    let (cost, missed) = solve(lambda);
    let (line, found) = (left.cost + lambda * left.missed, cost + lambda * missed);
    // What is not below the line by more than rounding is on it.
    let below = found < line - 1e-9 * line.abs();
    let inside = left.missed < missed && missed < right.missed;
    (below && inside).then_some(Point { cost, missed, lambda })
}

fn between(left: Point, right: Point, missed: f64) -> Point {
    let share = (missed - left.missed) / (right.missed - left.missed);
    let lambda = (left.cost - right.cost) / (right.missed - left.missed);
    Point { cost: left.cost + share * (right.cost - left.cost), missed, lambda }
}

#[cfg(test)]
mod tests {
    use super::super::sizing::tests::{cases, every};
    use super::*;
    use proptest::prelude::*;

    /// Least cost on the line between any two plans around the budget, from all plans.
    fn brute(all: &[(f64, f64)], budget: f64) -> f64 {
        let mut least = f64::INFINITY;
        for &(cost, missed) in all.iter().filter(|plan| plan.1 <= budget) {
            least = least.min(cost);
            for &(cheaper, more) in all.iter().filter(|plan| plan.1 > budget && plan.0 < cost) {
                let share = (budget - missed) / (more - missed);
                least = least.min(cost + share * (cheaper - cost));
            }
        }
        least
    }

    /// The cheapest plan of each number of misses: the rest cannot be on the hull.
    fn front(mut all: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
        all.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.total_cmp(&b.0)));
        all.dedup_by(|next, first| next.1 == first.1);
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_hull_is_that_of_all_plans(case in cases(), share in 0.0..1.0_f64) {
            let load = case.load();
            let all = front(every(&load));
            let hull = hull(&load, usize::MAX);
            prop_assert!(hull.complete);
            for share in [0.0, 0.01, share, 1.0] {
                let least = brute(&all, share * load.total());
                for point in [hull.at_budget(share), at_budget(&load, share)] {
                    let apart = (point.cost - least).abs();
                    prop_assert!(apart < 1e-9 * (1.0 + least), "{} and {least}", point.cost);
                }
            }
            for pair in hull.points.windows(2) {
                prop_assert!(pair[0].cost > pair[1].cost && pair[0].missed < pair[1].missed);
            }
        }
    }
}
