//! What can be typed. Every flag can also be set as FLYBALL_*; the flag wins.

use clap::{Parser, Subcommand};

use crate::commands::{check, explain, fit, gpus, plan, prices};
use crate::flags::Global;

/// Decides how much accelerator capacity AI workloads get, and shows why
#[derive(Debug, Parser)]
#[command(name = "flyball", version, disable_help_subcommand = true, max_term_width = 100)]
#[command(after_help = "Exit status: 0 yes, 1 no, 2 wrong usage or a bug, 3 could not know, \
                        4 timed out, 130 interrupted")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(check::CheckArgs),
    Explain(explain::ExplainArgs),
    Plan(plan::PlanArgs),
    Fit(fit::FitArgs),
    Gpus(gpus::GpusArgs),
    Prices(prices::PricesArgs),
    /// Show the version of this command
    Version,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_has_an_environment_variable() {
        fn walk(command: &clap::Command) {
            for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
                let name = arg.get_id().as_str();
                if !["help", "version"].contains(&name) {
                    let env = arg.get_env().and_then(|env| env.to_str()).unwrap_or_default();
                    assert!(env.starts_with("FLYBALL_"), "{} --{name}", command.get_name());
                }
            }
            command.get_subcommands().for_each(walk);
        }
        walk(&Cli::command());
    }
}
