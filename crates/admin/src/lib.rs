//! The admin address that every service has: health and metrics for anybody, the rest for whoever may ask.
//!
//! `serve` takes connections and never lets the slow keep out a probe; `guard` says who may ask, by where
//! they come from or by a token; `reviews` has the API server judge tokens, and `review_cache` remembers what it
//! said for a minute. What is answered is the service's own: this crate knows nothing of what is served or
//! decided, and changes nothing.
//!
//! Start at [`serve()`], then [`Guard`].

#![deny(missing_docs)]

mod clients;
mod guard;
mod review_cache;
mod reviews;
mod serve;
#[cfg(test)]
mod tests;

pub use clients::AdminClients;
pub use guard::{Guard, bearer};
pub use review_cache::ReviewCache;
pub use reviews::{ReviewedPlace, Reviews, whose};
pub use serve::{AdminPages, serve};

/// For whom a token must be that is shown at an admin address. One for the API server is refused: whoever
/// asks should not have to hand out what opens the cluster.
pub const AUDIENCE: &str = "flyball-admin";

/// Where a token is shown that comes through the API server's proxy, which takes `authorization` away.
pub const TOKEN_HEADER: &str = "x-flyball-token";

/// The service account whose tokens are shown to the service behind this Service: whoever may make one may
/// ask.
pub fn admin_client_of(service: &str) -> String {
    format!("{service}-admin-client")
}

/// What came of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessVerdict {
    /// They may: who it is.
    Allowed(String),
    /// They may not: why.
    Denied(String),
    /// Nobody could tell: why. That is no reason to remember.
    Unknown(String),
}
