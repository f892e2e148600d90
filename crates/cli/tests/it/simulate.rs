//! `flyball simulate`: what it shows, how it refuses, and that the same seed gives the same bytes.

use super::flyball::{Run, command, finish, folder};

const SMALL: &str = r#"
name = "small"
about = "Traffic triples after ten minutes."
seed = 1
length_seconds = 1800

[[models]]
name = "team/chat"
replicas = { min = 1, max = 6 }
objectives = { first_token_ms = 2000, between_tokens_ms = 80, attainment_percent = 99 }

[models.traffic]
stages = [{ seconds = 600, rps = 1 }, { seconds = 1200, rps = 3 }]
prompt = { mean = 2000, variation = 0.5 }
output = { mean = 100, variation = 0.5 }

[[models.variants]]
name = "tp2"
pool = "h100"
gpus = 2
initial = 1
cold_start = { warm_up = { seconds = 60 } }
linear = { step_ms = 18, prompt_token_us = 150, request_us = 100, max_running = 64, step_tokens = 4096, cache_tokens = 400000 }

[[pools]]
name = "h100"
accelerator = "h100"
gpus_per_node = 2
nodes = { on-demand = 1 }
can_grow = true

[expect]
killed = { max = 0, origin = "every drain waits for the requests inside" }
missed_percent = { max = 30, origin = "one replica carries two requests per second until others have started" }
"#;

/// A folder of its own for each test, with the scenario and what is beside it.
fn worlds(name: &str) -> String {
    let folder = folder(name);
    let write = |file: &str, text: &str| {
        std::fs::write(format!("{folder}/{file}"), text).expect("a file");
    };
    write("small.toml", SMALL);
    write("strict.toml", &SMALL.replace("max = 30", "max = 0.001"));
    let stages = "stages = [{ seconds = 600, rps = 1 }, { seconds = 1200, rps = 3 }]";
    write("replay.toml", &SMALL.replace(stages, "replay = \"traces/recorded.csv\""));
    write("nowhere.toml", &SMALL.replace(stages, "replay = \"nowhere.csv\""));
    let wrong = SMALL
        .replace("gpus_per_node = 2", "gpus_per_node = 0\ncolour = 1")
        .replace("pool = \"h100\"\ngpus = 2", "pool = \"a100\"\ngpus = 0")
        .replace("min = 1, max = 6", "min = 7, max = 6");
    write("wrong.toml", &wrong);
    write("broken.toml", "name = \"x\nabout = 1\n");
    std::fs::create_dir_all(format!("{folder}/traces")).expect("a folder");
    let rows = (0..900).map(|second| format!("{},1000,60\n", 2 * second));
    write("traces/recorded.csv", &format!("time,input,output\n{}", rows.collect::<String>()));
    folder
}

fn ask(folder: &str, args: &[&str]) -> Run {
    let mut all = vec!["simulate"];
    all.extend(args);
    finish(command(&all).current_dir(folder).env("LC_ALL", "C.UTF-8"))
}

/// Everything, with the numbers, but how long it took.
fn shown(run: &Run) -> String {
    let text = format!(
        "status: {:?}\n----- stdout\n{}----- stderr\n{}",
        run.status, run.stdout, run.stderr
    );
    let timeless = |line: &str| match line.split_once("request by request in ") {
        Some((before, _)) => format!("{before}request by request in <time>"),
        None => line.to_owned(),
    };
    text.lines().map(timeless).collect::<Vec<_>>().join("\n")
}

fn fits(run: &Run) {
    let wide = run.stdout.lines().chain(run.stderr.lines()).find(|l| l.chars().count() > 100);
    assert_eq!(wide, None);
}

#[test]
fn policies_are_played_side_by_side() {
    let folder = worlds("simulate");
    // Fixed numbers: what a law decides is not what this test is about.
    let run = ask(&folder, &["small.toml", "--policy", "static@2,static@1"]);
    assert_eq!(run.status, Some(0), "{}", shown(&run));
    fits(&run);
    insta::assert_snapshot!("simulate_table", shown(&run));
    let run = ask(&folder, &["small.toml", "--policy", "static@2", "--timeline"]);
    fits(&run);
    insta::assert_snapshot!("simulate_timeline", shown(&run));
}

#[test]
fn the_governor_plays_and_the_first_policy_is_held_to_what_is_expected() {
    let folder = worlds("simulate-governor");
    let run = ask(&folder, &["strict.toml", "-o", "json"]);
    assert_eq!(run.status, Some(1), "{}", shown(&run));
    let answer = run.json();
    assert_eq!((&answer["kind"], &answer["seed"]), (&"Simulation".into(), &1.into()));
    let governor = &answer["policies"][0];
    assert_eq!(governor["name"], "governor");
    assert_eq!(governor["expectations"][0]["what"], "missed_percent");
    assert_eq!(governor["expectations"][0]["holds"], false);
    assert!(!governor["decisions"].as_array().expect("decisions").is_empty());
    // Who stands second is only compared with.
    let run = ask(&folder, &["strict.toml", "--policy", "static@3,static@1", "-q"]);
    assert_eq!(run.status, Some(0), "{}", shown(&run));
    assert!(run.stdout.contains("FAIL"), "{}", run.stdout);
}

#[test]
fn the_same_seed_gives_the_same_page_and_another_seed_another() {
    let folder = worlds("simulate-page");
    let page = |name: &str, seed: &str| {
        let args = ["small.toml", "--policy", "hpa-running", "--seed", seed, "--html", name];
        let run = ask(&folder, &args);
        assert_eq!(run.status, Some(0), "{}", shown(&run));
        std::fs::read_to_string(format!("{folder}/{name}")).expect("the page")
    };
    let (one, two, other) = (page("one.html", "5"), page("two.html", "5"), page("o.html", "6"));
    assert!(one == two && one != other);
    assert!(one.len() < 300_000 && !one.contains("http://") && one.contains("<svg"));
}

#[test]
fn traces_are_found_beside_the_scenario_and_where_they_are_said_to_be() {
    let folder = worlds("simulate-traces");
    let run = ask(&folder, &["replay.toml", "--policy", "static@2", "-o", "json"]);
    assert_eq!(run.json()["models"][0]["requests"], 900.0, "{}", shown(&run));
    std::fs::create_dir_all(format!("{folder}/other")).expect("a folder");
    std::fs::copy(format!("{folder}/replay.toml"), format!("{folder}/other/replay.toml"))
        .expect("a copy");
    let args = ["other/replay.toml", "--policy", "static@2", "--traces", "."];
    assert_eq!(ask(&folder, &args).status, Some(0));
}

#[test]
fn what_cannot_be_played_is_refused_with_everything_that_is_wrong() {
    let folder = worlds("simulate-refused");
    let mut texts = String::new();
    for args in [
        &["wrong.toml"][..],
        &["broken.toml"],
        &["missing.toml"],
        &["nowhere.toml"],
        &["small.toml", "--policy", "hpa-runing"],
        &["small.toml", "--policy", "cron"],
        &["small.toml", "--html", "no/such/folder.html", "--policy", "static@1"],
    ] {
        let run = ask(&folder, args);
        assert_eq!(run.status, Some(2), "{args:?}\n{}", shown(&run));
        texts.push_str(&run.stderr);
    }
    assert!(texts.lines().all(|line| line.chars().count() <= 100), "{texts}");
    insta::assert_snapshot!("simulate_refused", texts);
}

#[test]
fn the_example_of_the_error_page_and_what_the_guide_tells_to_type_work() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = std::fs::read_to_string(format!("{root}/docs/errors/FLY-714.md")).expect("a page");
    let example = page.split("```toml").nth(1).and_then(|rest| rest.split("```").next());
    let folder = worlds("simulate-guide");
    std::fs::write(format!("{folder}/first.toml"), example.expect("an example")).expect("a file");
    let run = ask(&folder, &["first.toml", "--policy", "static@3"]);
    assert_eq!(run.status, Some(0), "{}", shown(&run));
    let guide = std::fs::read_to_string(format!("{root}/docs/guides/scenarios.md")).expect("it");
    let lines: Vec<&str> = guide.lines().filter_map(|l| l.strip_prefix("$ flyball ")).collect();
    assert!(lines.len() >= 3, "{lines:?}");
    for line in lines {
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        for word in words.iter_mut().filter(|word| word.starts_with("scenarios/")) {
            *word = format!("{root}/{word}");
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let run = finish(command(&words).current_dir(&folder).env("LC_ALL", "C.UTF-8"));
        assert_eq!(run.status, Some(0), "{line}\n{}", shown(&run));
    }
}

#[test]
fn a_restart_hands_on_what_fits_into_a_status_and_changes_no_decision() {
    let folder = worlds("simulate-restart");
    let decisions = |name: &str, text: &str| {
        std::fs::write(format!("{folder}/{name}"), text).expect("a file");
        let answer = ask(&folder, &[name, "--policy", "governor", "-o", "json"]).json();
        answer["policies"][0].clone()
    };
    let fault =
        "[[faults]]\nname = \"restart\"\nkind = \"operator-restart\"\nat_seconds = 700\n\n[expect]";
    let with = decisions("with.toml", &SMALL.replace("[expect]", fault));
    let without = decisions("without.toml", SMALL);
    let bytes = with["learntBytes"].as_u64().expect("bytes");
    assert!((100..=4_096).contains(&bytes), "{bytes}");
    assert!(without["learntBytes"].is_null());
    assert!(without["decisions"].as_array().expect("decisions").len() > 1);
    assert_eq!(with["decisions"], without["decisions"]);
}
