//! On which nodes pods of a variant failed: one that fails everywhere is broken itself, and where several fail
//! on one node it is the node.

use super::facts::PodFacts;
use flyball_core::ids::VariantId;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes that are remembered for a variant.
const NODES: usize = 64;

/// Pods that are counted on a node; more make no difference.
const PODS: usize = 9;

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    variants: BTreeMap<VariantId, BTreeMap<String, BTreeSet<String>>>,
}

impl Failures {
    /// A pod failed on its node.
    pub fn failed(&mut self, id: &VariantId, pod: &PodFacts) {
        let Some(node) = &pod.node else { return };
        let nodes = self.variants.entry(id.clone()).or_default();
        let pods = nodes.entry(node.clone()).or_default();
        if pods.len() < PODS {
            pods.insert(pod.uid.clone());
        }
        if nodes.len() > NODES {
            nodes.pop_first();
        }
    }

    /// A pod serves there: what was the matter is over.
    pub fn serves(&mut self, id: &VariantId, pod: &PodFacts) {
        let nodes = self.variants.get_mut(id);
        if let Some((nodes, node)) = nodes.zip(pod.node.as_ref()) {
            nodes.remove(node);
        }
    }

    /// How many pods failed on the node of this one, if it is not the only one.
    pub fn on_node_of(&self, id: &VariantId, pod: &PodFacts) -> Option<usize> {
        let pods = self.variants.get(id)?.get(pod.node.as_ref()?)?;
        Some(pods.len()).filter(|count| *count > 1)
    }

    /// Forgets variants that are gone.
    pub fn keep(&mut self, ids: &BTreeSet<VariantId>) {
        self.variants.retain(|id, _| ids.contains(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_where_several_failed_is_named_until_one_serves_there() {
        let id = "a/m/x".parse().unwrap();
        let pod = |uid: &str, node: &str| PodFacts {
            uid: uid.to_owned(),
            node: Some(node.to_owned()),
            ..PodFacts::default()
        };
        let mut failures = Failures::default();
        for uid in ["1", "1", "2"] {
            failures.failed(&id, &pod(uid, "n"));
        }
        failures.failed(&id, &pod("3", "o"));
        assert_eq!(failures.on_node_of(&id, &pod("9", "n")), Some(2));
        assert_eq!(failures.on_node_of(&id, &pod("9", "o")), None, "once is chance");
        failures.serves(&id, &pod("4", "n"));
        assert_eq!(failures.on_node_of(&id, &pod("9", "n")), None);
    }
}
