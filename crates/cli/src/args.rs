//! What can be typed. Every flag can also be set as FLYBALL_*; the flag wins.

use clap::{Parser, Subcommand};

use crate::commands::{
    audit, backtest, check, collect, decisions, emulate, explain, fit, freeze, gateway, gpus,
    heartbeat, help, install, key, models, operator, plan, prices, run, simulate, status, tenants,
    top, trace, whatif, why,
};
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
    Why(why::WhyArgs),
    Decisions(decisions::DecisionsArgs),
    Status(status::StatusArgs),
    Whatif(whatif::WhatIfArgs),
    Diff(whatif::DiffArgs),
    Freeze(freeze::FreezeArgs),
    Resume(freeze::ResumeArgs),
    Explain(explain::ExplainArgs),
    Plan(plan::PlanArgs),
    Fit(fit::FitArgs),
    Backtest(Box<backtest::BacktestArgs>),
    Simulate(simulate::SimulateArgs),
    Collect(collect::CollectArgs),
    Emulate(Box<emulate::EmulateArgs>),
    Gateway(gateway::GatewayArgs),
    Gpus(gpus::GpusArgs),
    Heartbeat(heartbeat::HeartbeatArgs),
    Key(key::KeyArgs),
    Models(models::ModelsArgs),
    Operator(operator::OperatorArgs),
    Prices(prices::PricesArgs),
    Run(run::RunArgs),
    Tenants(tenants::TenantsArgs),
    Audit(audit::AuditArgs),
    Top(top::TopArgs),
    Trace(trace::TraceArgs),
    Help(help::HelpArgs),
    Completions(install::CompletionsArgs),
    Man(install::ManArgs),
    /// Show the version
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

    #[test]
    fn no_command_takes_the_name_of_a_global_flag() {
        // Two arguments of one id and other types end in a panic, and only when both are read.
        fn names(arg: &clap::Arg) -> [Option<String>; 3] {
            let env = arg.get_env().and_then(|env| env.to_str());
            [Some(arg.get_id().as_str()), arg.get_long(), env].map(|name| name.map(str::to_owned))
        }
        fn walk(command: &clap::Command, global: &[[Option<String>; 3]]) {
            for arg in command.get_arguments() {
                for taken in global {
                    for (own, taken) in names(arg).iter().zip(taken) {
                        let same = own.is_some() && own == taken;
                        assert!(!same, "{} takes {own:?}", command.get_name());
                    }
                }
            }
            command.get_subcommands().for_each(|command| walk(command, global));
        }
        let root = Cli::command();
        let global: Vec<_> =
            root.get_arguments().filter(|arg| arg.is_global_set()).map(names).collect();
        assert!(global.len() > 5);
        root.get_subcommands().for_each(|command| walk(command, &global));
    }
}
