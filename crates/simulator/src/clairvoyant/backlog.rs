//! The best plan when requests may wait a little: exact in buckets, for short horizons.
//!
//! Work that a step cannot serve waits, first come first served, and is missed when the replicas
//! that are there cannot clear what is before it within the slack. So the backlog never exceeds
//! what the present replicas serve in that time; the rest is missed at once. Within a step arrivals
//! are even, and that bound is looked at when its replicas take over and when it ends.
//!
//! The state is (replicas, backlog in buckets); each step costs replicas x buckets, in time and in
//! memory: an hour of 10 s steps with 20 replicas and 40 buckets each is 2 million cells.

use super::hull::{self, Hull};
use super::sizing::SizedLoad;
use super::{ClairvoyantPlan, carry, paid, stretches};
use crate::seconds::Seconds;

/// How long requests may wait, and how finely that is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// Longest wait that is no miss.
    pub slack: Seconds,
    /// Buckets of work that one replica serves in a step. Arrivals are rounded to buckets, what
    /// is left of one step counted in the next.
    pub buckets: u32,
}

/// The plan of least `replica seconds + price x missed requests`.
pub fn best(load: &SizedLoad<'_>, patience: Patience, price_of_a_miss: f64) -> ClairvoyantPlan {
    let stretches = stretches(load.requests.len(), load.masked);
    let bucket = load.served_per_step / f64::from(patience.buckets);
    let arrivals = buckets(load.requests, bucket);
    let mut replicas = vec![0; load.requests.len()];
    let mut missed = 0;
    for stretch in &stretches {
        let arrivals = &arrivals[stretch.steps.clone()];
        let queue = Queue {
            arrivals,
            served: patience.buckets,
            retained: (patience.slack.get() / load.step.get() * f64::from(patience.buckets)) as u32,
        };
        let money = Money {
            step: load.step.get(),
            start: load.cold_start.get(),
            // Finite, because nothing times infinity is no number.
            bucket: (price_of_a_miss * bucket).min(1e12),
        };
        let plan = search(&queue, &money, stretch.initial(load.initial), load.floor);
        missed += queue.missed(&plan);
        replicas[stretch.steps.clone()].copy_from_slice(&plan);
    }
    let (replica_seconds, starts) =
        paid(&replicas, &stretches, load.step.get(), load.cold_start.get(), load.initial);
    carry(&mut replicas, load.masked);
    ClairvoyantPlan { replicas, replica_seconds, starts, missed: missed as f64 * bucket }
}

/// Corners of the hull of cost and misses.
pub fn hull(load: &SizedLoad<'_>, patience: Patience, limit: usize) -> Hull {
    hull::corners(load.total(), limit, |price| {
        let plan = best(load, patience, price);
        (plan.replica_seconds, plan.missed)
    })
}

/// Work in buckets.
struct Queue<'a> {
    arrivals: &'a [u32],
    /// Per replica and step.
    served: u32,
    /// Backlog that one replica clears in time.
    retained: u32,
}

struct Money {
    step: f64,
    start: f64,
    bucket: f64,
}

impl Queue<'_> {
    /// Backlog after a step, and what was missed in it.
    fn serve(&self, step: usize, replicas: u32, backlog: u32) -> (u32, u32) {
        let retained = backlog.min(self.retained * replicas);
        let left = (retained + self.arrivals[step]).saturating_sub(self.served * replicas);
        let after = left.min(self.retained * replicas);
        (after, backlog - retained + left - after)
    }

    fn missed(&self, plan: &[u32]) -> u64 {
        let (mut backlog, mut missed) = (0, 0);
        for (step, &replicas) in plan.iter().enumerate() {
            let (after, lost) = self.serve(step, replicas, backlog);
            backlog = after;
            missed += u64::from(lost);
        }
        missed
    }
}

/// A cell that no plan reaches.
const NEVER: f64 = f64::INFINITY;

fn search(queue: &Queue<'_>, money: &Money, initial: u32, floor: u32) -> Vec<u32> {
    let most_arrive = queue.arrivals.iter().copied().max().unwrap_or(0);
    // A backlog grows only while there are fewer replicas than the peak needs, and is then no more
    // than those clear in time. Nothing is gained by more than serve it and a peak in one step.
    let peak = most_arrive.div_ceil(queue.served);
    let of_use = (queue.retained * peak + most_arrive).div_ceil(queue.served);
    let sizes = floor.max(of_use) as usize + 1;
    let depth = (queue.retained * peak) as usize + 1;
    let cell = |size: usize, backlog: usize| size * depth + backlog;
    let mut cost = vec![NEVER; sizes * depth];
    for size in 0..sizes {
        let starts = (size as u32).saturating_sub(initial);
        cost[cell(size, 0)] = f64::from(starts) * money.start;
    }
    // Where each cell came from: size before, backlog before.
    let mut came = Vec::with_capacity(queue.arrivals.len());
    for step in 0..queue.arrivals.len() {
        let mut from = vec![(0_u32, 0_u32); sizes * depth];
        let mut after = vec![NEVER; sizes * depth];
        let (moved, before) = if step == 0 {
            let stay = (0..sizes * depth).map(|at| (at / depth) as u32).collect();
            (cost, stay)
        } else {
            resize(&cost, sizes, depth, money.start)
        };
        for size in floor as usize..sizes {
            for backlog in 0..depth {
                let at = cell(size, backlog);
                if moved[at] == NEVER {
                    continue;
                }
                let (left, lost) = queue.serve(step, size as u32, backlog as u32);
                let total = moved[at] + size as f64 * money.step + f64::from(lost) * money.bucket;
                let to = cell(size, left as usize);
                if total < after[to] {
                    after[to] = total;
                    from[to] = (before[at], backlog as u32);
                }
            }
        }
        came.push(from);
        cost = after;
    }
    trace_back(&cost, &came, depth)
}

/// The cheapest way to each size, and the size before it.
fn resize(cost: &[f64], sizes: usize, depth: usize, start: f64) -> (Vec<f64>, Vec<u32>) {
    let mut moved = cost.to_vec();
    let mut before: Vec<u32> = (0..cost.len()).map(|at| (at / depth) as u32).collect();
    for size in 1..sizes {
        for backlog in 0..depth {
            let (at, below) = (size * depth + backlog, (size - 1) * depth + backlog);
            if moved[below] + start < moved[at] {
                moved[at] = moved[below] + start;
                before[at] = before[below];
            }
        }
    }
    for size in (0..sizes - 1).rev() {
        for backlog in 0..depth {
            let (at, above) = (size * depth + backlog, (size + 1) * depth + backlog);
            if moved[above] < moved[at] {
                moved[at] = moved[above];
                before[at] = before[above];
            }
        }
    }
    (moved, before)
}

fn trace_back(cost: &[f64], came: &[Vec<(u32, u32)>], depth: usize) -> Vec<u32> {
    let last = (0..cost.len()).min_by(|&a, &b| cost[a].total_cmp(&cost[b])).unwrap_or(0);
    let mut at = last;
    let mut plan = vec![0; came.len()];
    for (step, from) in came.iter().enumerate().rev() {
        plan[step] = (at / depth) as u32;
        let (size, backlog) = from[at];
        at = size as usize * depth + backlog as usize;
    }
    plan
}

/// Requests in whole buckets; what rounding leaves of a step goes to the next.
fn buckets(requests: &[f64], bucket: f64) -> Vec<u32> {
    let (mut seen, mut given) = (0.0, 0_u64);
    requests
        .iter()
        .map(|&requests| {
            seen += requests / bucket;
            let upto = (seen.round() as u64).max(given);
            let now = upto - given;
            given = upto;
            now as u32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::sizing;
    use super::super::sizing::tests::cases;
    use super::*;
    use proptest::prelude::*;

    /// Least cost over every plan with fewer than `base` replicas.
    fn brute(load: &SizedLoad<'_>, base: u32, retained_per_replica: f64, price: f64) -> f64 {
        let steps = load.requests.len();
        let mut least = f64::INFINITY;
        'plans: for code in 0..base.pow(steps as u32) {
            let (mut cost, mut backlog, mut before) = (0.0, 0.0_f64, load.initial);
            for t in 0..steps {
                let now = code / base.pow(t as u32) % base;
                if now < load.floor {
                    continue 'plans;
                }
                let room = retained_per_replica * f64::from(now);
                let waits = backlog.min(room);
                let served = load.served_per_step * f64::from(now);
                let left = (waits + load.requests[t] - served).max(0.0);
                cost += price * (backlog - waits + (left - room).max(0.0));
                backlog = left.min(room);
                cost += f64::from(now) * load.step.get();
                cost += f64::from(now.saturating_sub(before)) * load.cold_start.get();
                before = now;
            }
            least = least.min(cost);
        }
        least
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn no_plan_is_better_when_work_may_wait(
            requests in prop_oneof![
                prop::collection::vec(0_u32..=8, 1..=5),
                prop::collection::vec(0_u32..=4, 6..=7),
            ],
            cold_start in 0_u32..=12, initial in 0_u32..=3, floor in 0_u32..=1,
            quarters in 0_u32..=6, price in 0.0..6.0_f64,
        ) {
            let requests: Vec<f64> = requests.into_iter().map(f64::from).collect();
            let load = SizedLoad {
                requests: &requests, masked: &[], step: Seconds(2.0), served_per_step: 4.0,
                cold_start: Seconds(f64::from(cold_start)), initial, floor,
            };
            let slack = Seconds(0.5 * f64::from(quarters));
            let plan = best(&load, Patience { slack, buckets: 4 }, price);
            let base = if requests.len() <= 5 { 7 } else { 5 };
            let least = brute(&load, base, f64::from(quarters), price);
            let mine = plan.replica_seconds + price * plan.missed;
            prop_assert!((mine - least).abs() < 1e-9 * (1.0 + least), "{mine} and {least}");
        }

        #[test]
        fn without_patience_it_is_plain_sizing(case in cases(), price in 0.0..6.0_f64) {
            let load = case.load();
            let patience = Patience { slack: Seconds::ZERO, buckets: 4 };
            let value = |plan: ClairvoyantPlan| plan.replica_seconds + price * plan.missed;
            let (waiting, plain) =
                (value(best(&load, patience, price)), value(sizing::best(&load, price)));
            prop_assert!((waiting - plain).abs() < 1e-9 * (1.0 + plain), "{waiting} and {plain}");
        }
    }

    #[test]
    fn rounding_loses_no_work() {
        assert_eq!(buckets(&[0.4, 0.4, 0.4, 0.4], 1.0), [0, 1, 0, 1]);
    }
}
