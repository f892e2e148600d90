//! What each caller is said to have got is what the engine did.

use super::upstream;
use flyball_emulator::{Emulator, EmulatorSettings, Faults};
use flyball_proving::callers::{CallersPlan, CallersReport, run};
use serde_json::{Value, json};
use std::time::Duration;

async fn played(plan: Value) -> CallersReport {
    let plan: CallersPlan = serde_json::from_value(plan).unwrap();
    run(plan).await.unwrap()
}

#[tokio::test]
async fn counts_agree_with_those_of_the_engine() {
    let engine = Emulator::start(EmulatorSettings::quick()).unwrap();
    let report = played(json!({
        "targets": [engine.address], "seconds": 3.0, "names_models": true,
        "windows": {"late": [1.0, 3.0]},
        "callers": [
            {"name": "open", "model": "emulated", "rate": 40, "prompt_tokens": [20, 60],
             "output_tokens": [4, 8], "streams": 0.5},
            {"name": "closed", "model": "emulated", "concurrency": 2, "prompt_tokens": [100, 100],
             "output_tokens": [3, 3], "from_seconds": 1.0, "until_seconds": 2.0},
            {"name": "wrong", "model": "none", "rate": 10, "prompt_tokens": [5, 5],
             "output_tokens": [3, 3]},
        ],
    }))
    .await;
    let log = engine.log(10_000);
    let of = |name: &str| {
        let own: Vec<_> = log
            .iter()
            .filter(|record| record.request_id.as_deref().is_some_and(|id| id.starts_with(name)))
            .collect();
        let prompt: u64 = own.iter().map(|record| u64::from(record.prompt_tokens)).sum();
        let output: u64 = own.iter().map(|record| u64::from(record.emitted_tokens)).sum();
        (own.len() as u64, prompt, output)
    };
    for account in &report.callers[..2] {
        let whole = &account.whole;
        assert!(whole.answered > 0, "{account:?}");
        let counted = (whole.answered, whole.prompt_tokens, whole.output_tokens);
        assert_eq!(counted, of(&account.name), "{account:?}");
        assert_eq!(whole.sent, whole.answered);
        assert_eq!(account.models.get("emulated"), Some(&whole.answered));
    }
    // Nothing of the second was due before the window.
    assert_eq!(report.callers[1].windows["late"].sent, report.callers[1].whole.sent);
    assert!(report.callers[0].windows["late"].sent < report.callers[0].whole.sent);
    let wrong = &report.callers[2].whole;
    assert_eq!((wrong.answered, wrong.shed["404 no reason"]), (0, wrong.sent));
    assert_eq!(wrong.shed_after.count, wrong.sent);
    let all: u64 = report.callers.iter().map(|account| account.whole.sent).sum();
    assert_eq!(report.all.whole.sent, all);
    let seconds: u64 = report.all.series.sent.iter().map(|sent| u64::from(*sent)).sum();
    assert_eq!(seconds, all);
}

#[tokio::test]
async fn only_answers_in_time_are_good() {
    let engine = Emulator::start(EmulatorSettings::quick()).unwrap();
    // A step takes 5 ms: an answer of 40 tokens at least 200 ms.
    let report = played(json!({
        "targets": [engine.address], "seconds": 0.5,
        "callers": [
            {"name": "patient", "model": "emulated", "rate": 20, "prompt_tokens": [20, 20],
             "output_tokens": [40, 40], "good": {"first_token_ms": 60_000}},
            {"name": "hasty", "model": "emulated", "rate": 20, "prompt_tokens": [20, 20],
             "output_tokens": [40, 40], "good": {"whole_ms": 100}},
        ],
    }))
    .await;
    let [patient, hasty] = &report.callers[..] else { panic!("two callers") };
    assert!(patient.whole.good > 0 && patient.whole.good == patient.whole.answered, "{patient:?}");
    assert!(hasty.whole.answered > 0 && hasty.whole.good == 0, "{hasty:?}");
    let good: u64 = hasty.series.good_tokens.iter().sum();
    assert_eq!(good, 0);
    assert!(patient.whole.first_token.p50_ms < patient.whole.latency.p50_ms);
}

#[tokio::test]
async fn who_hangs_up_is_counted_as_that_and_reaches_the_engine() {
    let engine = Emulator::start(EmulatorSettings::quick()).unwrap();
    let report = played(json!({
        "targets": [engine.address], "seconds": 0.5,
        "callers": [{"name": "gone", "model": "emulated", "rate": 40, "prompt_tokens": [50, 50],
            "output_tokens": [4000, 4000], "streams": 0.8,
            "cancels": {"early": 0.5, "within_ms": 60, "late": 0.5}}],
    }))
    .await;
    let whole = &report.all.whole;
    assert!(whole.sent > 5 && whole.cancelled == whole.sent, "{whole:?}");
    // The engine learns of the last hang-up a moment later.
    while engine.state().running > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(engine.state().finished, 0, "no answer came to its end");
}

#[tokio::test]
async fn requests_are_dealt_over_targets_and_end_when_all_are_sent() {
    let targets = [upstream(1).await, upstream(1).await];
    let report = played(json!({
        "targets": targets, "seconds": 3600.0, "names_models": true,
        "callers": [{"name": "some", "model": "mock", "concurrency": 4, "prompt_tokens": [5, 5],
            "output_tokens": [1, 1], "streams": 0.0, "requests": 1000, "sessions": {"count": 7}}],
    }))
    .await;
    let account = &report.callers[0];
    assert_eq!(account.whole.answered, 1_000);
    assert_eq!((account.sessions, account.mixed_sessions), (7, 0));
}

#[tokio::test]
async fn a_rate_follows_its_stages() {
    let engine = Emulator::start(EmulatorSettings {
        faults: Faults::default(),
        ..EmulatorSettings::quick()
    });
    let engine = engine.unwrap();
    let report = played(json!({
        "targets": [engine.address], "seconds": 2.0,
        "callers": [{"name": "steps", "model": "emulated", "prompt_tokens": [5, 5],
            "output_tokens": [1, 1],
            "stages": [{"seconds": 1.0, "rate": 100}, {"seconds": 1.0, "rate": 10}]}],
    }))
    .await;
    // Poisson with a mean of 110: four deviations. What was due is sent, however late; either rate for
    // both seconds would be 20 or 200.
    let sent = report.all.whole.sent;
    assert!((68..=152).contains(&sent), "{sent}");
}
