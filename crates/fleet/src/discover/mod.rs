//! Finds out where engines are: a static list, EndpointSlices of a Service, pods of an
//! `InferencePool` or of a ModelService.
//!
//! It only reads. What it finds leaves as whole [`Listing`]s through a watch channel; whoever takes
//! one sees the newest. When the API server is gone, the last listing stays (invariant 4), and an
//! empty list after a full one is asked for again before it is believed.
//!
//! A model that was not listed yet is not in the listing; a model without engines is there with
//! none. A model that cannot be looked for is named in [`DiscoveryStatus`] and keeps no other from being served.
//!
//! `place` reads where to look and `selector` which pods, `slices`, `pools` and `pods` turn API objects into
//! engines, `mirror` and `world` hold what the watches told, `settle` decides what to believe: all pure.
//! `sources` talks to the API server, `pulse` and `standing` have what fails, `ready` says when requests may
//! come. [`objects`] follows any other kind of object in the same way. It knows nothing of load or health beyond
//! what Kubernetes says, and nothing of why a model is wanted.
//!
//! Start at [`watch()`].

mod mirror;
pub mod objects;
mod place;
mod pods;
mod pools;
mod pulse;
mod ready;
pub mod selector;
mod settle;
mod slices;
mod sources;
mod standing;
#[cfg(test)]
mod tests;
mod watch;
mod world;

pub use crate::fleet::{FoundEngines, Listing};
pub use place::{
    DiscoveryPlace, InferencePoolPlace, PodsPlace, Port, ServicePlace, Sought, VariantPlace,
};
pub use ready::Readiness;
pub use sources::connect;
pub use standing::{DiscoveryStatus, Failing, Noted};
pub use watch::watch;

/// Why engines cannot be looked for at all. What goes wrong later is logged and tried again.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryProblem {
    /// A model's place cannot be read.
    #[error("model {model:?}: {what}; hint: {hint}")]
    Place {
        /// The model.
        model: String,
        /// What is wrong.
        what: String,
        /// What to write instead.
        hint: &'static str,
    },
    /// Models or their engines are to be looked for in a cluster, and there is none to ask.
    #[error(
        "models or their engines are in a cluster, and no cluster is reachable: {0}; hint: run in \
         a pod with a service account, set KUBECONFIG, or list `endpoints`"
    )]
    NoCluster(String),
}
