//! The steps in their order: first what every commit needs, then what runs when there is time.

use super::Context;
use super::budget::{Cost, Estimate, Need};
use crate::cluster::{self, Command as Cluster};
use crate::compile::TimedTest;
use crate::{
    charts, compile, e2e, engines, fuzz, heartbeat, image, process, programs, tidy, tools,
};
use Need::{Always, IfTime};
use Where::{Anywhere, OnACluster};
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::{Command, ExitCode};

/// What a step does.
pub(super) type Run = fn(&Context<'_>) -> Result<Outcome>;

/// One step.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) place: Where,
    pub(super) run: Run,
    need: Need,
    estimate: Estimate,
    /// Whether all that it needs is in the caches.
    cached: fn(&Path) -> Result<bool>,
    /// Whether it runs beside the stories, with what they leave of the cores.
    pub(super) is_beside_stories: bool,
}

/// The step that others run beside.
pub(super) const STORIES: &str = "e2e";

/// Where a step can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// On any machine, before every commit.
    Anywhere,
    /// Where a cluster can be started, or for longer than people like to wait.
    OnACluster,
}

/// How a step ended, if it did not fail.
pub(super) enum Outcome {
    Done,
    /// It did, and these ran in it.
    Ran(Vec<TimedTest>),
    /// Why.
    Skipped(String),
}

/// An optional step stands behind those that are needed, unless one of these is better for it: so it
/// cannot take their time. What the minutes are made of stands in docs/decisions/0034.
pub(super) const STEPS: [Step; 21] = [
    Step::new("format", Always, Anywhere, Estimate::seen(0.1, 0.1), format),
    Step::new("tidy", Always, Anywhere, Estimate::seen(0.1, 0.1), rules),
    Step::new("clippy", Always, Anywhere, Estimate::seen(4.0, 1.0), clippy).beside_stories(),
    Step::new("tests", Always, Anywhere, Estimate::seen(6.0, 3.0), tests)
        .cached_if(|_| tools::nextest_is_cached())
        .beside_stories(),
    Step::new("python", Always, Anywhere, Estimate::seen(0.3, 0.3), python).beside_stories(),
    Step::new("accuracy", Always, Anywhere, Estimate::seen(0.5, 0.5), score).beside_stories(),
    Step::new("bench", Always, Anywhere, Estimate::seen(0.5, 0.5), replays).beside_stories(),
    Step::new("charts", Always, Anywhere, Estimate::seen(2.0, 0.2), helm_charts)
        .cached_if(|_| tools::helm_is_cached())
        .beside_stories(),
    Step::new("cluster-parts", Always, OnACluster, Estimate::seen(11.0, 0.0), parts)
        .cached_if(cluster::parts_are_cached),
    Step::new("image", Always, OnACluster, Estimate::seen(0.5, 0.5), test_image),
    // Before the stories, some of which need them; where they are not, those are left out.
    Step::new("engines", IfTime, OnACluster, Estimate::seen(15.0, 0.0), real)
        .cached_if(engines::are_cached),
    Step::new(STORIES, Always, OnACluster, Estimate::seen(9.0, 8.5), stories),
    // On the cluster that the stories have left.
    Step::new("thousand-nodes", IfTime, OnACluster, Estimate::seen(2.0, 2.0), thousand_nodes),
    Step::new("cluster-down", Always, OnACluster, Estimate::seen(0.2, 0.2), down),
    // About the test cluster itself, which few commits touch.
    Step::new("cluster-leftovers", IfTime, OnACluster, Estimate::seen(1.5, 1.5), leftovers),
    Step::new("licences", IfTime, Anywhere, Estimate::seen(6.0, 0.3), licences)
        .cached_if(|_| tools::deny_is_cached()),
    Step::new("documents", IfTime, Anywhere, Estimate::seen(4.0, 1.0), documents)
        .cached_if(compile::documents_are_cached),
    Step::new("real-engines", IfTime, OnACluster, Estimate::seen(17.0, 2.0), real_engines)
        .cached_if(engines::are_cached),
    Step::new("engine-arguments", IfTime, OnACluster, Estimate::seen(3.0, 0.3), arguments)
        .cached_if(engines::parsers_are_cached),
    Step::new("release-image", IfTime, OnACluster, Estimate::seen(12.0, 5.0), release_image)
        .cached_if(image::release_is_cached),
    Step::new("fuzz", IfTime, OnACluster, Estimate::seen(5.0, 2.5), a_minute_of_each)
        .cached_if(|_| fuzz::is_cached()),
];

impl Step {
    const fn new(
        name: &'static str,
        need: Need,
        place: Where,
        estimate: Estimate,
        run: Run,
    ) -> Self {
        let cached = warm_where_the_target_folder_is;
        Self { name, place, run, need, estimate, cached, is_beside_stories: false }
    }

    /// It needs neither the cluster nor what a step before it makes.
    const fn beside_stories(self) -> Self {
        Self { is_beside_stories: true, ..self }
    }

    /// Whether it is, is said by this.
    const fn cached_if(self, cached: fn(&Path) -> Result<bool>) -> Self {
        Self { cached, ..self }
    }

    /// What it costs now.
    pub(super) fn cost(&self, root: &Path) -> Result<Cost> {
        Ok(Cost { need: self.need, estimate: self.estimate, cached: (self.cached)(root)? })
    }
}

fn warm_where_the_target_folder_is(_: &Path) -> Result<bool> {
    Ok(std::env::var("FLYBALL_CI_TARGET").is_ok_and(|word| word == "warm"))
}

fn done(result: Result<()>) -> Result<Outcome> {
    result.map(|()| Outcome::Done)
}

fn cargo(ctx: &Context<'_>) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(ctx.root);
    command
}

pub(super) fn format(ctx: &Context<'_>) -> Result<Outcome> {
    done(
        process::run(cargo(ctx).args(["fmt", "--all", "--check"]))
            .context("the code is not formatted\n\nhint: cargo fmt --all"),
    )
}

pub(super) fn rules(ctx: &Context<'_>) -> Result<Outcome> {
    if tidy::run(ctx.root)? != ExitCode::SUCCESS {
        bail!("a rule of the house is broken; each finding above says how to mend it");
    }
    Ok(Outcome::Done)
}

pub(super) fn clippy(ctx: &Context<'_>) -> Result<Outcome> {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--"];
    done(process::run(cargo(ctx).args(args).args(["-D", "warnings"])))
}

fn tests(ctx: &Context<'_>) -> Result<Outcome> {
    compile::all_pass(&mut compile::tests(ctx.root)?).map(Outcome::Ran)
}

fn python(ctx: &Context<'_>) -> Result<Outcome> {
    if !heartbeat::has_python() {
        return Ok(Outcome::Skipped("python3 is not here".into()));
    }
    done(heartbeat::test(ctx.root))
}

fn score(ctx: &Context<'_>) -> Result<Outcome> {
    programs::check(ctx.root, programs::ACCURACY, &["accuracy", "--check"])?;
    done(programs::check(ctx.root, programs::ACCURACY, &["known-answers", "--check"]))
}

fn replays(ctx: &Context<'_>) -> Result<Outcome> {
    programs::check(ctx.root, programs::BENCH, &["backtest", "--quick"])?;
    done(programs::check(ctx.root, programs::BENCH, &["training", "--quick"]))
}

fn helm_charts(ctx: &Context<'_>) -> Result<Outcome> {
    if !tools::helm_can_be_had()? {
        return Ok(Outcome::Skipped("helm is made with Go, which is not here".into()));
    }
    done(charts::check(ctx.root))
}

fn parts(ctx: &Context<'_>) -> Result<Outcome> {
    done(cluster::build_parts(ctx.root))
}

fn test_image(ctx: &Context<'_>) -> Result<Outcome> {
    done(image::build_for_tests(ctx.root).map(drop))
}

fn release_image(ctx: &Context<'_>) -> Result<Outcome> {
    done(image::build(ctx.root, ctx.figure).map(drop))
}

fn real(ctx: &Context<'_>) -> Result<Outcome> {
    done(engines::build(ctx.root).map(drop))
}

/// Without parts each of these steps would try to build them again.
fn on_a_cluster(ctx: &Context<'_>, run: impl FnOnce() -> Result<Outcome>) -> Result<Outcome> {
    if !cluster::parts_are_cached(ctx.root)? {
        return Ok(Outcome::Skipped("the cluster's parts did not build".into()));
    }
    run()
}

fn leftovers(ctx: &Context<'_>) -> Result<Outcome> {
    let command = Cluster::Leftovers { figure: ctx.figure };
    on_a_cluster(ctx, || done(cluster::main(ctx.root, command)))
}

fn stories(ctx: &Context<'_>) -> Result<Outcome> {
    on_a_cluster(ctx, || e2e::run(ctx.root, &e2e::Args::in_ci()).map(Outcome::Ran))
}

fn thousand_nodes(ctx: &Context<'_>) -> Result<Outcome> {
    let command = Cluster::Scale { nodes: 1000, figure: ctx.figure };
    on_a_cluster(ctx, || done(cluster::main(ctx.root, command)))
}

fn down(ctx: &Context<'_>) -> Result<Outcome> {
    done(cluster::main(ctx.root, Cluster::Down))
}

/// The gateway in front of llama-server on this machine.
fn real_engines(ctx: &Context<'_>) -> Result<Outcome> {
    let built = engines::build(ctx.root)?;
    let mut nextest =
        compile::nextest(ctx.root, "package(flyball-proving) and test(real_engines)")?;
    // Named by us, they must be there: a test that cannot find one fails instead of skipping.
    nextest.env("FLYBALL_ENGINES", built.folder);
    done(process::run(nextest.args(["--profile", "e2e"])))
}

/// What the operator tells engines, read by their own parsers.
fn arguments(ctx: &Context<'_>) -> Result<Outcome> {
    done(engines::hold_arguments(ctx.root))
}

fn documents(ctx: &Context<'_>) -> Result<Outcome> {
    let args =
        ["doc", "--workspace", "--no-deps", "--document-private-items", "--locked", "--quiet"];
    done(process::run(cargo(ctx).env("RUSTDOCFLAGS", "-D warnings").args(args)))
}

/// The advisory database lives in a git repository; where that cannot be reached, say so.
fn licences(ctx: &Context<'_>) -> Result<Outcome> {
    let deny = |args: &[&str]| -> Result<Command> {
        let mut deny = tools::deny()?;
        deny.current_dir(ctx.root).args(args);
        Ok(deny)
    };
    process::run(&mut deny(&["check", "bans", "licenses", "sources"])?)?;
    if process::read(&mut deny(&["fetch", "db"])?).is_err() {
        let why =
            "licences, bans and sources hold; the advisory database cannot be reached from here";
        return Ok(Outcome::Skipped(why.into()));
    }
    done(process::run(&mut deny(&["check", "advisories"])?))
}

fn a_minute_of_each(ctx: &Context<'_>) -> Result<Outcome> {
    Ok(fuzz::briefly(ctx.root)?.map_or(Outcome::Done, Outcome::Skipped))
}

#[cfg(test)]
mod tests {
    use super::super::budget::{Minutes, Verdict, verdict};
    use super::*;

    /// The steps that run, if each takes what is thought, and the minutes at the end.
    fn played(budget: f64, before: f64, cached: bool) -> (Vec<&'static str>, f64) {
        let costs: Vec<Cost> = STEPS
            .iter()
            .map(|step| Cost { need: step.need, estimate: step.estimate, cached })
            .collect();
        let (mut ran, mut gone) = (Vec::new(), before);
        for (place, step) in STEPS.iter().enumerate() {
            if verdict(Minutes(budget), Minutes(gone), &costs[place..]) == Verdict::Run {
                ran.push(step.name);
                let estimate = step.estimate;
                gone += if cached { estimate.warm.0 } else { estimate.cold.0 };
            }
        }
        (ran, gone)
    }

    #[test]
    fn a_new_machine_does_what_every_commit_needs_within_its_budget() {
        // Eleven minutes before the first step: installs, and one build of everything.
        let (ran, minutes) = played(55.0, 11.0, false);
        assert!(minutes <= 55.0, "{minutes}: {ran:?}");
        for step in STEPS.iter().filter(|step| step.need == Always) {
            assert!(ran.contains(&step.name), "{}", step.name);
        }
        assert!(!ran.contains(&"engines"), "{ran:?}");
    }

    #[test]
    fn full_caches_and_an_hour_run_everything() {
        let (ran, _) = played(55.0, 2.0, true);
        assert_eq!(ran.len(), STEPS.len());
    }

    #[test]
    fn names_are_told_apart_and_estimates_are_true_of_caches() {
        for (place, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..place].iter().all(|other| other.name != step.name), "{}", step.name);
            assert!(step.estimate.warm <= step.estimate.cold, "{}", step.name);
        }
    }
}
