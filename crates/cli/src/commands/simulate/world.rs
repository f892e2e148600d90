//! From a file to a world.

use std::path::{Path, PathBuf};

use flyball_simulator::cluster::Setup;
use flyball_simulator::scenario::{self, Scenario, ScenarioProblems};
use flyball_simulator::traffic::Trace;
use flyball_simulator::traffic::load::{self, Traffic};

use super::args::SimulateArgs;
use super::backtest::policies::Scaled;
use crate::output::{Exit, Failure, FailureCode};

/// A scenario and the world that it describes.
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) setup: Setup,
}

impl World {
    /// Its models, as policies are told of them.
    pub(super) fn scaled(&self) -> Vec<Scaled> {
        let one = |(place, model): (usize, &flyball_simulator::cluster::ModelSetup)| Scaled {
            name: model.id.to_string(),
            workload: model.id.name().to_owned(),
            facts: scenario::facts(&self.setup, place),
        };
        self.setup.models.iter().enumerate().map(one).collect()
    }
}

/// Reads the scenario, or says everything that is wrong with it.
pub(super) fn read(args: &SimulateArgs) -> Result<World, Failure> {
    let place = args.scenario.display().to_string();
    let wrong = |what: &str| Failure::new(Exit::Usage, what).at(&place).code(FailureCode::Scenario);
    let text = std::fs::read_to_string(&args.scenario).map_err(|error| {
        wrong("the scenario cannot be read")
            .because(error.to_string())
            .hint("flyball explain FLY-714 shows a small one to begin with")
    })?;
    let refused = |ScenarioProblems(problems): ScenarioProblems| {
        let problems = problems.iter().map(|problem| one_line(problem)).collect();
        wrong("the scenario cannot be played")
            .problems(problems)
            .hint("flyball explain FLY-714 says what a scenario can have")
    };
    let scenario = Scenario::read(&text).map_err(refused)?;
    let scenario = match args.seed {
        Some(seed) => scenario.with_seed(seed),
        None => scenario,
    };
    let folders = Folders { beside: args.scenario.parent(), traces: args.traces.as_deref() };
    let setup = scenario.setup(&|name| folders.trace(name)).map_err(refused)?;
    Ok(World { scenario, setup })
}

/// Where recorded traffic may be.
struct Folders<'a> {
    beside: Option<&'a Path>,
    traces: Option<&'a Path>,
}

impl Folders<'_> {
    fn trace(&self, name: &str) -> Result<Trace, String> {
        let path = self.find(name)?;
        let loaded = load::open(&path).map_err(|error| format!("{name}: {error}"))?;
        match loaded.parts.into_iter().next().map(|part| part.traffic) {
            Some(Traffic::Trace(trace)) => Ok(trace),
            _ => Err(format!("{name} has rates and no single requests")),
        }
    }

    fn find(&self, name: &str) -> Result<PathBuf, String> {
        let beside = self.beside.map(|folder| folder.join(name));
        let named = self.traces.map(|folder| folder.join(name));
        let there = [beside, named].into_iter().flatten().find(|path| path.exists());
        there.ok_or_else(|| match self.traces {
            Some(traces) => {
                format!("no trace {name} beside the scenario or in {}", traces.display())
            }
            None => format!("no trace {name} beside the scenario; hint: --traces DIR says where"),
        })
    }
}

/// The parser of TOML draws the place below its words; here it stands in a list.
fn one_line(problem: &str) -> String {
    let drawn = |line: &&str| !line.trim_start().starts_with(['|', '^']);
    let lines = problem.lines().filter(drawn).map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}
