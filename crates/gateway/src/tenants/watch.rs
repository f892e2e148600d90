//! Follows Tenants and publishes what they say.

use super::reading::TenantReading;
use crate::settings::KubernetesSettings;
use flyball_fleet::discover::objects::{self, ObjectListing, ObjectWatch};
use flyball_fleet::discover::{DiscoveryProblem, DiscoveryStatus};
use flyball_resources::Tenant;
use kube::Client;
use kube::api::ApiResource;
use std::convert::Infallible;
use tokio::sync::watch as channel;

/// What the Tenants say that are known.
pub(crate) type TenantListing = ObjectListing<TenantReading>;

/// Follows Tenants for as long as it is polled, and publishes every change of what they say.
///
/// It begins with what `out` holds, which stays until the API server has told something else. Without a client it makes
/// its own.
pub(crate) async fn watch(
    settings: &KubernetesSettings,
    client: Option<Client>,
    out: &channel::Sender<TenantListing>,
    standing: &DiscoveryStatus,
) -> Result<Infallible, DiscoveryProblem> {
    let kind = ApiResource::erase::<Tenant>(&());
    let target = ObjectWatch { kind, namespaces: &settings.namespaces };
    objects::watch(&target, client, out, standing).await
}
