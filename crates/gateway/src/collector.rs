//! The collector apart, for the models of a gateway's settings: `flyball collect`.
//!
//! It looks for the engines that gateways with these settings look for, those of ModelServices among them. What it
//! does with them is in [`collect`]. Start at [`serve`].

use crate::models::{self, OfferedListing, sought};
use crate::settings::GatewaySettingsFile;
use flyball_fleet::collect::{self, Ended};
use flyball_fleet::discover::{DiscoveryProblem, DiscoveryStatus, Readiness, Sought};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Instant;
use tokio::sync::watch;

/// Runs a collector for the models of these settings until `until`.
pub async fn serve(
    settings: &GatewaySettingsFile,
    listen: SocketAddr,
    until: impl Future<Output = ()>,
) -> Result<(), Ended> {
    let models = watch::Sender::new(sought(&settings.models));
    let (standing, readiness) = (DiscoveryStatus::default(), Readiness::since(Instant::now()));
    readiness.await_model_services(settings.kubernetes.watches());
    tokio::select! {
        ended = offered(settings, &models, &readiness, &standing) => match ended? {},
        ended = collect::serve(&models, &standing, &readiness, listen, until) => ended,
    }
}

/// Adds the models of ModelServices, if the settings say so.
async fn offered(
    settings: &GatewaySettingsFile,
    models: &watch::Sender<Vec<Sought>>,
    readiness: &Readiness,
    standing: &DiscoveryStatus,
) -> Result<Infallible, DiscoveryProblem> {
    if !settings.kubernetes.watches() {
        return std::future::pending().await;
    }
    let out = watch::Sender::new(OfferedListing::default());
    let mut listings = out.subscribe();
    let merging = async {
        while listings.changed().await.is_ok() {
            let listing = listings.borrow_and_update();
            let (merged, _) = models::merge(settings, &listing.objects);
            let desired = sought(&merged.models);
            models.send_if_modified(|now| {
                let changed = *now != desired;
                *now = desired;
                changed
            });
            readiness.await_model_services(!listing.listed);
        }
        std::future::pending().await
    };
    tokio::select! {
        ended = models::watch(&settings.kubernetes, None, &out, standing) => ended,
        never = merging => never,
    }
}
