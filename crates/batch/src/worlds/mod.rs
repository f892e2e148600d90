//! Made-up worlds: workers die at any call to the store, stand still and come back, are two at a time; the store loses calls
//! and answers; callers cancel; windows end. What is done there is the code that runs, but for clocks and connections.
//!
//! `store` is the store, `world` what happens, `verify` the one check of what clients get in the end. A thousand worlds are
//! a test; `cargo xtask bench batch` plays ten thousand.

mod deadlines;
mod repeated;
mod store;
mod verify;
mod world;

use verify::verify;
use world::{Plan, World};

/// Worlds of each kind, unless the environment says otherwise.
fn seeds(usual: u64) -> u64 {
    let stated = std::env::var("FLYBALL_BATCH_SEEDS").ok().and_then(|text| text.parse().ok());
    stated.unwrap_or(usual)
}

#[test]
#[expect(clippy::print_stdout, reason = "the bench reads it")]
fn no_line_is_lost_doubled_or_misfiled_in_any_world() {
    let (mut wrong, mut lines, mut deaths, mut ends) = (Vec::new(), 0, 0, [0; 4]);
    for seed in 0..seeds(300) {
        let mut world = World::new(seed, Plan::drawn(seed));
        world.play();
        lines += world.lines();
        deaths += world.deaths;
        match verify(&world) {
            Ok(found) => ends.iter_mut().zip(found).for_each(|(sum, one)| *sum += one),
            Err(why) => wrong.push(format!("seed {seed}: {why}")),
        }
    }
    println!("lines wrong in all worlds: {} of {lines}", wrong.len());
    println!("workers that died: {deaths} in all worlds");
    println!("batches completed, expired, cancelled, failed: {ends:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A world in which nothing goes wrong shows nothing.
    assert!(deaths > 0 && ends.iter().all(|count| *count > 0), "{deaths} {ends:?}");
}

#[test]
fn a_worker_may_die_at_each_call_to_the_store() {
    for plan in [Plan::plain(12), Plan::plain(12).cancelled(4), Plan::plain(12).short()] {
        let mut whole = World::new(1, plan.clone());
        whole.play();
        verify(&whole).unwrap();
        let calls = whole.calls_of_first_worker();
        assert!(calls > 20, "{calls}");
        for call in 0..calls {
            for is_done in [false, true] {
                let mut world = World::new(1, plan.clone().killed_at(call, is_done));
                world.play();
                assert_eq!(world.deaths, 1, "{call}");
                let found = verify(&world);
                assert!(found.is_ok(), "call {call}, done {is_done}: {found:?}");
            }
        }
    }
}
