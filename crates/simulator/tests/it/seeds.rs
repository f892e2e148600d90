//! Random worlds with random faults under the governor.

use flyball_simulator::cluster::{Stats, fuzz};
use flyball_simulator::policies::Governor;
use serde::Deserialize;

/// Seeds that are tried each time; `FLYBALL_FAULT_SEEDS` asks for more.
const SEEDS: u64 = 300;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSeeds {
    seeds: Vec<StoredSeed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSeed {
    name: String,
    seed: u64,
    reason: String,
}

fn governor() -> Governor {
    Governor::new(flyball_governor::Policy::default())
}

#[test]
#[expect(clippy::print_stdout, reason = "the counts say what was tried")]
fn no_rule_breaks_in_random_worlds_under_the_governor() {
    let given = std::env::var("FLYBALL_FAULT_SEEDS").ok().and_then(|text| text.parse().ok());
    let seeds = given.unwrap_or(SEEDS);
    let (mut sum, mut failed) = (Stats::default(), Vec::new());
    for seed in 0..seeds {
        match fuzz(seed, &mut governor()) {
            Ok(stats) => {
                sum.events += stats.events;
                sum.decisions += stats.decisions;
                sum.requests += stats.requests;
                sum.killed += stats.killed;
            }
            Err(failure) => {
                println!("{failure}");
                failed.push(seed);
            }
        }
    }
    println!("{seeds} seeds: {sum:?}");
    assert_eq!(failed, [0; 0], "these seeds break rules");
}

#[test]
fn seeds_that_once_broke_a_rule_break_none() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/seeds.toml");
    let stored: StoredSeeds = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for StoredSeed { name, seed, reason } in stored.seeds {
        if let Err(failure) = fuzz(seed, &mut governor()) {
            panic!("{name} ({reason}): {failure}");
        }
    }
}
