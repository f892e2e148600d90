//! What an arm needs to know of its scenario: the same file is played here and in the simulator.

use crate::drills;
use anyhow::{Context, Result, bail};
use flyball_core::snapshot::Capacity;
use flyball_core::units::Micros;
use flyball_simulator::cluster::{Fault, Setup, StatedCapacity, stated};
use flyball_simulator::cold_start::ColdStart;
use flyball_simulator::scenario::Scenario;
use flyball_simulator::seconds::Seconds;
use std::path::Path;
use std::sync::Arc;

/// A scenario of one model with one variant, as engines and manifests take it.
pub(super) struct World {
    /// The scenario's name.
    pub(super) name: String,
    /// The simulator's view, with the traffic.
    pub(super) setup: Setup,
    /// The model, as the performance model calls it.
    pub(super) model: String,
    pub(super) accelerator: String,
    pub(super) tensor: u32,
    /// From a pod's start to its readiness.
    pub(super) warm_up_seconds: u32,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) initial: u32,
    pub(super) gpus: u32,
    pub(super) hold_ms: u64,
    pub(super) first_token_ms: f64,
    pub(super) between_tokens_ms: f64,
    pub(super) attainment_percent: f64,
    /// How long everything looks on before the first request, from which series are counted.
    pub(super) before: f64,
    /// The same as the scenario has it, whatever the seed.
    pub(super) quiet: f64,
}

impl World {
    pub(super) fn read(root: &Path, name: &str) -> Result<Self> {
        Self::read_with(root, name, None)
    }

    /// The same traffic in its shape, with other chance in it, and begun at another moment between two
    /// looks of whoever decides, which are a quarter of a minute apart.
    pub(super) fn seeded(root: &Path, name: &str, seed: u64) -> Result<Self> {
        let mut world = Self::read_with(root, name, Some(seed))?;
        let later = Seconds((seed % 15) as f64);
        let setup = &mut world.setup;
        setup.length += later;
        setup.scored_from += later;
        Arc::make_mut(&mut setup.models[0].trace).requests.iter_mut().for_each(|r| r.at += later);
        world.before = setup.scored_from.get();
        Ok(world)
    }

    fn read_with(root: &Path, name: &str, seed: Option<u64>) -> Result<Self> {
        let path = root.join("scenarios").join(format!("{name}.toml"));
        let scenario = drills::read(&path)?;
        let scenario = match seed {
            Some(seed) => scenario.with_seed(seed),
            None => scenario,
        };
        Self::of(&scenario).with_context(|| format!("{} cannot be played live", path.display()))
    }

    /// Only what live arms can play: one model, one variant, a predicted speed, a fixed warm-up.
    fn of(scenario: &Scenario) -> Result<Self> {
        let setup = match scenario.setup(&|name| Err(format!("{name} is not played live"))) {
            Ok(setup) => setup,
            Err(problems) => bail!("{problems}"),
        };
        let [model] = &setup.models[..] else { bail!("it has more models than one") };
        let [variant] = &model.variants[..] else { bail!("its model has more variants than one") };
        let modelled = scenario.modelled().next().context("its speed is not `modelled`")?;
        let ColdStart::Constant(warm_up) = variant.cold_start.warm_up else {
            bail!("its warm-up is not a fixed time");
        };
        let objectives = &model.objectives;
        let milliseconds = |time: Micros| time.get() as f64 / 1e3;
        let first = objectives.first_token.context("it has no objective for the first token")?;
        let between = objectives.between_tokens.context("it has none between tokens")?;
        Ok(Self {
            name: scenario.name().to_owned(),
            model: modelled.model.to_owned(),
            accelerator: modelled.accelerator.to_owned(),
            tensor: modelled.tensor,
            warm_up_seconds: warm_up.get() as u32,
            min: model.bounds.min.get(),
            max: model.bounds.max.get(),
            initial: variant.initial,
            gpus: variant.gpus_per_replica,
            hold_ms: (model.hold.get() * 1e3) as u64,
            first_token_ms: milliseconds(first),
            between_tokens_ms: milliseconds(between),
            attainment_percent: f64::from(objectives.attainment_per_million) / 1e4,
            before: setup.scored_from.get(),
            quiet: setup.scored_from.get(),
            setup,
        })
    }

    /// When its engines slow down, and how many times as fast they are then.
    pub(super) fn slows(&self) -> Option<(f64, f64)> {
        self.setup.faults.iter().find_map(|fault| match fault {
            Fault::EngineSlows { during, factor, replicas: None } => {
                Some((during.start.get() - self.before, *factor))
            }
            _ => None,
        })
    }

    /// When its operator is replaced.
    pub(super) fn restarts(&self) -> Option<f64> {
        self.setup.faults.iter().find_map(|fault| match fault {
            Fault::OperatorRestart { at } => Some(at.get() - self.before),
            _ => None,
        })
    }

    /// Whether nobody hears its gateway.
    pub(super) fn lacks_gateway(&self) -> bool {
        self.setup.faults.iter().any(|fault| matches!(fault, Fault::NoGateway { .. }))
    }

    /// What its owner says that a replica carries, where that is wrong.
    pub(super) fn stated(&self) -> Option<Capacity> {
        self.setup.faults.iter().find_map(|fault| match fault {
            Fault::StatedCapacity { stated: StatedCapacity::Times(factor), .. } => {
                Some(stated(&self.setup.models[0].variants[0].capacity, *factor))
            }
            _ => None,
        })
    }

    /// The same without an owner who is wrong.
    pub(super) fn known(&self) -> Setup {
        let mut setup = self.setup.clone();
        setup.faults.retain(|fault| !matches!(fault, Fault::StatedCapacity { .. }));
        setup
    }

    /// When its requests come.
    pub(super) fn requests(&self) -> impl DoubleEndedIterator<Item = f64> {
        let requests = self.setup.models[0].trace.requests.iter();
        requests.map(|request| request.at.get() - self.before)
    }

    /// When the last comes.
    pub(super) fn last_request(&self) -> f64 {
        self.requests().next_back().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_live_scenario_can_be_played_on_a_cluster() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for name in super::super::SCENARIOS {
            let world = World::read(&root, name).unwrap();
            assert!(world.min <= world.initial && world.initial <= world.max, "{name}");
            assert!(world.last_request() > 60.0, "{name}");
        }
    }
}
