//! `flyball backtest tune`: better settings of a policy, searched on the first part of the
//! traffic and tested on the rest.

use clap::Args;

use super::args::ReplayArgs;
use crate::output::{Exit, Failure, Printer};

/// Search a policy's settings on the first part of the traffic, and test them on the rest
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    replay: ReplayArgs,

    /// The rival to tune, by name
    #[arg(long, value_name = "POLICY", env = "FLYBALL_BACKTEST_POLICY", hide_env_values = true)]
    #[arg(default_value = "hpa")]
    policy: String,
}

pub(super) fn run(args: &TuneArgs, _printer: &Printer) -> Result<Exit, Failure> {
    let _ = (&args.replay, &args.policy);
    Err(Failure::new(Exit::Usage, "not yet"))
}
