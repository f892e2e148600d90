//! `flyball collect`: asks engines for their load, once for all gateways.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use flyball_fleet::collect::Ended;
use flyball_gateway::collector;
use flyball_gateway::settings::reload::Watched;
use flyball_telemetry::logs;
use tokio::signal::unix::{SignalKind, signal};

use crate::output::{Exit, Failure};

/// Poll engines for their load, once for all gateways
///
/// Gateways with this collector in their settings report their requests in flight and receive the
/// load of every engine. Without a collector, each gateway polls every engine, which is fine for a
/// few gateways. It reads only the models of a gateway's settings file.
#[derive(Debug, Args)]
pub(crate) struct CollectArgs {
    /// Settings file of the gateways
    #[arg(long, value_name = "FILE", env = "FLYBALL_COLLECT_CONFIG", hide_env_values = true)]
    config: PathBuf,

    /// Address for gateways. Nobody else should reach it: it is plain HTTP without keys
    #[arg(long, value_name = "IP:PORT", env = "FLYBALL_COLLECT_LISTEN", hide_env_values = true)]
    #[arg(default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 9091)))]
    listen: SocketAddr,
}

/// The Kubernetes client writes an ERROR line of its own for every try; what matters is said by us.
const FILTER: &str = "info,kube_client=off,kube_runtime=off";

/// Runs until SIGTERM or Ctrl-C.
pub(crate) async fn run(args: &CollectArgs) -> Result<Exit, Failure> {
    // Fails only if logging was set up already, by -v.
    let _ = logs::init(logs::Format::Json, FILTER);
    let (_, settings) = Watched::open(&args.config, SystemTime::now()).map_err(|problems| {
        Failure::new(Exit::Usage, "the settings are refused")
            .at(args.config.display().to_string())
            .because(problems.join("; "))
            .hint("docs/reference/gateway-settings.md has all settings")
    })?;
    let mut signal = signal(SignalKind::terminate()).map_err(|error| {
        Failure::new(Exit::Usage, "cannot listen for signals").because(error.to_string())
    })?;
    let stopped = async move {
        signal.recv().await;
    };
    collector::serve(&settings, args.listen, stopped).await.map_err(|ended| match ended {
        Ended::Listen(address, error) => Failure::new(Exit::Usage, "cannot listen")
            .at(address.to_string())
            .because(error.to_string())
            .hint("take another address with --listen, or end what has this one"),
        Ended::Discover(problem) => {
            Failure::new(Exit::Unknown, "cannot discover engines").because(problem.to_string())
        }
    })?;
    Ok(Exit::Yes)
}
