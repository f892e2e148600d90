//! Who may ask, as settings say it. Apart from all else, so that settings can be fuzzed without Kubernetes.

use serde::{Deserialize, Serialize};

/// Who may use an admin address beyond health and metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdminClients {
    /// Whoever connects from this machine: 127.0.0.1 or ::1. In a pod that is the pod itself, and
    /// `kubectl port-forward`.
    pub loopback: bool,
    /// Everybody who reaches the address.
    pub open: bool,
    /// Whoever has the token with this SHA-256, in hexadecimal. Not shown: who sees it could try guesses.
    #[serde(skip_serializing)]
    pub token_sha256: Option<String>,
    /// `namespace/name` of a Service: whoever may go through the API server to its port `admin`
    /// (`services/proxy`) and shows a token for `flyball-admin`.
    pub service: Option<String>,
}

impl Default for AdminClients {
    fn default() -> Self {
        Self { loopback: true, open: false, token_sha256: None, service: None }
    }
}
