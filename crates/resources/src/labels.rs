//! Names of labels and annotations that Flyball writes or reads.

/// On pods and workloads that Flyball made: the ModelService.
pub const MODEL: &str = "flyball.dev/model";

/// On pods and workloads that Flyball made: the variant.
pub const VARIANT: &str = "flyball.dev/variant";

/// On workloads that Flyball made: the TrainingRun.
pub const RUN: &str = "flyball.dev/run";

/// On a pod that gets no new requests: when that began, RFC 3339. For people, and for the operator after
/// a restart. Gateways hear of it on their stream and never read it: EndpointSlices do not carry
/// annotations, and a mark that nobody confirms proves nothing (decision 0031). One that is not connected
/// learns that a pod goes when Kubernetes says that it is terminating.
pub const DRAINING: &str = "flyball.dev/draining-since";

/// On a ModelService: nothing is changed until this moment, RFC 3339.
pub const FROZEN_UNTIL: &str = "flyball.dev/frozen-until";

/// On a ModelService: why a person froze it.
pub const FROZEN_BECAUSE: &str = "flyball.dev/frozen-because";

/// On pods: which of a ReplicaSet's pods go first when it shrinks. Kubernetes' own.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// On everything of a release: what it is, `flyball`. Kubernetes' own.
pub const APP_NAME: &str = "app.kubernetes.io/name";

/// On everything of a release: which part it is, such as `gateway`. Kubernetes' own.
pub const APP_COMPONENT: &str = "app.kubernetes.io/component";

/// The ConfigMap in the operator's namespace that freezes everything while it exists.
pub const FREEZE_ALL: &str = "flyball-freeze";

/// On a pod with requests: since when node autoscalers are told to leave it where it is, RFC 3339. The two
/// below are Flyball's while this is there, and somebody else's while it is not.
pub const PROTECTED: &str = "flyball.dev/protected-since";

/// On pods: Karpenter does not empty their node to save it. Karpenter's own.
pub const KARPENTER_KEEPS: &str = "karpenter.sh/do-not-disrupt";

/// On pods: whether the cluster autoscaler may empty their node. Its own.
pub const AUTOSCALER_EVICTS: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
