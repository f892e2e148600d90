//! Made-up outcomes, small and with known sums, and what is shown of them.

use std::time::Duration;

use flyball_simulator::score::{ModelOutcome, Outcome, TimelineMoment};
use flyball_simulator::seconds::Seconds;

use super::answer::{Backtest, DecisionView, HullView, ModelView, tidy};
use super::clock::Clock;
use super::collect::{self, Played};
use super::gate::Gate;
use super::page;
use crate::output::{self, Answer, Detail, Exit};

pub(super) fn models(names: &[(&str, u32)]) -> Vec<ModelView> {
    let one = |(name, gpus): &(&str, u32)| ModelView {
        name: (*name).to_owned(),
        traffic: format!("{name}.csv"),
        requests: 86_400.0,
        replica_capacity: 1.4,
        each_of_eight: 1.6,
        capacity_from: "given".to_owned(),
        gpus_per_replica: *gpus,
    };
    names.iter().map(one).collect()
}

/// A day with a morning peak, a quiet night and a gap after 20:00.
fn demand(minute: usize) -> f64 {
    let hour = minute as f64 / 60.0;
    let bump = |at: f64, wide: f64| (-((hour - at) / wide).powi(2)).exp();
    0.4 + 5.0 * bump(10.0, 2.2) + 3.4 * bump(15.5, 2.8)
}

/// A policy that follows demand with a delay and some headroom.
fn follows(minutes_late: usize, headroom: f64, seed: u64) -> ModelOutcome {
    let wobble = 1.0 + 0.004 * seed as f64;
    let mut came =
        ModelOutcome { first_token_p99: Seconds(2.9 * wobble), ..ModelOutcome::default() };
    let mut before = 1.0;
    for minute in 0..1_440 {
        let masked = (1_200..1_230).contains(&minute);
        let desired = (demand(minute) * headroom * wobble).ceil();
        let ready = (demand(minute.saturating_sub(minutes_late)) * headroom * wobble).ceil();
        let arrived = demand(minute);
        let late = (arrived - ready).max(0.0) / arrived;
        let requests = arrived * 84.0;
        came.timeline.push(TimelineMoment {
            at: Seconds(minute as f64 * 60.0),
            demand: arrived,
            ready,
            starting: (desired - ready).max(0.0),
            draining: f64::from(u8::from(ready < before)),
            waiting: late * 120.0,
            requests,
            missed: late * requests,
            masked,
        });
        came.requests += requests;
        came.missed += late * requests;
        came.replica_seconds += 60.0 * ready.max(desired);
        came.starting_seconds += 60.0 * (desired - ready).max(0.0);
        came.useful_seconds += 60.0 * arrived.min(ready);
        came.starts += (ready > before) as u32;
        came.worst_five_minutes = came.worst_five_minutes.max(late);
        before = ready;
    }
    came
}

fn played(name: &str, late: usize, headroom: f64, seeds: u64) -> Played {
    let outcome = |seed| {
        let model = follows(late, headroom, seed);
        let gpu_seconds = model.replica_seconds * 4.0;
        Outcome { models: vec![model], gpu_seconds, ..Outcome::default() }
    };
    let mut decisions = Vec::new();
    if name == "governor" {
        decisions.push(DecisionView {
            at_seconds: 28_800.0,
            model: 0,
            from: 2,
            to: 4,
            because: "look-ahead: 3.6 replicas' work expected in 100 s".to_owned(),
        });
    }
    let outcomes = (0..seeds).map(outcome).collect();
    Played { name: name.to_owned(), clairvoyant: name == "clairvoyant", outcomes, decisions }
}

pub(super) fn made_up() -> Backtest {
    let models = models(&[("qwen3-32b", 4)]);
    let mut all = [
        played("clairvoyant", 0, 1.0, 3),
        played("hpa", 22, 1.25, 3),
        played("governor", 2, 1.12, 3),
    ];
    // Known shares, so that tests of gates can name them.
    for (played, share) in all.iter_mut().zip([0.0, 0.0192, 0.0038]) {
        for outcome in &mut played.outcomes {
            outcome.models[0].missed = share * outcome.models[0].requests;
        }
    }
    all[1].outcomes[0].models[0].killed = 5.0;
    let usd = Some(2.5);
    let hull = (0..6).rev().map(|step| HullView {
        gpu_hours: tidy(180.0 - 9.0 * f64::from(step)),
        missed: tidy(0.002 * f64::from(step * step)),
    });
    let hull: Vec<HullView> = hull.collect();
    let bound = collect::Bound { played: &all[0], hull: &hull };
    let policies = all.iter().map(|one| collect::policy(one, Some(bound), &models, usd)).collect();
    Backtest {
        span_seconds: 86_400.0,
        begins_at: None,
        method: "fluid",
        seeds: vec![1, 2, 3],
        cold_start_seconds: 100.0,
        ttft_seconds: Some(3.0),
        tpot_seconds: Some(0.1),
        pool_gpus: None,
        usd_per_gpu_hour: usd,
        allowed_missed: 0.01,
        assumed: vec!["arrivals without bursts inside a minute".to_owned()],
        notes: vec!["hpa.yaml: Deployment is passed over".to_owned()],
        models,
        policies,
        hull,
        causal: Some(HullView { gpu_hours: 181.5, missed: 0.01 }),
        comparisons: vec![collect::compare(&all[2], &all[1])],
        gates: Vec::new(),
        took: Duration::from_millis(1_234),
        page: None,
        clock: Clock::default(),
    }
}

#[test]
fn the_table_shows_every_policy_and_a_verdict() {
    let mut backtest = made_up();
    let table = output::answer_table(&backtest, Detail::Full);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    insta::assert_snapshot!("full", table);
    let gates = ["missed>1%", "x-optimum>1.3"].map(|rule| Gate::read(rule).expect("a rule"));
    backtest.gates = gates.iter().map(|gate| gate.judge(&backtest.policies, Some("hpa"))).collect();
    insta::assert_snapshot!("quiet_with_gates", output::answer_table(&backtest, Detail::Problems));
}

#[test]
fn a_broken_gate_is_a_no() {
    let mut backtest = made_up();
    assert_eq!(backtest.exit(), Exit::Yes);
    backtest.gates = vec![Gate::read("missed>1%").expect("a rule").judge(&backtest.policies, None)];
    assert_eq!(backtest.exit(), Exit::No);
}

#[test]
fn the_document_has_its_schema_and_no_time_of_this_run() {
    let mut backtest = made_up();
    let text = output::answer_json(&backtest);
    output::conforms("backtest", &text);
    backtest.took = Duration::from_secs(99);
    assert_eq!(text, output::answer_json(&backtest));
}

#[test]
fn the_page_is_one_file_that_loads_nothing() {
    let page = page::page(&made_up());
    for outside in ["http:", "https:", "src=", "@import", "fetch(", "XMLHttp", "url(//"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.len() < 100_000, "{}", page.len());
    assert_eq!(page, page::page(&made_up()), "the same bytes");
}
