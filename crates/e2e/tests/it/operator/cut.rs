//! A way to the API server that can be cut.

use anyhow::{Context, Result};
use flyball_e2e::{Relay, Story};
use kube::config::Kubeconfig;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where the API server is, and the name on its certificate.
pub(super) fn api_server(story: &Story) -> Result<(SocketAddr, String)> {
    let file = Kubeconfig::read_from(&story.cluster.kubeconfig)?;
    let cluster = file.clusters.first().and_then(|one| one.cluster.as_ref());
    let server =
        cluster.and_then(|one| one.server.clone()).context("a cluster without a server")?;
    let place = server.strip_prefix("https://").context("a server without https")?;
    let place = place.trim_end_matches('/');
    let (name, _) = place.rsplit_once(':').context("a server without a port")?;
    let address = std::net::ToSocketAddrs::to_socket_addrs(place)?.next();
    Ok((address.context("a server without an address")?, name.to_owned()))
}

/// A kubeconfig that goes through the relay.
pub(super) fn through(story: &Story, relay: &Relay, name: &str) -> Result<PathBuf> {
    let mut file = Kubeconfig::read_from(&story.cluster.kubeconfig)?;
    for cluster in file.clusters.iter_mut().filter_map(|one| one.cluster.as_mut()) {
        cluster.server = Some(format!("https://{}", relay.address));
        cluster.tls_server_name = Some(name.to_owned());
    }
    let path = std::env::temp_dir().join(format!("flyball-{}.kubeconfig", story.namespace));
    std::fs::write(&path, serde_json::to_string(&file)?)?;
    Ok(path)
}
