//! Asks `flyball backtest`, as a user would.

use super::world::World;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::path::PathBuf;
use std::process::Command;

/// Who asks.
pub(super) struct Player {
    pub(super) flyball: PathBuf,
    pub(super) traces: PathBuf,
}

/// What came of one policy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Came {
    pub(super) policy: String,
    pub(super) gpu_hours: f64,
    /// Share of the requests.
    pub(super) missed: f64,
}

/// The two halves, of which the first is what an owner could have looked at before choosing.
pub(super) struct Halves {
    pub(super) first: Vec<Came>,
    pub(super) second: Vec<Came>,
}

/// Who knows what comes: once as it misses nothing, and once for every corner of what it pays where it may miss some.
pub(super) const CLAIRVOYANT: &str = "clairvoyant";

/// Those that follow the load, at their published defaults.
pub(super) const RIVALS: [&str; 14] = [
    "hpa",
    "hpa-running",
    "hpa-cache",
    "hpa-rate",
    "keda",
    "kpa",
    "llm-d-slo",
    "llm-d-tokens",
    "aibrix",
    "aibrix-linear",
    "ray",
    "dynamo-load",
    "dynamo-throughput",
    "dynamo-hybrid",
];

/// Numbers of replicas that never change.
pub(super) const STATIC: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 16];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    policies: Vec<Policy>,
    #[serde(default)]
    hull: Vec<Corner>,
}

/// What the clairvoyant pays where it may miss so many.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Corner {
    gpu_hours: f64,
    missed: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    name: String,
    gpu_hours: Mean,
    missed: Mean,
}

#[derive(Deserialize)]
struct Mean {
    mean: f64,
}

impl Player {
    /// All of it, request by request.
    pub(super) fn whole(&self, world: &World) -> Result<Vec<Came>> {
        self.ask(world, "requests", &[])
    }

    /// Each half: the second is scored after the first was lived through.
    pub(super) fn halves(&self, world: &World) -> Result<Halves> {
        let (length, end) = world.trace.half;
        Ok(Halves {
            first: self.ask(world, "requests", &["--to", end])?,
            second: self.ask(world, "requests", &["--warm-up", length])?,
        })
    }

    /// All of it as rates.
    pub(super) fn flow(&self, world: &World) -> Result<Vec<Came>> {
        self.ask(world, "rates", &[])
    }

    fn ask(&self, world: &World, method: &str, more: &[&str]) -> Result<Vec<Came>> {
        let fixed = STATIC.map(|replicas| format!("static@{replicas}"));
        let policies = ["governor"].into_iter().chain(RIVALS);
        let policies: Vec<&str> = policies.chain(fixed.iter().map(String::as_str)).collect();
        let tensor = world.model.tensor.to_string();
        let cold_start = format!("{}s", world.cold_start);
        let output = Command::new(&self.flyball)
            .args(["backtest", "--seeds", "1", "--method", method, "-o", "json"])
            .arg("--traffic")
            .arg(self.traces.join(world.trace.file))
            .args(["--model", world.model.model, "--gpu", world.gpu, "--tensor", &tensor])
            .args(["--cold-start", &cold_start, "--policy", &policies.join(",")])
            .args(more)
            .output()
            .with_context(|| format!("starting {}", self.flyball.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{world}: flyball backtest failed:\n{said}");
        let answer: Answer = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{world}: what flyball backtest answered"))?;
        let came = |one: Policy| Came {
            policy: one.name,
            gpu_hours: one.gpu_hours.mean,
            missed: one.missed.mean,
        };
        let corner = |one: Corner| Came {
            policy: CLAIRVOYANT.to_owned(),
            gpu_hours: one.gpu_hours,
            missed: one.missed,
        };
        let corners = answer.hull.into_iter().map(corner);
        Ok(answer.policies.into_iter().map(came).chain(corners).collect())
    }
}
