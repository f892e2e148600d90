//! How long one decision takes.

use crate::worlds::Loop;
use flyball_governor::{Policy, decide};

/// Not asserted tightly: the machine may be busy. The figure is printed, and the bound is what
/// production asks for, tenfold without optimisation of its dependencies.
#[test]
#[expect(clippy::disallowed_types, reason = "the only place that measures instead of deciding")]
#[expect(clippy::print_stdout, reason = "the figure is the point")]
fn a_decision_takes_microseconds() {
    let mut world = Loop::new(100, 40, Policy::default());
    let wave = |n: u32| 40.0 + 8.0 * (f64::from(n) / 500.0).sin();
    for n in 0..6_000 {
        world.tick(wave(n));
    }
    let rounds = 5_000;
    let seen: Vec<_> = (0..rounds)
        .map(|n| {
            world.now_s += 15;
            world.snapshot(wave(n))
        })
        .collect();
    let mut memory = world.memory.clone();
    let begin = std::time::Instant::now();
    for snapshot in &seen {
        let (decision, next) = decide(snapshot, &world.policy, &world.previous, memory);
        memory = next;
        std::hint::black_box(decision);
    }
    let each_us = begin.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
    println!("one decision, one model, {} replicas: {each_us:.1} µs", world.ready());
    assert!(each_us < 500.0);
}
