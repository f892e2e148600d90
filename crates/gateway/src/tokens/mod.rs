//! Callers with tokens: of identity providers, and of service accounts of the cluster, which need no key at all.
//!
//! `Tokens` is what requests look at: who shows a token, by the key sets and the Tenants of this moment. `seen` has tokens
//! that were verified a moment ago. `sources` has the key sets of issuers and says when to fetch which, `fetch` does so,
//! `problem` is why that fails, `standing` what is told of it, and `file` has the last sets for a gateway that
//! starts while an issuer is unreachable. All but `fetch` and `file` are pure: time is an argument.
//!
//! A token is never kept and never shown: what is kept is its SHA-256. What makes a token good is in `flyball_identity`. It
//! knows nothing of Kubernetes but where the API server has its key set.

mod caller;
#[cfg(test)]
mod cost;
mod fetch;
pub(crate) mod file;
mod problem;
mod seen;
mod sources;
mod standing;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use caller::{ShownToken, Tokens};
pub(crate) use fetch::fetch;
pub(crate) use problem::FetchProblem;
pub(crate) use sources::{FetchedKeySet, KeySources, Taken};
pub use standing::{KeySetNow, KeySetOutcome, KeySetSource, KeySetsNow};
