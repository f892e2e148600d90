//! Whether deadlines are kept wherever they could be.
//!
//! All lines take the same time, so that a schedule exists if serving the earliest deadline first is one: that is counted
//! here without any of the code that runs.

use super::seeds;
use super::verify::verify;
use super::world::{BEGIN, Plan, PlannedBatch, World};
use crate::order::ALIKE_SECONDS;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// Lines at once, and seconds of each.
const AT_ONCE: u64 = 8;
const LINE_SECONDS: u64 = 10;

/// What finding a batch, storing its results and ending it take, at most, in steps.
const STEPS_ASIDE: u64 = 4;

fn drawn(seed: u64) -> Vec<PlannedBatch> {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0xdead);
    let mut batches: Vec<PlannedBatch> = (0..random.random_range(2..=10))
        .map(|_| PlannedBatch {
            tenant: ["a", "b", "c"][random.random_range(0..3)].to_owned(),
            at: random.random_range(0..60) * LINE_SECONDS,
            lines: random.random_range(1..=900),
            window_minutes: random.random_range(30..=90),
            cancelled_at: None,
            is_damaged: false,
        })
        .collect();
    batches.sort_by_key(|batch| batch.at);
    batches
}

/// Whether all could be done, each a quarter of an hour early.
fn is_feasible(batches: &[PlannedBatch]) -> bool {
    let deadline = |batch: &PlannedBatch| {
        let at = BEGIN + batch.at + 60 * batch.window_minutes;
        at / ALIKE_SECONDS * ALIKE_SECONDS
    };
    let mut left: Vec<u64> = batches.iter().map(|batch| u64::from(batch.lines)).collect();
    for step in 0.. {
        let now = BEGIN + step * LINE_SECONDS;
        let mut room = AT_ONCE;
        let is_there = |batch: &PlannedBatch| BEGIN + batch.at + STEPS_ASIDE * LINE_SECONDS <= now;
        let mut order: Vec<usize> = (0..batches.len()).filter(|i| is_there(&batches[*i])).collect();
        order.sort_by_key(|index| deadline(&batches[*index]));
        for index in order {
            let done = left[index].min(room);
            room -= done;
            left[index] -= done;
            let end = now + (1 + STEPS_ASIDE) * LINE_SECONDS;
            if done > 0 && end > deadline(&batches[index]) {
                return false;
            }
        }
        if left.iter().all(|left| *left == 0) {
            return true;
        }
    }
    false
}

#[test]
#[expect(clippy::print_stdout, reason = "the bench reads it")]
fn deadlines_are_kept_wherever_a_schedule_exists() {
    let (mut feasible, mut missed, mut tight) = (0, 0, 0);
    let worlds = seeds(20).min(1_000);
    for seed in 0..worlds {
        let batches = drawn(seed);
        if !is_feasible(&batches) {
            tight += 1;
            continue;
        }
        feasible += 1;
        let mut world = World::new(seed, Plan::of(batches, AT_ONCE as usize, LINE_SECONDS));
        world.play();
        let [_, expired, ..] = verify(&world).unwrap();
        missed += expired;
    }
    println!("worlds with a schedule: {feasible} of {worlds}");
    println!("deadlines missed although there was a schedule: {missed} of all");
    assert_eq!(missed, 0);
    // Both kinds must come up, or nothing was tried.
    assert!(feasible > 0 && tight > 0, "{feasible} {tight}");
}
