//! What CI runs, step by step, with the minutes of each.
//!
//! A step that fails does not stop the next ones: one run tells everything that is wrong.
//! `check` is the part without a cluster, for every commit.

use crate::cluster::{self, Command as Cluster};
use crate::figures::{self, Op, Target};
use crate::{
    accuracy, bench, charts, dashboards, e2e, engines, errors, fuzz, image, process, tidy, tools,
};
use anyhow::{Context as _, Result, bail};
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

/// What every step may look at.
struct Context<'a> {
    root: &'a Path,
    figure: bool,
}

struct Step {
    name: &'static str,
    run: fn(&Context<'_>) -> Result<Outcome>,
}

enum Outcome {
    Done,
    Skipped(String),
}

const CHECK: [Step; 11] = [
    Step { name: "format", run: format },
    Step { name: "tidy", run: rules },
    Step { name: "clippy", run: clippy },
    Step { name: "tests", run: tests },
    Step { name: "accuracy", run: |ctx| done(accuracy::check(ctx.root)) },
    Step { name: "bench", run: |ctx| done(bench::quick(ctx.root)) },
    Step { name: "dashboards", run: boards },
    Step { name: "charts", run: helm_charts },
    Step { name: "documents", run: documents },
    Step { name: "licences", run: licences },
    Step { name: "advisories", run: advisories },
];

/// Too long for every commit.
const LONGER: [Step; 1] = [Step { name: "fuzz", run: a_minute_of_each }];

const ON_A_CLUSTER: [Step; 8] = [
    Step { name: "engines", run: |ctx| done(engines::build(ctx.root).map(drop)) },
    Step { name: "real-engines", run: real_engines },
    Step { name: "cluster-parts", run: |ctx| done(cluster::build_parts(ctx.root)) },
    Step { name: "image", run: |ctx| done(image::build(ctx.root, ctx.figure).map(drop)) },
    Step { name: "cluster-leftovers", run: |ctx| on_a_cluster(ctx, leftovers) },
    Step { name: "e2e", run: |ctx| on_a_cluster(ctx, stories) },
    Step { name: "thousand-nodes", run: |ctx| on_a_cluster(ctx, thousand_nodes) },
    Step { name: "cluster-down", run: |ctx| done(cluster::main(ctx.root, Cluster::Down)) },
];

pub(crate) fn check(root: &Path) -> ExitCode {
    let results = run_steps(&Context { root, figure: false }, CHECK.iter());
    summarise(&results);
    exit_of(&results)
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    let steps: Vec<&Step> = CHECK.iter().chain(&LONGER).chain(&ON_A_CLUSTER).collect();
    if let Some(unknown) = args.only.iter().find(|name| steps.iter().all(|s| s.name != *name)) {
        let known: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("there is no step `{unknown}`\n\nhint: the steps are {}", known.join(", "));
    }
    let began = Instant::now();
    let caches = Caches::look(root)?;
    let wanted = |step: &&Step| args.only.is_empty() || args.only.iter().any(|n| n == step.name);
    let context = Context { root, figure: args.figure };
    let results = run_steps(&context, steps.into_iter().filter(wanted));
    summarise(&results);
    let minutes = since_begin(began).as_secs_f64() / 60.0;
    println!("{minutes:.1} minutes since .ci/run began; caches were {}", caches.in_words());
    let code = exit_of(&results);
    // A run that failed early was quick for the wrong reason.
    if args.figure && args.only.is_empty() && code == ExitCode::SUCCESS {
        caches.record(minutes)?;
    }
    Ok(code)
}

/// What stood before the run began: it decides which of the two promises the minutes belong to.
enum Caches {
    Warm,
    Cold,
    Partly,
}

impl Caches {
    fn look(root: &Path) -> Result<Self> {
        // Said by `.ci/run`, because this very program was built into that folder.
        let target = std::env::var("FLYBALL_CI_TARGET").is_ok_and(|word| word == "warm");
        let parts = [
            cluster::parts_are_cached(root)?,
            engines::are_cached(root)?,
            tools::are_cached()?,
            target,
        ];
        Ok(match parts {
            [true, true, true, true] => Self::Warm,
            [false, false, false, false] => Self::Cold,
            _ => Self::Partly,
        })
    }

    fn in_words(&self) -> &'static str {
        match self {
            Self::Warm => "warm (cluster parts, engines, tools, target folder)",
            Self::Cold => "empty",
            Self::Partly => "partly filled, so the minutes count neither as cold nor as warm",
        }
    }

    fn record(&self, minutes: f64) -> Result<()> {
        let (name, limit) = match self {
            Self::Warm => ("ci.warm_minutes", 12.0),
            Self::Cold => ("ci.cold_minutes", 60.0),
            Self::Partly => return Ok(()),
        };
        let target = Target { op: Op::AtMost, value: limit };
        figures::write(name, minutes, "min", target, "FLYBALL_CI_FIGURE=true .ci/run").map(drop)
    }
}

struct Finished {
    name: &'static str,
    took: Duration,
    outcome: Result<Outcome>,
}

fn run_steps<'a>(context: &Context<'_>, steps: impl Iterator<Item = &'a Step>) -> Vec<Finished> {
    steps
        .map(|step| {
            println!("==== {}", step.name);
            let begin = Instant::now();
            let outcome = (step.run)(context);
            if let Err(error) = &outcome {
                println!("{} failed: {}", step.name, errors::in_words(error));
            }
            Finished { name: step.name, took: begin.elapsed(), outcome }
        })
        .collect()
}

fn exit_of(results: &[Finished]) -> ExitCode {
    match results.iter().any(|step| step.outcome.is_err()) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

fn summarise(results: &[Finished]) {
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
}

/// Since `.ci/run` began, installs included; since our own start when it was not `.ci/run` that called.
fn since_begin(began: Instant) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    std::env::var("FLYBALL_CI_BEGIN")
        .ok()
        .and_then(|text| text.parse().ok())
        .map_or_else(|| began.elapsed(), |begin| now.saturating_sub(Duration::from_secs(begin)))
}

/// Without parts each of these steps would try to build them again.
fn on_a_cluster(ctx: &Context<'_>, run: fn(&Context<'_>) -> Result<()>) -> Result<Outcome> {
    if !cluster::parts_are_cached(ctx.root)? {
        return Ok(Outcome::Skipped("the cluster's parts did not build".into()));
    }
    done(run(ctx))
}

fn leftovers(ctx: &Context<'_>) -> Result<()> {
    cluster::main(ctx.root, Cluster::Leftovers { figure: ctx.figure })
}

fn stories(ctx: &Context<'_>) -> Result<()> {
    e2e::run(ctx.root, &e2e::Args::own_cluster())
}

/// The gateway in front of llama-server on this machine.
fn real_engines(ctx: &Context<'_>) -> Result<Outcome> {
    if !engines::are_cached(ctx.root)? {
        return Ok(Outcome::Skipped("the engines did not build".into()));
    }
    let built = engines::build(ctx.root)?;
    let mut nextest = tools::nextest()?;
    nextest.current_dir(ctx.root).args(["run", "--locked", "--package", "flyball-proving"]);
    // Named by us, they must be there: a test that cannot find one fails instead of skipping.
    nextest.env("FLYBALL_ENGINES", built.folder);
    nextest.args(["--cargo-quiet", "--profile", "e2e", "real_engines"]);
    done(process::run(&mut nextest))
}

fn thousand_nodes(ctx: &Context<'_>) -> Result<()> {
    cluster::main(ctx.root, Cluster::Scale { nodes: 1000, figure: ctx.figure })
}

fn a_minute_of_each(ctx: &Context<'_>) -> Result<Outcome> {
    Ok(fuzz::briefly(ctx.root)?.map_or(Outcome::Done, Outcome::Skipped))
}

fn done(result: Result<()>) -> Result<Outcome> {
    result.map(|()| Outcome::Done)
}

fn cargo(ctx: &Context<'_>) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(ctx.root);
    command
}

fn format(ctx: &Context<'_>) -> Result<Outcome> {
    done(
        process::run(cargo(ctx).args(["fmt", "--all", "--check"]))
            .context("the code is not formatted\n\nhint: cargo fmt --all"),
    )
}

fn rules(ctx: &Context<'_>) -> Result<Outcome> {
    if tidy::run(ctx.root)? != ExitCode::SUCCESS {
        bail!("a rule of the house is broken; each finding above says how to mend it");
    }
    Ok(Outcome::Done)
}

fn clippy(ctx: &Context<'_>) -> Result<Outcome> {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--"];
    done(process::run(cargo(ctx).args(args).args(["-D", "warnings"])))
}

fn tests(ctx: &Context<'_>) -> Result<Outcome> {
    let mut nextest = tools::nextest()?;
    nextest.current_dir(ctx.root).args(["run", "--workspace", "--locked"]);
    nextest.args(["--status-level", "fail", "--cargo-quiet"]);
    // They have a step of their own, after the one that brings the engines.
    nextest.args(["--filterset", "not test(real_engines)"]);
    process::run(&mut nextest)?;
    // nextest does not run the examples in the documentation.
    done(process::run(cargo(ctx).args([
        "test",
        "--doc",
        "--workspace",
        "--all-features",
        "--locked",
        "--quiet",
    ])))
}

fn documents(ctx: &Context<'_>) -> Result<Outcome> {
    let args =
        ["doc", "--workspace", "--no-deps", "--document-private-items", "--locked", "--quiet"];
    done(process::run(cargo(ctx).env("RUSTDOCFLAGS", "-D warnings").args(args)))
}

fn boards(ctx: &Context<'_>) -> Result<Outcome> {
    println!("{}", dashboards::check(ctx.root)?);
    Ok(Outcome::Done)
}

fn helm_charts(ctx: &Context<'_>) -> Result<Outcome> {
    if !tools::helm_can_be_had()? {
        return Ok(Outcome::Skipped("helm is made with Go, which is not here".into()));
    }
    println!("{}", charts::check(ctx.root)?);
    Ok(Outcome::Done)
}

fn licences(ctx: &Context<'_>) -> Result<Outcome> {
    let mut deny = tools::deny()?;
    done(process::run(deny.current_dir(ctx.root).args(["check", "bans", "licenses", "sources"])))
}

/// The advisory database lives in a git repository; where that cannot be reached, say so.
fn advisories(ctx: &Context<'_>) -> Result<Outcome> {
    let mut fetch = tools::deny()?;
    if process::read(fetch.current_dir(ctx.root).args(["fetch", "db"])).is_err() {
        return Ok(Outcome::Skipped("the advisory database cannot be reached from here".into()));
    }
    let mut deny = tools::deny()?;
    done(process::run(deny.current_dir(ctx.root).args(["check", "advisories"])))
}
