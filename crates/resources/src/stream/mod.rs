//! What gateways and the operator say to each other on their one stream, as Protocol Buffers.
//!
//! [`Up`] is what a gateway says, [`Down`] what the operator answers. Both sides read what they know and
//! pass over what they do not, so that the two may be a minor version apart: a field is never
//! renumbered, its meaning never changes, and what is absent means "not told". Whatever breaks that
//! is another [`MAJOR`], and two majors do not talk.
//!
//! `quota` is what both say about limits and budgets of Tenants. `docs/reference/stream.proto` is written
//! from these types. Nothing here talks or waits; limits are here because both sides must hold the same.

mod down;
mod quota;
#[cfg(test)]
mod tests;
mod up;

pub use down::{ArmWeight, Down, DrainMark, ModelOrders, Orders, SplitWeights, Welcome};
pub use quota::{
    BudgetSpending, EmptyBudget, EmptyLease, LeaseAsk, LeaseGrant, LeaseRecall, LeaseRequest,
    LeaseUnit, MAX_ENTRIES, MAX_SCOPE, QuotaExcess, QuotaOrders, QuotaReply, QuotaReport,
    ReplyGrant, ReportedLease, ReportedQuota, ReportedShare, ShareChange, ShareKind, ShareOrder,
    SpentBudget, WideAmount,
};
pub use up::{
    EndpointLoad, EndpointState, Hello, ModelDemand, Protocol, ReportedDemand, ReportedPast, Up,
    Wake,
};

use std::time::Duration;

/// Two sides with different majors do not talk.
pub const MAJOR: u32 = 1;

/// Grows with every field that is added. Nobody is refused for it.
pub const MINOR: u32 = 3;

/// The service and its one method, as the path of an HTTP/2 request.
pub const PATH: &str = "/flyball.link.v1.Link/Talk";

/// Whom a gateway's service-account token is for.
pub const AUDIENCE: &str = "flyball-operator";

/// Models in one message: what one cluster carries.
pub const MAX_MODELS: usize = 10_000;

/// Endpoints in one message.
pub const MAX_ENDPOINTS: usize = 100_000;

/// How far back a gateway tells how things stood.
pub const PAST: Duration = Duration::from_secs(32);

/// Moments of the past in one message: one for each second.
pub const MAX_PAST: usize = 33;

/// Bytes of one message. 10,000 models with every number in use take about 2 MiB, and 100,000
/// endpoints with names of 60 bytes about 10 MiB.
pub const MAX_BYTES: usize = 16 << 20;

/// Bytes of a name: of a gateway, a model, an endpoint.
pub const MAX_NAME: usize = 512;

/// A model as gateways tell of it. Names are not unique over namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicName {
    /// The namespace of its engines; empty where the gateway does not say.
    pub namespace: String,
    /// Model name in client requests.
    pub name: String,
}

impl ModelDemand {
    /// Whether nothing has come, gone or been written since.
    pub fn counts_as(&self, before: &Self) -> bool {
        let counts = |one: &Self| {
            let paced = (one.paced_tokens, one.paced_micros);
            (one.arrived, one.arrived_tokens, one.uncached_tokens, one.output_tokens, paced)
        };
        let ended = |one: &Self| (one.answered, one.judged, one.missed);
        counts(self) == counts(before) && ended(self) == ended(before)
    }

    /// The model that it is about.
    pub fn public_name(&self) -> PublicName {
        PublicName { namespace: self.namespace.clone(), name: self.model.clone() }
    }
}

impl Wake {
    /// The model that is wanted.
    pub fn public_name(&self) -> PublicName {
        PublicName { namespace: self.namespace.clone(), name: self.model.clone() }
    }
}

impl Protocol {
    /// What this program speaks.
    pub const OURS: Self = Self { major: MAJOR, minor: MINOR };

    /// Whether this program understands it.
    pub const fn is_understood(&self) -> bool {
        self.major == MAJOR
    }
}

impl DrainMark {
    /// Whether it is for this endpoint. What the mark does not say is not asked for; a mark that says
    /// nothing is for none.
    pub fn is_for(&self, name: &str, address: &str) -> bool {
        let is_or_any = |mark: &str, own: &str| mark.is_empty() || mark == own;
        let names_something = !(self.name.is_empty() && self.address.is_empty());
        names_something && is_or_any(&self.name, name) && is_or_any(&self.address, address)
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
