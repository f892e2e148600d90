//! The number of nodes that an elastic run should have. Pure.

use super::SeenRun;
use super::gang::Gang;
use super::market::{free, pool};
use super::marks::ZONE;
use super::workload::gang_key;
use crate::observe::{RunFacts, purchase};
use flyball_core::snapshot::Purchase;
use flyball_resources::pool::Growth;
use flyball_resources::training_run::RunSize;
use flyball_resources::{TrainingRun, decimal};
use flyball_training::{ElasticRun, RunMemory, TrainingSnapshot, ZoneName, size};
use std::collections::BTreeMap;

/// Accelerators that a run could have, node by node: those of others are not among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpareNodes {
    spot: BTreeMap<ZoneName, Vec<u32>>,
    on_demand: Vec<u32>,
    /// Whether an autoscaler adds as many as are asked for.
    grows: bool,
}

impl SpareNodes {
    /// Of the Pool of a run; nothing where no Pool is known.
    pub(super) fn of(run: &TrainingRun, gang: &Gang, facts: &RunFacts) -> Option<Self> {
        run.spec.elastic.as_ref()?;
        let pool = pool(run, gang, facts)?;
        let own = gang_key(run);
        let mut spare = Self { grows: pool.spec.growth == Growth::Autoscaled, ..Self::default() };
        let of_pool = facts.nodes.iter().filter(|(_, node)| node.gpus_of(&pool.spec).is_some());
        for (name, node) in of_pool.filter(|(_, node)| node.usable) {
            let free = free(name, node, pool, facts, &own);
            match (purchase(&node.labels), node.labels.get(ZONE)) {
                (Purchase::Spot, Some(zone)) => {
                    spare.spot.entry(ZoneName::new(zone)).or_default().push(free);
                }
                (Purchase::Spot, None) => {}
                _ => spare.on_demand.push(free),
            }
        }
        Some(spare)
    }

    /// How many nodes of so many accelerators there are.
    fn count(&self, free: &[u32], per_node: u32) -> u32 {
        if self.grows {
            return u32::MAX;
        }
        free.iter().map(|free| free / per_node.max(1)).sum()
    }
}

/// The size that a run should have, if it is elastic and enough is known.
pub(super) fn recommended(
    seen: &SeenRun,
    snapshot: &TrainingSnapshot,
    memory: &RunMemory,
) -> Option<RunSize> {
    let range = seen.run.spec.elastic.as_ref()?;
    let spare = seen.spare.as_ref()?;
    let nodes = seen.workload.nodes;
    let per_node = snapshot.gpus.get() / nodes.max(1);
    let nodes_of = |count: i32| u32::try_from(count).unwrap_or(1);
    // A zone of which it is known that it has none has none for any size.
    let zones = snapshot.zones.keys();
    let spot = zones.map(|zone| {
        let free = spare.spot.get(zone).map_or(&[][..], Vec::as_slice);
        (zone.clone(), spare.count(free, per_node))
    });
    let run = ElasticRun {
        least: nodes_of(range.min_nodes),
        most: nodes_of(range.max_nodes),
        nodes,
        spot: spot.collect(),
        on_demand: spare.count(&spare.on_demand, per_node),
    };
    let decision = size(snapshot, &run, memory)?;
    let money = |micros: i64| decimal::text(micros, 2);
    let (chosen, present) = (&decision.chosen, decision.present.as_ref());
    let in_time = present.filter(|present| present.slack.is_some());
    let message = match (chosen.nodes == nodes, in_time) {
        (true, Some(_)) => format!("{nodes} nodes are the best of those that can be had"),
        (true, None) => format!("{nodes} nodes end it soonest; no size that can be had is in time"),
        (false, Some(present)) => format!(
            "{} nodes on {} instead of {nodes} on {}",
            chosen.nodes, chosen.choice, present.choice
        ),
        (false, None) if chosen.slack.is_some() => {
            format!("{nodes} nodes cannot be had or would be late, {} are in time", chosen.nodes)
        }
        (false, None) => format!("{} nodes end it soonest; no size is in time", chosen.nodes),
    };
    Some(RunSize {
        nodes: i32::try_from(chosen.nodes).unwrap_or(i32::MAX),
        choice: chosen.choice.to_string(),
        expected_cost: money(chosen.cost.micros()),
        present_cost: in_time.map(|present| money(present.cost.micros())),
        message,
    })
}
