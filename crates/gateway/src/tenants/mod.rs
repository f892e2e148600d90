//! Callers that come from Tenants: one `kubectl apply` lets a team in, and one revokes a key, in every gateway at once.
//!
//! `watch` follows the API server, `reading` is what one Tenant says, `table` makes of all of them who holds which
//! key, `report` what became of each, `file` has the last list for a gateway that starts while the API server is
//! unreachable (`guarded` keeps strangers from writing it), `freshness` how old the list is, `refusals` which keys were
//! refused. All but `watch`, `file` and `guarded` are pure: time is an argument.
//!
//! What several Tenants come to together is in `flyball_resources::resolve`, the same for the operator and for gateways. A
//! Tenant that this version cannot read lets nobody in, as one that is refused: its last reading may have keys
//! that were revoked since.
//!
//! It holds hashes of keys, never a key. Start at `TenantTable`.

#[cfg(test)]
mod cost;
pub(crate) mod file;
mod freshness;
pub(crate) mod guarded;
mod reading;
mod refusals;
mod report;
mod table;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use freshness::TenantFreshness;
pub use reading::{TenantReading, TenantReadings};
pub(crate) use refusals::RefusedKeys;
pub use report::{TenantReport, TenantTrouble};
pub(crate) use table::TenantTable;
pub(crate) use watch::{TenantListing, watch};
