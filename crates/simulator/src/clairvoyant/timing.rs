//! How long it takes on two weeks of traffic: `cargo test --release -p flyball-simulator
//! clairvoyant::timing -- --ignored --nocapture`.

#![expect(clippy::print_stdout, reason = "figures for a person, on request only")]

use super::pool::{
    ClairvoyantLending, ClairvoyantPool, ClairvoyantProblem, ClairvoyantVariant, Grain, bounded,
};
use super::{backlog, hull, layers, sizing};
use crate::chance::{Purpose, stream};
use crate::seconds::Seconds;
use rand::RngExt;
use std::time::Instant;

const DAYS: usize = 14;

/// Replicas' worth of work: a daily wave with noise that lasts, peaks near 60, mean near 20.
fn two_weeks(steps_per_day: usize, index: u64) -> Vec<f64> {
    let mut chance = stream(5, Purpose::Arrivals, index);
    let mut burst = 0.0_f64;
    // Noise forgets half of itself in about ten minutes.
    let forget = 0.5_f64.powf(144.0 / steps_per_day as f64);
    (0..DAYS * steps_per_day)
        .map(|step| {
            let day =
                std::f64::consts::TAU * (step as f64 / steps_per_day as f64 + index as f64 / 5.0);
            let push = (1.0 - forget * forget).sqrt() * (chance.random::<f64>() - 0.5);
            burst = burst * forget + push;
            ((20.0 + 14.0 * day.sin()) * (1.0 + 1.6 * burst)).max(0.0)
        })
        .collect()
}

fn timed<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = run();
    println!("{:>9.1} ms  {what}", began.elapsed().as_secs_f64() * 1e3);
    result
}

#[test]
#[ignore = "figures, not a check"]
fn one_variant() {
    let requests = two_weeks(8640, 0);
    let load = sizing::SizedLoad {
        requests: &requests,
        masked: &[],
        step: Seconds(10.0),
        served_per_step: 1.0,
        cold_start: Seconds(100.0),
        initial: 20,
        floor: 1,
    };
    let need = load.need();
    println!("{} steps, {} layers", need.len(), need.iter().max().unwrap());
    let sizing::SizedLoad { masked, step, cold_start, initial, floor, .. } = load;
    let ask = layers::LayerRequest { need: &need, masked, step, cold_start, initial, floor };
    let plan = timed("cheapest without misses", || layers::cheapest(&ask));
    timed("best at one price of a miss", || sizing::best(&load, 20.0));
    let point = timed("hull at 1 % misses", || hull::at_budget(&load, 0.01));
    println!("1 % of misses saves {:.2} %", 100.0 * (1.0 - point.cost / plan.replica_seconds));
    let points = timed("30 corners of the hull", || hull::hull(&load, 30));
    println!("at 1 % by these {:.5}", points.at_budget(0.01).cost / point.cost);
    let hour = sizing::SizedLoad { requests: &requests[..360], ..load };
    let patience = backlog::Patience { slack: Seconds(3.0), buckets: 40 };
    timed("an hour with 3 s of patience", || backlog::best(&hour, patience, 20.0));
}

#[test]
#[ignore = "figures, not a check"]
fn three_models_in_a_pool() {
    let plain = |model: usize| ClairvoyantVariant {
        model,
        serves: 1.0,
        price: 1.0,
        gpus: 1 + model as u32,
        cold_start: Seconds(300.0),
        initial: 20,
    };
    let three = [plain(0), plain(1), plain(2)];
    let small = |model: usize| ClairvoyantVariant {
        serves: 0.4,
        price: 0.45,
        cold_start: Seconds(60.0),
        ..plain(model)
    };
    let six = [plain(0), small(0), plain(1), small(1), plain(2), small(2)];
    let lending = Some(ClairvoyantLending { value: 0.3, restart: 60.0, initial: 0 });
    for (name, per_day, merge, piece) in
        [("10 min", 144, 1, 48), ("1 min", 1440, 10, 72), ("10 s", 8640, 120, 36)]
    {
        let work: Vec<Vec<f64>> = (0..3).map(|index| two_weeks(per_day, index)).collect();
        for (variants, gpus) in [(&three[..], 200), (&three[..], 300), (&six[..], 300)] {
            let problem = ClairvoyantProblem {
                work: &work,
                masked: &[],
                step: Seconds(86_400.0 / per_day as f64),
                variants,
                pool: Some(ClairvoyantPool { gpus, lending }),
                price_of_a_miss: 20.0,
            };
            let what = format!("{name}, merge {merge}, {} variants, {gpus} GPUs", variants.len());
            let found = timed(&what, || bounded(&problem, Grain { merge, piece }).unwrap());
            println!(
                "              gap {:.3} %, missed {:.0}",
                100.0 * found.gap(),
                found.bill.missed
            );
        }
    }
}
