//! Small worlds whose course can be told beforehand.

mod faults;
mod life;
mod links;
mod orders;
mod random;

use super::*;
use crate::cold_start::ColdStart;
use crate::engine::EngineSettings;
use crate::policy::{PolicyView, Reading, ScaleOrder, ScalingPolicy};
use crate::seconds::Seconds;
use flyball_core::ids::{AcceleratorId, ModelId, PoolId, VariantName};
use flyball_core::snapshot::{Objectives, Purchase, ScalingBounds};
use flyball_core::units::{Micros, Replicas, Timestamp};
use std::sync::Arc;

/// Scales the only model by a list of times and numbers, and keeps what it saw.
struct Script {
    steps: Vec<(f64, u32)>,
    readings: Vec<(Seconds, Reading)>,
    snapshots: Vec<flyball_core::snapshot::Snapshot>,
}

impl Script {
    fn new(steps: &[(f64, u32)]) -> Self {
        Self { steps: steps.to_vec(), readings: Vec::new(), snapshots: Vec::new() }
    }
}

impl ScalingPolicy for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn interval(&self) -> Seconds {
        Seconds(10.0)
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        self.readings.push((sight.now, sight.readings[0]));
        self.snapshots.push(sight.snapshot.clone());
        let due = self.steps.iter().rev().find(|(at, _)| *at <= sight.now.get());
        ScaleOrder::Scale(vec![Replicas::new(due.map_or(1, |(_, desired)| *desired))])
    }
}

/// One model with one replica on a node of two accelerators, of a pool that can grow.
///
/// A step takes 10 ms and 100 µs per prompt token, so an answer of 100 tokens to a prompt of 100
/// takes a second and a little.
fn small(stages: Vec<TrafficStage>) -> Setup {
    let stages = Stages {
        stages,
        spacing: Spacing::Even,
        prompt: StageTokens::always(100.0),
        output: StageTokens::always(100.0),
        impatient: None,
    };
    let linear =
        LinearEngine { base: 0.01, per_prompt_token: 1e-4, per_decode: 0.0, per_cached_token: 0.0 };
    let settings = EngineSettings::vllm(32, 2_048, 4_000);
    let variant = VariantSetup {
        paces: None,
        predicted: None,
        name: VariantName::new("v").unwrap(),
        pool: 0,
        gpus_per_replica: 1,
        capacity: capacity_of(&linear, &settings),
        cold_start: StartParts::constant(40.0),
        speed: Speed { step: StepSpeed::Linear(linear), settings },
        purchase: Purchase::Spot,
        initial: 1,
    };
    let model = ModelSetup {
        id: ModelId::new("team", "small").unwrap(),
        objectives: Objectives {
            first_token: Some(Micros::from_millis(500)),
            between_tokens: Some(Micros::from_millis(50)),
            attainment_per_million: 990_000,
        },
        bounds: ScalingBounds { min: Replicas::ZERO, max: Replicas::new(8), may_sleep: true },
        variants: vec![variant],
        trace: Arc::new(stages.trace(1, 0)),
        hold: Seconds(120.0),
        admit: None,
    };
    let pool = PoolSetup {
        id: PoolId::new("pool").unwrap(),
        accelerator: AcceleratorId::new("h100").unwrap(),
        gpus_per_node: 2,
        nodes: [(Purchase::Spot, 1)].into(),
        can_grow: true,
        limit: None,
        stock: Vec::new(),
        node_supply: ColdStart::Constant(Seconds(100.0)),
        idle_node: Seconds(60.0),
        prices: Default::default(),
    };
    Setup {
        seed: 1,
        start: Timestamp::from_millis(1_767_225_600_000),
        length: Seconds(600.0),
        scored_from: Seconds::ZERO,
        models: vec![model],
        pools: vec![pool],
        metrics: MetricsSetup::DEFAULT,
        faults: Vec::new(),
        grace: Seconds(30.0),
        victim: Victim::Youngest,
        habits: Habits::IDEAL,
    }
}

/// Plays a world and finds that no rule broke.
fn play(setup: &Setup, policy: &mut dyn ScalingPolicy) -> ClusterRun {
    let run = run(setup, policy);
    assert_eq!(run.broken, []);
    run
}

/// Replicas that wait for a node, start, serve and end at a moment.
fn counts(run: &ClusterRun, at: f64) -> [u32; 4] {
    let ReplicaCounts { pending, starting, ready, draining, .. } = run.histories[0].at(Seconds(at));
    [pending, starting, ready, draining]
}
