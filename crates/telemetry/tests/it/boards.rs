//! The boards as Grafana loads them, and everything that is asked of Prometheus.

use super::query;
use super::registry::Registry;
use super::rules::{Rules, Tests, as_rules};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of rules; each has its tests beside it.
const RULES: [&str; 2] = ["gateway", "operator"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn of_rules(name: &str) -> (Rules, Tests) {
    let file = |ending: &str| root().join(format!("dashboards/rules/{name}{ending}"));
    (Rules::read(&file(".yaml")), Tests::read(&file(".test.yaml")))
}

/// Name and content of every board.
fn boards() -> Vec<(String, Value)> {
    let mut boards = Vec::new();
    for entry in fs::read_dir(root().join("dashboards")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "json") {
            let board = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            boards.push((path.file_stem().unwrap().to_string_lossy().into_owned(), board));
        }
    }
    boards.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(!boards.is_empty());
    boards
}

/// The panels of a board, those in rows that are folded up too.
fn panels(of: &Value) -> Vec<&Value> {
    let each = of["panels"].as_array().into_iter().flatten();
    each.flat_map(|panel| [vec![panel], panels(panel)].concat()).collect()
}

/// Every query of a board with its place.
fn queries(name: &str, board: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut found = Vec::new();
    for panel in panels(board) {
        for target in panel["targets"].as_array().into_iter().flatten() {
            found.push((format!("{name}: {}", panel["title"]), text(&target["expr"])));
        }
    }
    let choices = board["templating"]["list"].as_array().unwrap();
    for choice in choices.iter().filter(|choice| choice["type"] == "query") {
        let place = format!("{name}: choice of {}", choice["name"]);
        let query = text(&choice["query"]["query"]);
        // Grafana's own words: the values of a label, of these series.
        let inside = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let (series, label) = inside.and_then(|rest| rest.rsplit_once(", ")).expect(&place);
        found.push((place, format!("group by ({label}) ({series})")));
    }
    assert!(found.len() > choices.len(), "{name} has no panels");
    found
}

fn all_queries() -> Vec<(String, String)> {
    boards().iter().flat_map(|(name, board)| queries(name, board)).collect()
}

#[test]
fn every_query_of_boards_and_rules_speaks_of_metrics_and_labels_that_exist() {
    let mut queries = all_queries();
    let mut registry = Registry { recorded: BTreeSet::new() };
    for name in RULES {
        let (rules, _) = of_rules(name);
        registry.recorded.extend(rules.recorded());
        queries.extend(rules.queries());
    }
    let wrong = queries.iter().filter_map(|(place, text)| {
        let held = query::parse(text).and_then(|query| registry.hold(&query));
        Some(format!("{place}: {}\n  in {text}", held.err()?))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_alert_has_words_a_page_and_cases() {
    for name in RULES {
        let (rules, tests) = of_rules(name);
        let problems = rules.problems(&root(), &tests);
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}

/// Whether a query is well formed is for Prometheus's own tool to say.
#[test]
fn promtool_reads_every_query_and_the_tests_of_the_rules_pass() {
    if Command::new("promtool").arg("--version").output().is_err() {
        #[expect(clippy::print_stderr, reason = "a test that skips must say why")]
        {
            eprintln!("skipped: no promtool; Debian's package `prometheus` has it");
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let as_file = folder.path().join("boards.yaml");
    fs::write(&as_file, as_rules(&all_queries())).unwrap();
    let run = |what: &str, file: &Path| {
        let mut promtool = Command::new("promtool");
        promtool.current_dir(root().join("dashboards/rules")).args([what, "rules"]).arg(file);
        let output = promtool.output().unwrap();
        let printed =
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "promtool {what} rules {}: {printed}", file.display());
    };
    run("check", &as_file);
    for name in RULES {
        run("check", Path::new(&format!("{name}.yaml")));
        run("test", Path::new(&format!("{name}.test.yaml")));
    }
}

#[test]
fn panels_lie_side_by_side_and_every_board_has_an_id_of_its_own() {
    let mut seen = BTreeSet::new();
    for (name, board) in boards() {
        assert!(seen.insert(board["uid"].to_string()), "{name}");
        let (mut places, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for panel in panels(&board) {
            let title = &panel["title"];
            assert!(ids.insert(panel["id"].as_u64()), "{name}: {title}");
            let of = |side: &str| panel["gridPos"][side].as_u64().unwrap();
            assert!(of("x") + of("w") <= 24, "{name}: {title} is too wide");
            for x in of("x")..of("x") + of("w") {
                for y in of("y")..of("y") + of("h") {
                    assert!(places.insert((x, y)), "{name}: {title} lies on another");
                }
            }
        }
    }
}
