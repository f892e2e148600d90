//! What the key of a Tenant may do, and whoever shows a token.

/// What a Tenant's key may do, or whoever belongs to the Tenant by a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyAccess {
    /// The Tenant.
    pub(crate) tenant: flyball_resources::resolve::TenantId,
    /// The scope of the key, or of the Tenant for a token: what it spends counts there and in every scope above.
    pub(crate) scope: flyball_quota::Scope,
    /// What the Tenant may do.
    pub(crate) access: std::sync::Arc<flyball_resources::resolve::TenantAccess>,
}
