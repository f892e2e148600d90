//! Follows ModelServices and publishes what they offer.

use super::served::{OfferedModel, served_of};
use crate::settings::KubernetesSettings;
use flyball_fleet::discover::objects::{self, ObjectListing, ObjectView, ObjectWatch};
use flyball_fleet::discover::{DiscoveryProblem, DiscoveryStatus};
use flyball_resources::ModelService;
use kube::Client;
use kube::api::{ApiResource, DynamicObject};
use std::convert::Infallible;
use tokio::sync::watch as channel;

/// What the ModelServices offer that are known.
pub type OfferedListing = ObjectListing<OfferedModel>;

/// Follows ModelServices for as long as it is polled, and publishes every change of what they offer.
///
/// It begins with what `out` holds, which stays until the API server has told something else. Without a client
/// it makes its own.
pub async fn watch(
    settings: &KubernetesSettings,
    client: Option<Client>,
    out: &channel::Sender<OfferedListing>,
    standing: &DiscoveryStatus,
) -> Result<Infallible, DiscoveryProblem> {
    let kind = ApiResource::erase::<ModelService>(&());
    let target = ObjectWatch { kind, namespaces: &settings.namespaces };
    objects::watch(&target, client, out, standing).await
}

impl ObjectView for OfferedModel {
    fn read(object: &DynamicObject) -> Self {
        match object.clone().try_parse::<ModelService>() {
            Ok(model) => served_of(&model),
            Err(error) => Self::unreadable(&error),
        }
    }

    fn after(&self, last: Option<&Self>) -> Self {
        self.or_last(last)
    }
}
