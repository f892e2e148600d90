use flyball_core::ids::ModelId;
use flyball_core::pooling::Pooling;
use flyball_core::snapshot::{Misses, Observed, ScalingBounds};
use flyball_core::units::{Gpus, Replicas, Requests, Timestamp};
use flyball_governor::Policy as Settings;
use flyball_simulator::cold_start::ColdStart;
use flyball_simulator::fluid::{FluidModel, FluidWorld, Keep, run};
use flyball_simulator::policies::Governor;
use flyball_simulator::policy::{PolicyView, ScaleOrder, ScalingPolicy};
use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::FlowLoad;
use flyball_tuner::{Name, Tuned, Tuner};
use std::collections::BTreeSet;

fn id() -> ModelId {
    "team/model".parse().expect("it is a name")
}

/// So many hours of requests per second, by the step.
fn world(hours: f64, rate: impl Fn(f64) -> f64) -> FluidWorld {
    let step = Seconds(5.0);
    let count = (3_600.0 * hours / step.get()) as usize;
    let requests: Vec<f32> = (0..count).map(|n| (5.0 * rate(5.0 * n as f64)) as f32).collect();
    let model = FluidModel {
        id: id(),
        load: FlowLoad { step, work: requests.clone(), requests, masked: Vec::new() },
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
        initial: Replicas::new(12),
        attainment_per_million: 990_000,
    };
    FluidWorld {
        start: Timestamp::from_millis(0),
        models: vec![model],
        cold_start: ColdStart::Constant(Seconds(100.0)),
        pool: None,
        price: None,
        unscored: Seconds::HOUR,
        gaps_are_outages: false,
        seed: 1,
        keep: Keep::default(),
    }
}

/// Up and down every two hours, and every ten minutes half as much again for one.
fn waves(at: f64) -> f64 {
    let wave = 20.0 + 8.0 * (at / 7_200.0 * std::f64::consts::TAU).sin();
    if at % 600.0 < 60.0 { 1.5 * wave } else { wave }
}

/// Whoever decides, and the laws that it decided by. What it is shown may be changed first.
struct Watched {
    tuned: Tuned,
    laws: Vec<Name>,
    spoil: fn(f64) -> Option<u64>,
}

impl Watched {
    fn new(spoil: fn(f64) -> Option<u64>) -> Self {
        Self { tuned: Tuned::new(Settings::default()), laws: Vec::new(), spoil }
    }
}

impl ScalingPolicy for Watched {
    fn name(&self) -> &str {
        "watched"
    }

    fn interval(&self) -> Seconds {
        self.tuned.interval()
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        let mut snapshot = sight.snapshot.clone();
        if let (Some(missed), Some(model)) =
            ((self.spoil)(sight.now.get()), snapshot.models.get_mut(&id()))
            && let Observed::Fresh { value, at } = model.misses
        {
            let value = Misses { missed: Requests::new(value.missed.get() + missed), ..value };
            model.misses = Observed::Fresh { value, at };
        }
        let order = self.tuned.decide(&PolicyView { snapshot: &snapshot, ..*sight });
        let law = self.tuned.tuner().choice(&id()).expect("it looked").law;
        if self.laws.last() != Some(&law) {
            self.laws.push(law);
        }
        order
    }
}

#[test]
fn the_first_hours_are_decided_by_the_governors_own_law() {
    let mut watched = Watched::new(|_| None);
    let tuned = run(&world(1.9, waves), &mut watched);
    assert_eq!(watched.laws, [Name::OURS]);
    let plain = run(&world(1.9, waves), &mut Governor::new(Settings::default()));
    assert_eq!(tuned, plain, "to the last request");
}

#[test]
fn laws_change_seldom_and_neither_misses_nor_cost_are_much_above_the_governors_alone() {
    let world = world(36.0, waves);
    let mut watched = Watched::new(|_| None);
    let tuned = run(&world, &mut watched);
    let plain = run(&world, &mut Governor::new(Settings::default()));
    // Trials are made after 2, 4, 8, 16 and 32 hours, and each choice can be taken back.
    assert!(watched.laws.len() <= 11, "{:?}", watched.laws);
    // Where the governor alone misses too many, more care may cost something.
    assert!(tuned.missed_share() <= plain.missed_share().max(0.01), "{}", tuned.missed_share());
    let ratio = tuned.gpu_seconds / plain.gpu_seconds;
    assert!(ratio < 1.08, "{ratio}: {:?}", watched.laws);
}

#[test]
fn the_choice_and_what_each_law_would_have_cost_stand_in_the_receipt() {
    struct Last(Tuned, Option<ScaleOrder>);
    impl ScalingPolicy for Last {
        fn name(&self) -> &str {
            "last"
        }
        fn interval(&self) -> Seconds {
            self.0.interval()
        }
        fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
            let order = self.0.decide(sight);
            self.1 = Some(order.clone());
            order
        }
    }
    let mut last = Last(Tuned::new(Settings::default()), None);
    run(&world(3.0, waves), &mut last);
    let Some(ScaleOrder::Decision(decision)) = last.1 else { panic!("the governor decides") };
    let law = decision.models[0].receipt.law.as_ref().expect("there was a trial");
    let names: BTreeSet<String> = law.tried.iter().map(|one| one.name.clone()).collect();
    assert_eq!(names, Name::ALL.iter().map(Name::to_string).collect());
    assert!(law.tried.iter().all(|one| one.replica_time.get() > 0));
    assert!(names.contains(&law.name), "{}", law.name);
}

/// After three hours half of the requests are said to miss, whatever the replays say.
fn spoiled(at: f64) -> Option<u64> {
    Some(((at - 10_800.0).max(0.0) * 10.0) as u64)
}

#[test]
fn real_misses_bring_the_governors_own_law_back() {
    let mut watched = Watched::new(spoiled);
    run(&world(3.9, waves), &mut watched);
    assert!(
        watched.laws.iter().any(|law| law.care().is_none_or(|care| care < 1.0)),
        "nothing is shown: {:?}",
        watched.laws
    );
    assert_eq!(watched.laws.last(), Some(&Name::OURS));
}

#[test]
fn a_successor_goes_on_with_the_law_that_decided() {
    let mut watched = Watched::new(|_| None);
    let mut restarted = Watched::new(|_| None);
    run(&world(3.9, waves), &mut watched);
    run(&world(3.9, waves), &mut restarted);
    assert_eq!(watched.laws, restarted.laws);
    let law = |tuned: &Tuned| tuned.tuner().choice(&id()).unwrap().law;
    restarted.tuned.restart(&mut flyball_estimator::Estimator::default());
    assert_eq!(law(&restarted.tuned), law(&watched.tuned));
    // And with one that is not the governor's own.
    let mut tuner = Tuner::default();
    tuner.restore(&id(), Name::ALL[5]);
    tuner.restore(&id(), Name::OURS);
    assert_eq!(tuner.choice(&id()).unwrap().law, Name::ALL[5], "who decides already stays");
    tuner.follow(&id(), Name::ALL[6]);
    assert_eq!(tuner.choice(&id()).unwrap().law, Name::ALL[6], "who looks on follows the leader");
}
