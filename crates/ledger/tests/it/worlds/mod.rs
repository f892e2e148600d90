//! Made-up worlds in which everything ends at some moment, and nothing may be lost or doubled.

mod check;
mod disk;
mod fault;
mod store;
mod world;

use world::{Tally, World};

/// So many worlds, unless `FLYBALL_LEDGER_SEEDS` says otherwise.
const SEEDS: u64 = 300;

fn seeds() -> u64 {
    let seeds = std::env::var("FLYBALL_LEDGER_SEEDS").ok().and_then(|text| text.parse().ok());
    seeds.unwrap_or(SEEDS)
}

#[test]
#[expect(clippy::print_stderr, reason = "what happened in them is for who runs many")]
fn nothing_is_lost_or_doubled_wherever_anything_ends() {
    let seeds = seeds();
    let mut sum = Tally::default();
    for seed in 0..seeds {
        let mut world = World::new(seed);
        let held = world.play().and_then(|()| check::check(&mut world));
        if let Err(broken) = held {
            panic!("seed {seed}: {broken}");
        }
        sum.add(&world.tally);
    }
    eprintln!("{seeds} worlds: {sum:?}");
    // A world in which nothing happens shows nothing.
    for (what, count) in sum.counts() {
        assert!(count > 0, "{what} never happened");
    }
}
