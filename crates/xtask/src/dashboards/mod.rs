//! `cargo xtask dashboards`: writes the Grafana boards, and holds boards and alert rules against the
//! metrics that exist.
//!
//! Boards rot without a sound: a metric is renamed, and a panel shows "No data" for a year. Here
//! every name and label in a query must be in `docs/reference/metrics.md`, which a test of
//! `flyball-telemetry` writes from the code.
//!
//! `gateway` is the board, `panels` its JSON, `query` finds names in PromQL, `registry` knows which
//! exist, `rules` reads the alert rules and their tests.

mod gateway;
mod panels;
mod query;
mod registry;
mod rules;

use anyhow::{Context as _, Result, bail};
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

/// Holds everything against everything. Says what was looked at.
pub(crate) fn check(root: &Path) -> Result<String> {
    let (path, board) = board(root);
    let mut problems = Vec::new();
    if fs::read_to_string(&path).unwrap_or_default() != board {
        problems.push(format!("{} is not current: run cargo xtask dashboards", path.display()));
    }
    let rules = rules::Rules::read(&root.join("dashboards/rules/gateway.yaml"))?;
    let tests = rules::Tests::read(&root.join("dashboards/rules/gateway.test.yaml"))?;
    let registry = Registry::read(&root.join("docs/reference/metrics.md"))?.with(rules.recorded());
    let of_board = gateway::queries();
    let mut queries = 0;
    for (place, text) in of_board.iter().chain(&rules.queries()) {
        queries += 1;
        let wrong = query::parse(text).and_then(|query| registry.hold(&query));
        problems.extend(wrong.err().map(|problem| format!("{place}: {problem}\n  in {text}")));
    }
    problems.extend(rules.problems(root, &tests));
    let promtool = promtool(root, &of_board, &mut problems)?;
    if problems.is_empty() {
        let alerts = rules.alerts().count();
        return Ok(format!("{queries} queries and {alerts} alerts hold; {promtool}"));
    }
    bail!("{}", problems.join("\n"));
}

fn write(root: &Path) -> Result<()> {
    let (path, board) = board(root);
    fs::write(&path, board).with_context(|| format!("{}", path.display()))
}

fn board(root: &Path) -> (PathBuf, String) {
    (root.join("dashboards/gateway.json"), format!("{:#}\n", gateway::board()))
}

/// Lets Prometheus's own tool read every query, and runs the tests of the rules.
fn promtool(
    root: &Path,
    of_board: &[(String, String)],
    problems: &mut Vec<String>,
) -> Result<&'static str> {
    if Command::new("promtool").arg("--version").output().is_err() {
        return Ok("promtool is not here, so syntax and rule tests were not looked at");
    }
    let folder = root.join("dashboards/rules");
    let as_rules = std::env::temp_dir().join(format!("flyball-board-{}.yaml", std::process::id()));
    fs::write(&as_rules, rules::as_rules(of_board))?;
    let board = as_rules.to_string_lossy().into_owned();
    for args in [
        ["check", "rules", "gateway.yaml"],
        ["test", "rules", "gateway.test.yaml"],
        ["check", "rules", &board],
    ] {
        let output = Command::new("promtool").current_dir(&folder).args(args).output()?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            problems.push(format!("promtool {args:?}: {}", String::from_utf8_lossy(&said)));
        }
    }
    // It lies in a folder for such files; if it stays there, so be it.
    let _ = fs::remove_file(as_rules);
    Ok("promtool read them all and its tests pass")
}
