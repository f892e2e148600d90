//! Reading finds all that is wrong, and the ramp's world is the one that was published.

use super::*;
use crate::seconds::Seconds;

const SMALL: &str = r#"
name = "small"
about = "One model with one replica."
length_seconds = 600

[[models]]
name = "team/chat"
replicas = { min = 1, max = 4 }
objectives = { first_token_ms = 500, between_tokens_ms = 50, attainment_percent = 99 }

[models.traffic]
stages = [{ seconds = 300, rps = 1 }, { seconds = 300, rps = 1, to_rps = 3 }]
prompt = { mean = 500, variation = 0.5 }
output = { mean = 100 }

[[models.variants]]
name = "one"
pool = "h100"
gpus = 1
initial = 1
cold_start = { warm_up = { seconds = 60 } }
linear = { step_ms = 8, prompt_token_us = 60, max_running = 64, step_tokens = 2048, cache_tokens = 100000 }

[[pools]]
name = "h100"
accelerator = "h100"
gpus_per_node = 8
nodes = { on-demand = 1 }

[expect]
killed = { max = 0, origin = "drains are waited for" }
"#;

fn none(name: &str) -> Result<Trace, String> {
    Err(format!("no trace {name}"))
}

#[test]
fn a_sound_scenario_becomes_a_world() {
    let scenario = Scenario::read(SMALL).unwrap();
    let setup = scenario.setup(&none).unwrap();
    // 300 and 2 * 300, give or take three standard deviations of a Poisson count of 900.
    assert!(setup.models[0].trace.requests.len().abs_diff(900) < 90);
    assert!(setup.models[0].variants[0].capacity.is_known());
    let other = scenario.with_seed(2).setup(&none).unwrap();
    assert_ne!(setup.models[0].trace, other.models[0].trace);
}

#[test]
fn everything_wrong_is_told_at_once() {
    let wrong = SMALL
        .replace("gpus_per_node = 8", "gpus_per_node = 0\ncolour = 1")
        .replace("pool = \"h100\"\ngpus = 1", "pool = \"a100\"\ngpus = 1")
        .replace("min = 1, max = 4", "min = 5, max = 4")
        .replace("origin = \"drains are waited for\"", "origin = \"\"")
        .replace("warm_up = { seconds = 60 }", "warm_up = { median_seconds = 60 }");
    let problems = Scenario::read(&wrong).unwrap_err().to_string();
    for part in
        ["colour", "no pool is called a100", "replicas.min", "origin is empty", "a length is"]
    {
        assert!(problems.contains(part), "{part} is not in:\n{problems}");
    }
}

#[test]
fn a_trace_that_is_not_there_is_told() {
    let replay = SMALL.replace(
        "stages = [{ seconds = 300, rps = 1 }, { seconds = 300, rps = 1, to_rps = 3 }]",
        "replay = \"azure\"",
    );
    let problems = Scenario::read(&replay).unwrap().setup(&none).unwrap_err();
    assert_eq!(problems.to_string(), "model team/chat: no trace azure");
}

#[test]
fn an_episode_ends_when_the_floor_is_reached_after_the_load() {
    use crate::cluster::{ReplicaCounts, ReplicaHistory};
    let at = |at: f64, ready| ReplicaCounts { at: Seconds(at), ready, ..ReplicaCounts::default() };
    let history = ReplicaHistory {
        standings: vec![at(0.0, 3), at(100.0, 8), at(300.0, 4), at(400.0, 3)],
        ..ReplicaHistory::default()
    };
    // 3 for 100 s, 8 for 200 s, 4 for 100 s.
    let episode = (Seconds::ZERO, Seconds(250.0), Seconds(1_000.0));
    let mean = judge::episode_replicas(&history, 3, episode);
    assert_eq!(mean, (300.0 + 1_600.0 + 400.0) / 400.0);
}

#[test]
fn prompts_and_answers_change_their_length_and_what_is_told_does_not() {
    let shift = "[[faults]]\nname = \"longer\"\nkind = \"shape-shift\"\nat_seconds = 100\n\
                 prompt_factor = 4\noutput_factor = 0.5\n\n[expect]";
    let before = Scenario::read(SMALL).unwrap().setup(&none).unwrap();
    let after = Scenario::read(&SMALL.replace("[expect]", shift)).unwrap().setup(&none).unwrap();
    let both = before.models[0].trace.requests.iter().zip(&after.models[0].trace.requests);
    for (before, after) in both {
        let late = before.at >= Seconds(100.0);
        let (prompt, output) = if late { (4, 50) } else { (1, 100) };
        assert_eq!((after.prompt, after.output), (prompt * before.prompt, output));
    }
    assert_eq!(after.models[0].variants[0].capacity, before.models[0].variants[0].capacity);
    assert_eq!(after.faults, []);
}

#[test]
fn a_fault_says_what_it_lacks() {
    let fault = |more: &str| {
        let fault = format!("[[faults]]\nname = \"f\"\nat_seconds = 1\n{more}\n\n[expect]");
        Scenario::read(&SMALL.replace("[expect]", &fault)).map_err(|wrong| wrong.to_string())
    };
    for (more, problem) in [
        ("kind = \"told-capacity\"", "either factor or unknown"),
        ("kind = \"told-capacity\"\nfactor = 2\nunknown = true", "either factor or unknown"),
        ("kind = \"told-capacity\"\nfactor = 0", "above zero"),
        ("kind = \"engine-slows\"", "factor is missing"),
        ("kind = \"shape-shift\"", "prompt_factor or output_factor is missing"),
    ] {
        let error = fault(more).unwrap_err();
        assert!(error.contains(problem), "{more}: {error}");
    }
    for more in ["kind = \"told-capacity\"\nunknown = true", "kind = \"no-gateway\""] {
        assert!(fault(more).is_ok(), "{more}");
    }
}
