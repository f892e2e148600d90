//! What somebody who knew the future would have paid: the yardstick of every policy.
//!
//! Start with [`layers`]: the cheapest plan of one variant that misses nothing, exact. [`sizing`]
//! allows misses at a price and is exact too; [`hull`] sweeps that price, and so gives the least
//! cost for each share of misses. [`backlog`] lets requests wait a little, for short horizons.
//! [`pool`] has several models and variants, a shared pool and lent training: a lower bound by a
//! linear program, and beside it a plan in whole replicas that can be carried out. [`causal`] knows
//! how the load moves and not what comes: what is left to gain without a crystal ball.
//!
//! Common to all: a start costs its cold start in replica time, a stop costs nothing, and a masked
//! step (a gap in the data) costs nothing and asks for nothing, neither to run nor to start in. So
//! whatever is needed after a gap is there for free, as a score that leaves out the gap would have
//! it.
//!
//! Nothing here knows the world, its engines or its policies: numbers come in, numbers go out.

pub mod backlog;
pub mod causal;
pub mod hull;
pub mod layers;
pub mod pool;
pub mod sizing;

mod solver;
#[cfg(test)]
mod timing;

use std::ops::Range;

/// A plan for one variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClairvoyantPlan {
    /// Replicas that serve, per step. In a masked step: those of the step before, unpaid.
    pub replicas: Vec<u32>,
    /// Time paid for, starts included.
    pub replica_seconds: f64,
    /// Replicas started.
    pub starts: u64,
    /// Requests missed.
    pub missed: f64,
}

/// One stretch without gaps.
#[derive(Clone, Debug, PartialEq)]
struct Stretch {
    steps: Range<usize>,
    /// Whether a gap is before it, so that what it begins with is free.
    after_gap: bool,
}

impl Stretch {
    /// Replicas that are there before the first step.
    fn initial(&self, at_start: u32) -> u32 {
        if self.after_gap { u32::MAX } else { at_start }
    }
}

/// The stretches between masked steps. An empty mask masks nothing.
fn stretches(steps: usize, masked: &[bool]) -> Vec<Stretch> {
    assert!(masked.is_empty() || masked.len() == steps, "a mask has one entry per step");
    if masked.is_empty() {
        return vec![Stretch { steps: 0..steps, after_gap: false }];
    }
    let mut found = Vec::new();
    let mut from = 0;
    for (end, &masked) in masked.iter().chain([&true]).enumerate() {
        if masked {
            if from < end {
                found.push(Stretch { steps: from..end, after_gap: from > 0 });
            }
            from = end + 1;
        }
    }
    found
}

/// Starts and paid time of a plan, counted from the plan itself.
fn paid(
    plan: &[u32],
    stretches: &[Stretch],
    step_seconds: f64,
    start_seconds: f64,
    at_start: u32,
) -> (f64, u64) {
    let (mut replica_steps, mut starts) = (0_u64, 0_u64);
    for stretch in stretches {
        let mut before = stretch.initial(at_start);
        for &now in &plan[stretch.steps.clone()] {
            replica_steps += u64::from(now);
            starts += u64::from(now.saturating_sub(before));
            before = now;
        }
    }
    (replica_steps as f64 * step_seconds + starts as f64 * start_seconds, starts)
}

/// Fills masked steps with what was before them, for pictures.
fn carry(plan: &mut [u32], masked: &[bool]) {
    for step in 1..plan.len() {
        if masked.get(step) == Some(&true) {
            plan[step] = plan[step - 1];
        }
    }
}
