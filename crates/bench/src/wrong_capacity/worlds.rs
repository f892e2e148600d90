//! The worlds, and what goes wrong in them.

use anyhow::{Result, anyhow};
use flyball_simulator::cluster::{Fault, Setup, StatedCapacity};
use flyball_simulator::scenario::{Scenario, facts};
use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::Trace;

/// What computes, and what is asked of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct World {
    pub(super) name: &'static str,
    /// Milliseconds of a step, microseconds of a prompt token and of a request, nanoseconds of a cached token.
    costs: [f64; 4],
    /// Tokens that the cache holds.
    cache: u32,
    /// Mean tokens of prompts and answers.
    tokens: (f64, f64),
}

/// Speeds as of a model of 30 billion weights on two accelerators, and of 8 billion on a small one.
pub(super) const WORLDS: &[World] = &[
    World {
        name: "30B, conversations",
        costs: [18.0, 150.0, 100.0, 20.0],
        cache: 400_000,
        tokens: (2_000.0, 300.0),
    },
    World {
        name: "8B, short answers",
        costs: [22.0, 110.0, 60.0, 40.0],
        cache: 250_000,
        tokens: (1_200.0, 120.0),
    },
];

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Case {
    /// The capacity that is told is so many times the right one, from the beginning.
    Stated(f64),
    /// Nothing is told.
    Nothing,
    /// All engines compute so many times as fast.
    Slows(f64),
    /// Prompts are so many times as long.
    Longer(f64),
}

pub(super) const CASES: &[Case] = &[
    Case::Stated(1.0 / 3.0),
    Case::Stated(0.5),
    Case::Stated(2.0),
    Case::Stated(3.0),
    Case::Nothing,
    Case::Slows(0.5),
    Case::Longer(4.0),
];

/// When something changes: the fleet has settled by then.
const CHANGE: f64 = 1_500.0;
/// What is not judged.
const LEARNING: f64 = 900.0;
const LENGTH: f64 = 5_400.0;
/// Replicas that the traffic takes at first, and in the end.
const REPLICAS: (f64, f64) = (6.0, 10.0);
/// As many replicas as there can be: what they miss, nobody can avoid.
pub(super) const MOST: u32 = 60;
/// Share of what replicas carry that comes.
const LOAD: f64 = 0.85;

impl Case {
    pub(super) fn words(self) -> String {
        match self {
            Self::Stated(factor) if factor < 1.0 => format!("told 1/{:.0}", 1.0 / factor),
            Self::Stated(factor) => format!("told x {factor:.0}"),
            Self::Nothing => "told nothing".to_owned(),
            Self::Slows(_) => "all engines at half speed".to_owned(),
            Self::Longer(factor) => format!("prompts x {factor:.0}"),
        }
    }

    /// From when on it is judged.
    pub(super) const fn judged_from(self) -> f64 {
        match self {
            Self::Stated(_) | Self::Nothing => LEARNING,
            Self::Slows(_) | Self::Longer(_) => CHANGE + LEARNING,
        }
    }

    /// What it is in the file.
    fn fault(self) -> String {
        let (kind, at, more) = match self {
            Self::Stated(factor) => ("told-capacity", 0.0, format!("factor = {factor:?}")),
            Self::Nothing => ("told-capacity", 0.0, "unknown = true".to_owned()),
            Self::Slows(factor) => ("engine-slows", CHANGE, format!("factor = {factor:?}")),
            Self::Longer(factor) => ("shape-shift", CHANGE, format!("prompt_factor = {factor:?}")),
        };
        format!("[[faults]]\nname = \"wrong\"\nkind = \"{kind}\"\nat_seconds = {at:?}\n{more}\n")
    }
}

impl World {
    /// The file of this world with what goes wrong in it.
    pub(super) fn text(&self, case: Case) -> Result<String> {
        let rates = self.rates()?;
        Ok(self.written(rates) + &case.fault())
    }

    /// The world in which it goes wrong.
    pub(super) fn setup(&self, case: Case, seed: u64) -> Result<Setup> {
        let mut setup = made(&self.text(case)?, seed)?;
        setup.scored_from = Seconds(case.judged_from());
        Ok(setup)
    }

    /// The same, but whoever decides is told what is right.
    pub(super) fn known(&self, case: Case, seed: u64) -> Result<Setup> {
        let mut setup = self.setup(case, seed)?;
        setup.faults.retain(|fault| !matches!(fault, Fault::StatedCapacity { .. }));
        let changed = match case {
            Case::Stated(_) | Case::Nothing => return Ok(setup),
            Case::Slows(factor) => World { costs: self.costs.map(|cost| cost / factor), ..*self },
            Case::Longer(factor) => {
                World { tokens: (self.tokens.0 * factor, self.tokens.1), ..*self }
            }
        };
        let after = made(&changed.written(self.rates()?), seed)?;
        let exact = |model: &flyball_simulator::cluster::ModelSetup| {
            model.variants.iter().map(|variant| (variant.capacity, variant.paces)).collect()
        };
        let stated = StatedCapacity::Exactly(after.models.iter().map(exact).collect());
        let during = Seconds(CHANGE)..Seconds(f64::INFINITY);
        setup.faults.push(Fault::StatedCapacity { during, stated });
        Ok(setup)
    }

    /// Requests per second at first and in the end.
    fn rates(&self) -> Result<(f64, f64)> {
        let alone = made(&self.written((1.0, 1.0)), 1)?;
        let each = facts(&alone, 0).replica_per_second * LOAD;
        Ok((REPLICAS.0 * each, REPLICAS.1 * each))
    }

    fn written(&self, (low, high): (f64, f64)) -> String {
        let Self { costs: [step, prompt, request, cached], cache, tokens, .. } = self;
        let long = LENGTH - 2.0 * CHANGE;
        format!(
            "name = \"wrong-capacity\"\nabout = \"Traffic grows; something is wrong.\"\n\
             length_seconds = {LENGTH:?}\n\
             [[models]]\nname = \"team/chat\"\nreplicas = {{ min = 1, max = {MOST} }}\n\
             objectives = {{ first_token_ms = 5000, between_tokens_ms = 80, attainment_percent = 99 }}\n\
             [models.traffic]\nstages = [{{ seconds = {CHANGE:?}, rps = {low:?} }}, \
             {{ seconds = {long:?}, rps = {low:?}, to_rps = {high:?} }}, \
             {{ seconds = {CHANGE:?}, rps = {high:?} }}]\n\
             prompt = {{ mean = {:?}, variation = 0.5 }}\noutput = {{ mean = {:?}, variation = 0.5 }}\n\
             [[models.variants]]\nname = \"only\"\npool = \"gpus\"\ngpus = 1\ninitial = 6\n\
             cold_start = {{ warm_up = {{ seconds = 100 }} }}\n\
             linear = {{ step_ms = {step:?}, prompt_token_us = {prompt:?}, request_us = {request:?}, \
             cached_token_ns = {cached:?}, max_running = 256, step_tokens = 4096, cache_tokens = {cache} }}\n\
             [[pools]]\nname = \"gpus\"\naccelerator = \"h100\"\ngpus_per_node = 1\n\
             nodes = {{ on-demand = {MOST} }}\n",
            tokens.0, tokens.1
        )
    }
}

fn made(text: &str, seed: u64) -> Result<Setup> {
    let none = |name: &str| -> Result<Trace, String> { Err(format!("no trace {name}")) };
    let scenario = Scenario::read(text).map_err(|problems| anyhow!("{problems}"))?;
    scenario.with_seed(seed).setup(&none).map_err(|problems| anyhow!("{problems}"))
}
