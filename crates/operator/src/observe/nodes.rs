//! What a node's conditions and taints say about how long it will be there. Pure.
//!
//! Every autoscaler has its own word for "this node goes". A cordon alone says nothing of the kind: people use
//! it to look at a node in peace.

use crate::time::moment;
use flyball_core::units::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};

/// Taints of a node that does not answer, or whose pods are to be taken for gone (kubernetes.io,
/// "Taints and Tolerations" and "Non-graceful node shutdown"; the third is the cloud controller's).
const LOST: [&str; 4] = [
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/not-ready",
    "node.cloudprovider.kubernetes.io/shutdown",
    "node.kubernetes.io/out-of-service",
];

/// Taints of a node that will be taken away.
const LEAVING: [&str; 10] = [
    // Karpenter, before it drains a node for any cause (karpenter.sh, "Disruption"); until v0.37 the second.
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    // The cluster autoscaler, before it deletes a node (utils/taints/taints.go). Its candidates have another, softer one.
    "ToBeDeletedByClusterAutoscaler",
    // GKE: spot and preemptible machines, maintenance of the host (k8s-node-termination-handler).
    "cloud.google.com/impending-node-termination",
    // AKS: node auto-drain and auto-repair (learn.microsoft.com, "node-auto-drain"); earlier the second.
    "remediator.kubernetes.azure.com/unschedulable",
    "remediator.aks.microsoft.com/unschedulable",
    // AWS node termination handler, with `taintNode` (its chart's README).
    "aws-node-termination-handler/spot-itn",
    "aws-node-termination-handler/scheduled-maintenance",
    "aws-node-termination-handler/asg-lifecycle-termination",
    "aws-node-termination-handler/rebalance-recommendation",
];

/// Whether a node will be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outlook {
    /// As far as anybody knows.
    #[default]
    Stays,
    /// It will be taken away.
    Leaves {
        /// The taint that says so.
        taint: String,
        /// Since when, if that is known.
        since: Option<Timestamp>,
    },
    /// It does not answer.
    Lost {
        /// Since when, if that is known.
        since: Option<Timestamp>,
    },
}

/// What is known about a node.
pub(super) fn outlook(node: &Node) -> Outlook {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|one| one.type_ == "Ready");
    let taints = || node.spec.iter().filter_map(|spec| spec.taints.as_ref()).flatten();
    let found = |keys: &[&str]| taints().find(|taint| keys.contains(&&*taint.key));
    let added = |taint: &Taint| taint.time_added.as_ref().map(moment);
    if let Some(ready) = ready.filter(|ready| ready.status != "True") {
        let since = ready.last_transition_time.as_ref().map(moment);
        return Outlook::Lost { since };
    }
    if let Some(taint) = found(&LOST) {
        return Outlook::Lost { since: added(taint) };
    }
    match found(&LEAVING) {
        Some(taint) => Outlook::Leaves { taint: taint.key.clone(), since: added(taint) },
        None => Outlook::Stays,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{Facts, NodeFacts, PodFacts};
    use serde_json::json;

    fn node(ready: &str, taints: &[&str]) -> NodeFacts {
        let taint = |key: &&str| json!({"key": key, "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:09Z"});
        let node = json!({
            "metadata": {"name": "n"},
            "spec": {"taints": taints.iter().map(taint).collect::<Vec<_>>()},
            "status": {"conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:05Z"},
            ]},
        });
        NodeFacts::of(&serde_json::from_value(node).unwrap())
    }

    #[test]
    fn taints_and_conditions_say_whether_a_node_stays() {
        assert_eq!(node("True", &[]).outlook, Outlook::Stays);
        assert_eq!(node("True", &["nvidia.com/gpu"]).outlook, Outlook::Stays);
        assert!(node("True", &["nvidia.com/gpu"]).usable);
        for ready in ["False", "Unknown"] {
            let lost = node(ready, &["karpenter.sh/disrupted"]);
            let since = time("2026-01-01T00:00:05Z");
            assert_eq!(lost.outlook, Outlook::Lost { since: Some(since) });
        }
        for key in LOST {
            assert!(matches!(node("True", &[key]).outlook, Outlook::Lost { .. }), "{key}");
        }
        for key in LEAVING {
            let leaves = node("True", &["nvidia.com/gpu", key]);
            let since = Some(time("2026-01-01T00:00:09Z"));
            assert_eq!(leaves.outlook, Outlook::Leaves { taint: key.to_owned(), since });
            assert!(!leaves.usable, "nobody new comes there");
        }
    }

    fn time(text: &str) -> Timestamp {
        crate::time::of_date(text.parse().unwrap())
    }

    #[test]
    fn if_no_node_answers_it_is_the_api_server_that_is_cut_off() {
        let pod = PodFacts { node: Some("a".to_owned()), ..PodFacts::default() };
        let facts = |other: &str| Facts {
            nodes: [("a", "Unknown"), ("b", other)]
                .map(|(name, ready)| (name.to_owned(), node(ready, &[])))
                .into(),
            ..Facts::default()
        };
        assert!(matches!(facts("True").outlook(&pod), Outlook::Lost { .. }));
        assert_eq!(*facts("Unknown").outlook(&pod), Outlook::Stays);
    }
}
