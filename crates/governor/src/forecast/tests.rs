use super::*;
use crate::fleet::Fleet;
use flyball_core::pooling::Pooling;
use flyball_core::testing::at;

/// Minutes of work, four readings each.
fn fed(work: impl Fn(u64) -> f64, minutes: u64, cold_start_s: f64) -> Forecaster {
    let mut forecaster = Forecaster::default();
    for tick in 0..minutes * 4 {
        forecaster.learn(work(tick), work(tick), at(tick * 15), cold_start_s, 3.0);
    }
    forecaster
}

#[test]
fn constant_work_is_expected_to_stay() {
    let forecaster = fed(|_| 20.0, 24 * 60, 300.0);
    let outlook = forecaster.outlook(0.0, 3.0, 300.0);
    assert!((forecaster.level() - 20.0).abs() < 1e-9);
    for share in [0.01, 0.5, 0.99] {
        assert!((outlook.quantile(share) / 20.0 - 1.0).abs() < 0.02, "{}", outlook.quantile(share));
    }
    let fleet = Fleet { size: 1.0, pooling: Pooling::NONE, lacks: 0.0 };
    // Twenty replicas do the work of twenty, and noise of nothing fills no queue of three seconds.
    let best = |fleet, from| Weighing::of(&outlook, fleet).best(1.0, 30.0, from);
    assert_eq!(best(&fleet, 5), 20);
    assert_eq!(best(&fleet, 90), 20);
    // Who asked before, and at what price, makes no difference.
    let mut weighing = Weighing::of(&outlook, &fleet);
    assert!(weighing.best(0.01, 30.0, 5) >= 20);
    assert_eq!(weighing.best(1.0, 30.0, 90), 20);
    // Nine of which each of very many does three times as much do the work of twenty-one.
    let pooled = Fleet { size: 1.0, pooling: Pooling::new(3.0), lacks: 0.0 };
    assert_eq!(best(&pooled, 5), 9);
}

#[test]
fn work_that_moves_is_expected_to_move() {
    let wave = |tick: u64| 20.0 + 10.0 * (tick as f64 / 240.0 * std::f64::consts::TAU).sin();
    let forecaster = fed(wave, 2 * 24 * 60, 300.0);
    let outlook = forecaster.outlook(0.0, 3.0, 300.0);
    let (low, high) = (outlook.quantile(0.1), outlook.quantile(0.99));
    assert!(high / low > 1.3, "{low} {high}");
}

#[test]
fn a_longer_look_ahead_is_learnt_again_from_what_is_remembered() {
    let wave = |tick: u64| 20.0 + 10.0 * (tick as f64 / 960.0 * std::f64::consts::TAU).sin();
    let mut forecaster = fed(wave, 24 * 60, 30.0);
    let reach = |f: &Forecaster| f.outlook(0.0, 3.0, 100.0).quantile(0.99) / f.level();
    let near = reach(&forecaster);
    for tick in 24 * 240..24 * 240 + 800 {
        forecaster.learn(wave(tick), wave(tick), at(tick * 15), 1_200.0, 3.0);
    }
    assert_eq!(forecaster.ahead, 20);
    assert!(forecaster.moves.count() > 1_000.0);
    let far = reach(&forecaster);
    assert!(far > 1.1 * near, "{near} {far}");
}

#[test]
fn misses_fall_with_capacity_and_rise_with_a_queue() {
    let forecaster = fed(|tick| 20.0 + (tick % 7) as f64 / 3.0, 600, 100.0);
    let outlook = forecaster.outlook(0.0, 3.0, 100.0);
    let misses: Vec<_> = (18..30).map(|n| outlook.misses(f64::from(n))).collect();
    assert!(misses.is_sorted_by(|a, b| a >= b), "{misses:?}");
    let waiting = forecaster.outlook(500.0, 3.0, 100.0);
    assert!(waiting.misses(22.0) > outlook.misses(22.0));
}
