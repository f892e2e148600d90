//! `flyball backtest why --at 13:05`: what the governor decided then, and from which numbers.

use clap::Args;

use super::args::ReplayArgs;
use crate::output::{Exit, Failure, FailureCode, Printer};

/// Explain what the governor decided at a moment of the replay
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    replay: ReplayArgs,

    /// The moment: 13:05, 2d13:05 for the second day, or a date
    #[arg(long, value_name = "TIME", env = "FLYBALL_BACKTEST_AT", hide_env_values = true)]
    at: String,
}

pub(super) fn run(args: &WhyArgs, _printer: &Printer) -> Result<Exit, Failure> {
    let ground = super::Ground::read(&args.replay)?;
    let _ = ground.clock.read(&args.at);
    Err(Failure::new(Exit::Usage, "the governor cannot be replayed yet").code(FailureCode::Policy))
}
