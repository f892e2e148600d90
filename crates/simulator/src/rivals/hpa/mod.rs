//! The Kubernetes HorizontalPodAutoscaler, `autoscaling/v2`.
//!
//! Every sync each metric proposes a number of replicas (`propose.rs`) and the largest counts.
//! Past proposals then hold it back from flapping and policies limit its pace (`behaviour.rs`).
//! Sources: kubernetes.io "Horizontal Pod Autoscaling", and `pkg/controller/podautoscaler` of
//! kubernetes/kubernetes (`replica_calculator.go`, `horizontal.go`); KEP-4951 for tolerances.
//!
//! It knows no CPU: nothing in the simulator uses any.

mod behaviour;
mod propose;
#[cfg(test)]
mod tests;

pub use behaviour::{Behaviour, HpaRules, Rate, Select};
pub use propose::{HpaMetricKind, HpaSource, Over, Starting};

use super::{RivalLaw, RivalMetric};
use crate::policy::Reading;
use crate::seconds::Seconds;
use behaviour::Memory;

/// What a HorizontalPodAutoscaler says.
#[derive(Clone, Debug, PartialEq)]
pub struct HpaSettings {
    /// What it scales on; the largest proposal counts.
    pub sources: Vec<HpaSource>,
    /// Least replicas.
    pub min: u32,
    /// Most replicas.
    pub max: u32,
    /// How fast it moves and how long it remembers.
    pub behaviour: Behaviour,
    /// How replicas that start are counted by metrics of kind `Kind::PerPod`.
    pub starting: Starting,
    /// How often it decides: `--horizontal-pod-autoscaler-sync-period`.
    pub sync: Seconds,
}

impl Default for HpaSettings {
    /// The published defaults, with one metric, since an HPA without one does nothing: five
    /// waiting requests per replica. GKE's "Best practices for autoscaling LLM inference
    /// workloads" begins with the queue; five is the threshold of the vLLM production stack.
    fn default() -> Self {
        Self {
            sources: vec![HpaSource::per_pod(RivalMetric::Waiting, 5.0)],
            min: 1,
            max: 100,
            behaviour: Behaviour::default(),
            starting: Starting::Running,
            sync: Seconds(15.0),
        }
    }
}

/// A HorizontalPodAutoscaler at work on one model.
#[derive(Clone, Debug)]
pub struct Hpa {
    settings: HpaSettings,
    memory: Memory,
}

impl Hpa {
    /// One that has decided nothing yet.
    pub fn new(settings: HpaSettings) -> Self {
        let memory = Memory::new(&settings.behaviour);
        Self { settings, memory }
    }

    /// What it was told.
    pub const fn settings(&self) -> &HpaSettings {
        &self.settings
    }

    /// What each metric proposes; `None` where it cannot be read.
    pub(super) fn proposals(&self, reading: &Reading, current: u32) -> Vec<Option<u32>> {
        let HpaSettings { sources, behaviour, starting, .. } = &self.settings;
        let tolerance = (behaviour.up.tolerance, behaviour.down.tolerance);
        let one = |source: &HpaSource| source.propose(reading, current, tolerance, *starting);
        sources.iter().map(one).collect()
    }

    /// What comes of the proposals of the metrics.
    pub(super) fn settle(&mut self, now: Seconds, proposals: &[Option<u32>], current: u32) -> u32 {
        let HpaSettings { min, max, behaviour, .. } = &self.settings;
        let first = self.memory.begin(now, current);
        if current == 0 && *min > 0 {
            // Somebody switched the workload off and the controller leaves it alone; unless the
            // workload is only just created, when its replicas are yet to be set.
            return if first { *min } else { 0 };
        }
        let desired = if current > *max {
            *max
        } else if current < *min {
            *min
        } else {
            match largest(proposals, current) {
                Some(proposed) => {
                    let held = self.memory.stabilise(now, proposed, current);
                    self.memory.limit(now, held, current, behaviour).clamp(*min, *max)
                }
                None => current,
            }
        };
        self.memory.note_change(now, current, desired);
        desired
    }
}

impl RivalLaw for Hpa {
    fn desired(&mut self, now: Seconds, reading: &Reading, current: u32) -> u32 {
        let proposals = self.proposals(reading, current);
        self.settle(now, &proposals, current)
    }

    fn interval(&self) -> Seconds {
        self.settings.sync
    }
}

/// The largest proposal. With some metrics unreadable the rest may raise the number but not lower
/// it, and with all unreadable nothing moves.
fn largest(proposals: &[Option<u32>], current: u32) -> Option<u32> {
    let proposed = proposals.iter().flatten().copied().max()?;
    let all_known = proposals.iter().all(Option::is_some);
    (all_known || proposed >= current).then_some(proposed)
}
