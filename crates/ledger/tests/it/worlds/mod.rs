//! Made-up worlds in which everything ends at some moment, and nothing may be lost or doubled.

mod check;
mod disk;
mod fault;
mod store;
mod world;

use world::{Tally, World};

/// So many worlds, which take half a minute where nothing is optimised, unless `FLYBALL_LEDGER_SEEDS` says otherwise.
const SEEDS: u64 = 40;

fn seeds() -> u64 {
    let seeds = std::env::var("FLYBALL_LEDGER_SEEDS").ok().and_then(|text| text.parse().ok());
    seeds.unwrap_or(SEEDS)
}

#[test]
#[expect(clippy::print_stderr, reason = "what happened in them is for who runs many")]
fn nothing_is_lost_or_doubled_wherever_anything_ends() {
    let seeds = seeds();
    let mut sum = Tally::default();
    let mut broken = Vec::new();
    for seed in 0..seeds {
        let mut world = World::new(seed);
        if let Err(why) = world.play().and_then(|()| check::check(&mut world)) {
            broken.push(format!("seed {seed}: {why}"));
        }
        sum.add(&world.tally);
    }
    eprintln!("worlds, played: {seeds}");
    for (what, count) in sum.counts() {
        eprintln!("worlds, {what}: {count}");
    }
    assert!(broken.is_empty(), "{} worlds broke, such as:\n{}", broken.len(), broken[0]);
    // A world in which nothing happens shows nothing.
    for (what, count) in sum.counts() {
        let never = matches!(what, "lost" | "doubled");
        assert_eq!(count == 0, never, "{what}: {count}");
    }
}
