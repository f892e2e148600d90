//! Budgets in random worlds: gateways and leaders die, messages are lost, doubled and late, clocks jump.

mod world;

use world::{Tally, World};

/// So many worlds, unless `FLYBALL_QUOTA_SEEDS` says otherwise.
const SEEDS: u64 = 60;

#[test]
#[expect(clippy::disallowed_methods, reason = "how many worlds there are is no decision")]
#[expect(clippy::print_stderr, reason = "what happened in them is for who runs many")]
fn budgets_hold_and_nobody_is_refused_with_money_left() {
    let asked = std::env::var("FLYBALL_QUOTA_SEEDS").ok().and_then(|text| text.parse().ok());
    let seeds = asked.unwrap_or(SEEDS);
    let mut all = Tally::default();
    for seed in 0..seeds {
        let mut world = World::new(seed);
        if let Err(broken) = world.play() {
            panic!("seed {seed}: {broken}");
        }
        all.add(&world.tally);
    }
    eprintln!("{seeds} worlds: {all:?}");
    // A world in which nothing happens shows nothing.
    for (what, count) in all.counts() {
        assert!(count > 0, "{what} never happened");
    }
}
