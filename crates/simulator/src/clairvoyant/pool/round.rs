//! A plan of whole replicas near the fractions of the linear program.
//!
//! The fractions are rounded. Then each variant in turn is sized anew, exactly, with the others as
//! they are: it serves what they leave, in the room they leave. What the pool cannot hold after
//! all (a start needs room before it serves) is not started; training gets what is then left,
//! again by exact sizing. Of a few roundings and orders the cheapest plan wins; one of them is the
//! rounding as it is, which is best where the program's answer was whole already.

use super::super::sizing::{Sizing, right_size, whole};
use super::super::{Stretch, carry};
use super::{Bill, ClairvoyantProblem, Mix, bill};

/// What is tried: what is added to fractions before they are cut, how often all variants are sized
/// anew, and whether the last comes first.
const TRIES: [(f64, usize, bool); 6] = [
    (0.5, 0, false),
    (0.5, 0, true),
    (0.0, 2, false),
    (0.0, 2, true),
    (0.5, 2, false),
    (0.5, 2, true),
];

pub(super) fn round(problem: &ClairvoyantProblem<'_>, relaxed: &[Vec<f64>]) -> (Mix, Bill) {
    let mut best: Option<(Mix, Bill)> = None;
    for (up, passes, backwards) in TRIES {
        let mut mix = start(relaxed, up);
        let mut order: Vec<usize> = (0..problem.variants.len()).collect();
        if backwards {
            order.reverse();
        }
        for &variant in order.iter().cycle().take(passes * order.len()) {
            resize(problem, &mut mix, variant);
        }
        fit(problem, &mut mix, &order);
        lend(problem, &mut mix);
        let bill = bill(problem, &mix).expect("what did not fit was taken out");
        if best.as_ref().is_none_or(|(_, least)| bill.total() < least.total()) {
            best = Some((mix, bill));
        }
    }
    let (mut mix, bill) = best.expect("several were tried");
    mix.replicas.iter_mut().for_each(|plan| carry(plan, problem.masked));
    carry(&mut mix.lent, problem.masked);
    (mix, bill)
}

/// Fractions of at least `1 - up` become a whole replica; float noise does not.
fn start(relaxed: &[Vec<f64>], up: f64) -> Mix {
    let whole = |&part: &f64| (part + up + 1e-7).floor() as u32;
    let replicas = relaxed.iter().map(|plan| plan.iter().map(whole).collect()).collect();
    Mix { replicas, lent: vec![0; relaxed.first().map_or(0, Vec::len)] }
}

/// Sizes one variant anew, exactly, with the others as they are.
fn resize(problem: &ClairvoyantProblem<'_>, mix: &mut Mix, index: usize) {
    let variant = problem.variants[index];
    mix.replicas[index].fill(0);
    let mut used = vec![0; problem.steps()];
    for (other, plan) in problem.variants.iter().zip(&mix.replicas) {
        problem.occupy(other, plan, &mut used);
    }
    let room = |step: usize| {
        let pool = problem.pool.map_or(u64::from(u32::MAX), |pool| u64::from(pool.gpus));
        (pool.saturating_sub(used[step]) / u64::from(variant.gpus.max(1))) as usize
    };
    // An accelerator that serves is one that is not lent.
    let lending = problem.pool.and_then(|pool| pool.lending).map_or(0.0, |lending| lending.value);
    let seconds = problem.step.get();
    let running = (variant.price + lending * f64::from(variant.gpus)) * seconds;
    let lost = problem.price_of_a_miss * seconds;
    for stretch in problem.stretches() {
        let first = stretch.steps.start;
        let left = |step: usize| {
            problem.work[variant.model][step] - problem.served(variant.model, mix, step)
        };
        let left: Vec<f64> = stretch.steps.clone().map(left).collect();
        let need = |(at, left): (usize, &f64)| {
            (whole(left / variant.serves) as usize).min(room(first + at))
        };
        let sizing = Sizing {
            steps: left.len(),
            layers: left.iter().enumerate().map(need).max().unwrap_or(0),
            start_cost: variant.price * variant.cold_start.get(),
            initial: stretch.initial(variant.initial),
        };
        let plan = right_size(&sizing, |at, dearer| {
            let room = room(first + at).min(dearer.len());
            dearer[room..].fill(f64::INFINITY);
            for (layer, dearer) in dearer[..room].iter_mut().enumerate() {
                let saved = (left[at] - layer as f64 * variant.serves).clamp(0.0, variant.serves);
                *dearer += running - lost * saved;
            }
        });
        mix.replicas[index][stretch.steps].copy_from_slice(&plan);
    }
}

/// Takes out starts for which there is no room, from the first step to the last.
fn fit(problem: &ClairvoyantProblem<'_>, mix: &mut Mix, order: &[usize]) {
    let Some(pool) = problem.pool else { return };
    for stretch in problem.stretches() {
        let mut free = vec![pool.gpus; stretch.steps.len()];
        let mut before: Vec<u32> =
            problem.variants.iter().map(|variant| stretch.initial(variant.initial)).collect();
        for (at, step) in stretch.steps.clone().enumerate() {
            // What runs on first: it has its room already, but for what the stretch began with.
            for rises in [false, true] {
                for &index in order {
                    let variant = problem.variants[index];
                    let desired = mix.replicas[index][step];
                    let gpus = variant.gpus.max(1);
                    let retained = desired.min(before[index]);
                    let from = if rises { at.saturating_sub(problem.lead(&variant)) } else { at };
                    let room = free[from..=at].iter().min().map_or(0, |&free| free / gpus);
                    let requested = if rises { desired - retained } else { retained };
                    let given = requested.min(room);
                    free[from..=at].iter_mut().for_each(|free| *free -= given * gpus);
                    if rises {
                        mix.replicas[index][step] = before[index].min(desired) + given;
                        before[index] = mix.replicas[index][step];
                    } else if given < retained {
                        mix.replicas[index][step] = given;
                        before[index] = given;
                    }
                }
            }
        }
    }
}

/// Gives training what is left.
fn lend(problem: &ClairvoyantProblem<'_>, mix: &mut Mix) {
    let Some(pool) = problem.pool else { return };
    let Some(lending) = pool.lending else { return };
    let mut used = vec![0; problem.steps()];
    for (variant, plan) in problem.variants.iter().zip(&mix.replicas) {
        problem.occupy(variant, plan, &mut used);
    }
    for Stretch { steps, after_gap } in problem.stretches() {
        let free = |step: usize| u64::from(pool.gpus).saturating_sub(used[step]) as usize;
        let sizing = Sizing {
            steps: steps.len(),
            layers: pool.gpus as usize,
            start_cost: lending.restart,
            initial: if after_gap { u32::MAX } else { lending.initial },
        };
        let plan = right_size(&sizing, |at, dearer| {
            let free = free(steps.start + at).min(dearer.len());
            dearer[free..].fill(f64::INFINITY);
            let worth = lending.value * problem.step.get();
            dearer[..free].iter_mut().for_each(|dearer| *dearer -= worth);
        });
        mix.lent[steps].copy_from_slice(&plan);
    }
}
