//! What can be typed after `flyball simulate`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;

/// Simulate a scenario under scaling policies, request by request
///
/// Needs no cluster. A scenario is a TOML file with models, traffic, faults and expected results;
/// docs/guides/scenarios.md describes it. Exit status 1 if the first policy misses an expected result. The same seed
/// gives the same output, byte for byte.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The scenario
    #[arg(value_name = "SCENARIO.toml")]
    pub(super) scenario: PathBuf,

    /// Policy: governor, a rival by name (hpa-running, llm-d-slo, static@2 ...) or a file with
    /// a HorizontalPodAutoscaler or ScaledObject; may be repeated
    #[arg(long, value_name = "POLICY", env = "FLYBALL_SIMULATE_POLICY", value_delimiter = ',')]
    #[arg(hide_env_values = true, default_value = "governor,hpa-running")]
    pub(super) policy: Vec<String>,

    /// Seed, instead of the scenario's
    #[arg(long, value_name = "N", env = "FLYBALL_SIMULATE_SEED", hide_env_values = true)]
    pub(super) seed: Option<u64>,

    /// Also show each policy minute by minute
    #[arg(long, env = "FLYBALL_SIMULATE_TIMELINE", hide_env_values = true)]
    #[arg(value_parser = BoolishValueParser::new())]
    pub(super) timeline: bool,

    /// Also write an HTML report
    #[arg(long, value_name = "FILE", env = "FLYBALL_SIMULATE_HTML", hide_env_values = true)]
    pub(super) html: Option<PathBuf>,

    /// Folder of the traces in traffic.replay, if they are not beside the scenario
    #[arg(long, value_name = "DIR", env = "FLYBALL_SIMULATE_TRACES", hide_env_values = true)]
    pub(super) traces: Option<PathBuf>,
}
