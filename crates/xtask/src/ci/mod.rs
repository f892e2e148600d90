//! What CI runs, step by step, with the minutes of each.
//!
//! A step that fails does not stop the next ones: one run tells everything that is wrong. What every
//! commit needs comes first and always runs; the rest runs when there is time (`budget`). `check` is
//! the part without a cluster, for every commit; with `--repeat` it runs the tests again and again
//! beside noise (`repeat`), and with `--changed` only what a change can have broken (`changed`).
//!
//! Read `steps` (what runs, in its order, and what each is thought to take), then `budget`, then `beside` (what runs while
//! the stories wait).

mod beside;
mod budget;
mod caches;
mod changed;
mod repeat;
mod steps;

use crate::compile::TimedTest;
use crate::errors;
use anyhow::{Result, bail};
use beside::Beside;
use budget::{Cost, Minutes, Verdict};
use caches::Caches;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use steps::{Outcome, STEPS, Step, Where};

pub(crate) use repeat::Args as CheckArgs;

/// Which of the steps, and for how long.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only these steps, however long they take
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Minutes that the run may take; what does not fit and is not needed by every commit is skipped.
    /// 12 with full caches and 55 without, unless it is said
    #[arg(long, env = "FLYBALL_CI_BUDGET_MINUTES")]
    budget_minutes: Option<f64>,
    /// Write `ci.cold_minutes` or `ci.warm_minutes`, whichever this run was
    #[arg(long, env = "FLYBALL_CI_FIGURE")]
    figure: bool,
}

/// What every step may look at.
struct Context<'a> {
    root: &'a Path,
    figure: bool,
}

pub(crate) fn check(root: &Path, args: &CheckArgs) -> Result<ExitCode> {
    if let Some(rounds) = args.rounds() {
        return repeat::run(root, args, rounds);
    }
    if args.changed {
        return changed::run(root, args.figure);
    }
    let context = Context { root, figure: false };
    let steps = STEPS.iter().filter(|step| step.place == Where::Anywhere);
    let results = steps.map(|step| step.finish(&context)).collect::<Vec<_>>();
    summarise(&results);
    Ok(exit_of(&results))
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    if let Some(unknown) = args.only.iter().find(|name| STEPS.iter().all(|s| s.name != *name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("there is no step `{unknown}`\n\nhint: the steps are {}", known.join(", "));
    }
    let clock = Clock::begin();
    let caches = Caches::inspect(root)?;
    println!("caches are {}", caches.in_words());
    println!(
        "{:.1} min before the first step: installs, and one build of everything",
        clock.gone().0
    );
    let context = Context { root, figure: args.figure };
    let budget = args.budget_minutes.map_or(caches.budget(), Minutes);
    let results = if args.only.is_empty() {
        run_in_time(&context, budget, &clock, caches.are_warm())?
    } else {
        let named = STEPS.iter().filter(|step| args.only.iter().any(|name| name == step.name));
        named.map(|step| step.finish(&context)).collect()
    };
    summarise(&results);
    let gone = clock.gone();
    println!(
        "{:.1} of {budget} minutes since .ci/run began; caches were {}",
        gone.0,
        caches.in_words()
    );
    let code = exit_of(&results);
    // A run that failed early was quick for the wrong reason.
    if args.figure && args.only.is_empty() && code == ExitCode::SUCCESS {
        caches.record(gone)?;
    }
    Ok(code)
}

/// All steps in their order, and of the optional ones those that there is time for. Some run beside the stories, unless
/// caches are to be filled first: building parts and tools wants both cores, and two steps would make one tool twice.
fn run_in_time(
    context: &Context<'_>,
    budget: Minutes,
    clock: &Clock,
    are_warm: bool,
) -> Result<Vec<Finished>> {
    let mut results = Vec::new();
    let mut beside = are_warm.then(|| Beside::begin(context.root)).transpose()?;
    let is_here = |step: &&Step| !(are_warm && step.is_beside_stories);
    let steps: Vec<&Step> = STEPS.iter().filter(is_here).collect();
    for (place, step) in steps.iter().enumerate() {
        // Looked at anew each time: a step before may have filled caches that a later one needs.
        let costs: Vec<Cost> =
            steps[place..].iter().map(|step| step.cost(context.root)).collect::<Result<_>>()?;
        results.push(match budget::verdict(budget, clock.gone(), &costs) {
            Verdict::Run => step.finish(context),
            Verdict::Skip(why) => {
                println!("==== {} is skipped: {why}", step.name);
                Finished {
                    name: step.name,
                    took: Duration::ZERO,
                    outcome: Ok(Outcome::Skipped(why)),
                }
            }
        });
        if step.name == steps::STORIES {
            results.extend(beside.take().map(Beside::end));
        }
    }
    Ok(results)
}

struct Finished {
    name: &'static str,
    took: Duration,
    outcome: Result<Outcome>,
}

impl Step {
    fn finish(&self, context: &Context<'_>) -> Finished {
        finish(self.name, || (self.run)(context))
    }
}

fn finish(name: &'static str, step: impl FnOnce() -> Result<Outcome>) -> Finished {
    println!("==== {name}");
    let begin = Instant::now();
    let outcome = step();
    if let Err(error) = &outcome {
        println!("{name} failed: {}", errors::in_words(error));
    }
    Finished { name, took: begin.elapsed(), outcome }
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
            Ok(Outcome::Done | Outcome::Ran(_)) => ("ok", String::new()),
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
    for step in results {
        if let Ok(Outcome::Ran(tests)) = &step.outcome {
            println!("the longest of {} in {}:", tests.len(), step.name);
            longest(tests).for_each(|test| println!("{:>9.1} s  {}", test.seconds, test.name));
        }
    }
    println!("steps: {passed} passed, {failed} failed, {skipped} skipped");
}

/// The five that took longest.
fn longest(tests: &[TimedTest]) -> impl Iterator<Item = &TimedTest> {
    let mut all: Vec<&TimedTest> = tests.iter().collect();
    all.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    all.into_iter().take(5)
}

/// Counts from when `.ci/run` began, installs included; from our own start when it was not `.ci/run`
/// that called.
struct Clock {
    began: Instant,
    before: Duration,
}

impl Clock {
    fn begin() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let begin = std::env::var("FLYBALL_CI_BEGIN").ok().and_then(|text| text.parse().ok());
        let before =
            begin.map_or(Duration::ZERO, |begin| now.saturating_sub(Duration::from_secs(begin)));
        Self { began: Instant::now(), before }
    }

    fn gone(&self) -> Minutes {
        Minutes((self.before + self.began.elapsed()).as_secs_f64() / 60.0)
    }
}
