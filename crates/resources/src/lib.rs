//! Every form that Flyball stores in the API server or sends between its parts, and nothing else.
//!
//! [`ModelService`] is a model that is served; [`Pool`] is a pool of accelerators that it runs on; [`Tenant`] is who may
//! ask, and how much; [`TrainingRun`] is a job with a deadline. All follow Karpenter's NodePool: small, every field described, rules in CEL beside the fields
//! they judge, no webhook, no embedded PodSpec, no `phase`, no floating point numbers. The schemas in
//! `charts/flyball-crds` and the page in `docs/reference/resources.md` are generated from these types.
//!
//! [`stream`] is what gateways and the operator say to each other; `docs/reference/stream.proto` is
//! written from it.
//!
//! [`heartbeat`] is what training runs and Flyball say to each other.
//!
//! [`usage`] is what gateways and the operator write down for the ledger, and the columns of its tables.
//!
//! `convert` turns the kinds into `core`'s values and back, and [`resolve`] all Tenants together into what each may do.
//! Nothing here decides, talks or waits. Start at [`model_service`].

#![deny(missing_docs)]
#![expect(
    unreachable_pub,
    reason = "the derive of a schema with rules repeats the struct inside a function"
)]
#![expect(
    clippy::duplicated_attributes,
    reason = "each printer column has a name and a type of its own, which the lint takes for repeats"
)]

pub mod admin_api;
pub mod conditions;
mod convert;
pub mod decimal;
pub mod heartbeat;
pub mod labels;
pub mod model_service;
pub mod pool;
pub mod resolve;
pub mod stream;
pub mod tenant;
#[cfg(test)]
mod tests;
pub mod training_run;
pub mod usage;

pub use convert::{ConversionProblem, rfc3339};
pub use model_service::{ModelService, ModelServiceSpec, ModelServiceStatus};
pub use pool::{Pool, PoolSpec, PoolStatus};
pub use tenant::{Tenant, TenantSpec, TenantStatus};
pub use training_run::{TrainingRun, TrainingRunSpec, TrainingRunStatus};

/// The group of all our kinds.
pub const GROUP: &str = "flyball.dev";

/// The version of all our kinds.
pub const VERSION: &str = "v1alpha1";

/// Who writes, as the API server's field managers name it.
pub const FIELD_MANAGER: &str = "flyball-operator";
