//! `flyball operator`: looks after models on a cluster.

use std::path::PathBuf;

use clap::Args;
use flyball_operator::settings::OperatorSettings;
use flyball_telemetry::logs;

use crate::output::{Exit, Failure};

/// Recommend or set the replicas of models in a cluster
///
/// Reads ModelServices, pods and the metrics of gateways or Prometheus, decides with the same code
/// as `flyball backtest`, and writes statuses; it writes replicas only for models in mode Act. Runs
/// until SIGTERM. If the API server, Prometheus or gateways are unreachable, everything stays as it
/// is.
#[derive(Debug, Args)]
pub(crate) struct OperatorArgs {
    /// Settings; docs/reference/operator-settings.md lists them. Defaults if not set
    #[arg(long, value_name = "FILE", env = "FLYBALL_OPERATOR_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,

    /// Name of this operator in the leader Lease
    #[arg(long, value_name = "NAME", env = "FLYBALL_OPERATOR_NAME", hide_env_values = true)]
    name: Option<String>,
}

/// The Kubernetes client writes an ERROR line of its own for every try; what matters is said by us.
const FILTER: &str = "info,kube_client=off,kube_runtime=off";

/// Runs until SIGTERM or Ctrl-C.
pub(crate) async fn run(args: &OperatorArgs) -> Result<Exit, Failure> {
    // Fails only if logging was set up already, by -v.
    let _ = logs::init(logs::Format::Json, FILTER);
    let settings = read(args.config.as_ref())?;
    let me = args.name.clone().unwrap_or_else(|| {
        std::env::var("HOSTNAME").unwrap_or_else(|_| format!("operator-{}", std::process::id()))
    });
    flyball_operator::run::run(settings, env!("CARGO_PKG_VERSION"), me).await.map_err(
        |problem| {
            Failure::new(Exit::Unknown, "the operator cannot run")
                .because(problem.to_string())
                .hint("flyball check shows what is missing in the cluster")
        },
    )?;
    Ok(Exit::Yes)
}

fn read(file: Option<&PathBuf>) -> Result<OperatorSettings, Failure> {
    let Some(file) = file else { return Ok(OperatorSettings::default()) };
    let refused = |problems: Vec<String>| {
        Failure::new(Exit::Usage, "the settings are refused")
            .at(file.display().to_string())
            .problems(problems)
            .hint("docs/reference/operator-settings.md has all settings")
    };
    let text = std::fs::read_to_string(file).map_err(|error| refused(vec![error.to_string()]))?;
    OperatorSettings::parse(&text).map_err(refused)
}
