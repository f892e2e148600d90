//! What an arm needs to know of its scenario: the same file is played here and in the simulator.

use anyhow::{Context, Result, bail};
use flyball_simulator::cluster::Setup;
use flyball_simulator::scenario::Scenario;
use std::path::Path;

/// A scenario of one model with one variant, as engines and manifests take it.
pub(super) struct World {
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
}

impl World {
    pub(super) fn read(root: &Path, name: &str) -> Result<Self> {
        Self::read_with(root, name, None)
    }

    /// The same traffic in its shape, and other chance in it.
    pub(super) fn seeded(root: &Path, name: &str, seed: u64) -> Result<Self> {
        Self::read_with(root, name, Some(seed))
    }

    fn read_with(root: &Path, name: &str, seed: Option<u64>) -> Result<Self> {
        let path = root.join("scenarios").join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let scenario = match Scenario::read(&text) {
            Ok(scenario) => scenario,
            Err(problems) => bail!("{}: {problems}", path.display()),
        };
        let scenario = match seed {
            Some(seed) => scenario.with_seed(seed),
            None => scenario,
        };
        let setup = match scenario.setup(&|name| Err(format!("{name} is not played live"))) {
            Ok(setup) => setup,
            Err(problems) => bail!("{}: {problems}", path.display()),
        };
        let form: toml::Value = toml::from_str(&text)?;
        Self::of(setup, &form).with_context(|| format!("{} cannot be played live", path.display()))
    }

    /// Only what live arms can play: one model, one variant, a predicted speed, a fixed warm-up.
    fn of(setup: Setup, form: &toml::Value) -> Result<Self> {
        let model = &form["models"][0];
        let variant = &model["variants"][0];
        let number = |value: Option<&toml::Value>, what: &str| {
            let number = value.and_then(|v| v.as_float().or(v.as_integer().map(|i| i as f64)));
            number.with_context(|| format!("{what} is not there"))
        };
        let text = |value: Option<&toml::Value>, what: &str| {
            let text = value.and_then(toml::Value::as_str).map(str::to_owned);
            text.with_context(|| format!("{what} is not there"))
        };
        let modelled = variant.get("modelled").context("`modelled` is not there")?;
        let warm_up = variant["cold_start"].get("warm_up").and_then(|part| part.get("seconds"));
        let objectives = &model["objectives"];
        let hold = number(model.get("hold_seconds"), "`hold_seconds`")?;
        Ok(Self {
            model: text(modelled.get("model"), "`modelled.model`")?,
            accelerator: text(modelled.get("accelerator"), "`modelled.accelerator`")?,
            tensor: number(modelled.get("tensor"), "`tensor`").unwrap_or(1.0) as u32,
            warm_up_seconds: number(warm_up, "`cold_start.warm_up.seconds`")? as u32,
            min: number(model["replicas"].get("min"), "`replicas.min`")? as u32,
            max: number(model["replicas"].get("max"), "`replicas.max`")? as u32,
            initial: number(variant.get("initial"), "`initial`")? as u32,
            gpus: number(variant.get("gpus"), "`gpus`")? as u32,
            hold_ms: (hold * 1e3) as u64,
            first_token_ms: number(objectives.get("first_token_ms"), "`first_token_ms`")?,
            between_tokens_ms: number(objectives.get("between_tokens_ms"), "`between_tokens_ms`")?,
            attainment_percent: number(objectives.get("attainment_percent"), "`attainment`")?,
            setup,
        })
    }

    /// When its last request comes.
    pub(super) fn last_request(&self) -> f64 {
        let requests = &self.setup.models[0].trace.requests;
        requests.last().map_or(0.0, |request| request.at.get())
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
