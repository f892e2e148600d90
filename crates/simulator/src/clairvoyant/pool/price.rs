//! A lower bound by prices of the pool's accelerators.
//!
//! Let each accelerator have a price in each step, whatever it is. Then each model and training
//! decide alone, exactly, and what they spend less what the pool would earn is never more than the
//! best plan costs. The prices are raised where the pool is asked for more than it has and lowered
//! where it has more, in steps after Polyak; the best bound counts. With the best prices this is
//! the bound of the linear program over all steps, without averages.

use super::super::sizing::{Sizing, right_size, right_size_at, whole};
use super::{
    Bounded, ClairvoyantLending, ClairvoyantPool, ClairvoyantProblem, ClairvoyantVariant, changes,
};

/// Rounds of prices. More only raise the bound; each costs one exact sizing of each model.
const ROUNDS: usize = 60;

/// The bound, and the replicas wanted at its prices, per variant and step.
pub(super) fn price(
    problem: &ClairvoyantProblem<'_>,
    pool: ClairvoyantPool,
    known: &Bounded,
) -> (f64, Vec<Vec<f64>>) {
    // What training pays is the price wherever the pool is not short.
    let idle = pool.lending.map_or(0.0, |lending| lending.value * problem.step.get());
    let mut prices = vec![idle; problem.steps()];
    let mut best = f64::NEG_INFINITY;
    let mut desired = Vec::new();
    let (mut stride, mut since) = (1.0, 0);
    let mut direction = vec![0.0; problem.steps()];
    for _ in 0..ROUNDS {
        let market = Market::clear(problem, pool, &prices);
        if market.bound > best {
            (best, since) = (market.bound, 0);
            desired = market.replicas;
        } else {
            since += 1;
        }
        if since == 4 {
            (stride, since) = (stride * 0.5, 0);
        }
        // Half of the last direction is kept, which stops prices from swinging.
        for (direction, over) in direction.iter_mut().zip(&market.over) {
            *direction = 0.5 * *direction + over;
        }
        let length: f64 = direction.iter().map(|over| over * over).sum();
        let apart = known.bill.total() - market.bound;
        if length <= 0.0 || apart <= 1e-9 * known.bill.spent() {
            break;
        }
        for (price, over) in prices.iter_mut().zip(&direction) {
            *price = (*price + stride * apart / length * over).max(0.0);
        }
    }
    let fractions = |plan: Vec<u32>| plan.into_iter().map(f64::from).collect();
    (best, desired.into_iter().map(fractions).collect())
}

/// What everybody does at given prices.
struct Market {
    bound: f64,
    replicas: Vec<Vec<u32>>,
    /// Accelerators asked for beyond the pool, per step.
    over: Vec<f64>,
}

impl Market {
    fn clear(problem: &ClairvoyantProblem<'_>, pool: ClairvoyantPool, prices: &[f64]) -> Self {
        let mut market = Self { bound: 0.0, replicas: Vec::new(), over: vec![0.0; prices.len()] };
        let scored = problem.stretches().into_iter().flat_map(|stretch| stretch.steps);
        for step in scored {
            market.over[step] = -f64::from(pool.gpus);
            market.bound -= prices[step] * f64::from(pool.gpus);
        }
        for variant in problem.variants {
            market.serve(problem, pool, variant, prices);
        }
        if let Some(lending) = pool.lending {
            market.lend(problem, pool, lending, prices);
        }
        market
    }

    fn serve(
        &mut self,
        problem: &ClairvoyantProblem<'_>,
        pool: ClairvoyantPool,
        variant: &ClairvoyantVariant,
        prices: &[f64],
    ) {
        let gpus = f64::from(variant.gpus);
        let seconds = problem.step.get();
        let lost = problem.price_of_a_miss * seconds;
        let lead = problem.lead(variant);
        let mut plan = vec![0; prices.len()];
        for stretch in problem.stretches() {
            let work = &problem.work[variant.model][stretch.steps.clone()];
            let prices = &prices[stretch.steps.clone()];
            // Sums of prices up to each step, for the time in which a start occupies the pool.
            let mut sums = vec![0.0];
            sums.extend(prices.iter().scan(0.0, |sum, price| {
                *sum += price;
                Some(*sum)
            }));
            let start_cost = |at: usize| {
                let occupied = sums[at] - sums[at.saturating_sub(lead)];
                variant.price * variant.cold_start.get() + gpus * occupied
            };
            let peak = work.iter().map(|work| whole(work / variant.serves)).max().unwrap_or(0);
            let sizing = Sizing {
                steps: work.len(),
                layers: peak.min(pool.gpus / variant.gpus.max(1)) as usize,
                start_cost: 0.0,
                initial: stretch.initial(variant.initial),
            };
            let running = |at: usize| variant.price * seconds + gpus * prices[at];
            let sizes = right_size_at(&sizing, start_cost, |at, dearer| {
                for (layer, dearer) in dearer.iter_mut().enumerate() {
                    let left = work[at] - layer as f64 * variant.serves;
                    *dearer += running(at) - lost * left.clamp(0.0, variant.serves);
                }
            });
            for (at, (now, starts)) in changes(&sizes, sizing.initial).enumerate() {
                let (now, starts) = (f64::from(now), f64::from(starts));
                let missed = (work[at] - now * variant.serves).max(0.0);
                self.bound += now * running(at) + starts * start_cost(at) + lost * missed;
                let step = stretch.steps.start + at;
                self.over[step] += now * gpus;
                if starts > 0.0 {
                    let early = step - at.min(lead);
                    self.over[early..step].iter_mut().for_each(|over| *over += starts * gpus);
                }
            }
            plan[stretch.steps].copy_from_slice(&sizes);
        }
        self.replicas.push(plan);
    }

    /// All accelerators are alike to training, but for those that were lent from the start.
    fn lend(
        &mut self,
        problem: &ClairvoyantProblem<'_>,
        pool: ClairvoyantPool,
        lending: ClairvoyantLending,
        prices: &[f64],
    ) {
        let worth = lending.value * problem.step.get();
        for stretch in problem.stretches() {
            let there = stretch.initial(lending.initial).min(pool.gpus);
            for (initial, count) in [(1, there), (0, pool.gpus - there)] {
                let steps = stretch.steps.len();
                let sizing = Sizing { steps, layers: 1, start_cost: lending.restart, initial };
                let prices = &prices[stretch.steps.clone()];
                let sizes = right_size(&sizing, |at, dearer| dearer[0] += prices[at] - worth);
                for (at, (now, more)) in changes(&sizes, initial).enumerate() {
                    let now = f64::from(now * count);
                    self.bound += now * (prices[at] - worth);
                    self.bound += f64::from(more * count) * lending.restart;
                    self.over[stretch.steps.start + at] += now;
                }
            }
        }
    }
}
