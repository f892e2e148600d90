//! What somebody would have paid who knew the future: a bound that nobody can pass.
//!
//! Backwards from the deadline over time, work left and place, exactly. It is allowed more than any policy is: saves cost
//! nothing, so that a reclaim takes nothing; work and restarts are rounded down to a part of a step, the deadline up. A
//! restart counts as more work where it is made: who knows the future never leaves before it has paid.

use flyball_core::units::Micros;

use super::market::{SpotMarket, per_hour};
use super::replay::RunToReplay;

/// Parts of a step that are tried, so that a restart is rounded by little.
const MOST_PARTS: u64 = 4;

/// The least that the run could have cost, in dollars. `None` if nobody could have ended it in time.
pub fn optimum(market: &SpotMarket, run: &RunToReplay) -> Option<f64> {
    let grid = Grid::new(market, run);
    let places = market.zones.len() + 2;
    let width = grid.work + grid.restart + 1;
    // What is to be paid from the next step on, by place and work; the last place is on demand, the one before it none.
    let mut after = vec![vec![f64::INFINITY; width]; places];
    let mut now = after.clone();
    for costs in &mut after {
        costs[0] = 0.0;
    }
    for step in (run.start..run.end(market).min(market.steps)).rev() {
        grid.step(market, run, step, &after, &mut now);
        std::mem::swap(&mut after, &mut now);
    }
    let cost = after[market.zones.len()][grid.work];
    cost.is_finite().then_some(cost)
}

/// Times in parts of a step.
struct Grid {
    part_hours: f64,
    /// Parts of a step.
    parts: usize,
    work: usize,
    restart: usize,
    /// The part after the last in which the run may compute, from the first step on.
    end: usize,
}

impl Grid {
    fn new(market: &SpotMarket, run: &RunToReplay) -> Self {
        let lost = |parts: &u64| run.restart.get() % (market.step.get() / parts);
        let parts = (1..=MOST_PARTS).min_by_key(lost).unwrap_or(1);
        let part = (market.step.get() / parts).max(1);
        let whole = |length: Micros| (length.get() / part) as usize;
        Self {
            part_hours: Micros::new(part).as_seconds() / 3_600.0,
            parts: parts as usize,
            work: whole(run.work),
            restart: whole(run.restart),
            end: run.allowed.get().div_ceil(part) as usize,
        }
    }

    fn step(
        &self,
        market: &SpotMarket,
        run: &RunToReplay,
        step: usize,
        after: &[Vec<f64>],
        now: &mut [Vec<f64>],
    ) {
        let none = market.zones.len();
        let begun = (step - run.start) * self.parts;
        let room = self.end.saturating_sub(begun).min(self.parts);
        let price = |place: usize| match market.zones.get(place) {
            Some(zone) if !zone.available[step] => None,
            Some(zone) => Some(per_hour(market.spot_price(zone, step), run.gpus)),
            None => Some(per_hour(market.on_demand, run.gpus)),
        };
        // To be without machines for a step.
        now[none].clone_from(&after[none]);
        let (left, rest) = now.split_at_mut(none);
        let [nowhere, on_demand] = rest else { unreachable!("two more places than zones") };
        let mut places: Vec<(usize, &mut Vec<f64>)> = left.iter_mut().enumerate().collect();
        places.push((none + 1, on_demand));
        for (place, costs) in &mut places {
            let Some(price) = price(*place) else {
                costs.fill(f64::INFINITY);
                continue;
            };
            self.stay(price * self.part_hours, room, &after[*place], costs);
            for work in 0..=self.work {
                nowhere[work] = nowhere[work].min(costs[work + self.restart]);
            }
        }
        // Whoever has machines may leave them for others, or for none.
        for (_, costs) in places {
            for (cost, other) in costs.iter_mut().zip(nowhere.iter()).take(self.work + 1) {
                *cost = cost.min(*other);
            }
        }
    }

    /// To compute in one place for a step, by how much is to be done there.
    fn stay(&self, part_cost: f64, room: usize, after: &[f64], costs: &mut [f64]) {
        for (work, cost) in costs.iter_mut().enumerate() {
            *cost = match work {
                0 => 0.0,
                work if work <= room => part_cost * work as f64,
                work => part_cost * self.parts as f64 + after[work - room],
            };
        }
    }
}
