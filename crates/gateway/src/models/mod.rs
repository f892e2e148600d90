//! Models that come from ModelServices: one `kubectl apply` serves a model, and no settings are edited.
//!
//! `watch` follows the API server, `served` says what one ModelService offers, `merge` puts that together with
//! the settings file, `sought` says what discovery is asked for; all but the first are pure. When the API server
//! is away, what was known is served on.
//!
//! It knows nothing of engines that run: it says which pods are a model's, and discovery looks for them as for
//! those of any other model. Start at [`watch()`].

mod merge;
mod served;
mod sought;
#[cfg(test)]
pub(crate) mod tests;
mod watch;

pub use merge::{LeftOutName, LeftOutReason, ModelNames, OfferedModels, merge};
pub use served::{OfferedModel, served_of};
pub(crate) use sought::sought;
pub use watch::{OfferedListing, watch};
