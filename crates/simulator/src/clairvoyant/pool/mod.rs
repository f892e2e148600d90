//! Several models, each with one or more variants, in one pool that may lend to training.
//!
//! Start with `Problem` and [`bounded`]. `relax` is the lower bound: a linear program over time
//! in which replicas may be fractions. `round` makes a plan of whole replicas from it. `price`
//! raises the bound where each model has one variant: it works on the steps as they are, while the
//! program may have to average them. What no policy can beat lies between bound and plan; [`Bounded::gap`] says how far apart they are.

mod price;
mod relax;
mod round;

pub use super::solver::Unsolved;

use super::{Stretch, stretches};
use crate::seconds::Seconds;

/// One way to serve a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClairvoyantVariant {
    /// Which model, as an index into `work`.
    pub model: usize,
    /// Requests per second that one replica serves. Any unit of work will do.
    pub serves: f64,
    /// Price of one replica for a second.
    pub price: f64,
    /// Accelerators of one replica.
    pub gpus: u32,
    /// Time from the order to the first answer, paid in full. Its whole steps occupy the pool.
    pub cold_start: Seconds,
    /// Replicas before the first step.
    pub initial: u32,
}

/// A fixed number of accelerators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClairvoyantPool {
    /// How many.
    pub gpus: u32,
    /// What idle ones may do.
    pub lending: Option<ClairvoyantLending>,
}

/// Training that takes what is left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClairvoyantLending {
    /// Worth of one accelerator lent for a second.
    pub value: f64,
    /// What is lost each time one accelerator is lent again: work since the last checkpoint and
    /// the time to restore.
    pub restart: f64,
    /// Accelerators lent before the first step.
    pub initial: u32,
}

/// What has to be served, and with what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClairvoyantProblem<'a> {
    /// Requests per second, per model and step.
    pub work: &'a [Vec<f64>],
    /// Steps without data; empty for none.
    pub masked: &'a [bool],
    /// Length of a step.
    pub step: Seconds,
    /// Ways to serve.
    pub variants: &'a [ClairvoyantVariant],
    /// The pool; without one there is no limit.
    pub pool: Option<ClairvoyantPool>,
    /// Price of a request that is not served. Finite, so that every pool has a best plan.
    pub price_of_a_miss: f64,
}

/// How coarsely the lower bound is computed. Coarser is faster, and lower; never wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grain {
    /// Steps that are averaged into one.
    pub merge: usize,
    /// Such averages per linear program. What runs at the start of a program is free, except in
    /// the first.
    pub piece: usize,
}

/// A plan for all variants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mix {
    /// Replicas that serve, per variant and step.
    pub replicas: Vec<Vec<u32>>,
    /// Accelerators lent, per step.
    pub lent: Vec<u32>,
}

/// What a plan costs, in money.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bill {
    /// For replicas that serve.
    pub running: f64,
    /// For cold starts.
    pub starting: f64,
    /// For requests not served.
    pub missing: f64,
    /// Requests not served.
    pub missed: f64,
    /// Worth of what was lent, less restarts.
    pub lending: f64,
    /// Time that accelerators were lent.
    pub lent_gpu_seconds: f64,
}

impl Bill {
    /// What is left to pay.
    pub fn total(&self) -> f64 {
        self.spent() - self.lending
    }

    /// What is paid before lending brings anything in.
    pub fn spent(&self) -> f64 {
        self.running + self.starting + self.missing
    }
}

/// The best plan lies between a bound and a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounded {
    /// No plan costs less.
    pub bound: f64,
    /// A plan that can be carried out.
    pub mix: Mix,
    /// What it costs.
    pub bill: Bill,
}

impl Bounded {
    /// How far the plan may be from the best, as a share of what it spends.
    pub fn gap(&self) -> f64 {
        let apart = self.bill.total() - self.bound;
        if self.bill.spent() > 0.0 { apart / self.bill.spent() } else { 0.0 }
    }
}

/// A lower bound on what any plan costs, and a plan.
pub fn bounded(problem: &ClairvoyantProblem<'_>, grain: Grain) -> Result<Bounded, Unsolved> {
    let relaxed = relax::relax(problem, grain)?;
    let (mix, bill) = round::round(problem, &relaxed.replicas);
    let mut found = Bounded { bound: relaxed.bound, mix, bill };
    if let Some(pool) = problem.pool.filter(|_| problem.one_variant_each()) {
        let (bound, replicas) = price::price(problem, pool, &found);
        found.bound = found.bound.max(bound);
        let (mix, bill) = round::round(problem, &replicas);
        if bill.total() < found.bill.total() {
            (found.mix, found.bill) = (mix, bill);
        }
    }
    Ok(found)
}

/// What a plan costs, or nothing if the pool cannot hold it.
pub fn bill(problem: &ClairvoyantProblem<'_>, mix: &Mix) -> Option<Bill> {
    let mut bill = Bill::default();
    let stretches = problem.stretches();
    let seconds = problem.step.get();
    for stretch in &stretches {
        for (variant, plan) in problem.variants.iter().zip(&mix.replicas) {
            for (now, starts) in
                changes(&plan[stretch.steps.clone()], stretch.initial(variant.initial))
            {
                bill.running += variant.price * f64::from(now) * seconds;
                bill.starting += variant.price * f64::from(starts) * variant.cold_start.get();
            }
        }
        for (model, work) in problem.work.iter().enumerate() {
            for step in stretch.steps.clone() {
                let served = problem.served(model, mix, step);
                bill.missed += (work[step] - served).max(0.0) * seconds;
            }
        }
    }
    bill.missing = bill.missed * problem.price_of_a_miss;
    let Some(pool) = problem.pool else { return Some(bill) };
    let mut used: Vec<u64> = mix.lent.iter().map(|&lent| u64::from(lent)).collect();
    for (variant, plan) in problem.variants.iter().zip(&mix.replicas) {
        problem.occupy(variant, plan, &mut used);
    }
    let scored = || stretches.iter().flat_map(|stretch| stretch.steps.clone());
    if scored().any(|step| used[step] > u64::from(pool.gpus)) {
        return None;
    }
    if let Some(lending) = pool.lending {
        for stretch in &stretches {
            for (lent, more) in
                changes(&mix.lent[stretch.steps.clone()], stretch.initial(lending.initial))
            {
                bill.lent_gpu_seconds += f64::from(lent) * seconds;
                bill.lending -= f64::from(more) * lending.restart;
            }
        }
        bill.lending += bill.lent_gpu_seconds * lending.value;
    } else if scored().any(|step| mix.lent[step] > 0) {
        return None;
    }
    Some(bill)
}

impl ClairvoyantProblem<'_> {
    fn steps(&self) -> usize {
        self.work.first().map_or(0, Vec::len)
    }

    fn one_variant_each(&self) -> bool {
        let of = |model| self.variants.iter().filter(|variant| variant.model == model).count();
        (0..self.work.len()).all(|model| of(model) == 1)
    }

    fn stretches(&self) -> Vec<Stretch> {
        stretches(self.steps(), self.masked)
    }

    /// Whole steps for which a start occupies the pool before it serves.
    fn lead(&self, variant: &ClairvoyantVariant) -> usize {
        (variant.cold_start.get() / self.step.get() + 1e-9) as usize
    }

    fn served(&self, model: usize, mix: &Mix, step: usize) -> f64 {
        let of_model = |(variant, _): &(&ClairvoyantVariant, _)| variant.model == model;
        let plans = self.variants.iter().zip(&mix.replicas).filter(of_model);
        plans.map(|(variant, plan)| variant.serves * f64::from(plan[step])).sum()
    }

    /// Adds the accelerators that a plan occupies, starts included.
    fn occupy(&self, variant: &ClairvoyantVariant, plan: &[u32], used: &mut [u64]) {
        let lead = self.lead(variant);
        for stretch in self.stretches() {
            let first = stretch.steps.start;
            let replicas = &plan[stretch.steps.clone()];
            let changes = changes(replicas, stretch.initial(variant.initial));
            for (step, (now, starts)) in stretch.steps.clone().zip(changes) {
                used[step] += u64::from(now * variant.gpus);
                if starts > 0 {
                    let from = step.saturating_sub(lead).max(first);
                    used[from..step].iter_mut().for_each(|used| {
                        *used += u64::from(starts * variant.gpus);
                    });
                }
            }
        }
    }
}

/// Each size with what was added to reach it.
fn changes(sizes: &[u32], initial: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
    let mut before = initial;
    sizes.iter().map(move |&now| {
        let more = now.saturating_sub(before);
        before = now;
        (now, more)
    })
}

#[cfg(test)]
mod tests;
