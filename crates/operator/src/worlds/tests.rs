//! Worlds by the dozen in every run of the tests, and by the thousand with `cargo xtask trust worlds`.

use super::plan::plan;
use super::rules::Broken;
use super::world::{Stats, play};
use serde::Deserialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// Worlds that are tried each time; `FLYBALL_WORLD_SEEDS` asks for more.
const SEEDS: u64 = 25;

/// What happened in all worlds, and what broke by seed.
fn play_all(seeds: u64) -> (Stats, Vec<(u64, Vec<Broken>)>) {
    let next = AtomicU64::new(0);
    let worker = || {
        let mut played = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return played;
            }
            played.push((seed, play(&plan(seed))));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort_by_key(|(seed, _)| *seed);
    let sum = all.iter().fold(Stats::default(), |sum, (_, (stats, _))| sum.with(stats));
    let broken = all.into_iter().map(|(seed, (_, broken))| (seed, broken));
    (sum, broken.filter(|(_, broken)| !broken.is_empty()).collect())
}

#[test]
#[expect(clippy::print_stdout, reason = "the counts say what was tried")]
fn no_rule_breaks_in_random_worlds() {
    let seeds = std::env::var("FLYBALL_WORLD_SEEDS").ok().and_then(|text| text.parse().ok());
    let seeds = seeds.unwrap_or(SEEDS);
    let (stats, broken) = play_all(seeds);
    for (seed, all) in &broken {
        all.iter().for_each(|one| println!("seed {seed}: {one}"));
    }
    println!("worlds: {seeds} tried, {} broken; {stats:?}", broken.len());
    // Worlds in which nothing happens prove nothing.
    for happened in
        [stats.drains, stats.revived, stats.ups, stats.downs, stats.woken, stats.silent, stats.sick]
    {
        assert!(happened > 0, "{stats:?}");
    }
    let broken: Vec<u64> = broken.into_iter().map(|(seed, _)| seed).collect();
    assert_eq!(broken, [0; 0], "these seeds break rules");
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSeeds {
    seeds: Vec<StoredSeed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSeed {
    seed: u64,
    reason: String,
}

#[test]
fn seeds_that_once_broke_a_rule_break_none() {
    let stored: StoredSeeds = toml::from_str(include_str!("seeds.toml")).unwrap();
    for StoredSeed { seed, reason } in stored.seeds {
        let (_, broken) = play(&plan(seed));
        let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
        assert!(broken.is_empty(), "seed {seed} ({reason}): {}", broken.join("\n"));
    }
}

/// Plays one world and tells all of it: for whoever looks for a reason.
#[test]
#[ignore = "for a person, with FLYBALL_WORLD_SEED"]
#[expect(clippy::print_stdout, reason = "it is there to be read")]
fn one_world() {
    let seed = std::env::var("FLYBALL_WORLD_SEED").expect("FLYBALL_WORLD_SEED is a number");
    let plan = plan(seed.parse().expect("FLYBALL_WORLD_SEED is a number"));
    println!("{plan:#?}");
    let (stats, broken) = play(&plan);
    broken.iter().for_each(|one| println!("{one}"));
    println!("{stats:?}");
}
