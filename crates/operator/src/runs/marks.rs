//! Names on pods, nodes and JobSets of runs.

/// On nodes: how they are paid for. Karpenter's own.
pub(super) const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

/// On nodes: their zone. Kubernetes' own.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// On a JobSet that Flyball made: where its run should be, by the last decision that was carried out.
pub(super) const PLACED: &str = "flyball.dev/placed";

/// In the environment of its processes: seconds between saves.
pub(super) const SAVE_EVERY: &str = "FLYBALL_SAVE_EVERY_SECONDS";
