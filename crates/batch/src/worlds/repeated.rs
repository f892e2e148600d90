//! What is done twice when a worker dies.

use super::seeds;
use super::verify::verify;
use super::world::{Plan, World};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// Lines at the gateway at once, as the settings have it.
const AT_ONCE: usize = 64;

/// The share of a batch that is sent twice, in percent, in the worst of so many worlds.
fn worst(worlds: u64, lines: u32) -> f64 {
    let mut worst: f64 = 0.0;
    let mut random = Pcg64Mcg::seed_from_u64(7);
    for seed in 0..worlds {
        // Some 250 segments: the call at which it dies is anywhere among them.
        let call = random.random_range(20..300);
        let mut plan = Plan::plain(lines).killed_at(call, random.random());
        (plan.lines_at_once, plan.line_seconds) = (AT_ONCE, (2, 20));
        plan.batches[0].window_minutes = 24 * 60;
        let mut world = World::new(seed, plan);
        world.play();
        verify(&world).unwrap();
        assert_eq!(world.deaths, 1);
        let repeated: u32 = world.sent.values().map(|times| times - 1).sum();
        worst = worst.max(100.0 * f64::from(repeated) / f64::from(lines));
    }
    worst
}

#[test]
#[expect(clippy::print_stdout, reason = "the bench reads it")]
fn a_worker_that_dies_costs_what_it_has_not_stored() {
    let worst = worst(seeds(1).min(50), 50_000);
    println!("lines sent twice after a death, at most, percent: {worst:.3}");
    assert!(worst > 0.0 && worst <= 1.0, "{worst}");
}
