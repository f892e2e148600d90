//! The rule about writes: who may be taken away.
//!
//! A decision names replicas; what is written to a workload is a number, and Kubernetes chooses whom to
//! remove for it. So this rule is held against everybody whom a write could take away.

use super::{Invariant, Violation};
use crate::closed::closed_enum;
use crate::ids::ModelId;

closed_enum! {
    /// Whether a replica may be taken away without cutting a request, and how that is known.
    pub enum Holding {
        NeverServed => "It was never ready, so it holds no request.",
        Empty => "It was observed without requests.",
        LeftToItsGrace => "It drains, no gateway sends to it, and its grace period covers the rest.",
        MayHold => "It may hold requests.",
    }
}

impl Holding {
    /// Whether it may be taken away.
    pub const fn may_go(self) -> bool {
        !matches!(self, Self::MayHold)
    }
}

/// Finds whom a write to a workload of `model` could take away and must not. `gone` are all that it could.
pub fn removals<'a>(
    model: &ModelId,
    gone: impl IntoIterator<Item = (&'a str, Holding)>,
) -> Vec<Violation> {
    let held = gone.into_iter().filter(|(_, holding)| !holding.may_go());
    let violation = |(replica, _): (&str, Holding)| Violation {
        invariant: Invariant::NoWriteCutsRequests,
        models: vec![model.clone()],
        detail: format!("model {model}: {replica} would be removed and may hold requests"),
    };
    held.map(violation).collect()
}
