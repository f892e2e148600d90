//! `cargo xtask dashboards`: writes the Grafana boards, and holds boards and alert rules against the
//! metrics that exist.
//!
//! Boards rot without a sound: a metric is renamed, and a panel shows "No data" for a year. Here
//! every name and label in a query must be in `docs/reference/metrics.md`, which a test of
//! `flyball-telemetry` writes from the code.
//!
//! `gateway`, `fleet`, `model` and `operator` are the boards, `board` and `panels` their JSON, `query`
//! finds names in PromQL, `registry` knows which exist, `rules` reads the alert rules and their tests.

mod board;
mod fleet;
mod gateway;
mod model;
mod operator;
mod panels;
mod query;
mod registry;
mod rules;

use anyhow::{Context as _, Result, bail};
use board::Board;
use registry::Registry;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What to do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a board is not current or a query names what does not exist
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    if !args.check {
        write(root)?;
    }
    println!("dashboards: {}", check(root)?);
    Ok(ExitCode::SUCCESS)
}

/// Files of rules; each has its tests beside it.
const RULES: [&str; 2] = ["gateway", "operator"];

/// Holds everything against everything. Says what was looked at.
pub(crate) fn check(root: &Path) -> Result<String> {
    let mut problems = Vec::new();
    for (path, board) in written(root) {
        if fs::read_to_string(&path).unwrap_or_default() != board {
            problems.push(format!("{} is not current: run cargo xtask dashboards", path.display()));
        }
    }
    let of_boards: Vec<_> = boards().iter().flat_map(Board::queries).collect();
    let mut queries = of_boards.clone();
    let mut registry = Registry::read(&root.join("docs/reference/metrics.md"))?;
    let mut alerts = 0;
    for name in RULES {
        let rules = rules::Rules::read(&root.join(format!("dashboards/rules/{name}.yaml")))?;
        let tests = rules::Tests::read(&root.join(format!("dashboards/rules/{name}.test.yaml")))?;
        problems.extend(rules.problems(root, &tests));
        registry = registry.with(rules.recorded());
        queries.extend(rules.queries());
        alerts += rules.alerts().count();
    }
    for (place, text) in &queries {
        let wrong = query::parse(text).and_then(|query| registry.hold(&query));
        problems.extend(wrong.err().map(|problem| format!("{place}: {problem}\n  in {text}")));
    }
    let promtool = promtool(root, &of_boards, &mut problems)?;
    if problems.is_empty() {
        return Ok(format!("{} queries and {alerts} alerts hold; {promtool}", queries.len()));
    }
    bail!("{}", problems.join("\n"));
}

fn boards() -> [Board; 4] {
    [fleet::board(), model::board(), operator::board(), gateway::board()]
}

fn write(root: &Path) -> Result<()> {
    for (path, board) in written(root) {
        fs::write(&path, board).with_context(|| format!("{}", path.display()))?;
    }
    Ok(())
}

/// The boards as files.
fn written(root: &Path) -> Vec<(PathBuf, String)> {
    let file = |board: &Board| root.join(format!("dashboards/{}.json", board.file));
    boards().iter().map(|board| (file(board), format!("{:#}\n", board.json()))).collect()
}

/// Lets Prometheus's own tool read every query, and runs the tests of the rules.
fn promtool(
    root: &Path,
    of_boards: &[(String, String)],
    problems: &mut Vec<String>,
) -> Result<&'static str> {
    if Command::new("promtool").arg("--version").output().is_err() {
        return Ok("promtool is not here, so syntax and rule tests were not looked at");
    }
    let folder = root.join("dashboards/rules");
    let as_rules = std::env::temp_dir().join(format!("flyball-board-{}.yaml", std::process::id()));
    fs::write(&as_rules, rules::as_rules(of_boards))?;
    let board = as_rules.to_string_lossy().into_owned();
    let of_rules = RULES.map(|name| {
        let [rules, tests] = [format!("{name}.yaml"), format!("{name}.test.yaml")];
        [
            ["check", "rules", &rules].map(str::to_owned),
            ["test", "rules", &tests].map(str::to_owned),
        ]
    });
    let of_boards = ["check", "rules", &board].map(str::to_owned);
    for args in of_rules.into_iter().flatten().chain([of_boards]) {
        let output = Command::new("promtool").current_dir(&folder).args(&args).output()?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            problems.push(format!("promtool {args:?}: {}", String::from_utf8_lossy(&said)));
        }
    }
    // It lies in a folder for such files; if it stays there, so be it.
    let _ = fs::remove_file(as_rules);
    Ok("promtool read them all and its tests pass")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn panels_lie_side_by_side_and_every_board_has_an_id_of_its_own() {
        let mut boards_seen = BTreeSet::new();
        for board in boards() {
            let json = board.json();
            assert!(boards_seen.insert(json["uid"].to_string()), "{}", board.file);
            let mut places = BTreeSet::new();
            let mut ids = BTreeSet::new();
            for panel in json["panels"].as_array().unwrap() {
                let title = &panel["title"];
                assert!(ids.insert(panel["id"].as_u64()), "{}: {title}", board.file);
                let of = |side: &str| panel["gridPos"][side].as_u64().unwrap();
                assert!(of("x") + of("w") <= 24, "{}: {title} is too wide", board.file);
                for x in of("x")..of("x") + of("w") {
                    for y in of("y")..of("y") + of("h") {
                        assert!(places.insert((x, y)), "{}: {title} lies on another", board.file);
                    }
                }
            }
        }
    }
}
