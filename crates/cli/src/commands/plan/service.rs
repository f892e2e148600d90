//! What is asked of a service, alone or beside others on GPUs that are there.

use std::time::Duration;

use clap::Args;
use flyball_perf::engine::{Engine, PREDICTED};
use flyball_perf::search::serve::Targets;

use super::quantities;
use crate::flags::time_above_zero;
use crate::model::engines;

#[derive(Debug, Args)]
pub(super) struct ServiceArgs {
    /// Time to the first token, 95th percentile, as in 500ms
    #[arg(long, aliases = ["ttft"], value_name = "TIME", env = "FLYBALL_PLAN_TTFT_P95")]
    #[arg(hide_env_values = true, value_parser = time_above_zero)]
    ttft_p95: Option<Duration>,

    /// Time between two tokens, 95th percentile, as in 40ms
    #[arg(long, aliases = ["itl", "tpot", "tpot-p95"], value_name = "TIME")]
    #[arg(env = "FLYBALL_PLAN_ITL_P95", hide_env_values = true, value_parser = time_above_zero)]
    itl_p95: Option<Duration>,

    /// Engine that serves
    #[arg(long, value_name = "NAME", env = "FLYBALL_PLAN_ENGINE", hide_env_values = true)]
    #[arg(default_value = "vllm", value_parser = engines(PREDICTED))]
    pub(super) engine: Engine,

    /// Maximum load of a replica, as a share of its capacity
    #[arg(long, value_name = "SHARE", env = "FLYBALL_PLAN_MAX_LOAD", hide_env_values = true)]
    #[arg(default_value = "80%", value_parser = quantities::share)]
    pub(super) max_load: f64,

    /// Minimum replicas of a model, so that one can be lost or replaced
    #[arg(long, value_name = "N", env = "FLYBALL_PLAN_MIN_REPLICAS", hide_env_values = true)]
    #[arg(default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) min_replicas: u32,
}

impl ServiceArgs {
    pub(super) fn targets(&self) -> Targets {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        Targets { ttft_p95: seconds(self.ttft_p95), itl_p95: seconds(self.itl_p95), tpot: None }
    }
}
