use super::*;
use flyball_core::decision::Previous;
use flyball_core::invariants::check;
use flyball_core::snapshot::{Demand, Snapshot};
use flyball_core::testing::{model, pool, seen, snapshot, variant};
use flyball_core::units::TokensPerSecond;
use flyball_estimator::Estimator;
use flyball_governor::{Memory, Policy, decide};
use proptest::prelude::*;

fn persisted() -> Persisted {
    let noise = [0.5, 0.25, 0.125, 1.5, 0.3, 0.09, 3.0, 0.75, 0.5];
    let level = [11.0 / 3.0, 0.1, 1.7e15, 4.0, 28_333_333.0, 10.5, 3.0, 5.5, 2.25];
    let minutes = |n: usize| [1.5, 1.25, 0.3][n % 3];
    let learnt = GovernorMemory {
        minutes: 4_321,
        yardstick: [9_000.0, 850.5, f64::INFINITY, 0.625],
        forecast: std::array::from_fn(|n| if n < 9 { noise[n] } else { level[n - 9] }),
        moves: std::array::from_fn(|n| match n {
            0..30 => minutes(n),
            30..54 => n as f64 / 10.0 - 4.1,
            n => 150.0 + n as f64 / 8.0,
        }),
        bursts: (0..240).map(|n| n * 17).collect(),
        hindsight: std::array::from_fn(|n| 1e5 - n as f64 / 8.0),
        recommendations: vec![11.0, 12.0, 1.6e15, 1.7e15 - 2e6, 12.0, 1.7e15 - 1e6, 9.0],
        counted: [1_000_000.0, 9_999.0, -1.0],
        feedback: [-12.5, 3_600.0, 3_600.0, 2.75, -0.5, 1.7e15, 0.25, 40.0, 2.0],
        idle_s: (0..32).map(|n| f64::from(n) * 1_000.0 + 61.5).collect(),
    };
    let [slow, quick] =
        [[320.5, 300.25, 120.0, 0.0125, 0.75, -1.0], [9.0, 8.5, 4.0, 0.01, 0.0, 20.0]];
    let mut capacity = vec![9_000.0, 850.5, 0.625, 1.0];
    let light = [320.5, 300.25, 120.0, 0.0125];
    let line = [28.5, 9.25, 1_200.0, 3.125, 400.5, 1.5, 0.975, 240.0];
    capacity.extend(slow.iter().chain(&quick).chain(&[1.7e15]).chain(&light).chain(&line));
    let capacity: [f64; 29] = capacity.try_into().unwrap();
    let estimated = estimator::EstimatorMemory {
        shape: Some(Means { prompt: 4_000.0, output: 250.0, answered: 900.0 }),
        starts: BTreeMap::new(),
        seen: Some([1.7e15, 4.0, 1.6e15, 1_000_000.0, 9_999.0]),
        variants: [("h100".parse().unwrap(), capacity)].into(),
    };
    Persisted { learnt, estimated }
}

fn text() -> String {
    let persisted = persisted();
    write(&persisted.learnt, &persisted.estimated).unwrap()
}

#[test]
fn what_is_written_is_read_and_is_short() {
    let (text, mut want) = (text(), persisted());
    assert!(text.len() < 3_600, "{} bytes: {text}", text.len());
    for number in want.learnt.moves.iter_mut().chain(&mut want.learnt.hindsight) {
        *number = f64::from(*number as f32);
    }
    let got = read(&text).unwrap();
    assert_eq!(format!("{got:.5?}"), format!("{want:.5?}"));
    assert!(Memory::default().restore(&"a/m".parse().unwrap(), &got.learnt));
    assert!(Estimator::default().restore(&"a/m".parse().unwrap(), &got.estimated));
    let nothing = estimator::EstimatorMemory::default();
    assert_eq!(read(&write(&want.learnt, &nothing).unwrap()).unwrap().estimated, nothing);
}

#[test]
fn other_versions_and_damaged_texts_are_refused() {
    let text = text();
    assert_eq!(read(&text.replacen(VERSION, "1", 1)), Err(LearntError::Version("1".to_owned())));
    let damaged = |text: &str| matches!(read(text), Err(LearntError::Damaged(_)));
    assert!(damaged("") && damaged(&text[..text.len() - 1]) && damaged(&text.replace("4321", "9")));
    assert!(damaged(&format!("{text}{}", " ".repeat(LONGEST))));
    // A checksum keeps out accidents and nobody who means it.
    let forged = |body: &str| format!("{body};{:08x}", checksum(body));
    let of_this = |numbers: usize| forged(&format!("{VERSION}{}", ";1".repeat(numbers)));
    assert!(damaged(&of_this(14)) && damaged(&of_this(1)));
}

#[test]
fn more_than_a_status_may_hold_is_not_written() {
    let Persisted { learnt, mut estimated } = persisted();
    let one = estimated.variants.values().next().copied().unwrap();
    estimated.variants = (0..400).map(|n| (format!("variant-{n}").parse().unwrap(), one)).collect();
    assert_eq!(write(&learnt, &estimated), None);
}

proptest! {
    /// Whatever stands in a status, reading it ends in an answer, and what is taken over can be decided on.
    #[test]
    fn no_text_does_harm(place in 0_usize..3_500, other in "[0-9a-zN;, .e-]{0,9}", sum in any::<bool>()) {
        let mut text = text();
        let place = place.min(text.len());
        let end = (place + other.len()).min(text.len());
        text.replace_range(place..end, &other);
        let text = match text.rsplit_once(';') {
            Some((body, _)) if sum => format!("{body};{:08x}", checksum(body)),
            _ => text,
        };
        if let Ok(persisted) = read(&text) {
            let id = "a/m".parse().unwrap();
            let mut memory = Memory::default();
            if memory.restore(&id, &persisted.learnt) {
                let world = world();
                let (decision, _) = decide(&world, &Policy::default(), &Previous::none(), memory);
                prop_assert!(check(&world, &Previous::none(), &decision).is_empty());
                let target = decision.models[0].targets[0].replicas.get();
                prop_assert!((1..=20).contains(&target), "{target}");
            }
        }
    }
}

fn world() -> Snapshot {
    let served = variant("h100", "cloud").ready(2);
    let mut served = model("a/m").between(1, 20).variant(served);
    let demand = served.clone().build().demand;
    served = served.demand(Demand { prefill: seen(TokensPerSecond::new(9_000)), ..demand });
    snapshot().pool(pool("cloud").can_grow()).model(served).build()
}
