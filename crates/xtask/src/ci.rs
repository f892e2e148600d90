//! What CI runs, step by step, with the minutes of each.
//!
//! A step that fails does not stop the next ones: one run tells everything that is wrong.
//! `check` is the part without a cluster, for every commit.

use crate::cluster::{self, Command as Cluster};
use crate::figures::{self, Op, Target};
use crate::{e2e, process, tidy, tools};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Which of the steps.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only these steps
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Write `ci.cold_minutes` or `ci.warm_minutes`, whichever this run was
    #[arg(long, env = "FLYBALL_CI_FIGURE")]
    figure: bool,
}

struct Step {
    name: &'static str,
    run: fn(&Path) -> Result<Outcome>,
}

enum Outcome {
    Done,
    Skipped(String),
}

const CHECK: [Step; 7] = [
    Step { name: "format", run: format },
    Step { name: "tidy", run: rules },
    Step { name: "clippy", run: clippy },
    Step { name: "tests", run: tests },
    Step { name: "documents", run: documents },
    Step { name: "licences", run: licences },
    Step { name: "advisories", run: advisories },
];

const ON_A_CLUSTER: [Step; 5] = [
    Step { name: "cluster-parts", run: |root| done(cluster::build_parts(root)) },
    Step { name: "cluster-leftovers", run: |root| done(cluster::main(root, Cluster::Leftovers)) },
    Step { name: "e2e", run: |root| done(e2e::run(root, &e2e::Args::own_cluster())) },
    Step {
        name: "thousand-nodes",
        run: |root| done(cluster::main(root, Cluster::Scale { nodes: 1000 })),
    },
    Step { name: "cluster-down", run: |root| done(cluster::main(root, Cluster::Down)) },
];

pub(crate) fn check(root: &Path) -> Result<ExitCode> {
    Ok(summarise(&run_steps(root, CHECK.iter())))
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    let steps: Vec<&Step> = CHECK.iter().chain(&ON_A_CLUSTER).collect();
    if let Some(unknown) = args.only.iter().find(|name| steps.iter().all(|s| s.name != *name)) {
        let known: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("there is no step `{unknown}`\n\nhint: the steps are {}", known.join(", "));
    }
    let warm = cluster::parts_are_cached(root)?;
    let wanted = |step: &&Step| args.only.is_empty() || args.only.iter().any(|n| n == step.name);
    let results = run_steps(root, steps.into_iter().filter(wanted));
    let code = summarise(&results);
    let minutes = since_begin().as_secs_f64() / 60.0;
    let kind = if warm { "warm" } else { "cold" };
    println!(
        "{minutes:.1} minutes since .ci/run began, {kind} (cluster parts {})",
        if warm { "were cached" } else { "were built in this run" }
    );
    if args.figure && args.only.is_empty() {
        let limit = if warm { 12.0 } else { 60.0 };
        figures::write(
            &format!("ci.{kind}_minutes"),
            minutes,
            "min",
            Target { op: Op::AtMost, value: limit },
            "FLYBALL_CI_FIGURE=true .ci/run",
        )?;
    }
    Ok(code)
}

struct Finished {
    name: &'static str,
    took: Duration,
    outcome: Result<Outcome>,
}

fn run_steps<'a>(root: &Path, steps: impl Iterator<Item = &'a Step>) -> Vec<Finished> {
    steps
        .map(|step| {
            println!("==== {}", step.name);
            let begin = Instant::now();
            let outcome = (step.run)(root);
            if let Err(error) = &outcome {
                println!("{} failed: {error:#}", step.name);
            }
            Finished { name: step.name, took: begin.elapsed(), outcome }
        })
        .collect()
}

fn summarise(results: &[Finished]) -> ExitCode {
    println!("==== summary");
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for step in results {
        let (word, remark) = match &step.outcome {
            Ok(Outcome::Done) => ("ok", String::new()),
            Ok(Outcome::Skipped(why)) => ("skip", why.clone()),
            Err(error) => ("FAIL", error.to_string().lines().next().unwrap_or_default().to_owned()),
        };
        match word {
            "ok" => passed += 1,
            "skip" => skipped += 1,
            _ => failed += 1,
        }
        let minutes = step.took.as_secs_f64() / 60.0;
        println!("{word:<5} {minutes:>5.1} min  {:<18} {remark}", step.name);
    }
    println!("steps: {passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Since `.ci/run` began, installs included; since now when it was not `.ci/run` that called.
fn since_begin() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    std::env::var("FLYBALL_CI_BEGIN")
        .ok()
        .and_then(|text| text.parse().ok())
        .map_or(Duration::ZERO, |begin| now.saturating_sub(Duration::from_secs(begin)))
}

fn done(result: Result<()>) -> Result<Outcome> {
    result.map(|()| Outcome::Done)
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root);
    command
}

fn format(root: &Path) -> Result<Outcome> {
    done(
        process::run(cargo(root).args(["fmt", "--all", "--check"]))
            .context("the code is not formatted\n\nhint: cargo fmt --all"),
    )
}

fn rules(root: &Path) -> Result<Outcome> {
    if tidy::run(root)? != ExitCode::SUCCESS {
        bail!("a rule of the house is broken; each finding above says how to mend it");
    }
    Ok(Outcome::Done)
}

fn clippy(root: &Path) -> Result<Outcome> {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--"];
    done(process::run(cargo(root).args(args).args(["-D", "warnings"])))
}

fn tests(root: &Path) -> Result<Outcome> {
    let mut nextest = tools::nextest()?;
    nextest.current_dir(root).args(["run", "--workspace", "--locked"]);
    nextest.args(["--status-level", "fail", "--cargo-quiet"]);
    process::run(&mut nextest)?;
    // nextest does not run the examples in the documentation.
    done(process::run(cargo(root).args(["test", "--doc", "--workspace", "--locked", "--quiet"])))
}

fn documents(root: &Path) -> Result<Outcome> {
    let args =
        ["doc", "--workspace", "--no-deps", "--document-private-items", "--locked", "--quiet"];
    done(process::run(cargo(root).env("RUSTDOCFLAGS", "-D warnings").args(args)))
}

fn licences(root: &Path) -> Result<Outcome> {
    let mut deny = tools::deny()?;
    done(process::run(deny.current_dir(root).args(["check", "bans", "licenses", "sources"])))
}

/// The advisory database lives in a git repository; where that cannot be reached, say so.
fn advisories(root: &Path) -> Result<Outcome> {
    let mut fetch = tools::deny()?;
    if process::read(fetch.current_dir(root).args(["fetch", "db"])).is_err() {
        return Ok(Outcome::Skipped("the advisory database cannot be reached from here".into()));
    }
    let mut deny = tools::deny()?;
    done(process::run(deny.current_dir(root).args(["check", "advisories"])))
}
