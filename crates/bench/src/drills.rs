//! Scenarios under the governor: the published ramp, the drills, and random worlds with faults.

use super::contenders;
use super::spread::Spread;
use crate::parallel;
use anyhow::{Context, Result, bail};
use flyball_simulator::cluster::{ClusterRun, Stats, fuzz, run};
use flyball_simulator::scenario::{Scenario, ScenarioVerdict};
use flyball_simulator::traffic::Trace;
use flyball_simulator::traffic::load::{self, Traffic};
use std::fs;
use std::path::{Path, PathBuf};

/// One scenario as it went.
pub(super) struct Drill {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) verdict: ScenarioVerdict,
    pub(super) run: ClusterRun,
}

/// Every scenario in `scenarios/`, in order of name. Those that replay a trace that is not there
/// are named and left out.
pub(super) fn all(root: &Path, shared: Option<&Path>) -> Result<Vec<Drill>> {
    let folder = root.join("scenarios");
    let files = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    paths.retain(|path| path.file_stem().is_some_and(|stem| stem != "seeds"));
    paths.sort();
    let mut drills = Vec::new();
    for path in paths {
        let scenario = read(&path)?;
        match play(&scenario, shared) {
            Ok((verdict, run)) => drills.push(Drill {
                name: scenario.name().to_owned(),
                about: scenario.about().to_owned(),
                verdict,
                run,
            }),
            Err(why) => eprintln!("{}: left out: {why}", scenario.name()),
        }
    }
    Ok(drills)
}

/// The ramp over several seeds: attainment in percent, and mean replicas as the guide counts them.
pub(super) fn ramp(root: &Path, seeds: u64) -> Result<(Spread, Spread)> {
    let path = root.join("scenarios/llm-d-ramp.toml");
    let (mut attained, mut replicas) = (Vec::new(), Vec::new());
    for seed in 1..=seeds {
        let scenario = read(&path)?.with_seed(seed);
        let (verdict, run) = play(&scenario, None)?;
        attained.push(100.0 * (1.0 - run.outcome.missed_share()));
        let count = verdict.findings.iter().find(|finding| finding.what == "episode_replicas");
        replicas.push(count.context("the ramp has no `episode_replicas` to expect")?.value);
    }
    Ok((Spread::of(&attained), Spread::of(&replicas)))
}

/// Random worlds on all cores: what was tried, and the seeds that broke a rule.
pub(super) fn random(seeds: u64) -> (Stats, Vec<(u64, String)>) {
    let all: Vec<u64> = (0..seeds).collect();
    let came = parallel::map(&all, |seed| fuzz(*seed, contenders::governor().as_mut()));
    let (mut sum, mut failed) = (Stats::default(), Vec::new());
    for (seed, came) in all.into_iter().zip(came) {
        match came {
            Ok(stats) => {
                sum.events += stats.events;
                sum.decisions += stats.decisions;
                sum.requests += stats.requests;
                sum.killed += stats.killed;
            }
            Err(failure) => failed.push((seed, failure.to_string())),
        }
    }
    (sum, failed)
}

/// One of them.
pub(super) fn read(path: &Path) -> Result<Scenario> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    match Scenario::read(&text) {
        Ok(scenario) => Ok(scenario),
        Err(problems) => bail!("{}: {problems}", path.display()),
    }
}

fn play(scenario: &Scenario, shared: Option<&Path>) -> Result<(ScenarioVerdict, ClusterRun)> {
    let trace = |name: &str| -> Result<Trace, String> {
        let shared = shared.ok_or("there are no traces beside the checkout")?;
        let loaded = load::open(&shared.join("traces").join(name)).map_err(|e| e.to_string())?;
        match loaded.parts.into_iter().next().map(|part| part.traffic) {
            Some(Traffic::Trace(trace)) => Ok(trace),
            _ => Err(format!("{name} has no single requests")),
        }
    };
    let setup = match scenario.setup(&trace) {
        Ok(setup) => setup,
        Err(problems) => bail!("{problems}"),
    };
    let run = run(&setup, contenders::governor().as_mut());
    Ok((scenario.judge(&setup, &run), run))
}
