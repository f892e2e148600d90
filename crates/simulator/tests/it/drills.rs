//! Every scenario, with what it expects, under the governor.

use flyball_simulator::cluster::{Run, Setup, run};
use flyball_simulator::policies::Governor;
use flyball_simulator::policy::Policy;
use flyball_simulator::scenario::Scenario;
use flyball_simulator::traffic::Trace;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn read(name: &str) -> Scenario {
    let path = folder().join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Scenario::read(&text).unwrap_or_else(|problems| panic!("{}:\n{problems}", path.display()))
}

fn no_trace(name: &str) -> Result<Trace, String> {
    Err(format!("{name} is not needed here"))
}

fn play(scenario: &Scenario, policy: &mut dyn Policy) -> (Setup, Run) {
    let setup = scenario.setup(&no_trace).unwrap_or_else(|problems| panic!("{problems}"));
    let run = run(&setup, policy);
    (setup, run)
}

fn governor() -> Governor {
    Governor::new(flyball_governor::Policy::default())
}

/// Plays a scenario under the governor and finds everything as expected.
#[expect(clippy::print_stdout, reason = "recovery times and shares are what a drill is read for")]
fn drill(name: &str) {
    let scenario = read(name);
    assert_eq!(scenario.name(), name);
    let (setup, run) = play(&scenario, &mut governor());
    let verdict = scenario.judge(&setup, &run);
    let model = &run.outcome.models[0];
    println!(
        "{name}: {} requests, {:.2} % missed, {} killed, {:.2} replica hours, {} starts, {} reversals",
        model.requests,
        run.outcome.missed_share() * 100.0,
        model.killed,
        model.replica_seconds / 3_600.0,
        model.starts,
        model.reversals,
    );
    verdict.findings.iter().for_each(|finding| println!("  {finding}"));
    verdict.broken.iter().for_each(|broken| println!("  broken: {broken}"));
    assert!(verdict.holds(), "{name} is not as expected");
}

macro_rules! drills {
    ($($test:ident: $name:literal,)*) => {
        /// Every scenario with a test.
        const NAMES: &[&str] = &[$($name),*];
        $(#[test] fn $test() { drill($name); })*
    };
}

drills! {
    traffic_that_triples_is_followed: "step-x3",
    a_ramp_is_seen_coming: "ramp",
    a_spike_is_over_before_anything_helps: "spike",
    a_flood_stays_within_limits: "flood",
    what_nobody_uses_sleeps_and_wakes: "traffic-to-zero",
    a_stock_out_is_waited_out: "stock-out",
    reclaimed_nodes_are_replaced: "reclaim-storm",
    nothing_is_given_away_on_stale_metrics: "stale-metrics",
    nothing_is_given_away_on_missing_metrics: "missing-metrics",
    nothing_is_given_away_on_what_is_not_a_number: "nan-metrics",
    a_clock_that_jumps_changes_nothing: "clock-jump",
    the_published_ramp_is_beaten: "llm-d-ramp",
}

#[test]
fn every_scenario_has_a_test() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "seeds")
        .collect();
    let mut named: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    found.sort();
    named.sort();
    assert_eq!(found, named);
}
