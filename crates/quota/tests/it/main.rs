//! Budgets and rates in random worlds: gateways and leaders die, messages are lost, doubled and late, clocks jump.

mod rates;
mod world;

use flyball_core::units::Micros;
use rates::{Outcome, RateWorld, Weather};
use world::{Tally, World};

/// So many worlds, unless `FLYBALL_QUOTA_SEEDS` says otherwise.
const SEEDS: u64 = 60;

#[expect(clippy::disallowed_methods, reason = "how many worlds there are is no decision")]
fn seeds() -> u64 {
    let seeds = std::env::var("FLYBALL_QUOTA_SEEDS").ok().and_then(|text| text.parse().ok());
    seeds.unwrap_or(SEEDS)
}

#[test]
#[expect(clippy::print_stderr, reason = "what happened in them is for who runs many")]
fn budgets_hold_and_nobody_is_refused_with_money_left() {
    let seeds = seeds();
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

const CALM: Weather = Weather { offered: 1.2, moves: true, storms: false, each: 30, away: None };

fn play(seed: u64, weather: Weather) -> Outcome {
    match RateWorld::new(seed, weather).play() {
        Ok(outcome) => outcome,
        Err(broken) => panic!("seed {seed}, {weather:?}: {broken}"),
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "the figure is for who runs many")]
fn a_rate_is_never_exceeded_whoever_dies() {
    let storms = Weather { storms: true, ..CALM };
    let all = (0..seeds()).map(|seed| play(seed, storms));
    let (killed, leaders, most) = all.fold((0, 0, 0.0_f64), |(killed, leaders, most), outcome| {
        (killed + outcome.killed, leaders + outcome.leaders, most.max(outcome.most))
    });
    eprintln!("used in the worst minute: {most:.4} of the limit");
    assert!(killed > 0 && leaders > 0, "{killed} gateways and {leaders} leaders");
}

#[test]
#[expect(clippy::print_stderr, reason = "the figure is for who runs many")]
fn a_rate_is_usable_while_traffic_moves_between_gateways() {
    let usable = (0..seeds()).map(|seed| play(seed, CALM).usable).fold(1.0, f64::min);
    eprintln!("usable in the worst world: {usable:.4} of what one gateway would serve");
    assert!(usable >= 0.98, "{usable}");
}

#[test]
#[expect(clippy::print_stderr, reason = "the figure is for who runs many")]
fn without_an_operator_nobody_below_the_limit_is_refused() {
    let away = Some((Micros::from_minutes(2), Micros::from_minutes(3)));
    // With fewer, chance alone brings a gateway a quarter more than its part now and then.
    let weather = Weather { offered: 0.8, moves: false, storms: false, each: 150, away };
    let (requests, refused) = (0..seeds())
        .map(|seed| play(seed, weather).away)
        .fold((0, 0), |sum, (requests, refused)| (sum.0 + requests, sum.1 + refused));
    let of_a_million = refused as f64 * 1e6 / requests.max(1) as f64;
    eprintln!("refused without an operator, of a million: {of_a_million:.1}");
    assert!(refused * 10_000 <= requests, "{refused} of {requests}");
}
