//! Nothing is written that could cut requests: the last look at writes before they are carried out. Pure.
//!
//! It does not ask how the writes were worked out. Whom Kubernetes could remove for a number is worked out
//! again, from the pods as they are seen and the costs that are written before.

use super::order::Order;
use super::scale::Scene;
use super::{WorkloadKey, Write};
use flyball_core::ids::ModelId;
use flyball_core::invariants::{Holding, Violation, removals};
use std::collections::BTreeMap;

/// Leaves out the writes that could take away a pod that may hold requests, and says which rule they break.
pub(super) fn hold_back<'a>(
    model: &ModelId,
    writes: Vec<Write>,
    holding: impl Fn(&str) -> Holding,
    scene: impl Fn(&WorkloadKey) -> Option<Scene<'a>>,
) -> (Vec<Write>, Vec<Violation>) {
    let mut broken = Vec::new();
    let mut costs: BTreeMap<String, Option<i64>> = BTreeMap::new();
    let mut passed = Vec::new();
    for write in writes {
        let found = match &write {
            Write::Cost { pod, cost } => {
                costs.insert(pod.clone(), Some(i64::from(*cost)));
                Vec::new()
            }
            Write::Unmark { pod } => {
                costs.insert(pod.clone(), None);
                Vec::new()
            }
            Write::Scale { workload, to, .. } => {
                scene(workload).map_or_else(Vec::new, |scene| shrunk(model, &scene, *to, &costs))
            }
            Write::Replace { pod, .. } => removals(model, [(&**pod, holding(pod))]),
            Write::Mark { .. }
            | Write::Protect { .. }
            | Write::Unprotect { .. }
            | Write::Make { .. } => Vec::new(),
        };
        if found.is_empty() {
            passed.push(write);
        }
        broken.extend(found);
    }
    (passed, broken)
}

/// Whom this number could take away and must not.
fn shrunk(
    model: &ModelId,
    scene: &Scene<'_>,
    to: u32,
    costs: &BTreeMap<String, Option<i64>>,
) -> Vec<Violation> {
    let order = Order::of(scene.key.1, &scene.pods, |pod| {
        let written = costs.get(&pod.name).copied();
        written.unwrap_or(pod.deletion_cost).unwrap_or(0)
    });
    let count = scene.pods.len().saturating_sub(usize::try_from(to).unwrap_or(usize::MAX));
    removals(model, order.first(count).into_iter().map(|pod| (pod, scene.holding(pod))))
}
