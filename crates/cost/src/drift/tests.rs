use super::*;
use crate::testing::SeededNumbers;

/// Within so many requests after the change each of [`PLANTED`] must be found.
const WITHIN: u64 = 2_000;

fn usual(numbers: &mut SeededNumbers) -> ObservedRequest {
    // The product of shares has a long tail, as lengths have.
    let length = |mean: f64, numbers: &mut SeededNumbers| {
        (mean * -numbers.share().max(1e-9).ln()) as u32 + 1
    };
    let finish = match numbers.below(100) {
        0..=1 => FinishKind::Error,
        2..=11 => FinishKind::Length,
        _ => FinishKind::Stop,
    };
    let script = if numbers.below(10) == 0 { TextScript::Han } else { TextScript::Latin };
    ObservedRequest {
        prompt: length(900.0, numbers),
        output: length(250.0, numbers),
        finish,
        script,
    }
}

type Change = fn(ObservedRequest, &mut SeededNumbers) -> ObservedRequest;

const PLANTED: [(&str, Change); 7] = [
    ("prompts twice as long", |one, _| ObservedRequest { prompt: one.prompt * 2, ..one }),
    ("prompts half as long", |one, _| ObservedRequest { prompt: one.prompt / 2, ..one }),
    ("answers twice as long", |one, _| ObservedRequest { output: one.output * 2, ..one }),
    ("answers half as long", |one, _| ObservedRequest { output: one.output / 2, ..one }),
    ("a fifth ends at its limit", |one, numbers| {
        let finish = if numbers.below(5) == 0 { FinishKind::Length } else { one.finish };
        ObservedRequest { finish, ..one }
    }),
    ("one of eight fails", |one, numbers| {
        let finish = if numbers.below(8) == 0 { FinishKind::Error } else { one.finish };
        ObservedRequest { finish, ..one }
    }),
    ("a third is in another script", |one, numbers| {
        let script = if numbers.below(3) == 0 { TextScript::Arabic } else { one.script };
        ObservedRequest { script, ..one }
    }),
];

#[test]
fn planted_changes_are_found_within_the_stated_number_of_requests() {
    for (name, change) in PLANTED {
        for seed in 0..5 {
            let mut numbers = SeededNumbers(seed);
            let mut watch = DriftWatch::new(DriftSettings::USUAL);
            for _ in 0..10_000 {
                assert_eq!(watch.observe(usual(&mut numbers)), None, "{name}, seed {seed}");
            }
            let found = (0..WITHIN).find_map(|_| {
                let request = usual(&mut numbers);
                watch.observe(change(request, &mut numbers))
            });
            assert!(
                found.is_some_and(|drift| drift.recent > drift.bound - 0.1),
                "{name}, seed {seed}: {found:?}"
            );
            assert!(watch.is_learning());
        }
    }
}

#[test]
fn nothing_is_found_where_nothing_changes() {
    // A tenth of the mean time between false alarms, cut into ten streams: at most one in ten such tests may fail, and
    // the margins make it far fewer; the seeds are fixed.
    let settings = DriftSettings { mean_requests: 1e6, ..DriftSettings::USUAL };
    for seed in 0..10 {
        let mut numbers = SeededNumbers(1_000 + seed);
        let mut watch = DriftWatch::new(settings);
        for at in 0..10_000 {
            assert_eq!(watch.observe(usual(&mut numbers)), None, "seed {seed}, request {at}");
        }
    }
}

#[test]
fn a_share_at_its_bound_raises_alarms_no_more_often_than_stated() {
    // The worst that is no change: exactly at the bound. The mean time until the value reaches A is at least A.
    let most = 500.0;
    let mut sum = 0.0;
    let runs = 400;
    for seed in 0..runs {
        let mut numbers = SeededNumbers(seed);
        let mut detector = super::detector::BoundDetector::new(0.3, 0.3);
        let mut requests = 0.0;
        while detector.value() < most {
            detector.observe(numbers.share() < 0.3);
            requests += 1.0;
        }
        sum += requests;
    }
    assert!(sum / runs as f64 >= most, "{}", sum / runs as f64);
}

#[test]
fn what_was_learned_is_rarely_exceeded_by_the_truth() {
    let mut beyond = 0;
    for seed in 0..2_000 {
        let mut numbers = SeededNumbers(seed);
        let hits = (0..200).filter(|_| numbers.share() < 0.02).count();
        beyond += usize::from(super::detector::highest_share(hits, 200, 0.01) < 0.02);
    }
    assert!(beyond <= 20, "{beyond} of 2,000");
    assert!(super::detector::highest_share(200, 200, 0.01) > 0.99);
}

#[test]
fn settings_that_promise_nothing_are_not_taken() {
    let none = DriftSettings { reference: 0, margin: f64::NAN, mean_requests: 0.0 };
    let mut watch = DriftWatch::new(none);
    let mut numbers = SeededNumbers(1);
    (0..DriftSettings::USUAL.reference - 1)
        .for_each(|_| assert_eq!(watch.observe(usual(&mut numbers)), None));
    assert!(watch.is_learning());
    watch.observe(usual(&mut numbers));
    assert!(!watch.is_learning());
}
