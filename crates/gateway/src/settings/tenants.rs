//! Whether callers come from Tenants beside the settings file, and whose tokens they may show.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Issuers of a gateway. Each is asked every ten minutes, and a person trusts each of them.
pub(super) const MAX_ISSUERS: usize = 32;

/// The audience of service-account tokens, unless the settings say another.
const AUDIENCE: &str = "flyball";

/// Callers that are not in the settings file.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct TenantsSettings {
    /// Take callers from Tenants too. Every request then needs a key, also while no Tenant exists.
    pub watch: bool,
    /// File for the last list of Tenants. If absent, a gateway that starts while the API server is unreachable knows
    /// no Tenant.
    pub cache_file: Option<PathBuf>,
    /// Issuers whose tokens are taken from members of Tenants.
    pub issuers: Vec<IssuerSettings>,
}

/// An issuer of tokens. Exactly one of `jwks_url`, `jwks_file` and `kubernetes` is set.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct IssuerSettings {
    /// Its claim `iss`, letter by letter. That of the cluster is asked for if it is absent.
    pub issuer: Option<String>,
    /// What `aud` of a token must contain: the name under which the issuer knows this gateway.
    pub audience: Option<String>,
    /// Where its key set is.
    pub jwks_url: Option<String>,
    /// A file with its key set.
    pub jwks_file: Option<PathBuf>,
    /// Certificates that the server of `jwks_url` is held against. If absent, those of the system.
    pub ca: Option<PathBuf>,
    /// Whether it is this cluster, whose tokens are those of service accounts.
    pub kubernetes: bool,
}

impl IssuerSettings {
    /// What `aud` must contain.
    pub fn audience(&self) -> &str {
        self.audience.as_deref().unwrap_or(AUDIENCE)
    }
}
