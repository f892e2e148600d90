//! Whether callers come from Tenants beside the settings file.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Callers that are not in the settings file.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct TenantsSettings {
    /// Take callers from Tenants too. Every request then needs a key, also while no Tenant exists.
    pub watch: bool,
    /// File for the last list of Tenants. If absent, a gateway that starts while the API server is unreachable knows
    /// no Tenant.
    pub cache_file: Option<PathBuf>,
}
