//! Asks `flyball backtest`, as a user would.

use super::world::{Engines, World};
use anyhow::{Context, Result, ensure};
use flyball_simulator::rivals::NAMES;
use serde::Deserialize;
use std::path::{Path, PathBuf};
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

/// What `flyball backtest` answered.
pub(super) struct Answered {
    /// Every policy, and the clairvoyant: once as it misses nothing, and once for every corner of what it pays where
    /// it may miss some.
    pub(super) came: Vec<Came>,
    /// Who knows how the load moves, and not what comes.
    pub(super) causal: Option<Came>,
    /// Requests per second that a replica is said to carry.
    pub(super) per_replica: f64,
}

/// The two halves, of which the first is what an owner could have looked at before choosing.
pub(super) struct Halves {
    pub(super) first: Vec<Came>,
    pub(super) second: Vec<Came>,
}

pub(super) const CLAIRVOYANT: &str = "clairvoyant";
const CAUSAL: &str = "causal";

/// Rivals that are not asked: the last two do not follow the load, and what is on record was played without the first.
const LEFT_OUT: [&str; 3] = ["keda-running", "cron", "static"];

/// Those that follow the load, at their published defaults.
pub(super) fn rivals() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied().filter(|name| !LEFT_OUT.contains(name))
}

/// Other settings that an owner would try.
pub(super) const TRIED: [&str; 18] = [
    "hpa@1",
    "hpa@20",
    "hpa-cache@0.4",
    "hpa-cache@0.6",
    "hpa-rate@0.5",
    "hpa-rate@0.6",
    "hpa-rate@0.8",
    "hpa-rate@0.9",
    "keda@1",
    "keda@20",
    "kpa@0.5",
    "kpa@0.9",
    "llm-d-slo@0.7",
    "llm-d-slo@0.9",
    "aibrix@0.3",
    "aibrix@0.7",
    "dynamo-load@0.5",
    "dynamo-hybrid@0.7",
];

/// Numbers of replicas that never change.
pub(super) const STATIC: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 16];

/// Replicas that anybody may have: laws that chase an objective out of reach would take a thousand.
pub(super) const MOST: u32 = 100;

/// A question.
pub(super) struct Question<'a> {
    pub(super) traffic: &'a Path,
    pub(super) engines: Engines,
    /// Seconds.
    pub(super) cold_start: u32,
    /// Most replicas.
    pub(super) most: u32,
    pub(super) method: &'static str,
    pub(super) policies: &'a [String],
    pub(super) more: &'a [&'a str],
}

impl Player {
    /// All of it, request by request.
    pub(super) fn whole(&self, world: &World) -> Result<Answered> {
        self.world(world, "requests", &everybody(), &[])
    }

    /// Each half: the second is scored after the first was lived through.
    pub(super) fn halves(&self, world: &World) -> Result<Halves> {
        let (length, end) = world.trace.half;
        let all = everybody();
        Ok(Halves {
            first: self.world(world, "requests", &all, &["--to", end])?.came,
            second: self.world(world, "requests", &all, &["--warm-up", length])?.came,
        })
    }

    /// All of it as rates: those whose verdicts both methods must agree on.
    pub(super) fn flow(&self, world: &World) -> Result<Vec<Came>> {
        let policies: Vec<String> = ["governor".to_owned()].into_iter().chain(fixed()).collect();
        Ok(self.world(world, "rates", &policies, &[])?.came)
    }

    fn world(
        &self,
        world: &World,
        method: &'static str,
        policies: &[String],
        more: &[&str],
    ) -> Result<Answered> {
        let traffic = self.traces.join(world.trace.file);
        let (engines, cold_start) = (world.engines(), world.cold_start);
        let question =
            Question { traffic: &traffic, engines, cold_start, most: MOST, method, policies, more };
        self.ask(&question).with_context(|| world.to_string())
    }

    pub(super) fn ask(&self, question: &Question<'_>) -> Result<Answered> {
        let Engines { model, tensor, gpu } = question.engines;
        let output = Command::new(&self.flyball)
            .args(["backtest", "--seeds", "1", "--method", question.method, "-o", "json"])
            .arg("--traffic")
            .arg(question.traffic)
            .args(["--model", model, "--gpu", gpu, "--tensor", &tensor.to_string()])
            .args(["--cold-start", &format!("{}s", question.cold_start)])
            .args(["--max", &question.most.to_string()])
            .args(["--policy", &question.policies.join(",")])
            .args(question.more)
            .output()
            .with_context(|| format!("starting {}", self.flyball.display()))?;
        let problem = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "flyball backtest failed:\n{problem}");
        let answer: Answer =
            serde_json::from_slice(&output.stdout).context("what flyball backtest answered")?;
        Ok(answered(answer))
    }
}

/// Ours, every rival at its defaults and at other settings, and numbers that never change.
pub(super) fn everybody() -> Vec<String> {
    let named = ["governor"].into_iter().chain(rivals()).chain(TRIED).map(str::to_owned);
    named.chain(fixed()).collect()
}

fn fixed() -> impl Iterator<Item = String> {
    STATIC.into_iter().map(|replicas| format!("static@{replicas}"))
}

fn answered(answer: Answer) -> Answered {
    let point = |policy: &str, one: &Point| Came {
        policy: policy.to_owned(),
        gpu_hours: one.gpu_hours,
        missed: one.missed,
    };
    let policy = |one: &Policy| Came {
        policy: one.name.clone(),
        gpu_hours: one.gpu_hours.mean,
        missed: one.missed.mean,
    };
    let corners = answer.hull.iter().map(|one| point(CLAIRVOYANT, one));
    Answered {
        came: answer.policies.iter().map(policy).chain(corners).collect(),
        causal: answer.causal.as_ref().map(|one| point(CAUSAL, one)),
        per_replica: answer.models.first().map_or(0.0, |model| model.replica_capacity),
    }
}

#[derive(Deserialize)]
struct Answer {
    policies: Vec<Policy>,
    models: Vec<Model>,
    #[serde(default)]
    hull: Vec<Point>,
    causal: Option<Point>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    replica_capacity: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Point {
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
