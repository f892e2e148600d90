//! What can be typed after `flyball simulate`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;

/// Play a scenario against scaling policies, request by request
///
/// Needs no cluster. A scenario is a TOML file: what runs, what traffic comes, what breaks, and what is
/// expected. docs/guides/scenarios.md describes it. The first policy is held to what the file expects: exit status 1 if
/// that does not hold. The same seed gives the same answer, byte for byte.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The scenario
    #[arg(value_name = "SCENARIO.toml")]
    pub(super) scenario: PathBuf,

    /// What decides: governor, a rival by name (hpa-running, llm-d-slo, static@2 ...) or a file with
    /// a HorizontalPodAutoscaler or ScaledObject; may be given more than once
    #[arg(long, value_name = "POLICY", env = "FLYBALL_SIMULATE_POLICY", value_delimiter = ',')]
    #[arg(hide_env_values = true, default_value = "governor,hpa-running")]
    pub(super) policy: Vec<String>,

    /// Another seed than the scenario's
    #[arg(long, value_name = "N", env = "FLYBALL_SIMULATE_SEED", hide_env_values = true)]
    pub(super) seed: Option<u64>,

    /// Also show every minute of each policy
    #[arg(long, env = "FLYBALL_SIMULATE_TIMELINE", hide_env_values = true)]
    #[arg(value_parser = BoolishValueParser::new())]
    pub(super) timeline: bool,

    /// Also write all of it as one page of HTML
    #[arg(long, value_name = "FILE", env = "FLYBALL_SIMULATE_HTML", hide_env_values = true)]
    pub(super) html: Option<PathBuf>,

    /// Folder of the traces that traffic.replay names, where they are not beside the scenario
    #[arg(long, value_name = "DIR", env = "FLYBALL_SIMULATE_TRACES", hide_env_values = true)]
    pub(super) traces: Option<PathBuf>,
}
