use super::*;
use crate::policy::PolicyView;
use crate::rivals::{NAMES, RivalFacts, RivalFleet, named};

/// Orders what it is told to, by the hour of virtual time.
struct Script(Vec<(f64, u32)>);

impl ScalingPolicy for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn interval(&self) -> Seconds {
        Seconds(15.0)
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        let now = sight.now.get();
        let count = self.0.iter().rev().find(|(from, _)| now >= *from).map_or(0, |(_, n)| *n);
        ScaleOrder::Scale(vec![Replicas::new(count); sight.readings.len()])
    }
}

pub(super) fn world(requests_per_step: &[f32], cold_start: f64) -> FluidWorld {
    let load = FlowLoad {
        step: Seconds(5.0),
        requests: requests_per_step.to_vec(),
        work: requests_per_step.to_vec(),
        masked: Vec::new(),
    };
    let model = FluidModel {
        id: "team/model".parse().unwrap(),
        load,
        per_replica: 2.0,
        pooling: Pooling::NONE,
        at_most: 2.0,
        reading_per_million: None,
        first_token: Seconds(0.0),
        first_token_objective: Seconds(3.0),
        between_tokens_objective: Seconds(0.1),
        patience: Seconds(30.0),
        service: Seconds(20.0),
        tokens: (1000.0, 200.0),
        gpus: Gpus::new(1),
        bounds: ScalingBounds { min: Replicas::new(1), max: Replicas::new(100), may_sleep: false },
        initial: Replicas::new(4),
        attainment_per_million: 990_000,
    };
    FluidWorld {
        start: Timestamp::from_millis(0),
        models: vec![model],
        cold_start: ColdStart::Constant(Seconds(cold_start)),
        pool: None,
        price: None,
        unscored: Seconds::ZERO,
        gaps_are_outages: false,
        seed: 1,
        keep: Keep::default(),
    }
}

#[test]
fn enough_replicas_miss_nothing_and_are_paid_for_to_the_second() {
    // 30 requests in 5 s are three replicas' work; four are there for 100 steps.
    let outcome = run(&world(&[30.0; 100], 60.0), &mut Script(vec![(0.0, 4)]));
    let model = &outcome.models[0];
    assert_eq!((model.requests, model.missed, model.starts), (3000.0, 0.0, 0));
    assert_eq!(model.replica_seconds, 4.0 * 500.0);
    assert_eq!(outcome.gpu_seconds, model.replica_seconds);
    assert_eq!(model.useful_seconds, 1500.0);
}

#[test]
fn a_replica_is_paid_from_the_order_and_serves_after_its_cold_start() {
    // From step 20 on there is work for five; the fifth is ordered at 105 s and ready at 165 s.
    let mut load = vec![40.0; 20];
    load.extend([50.0; 80]);
    let outcome = run(&world(&load, 60.0), &mut Script(vec![(0.0, 4), (105.0, 5)]));
    let model = &outcome.models[0];
    assert_eq!((model.starts, model.starting_seconds), (1, 60.0));
    assert_eq!(model.replica_seconds, 4.0 * 500.0 + 395.0);
    // For 65 s two requests per second too many arrive: 130 wait, which is 13 s at 10 per second,
    // and nothing can clear them, so that everybody from 3 s of waiting on misses.
    assert!(model.missed > 3000.0, "{}", model.missed);
}

#[test]
fn removed_replicas_drain_before_they_are_gone() {
    let outcome = run(&world(&[10.0; 100], 60.0), &mut Script(vec![(0.0, 4), (60.0, 2)]));
    let model = &outcome.models[0];
    assert_eq!(model.draining_seconds, 2.0 * 20.0);
    assert_eq!(model.replica_seconds, 2.0 * 500.0 + 2.0 * 80.0);
    assert_eq!((model.missed, model.reversals), (0.0, 0));
}

#[test]
fn turning_back_within_a_cold_start_is_a_reversal() {
    let script = vec![(0.0, 4), (60.0, 6), (90.0, 4), (300.0, 5)];
    let outcome = run(&world(&[10.0; 100], 60.0), &mut Script(script));
    assert_eq!(outcome.models[0].reversals, 1);
}

#[test]
fn a_gap_is_replayed_and_not_scored() {
    let mut world = world(&[30.0; 100], 60.0);
    world.models[0].load.masked.push(10..30);
    let outcome = run(&world, &mut Script(vec![(0.0, 4)]));
    assert_eq!(outcome.models[0].requests, 2400.0);
    assert_eq!(outcome.scored, Seconds(400.0));
    world.gaps_are_outages = true;
    world.keep.timeline = true;
    let outcome = run(&world, &mut Script(vec![(0.0, 4)]));
    assert_eq!(outcome.models[0].requests, 2400.0);
    assert_eq!(outcome.models[0].timeline.len(), 9);
    assert_eq!(outcome.models[0].timeline[1].requests, 0.0);
}

/// A rival that is shown the snapshot too.
struct Shown(RivalFleet);

impl ScalingPolicy for Shown {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn interval(&self) -> Seconds {
        self.0.interval()
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        assert_eq!(sight.snapshot.models.len(), sight.readings.len());
        self.0.decide(sight)
    }
}

#[test]
fn who_goes_by_readings_alone_comes_to_the_same_without_a_snapshot() {
    let load: Vec<f32> = (0..720).map(|step| 30.0 + 25.0 * (step as f32 / 60.0).sin()).collect();
    let facts = RivalFacts { replica_per_second: 2.0, max_running: 40.0, ..RivalFacts::default() };
    for name in NAMES {
        let Ok(settings) = named(name, &facts) else { continue };
        let fleet = || RivalFleet::uniform(*name, &settings, 1);
        let shown = run(&world(&load, 60.0), &mut Shown(fleet()));
        assert_eq!(run(&world(&load, 60.0), &mut fleet()), shown, "{name}");
    }
}
