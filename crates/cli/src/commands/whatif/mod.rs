//! `flyball whatif` and `flyball diff`: what would be decided under hypothetical conditions.
//!
//! The operator imagines it; here questions are put (`parse`, `file`) and answers shown (`answer`).

mod answer;
mod file;
mod parse;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use flyball_resources::admin_api::{Changes, OtherPrice};

use crate::cluster::connect;
use crate::flags::ClusterArgs;
use crate::output::{Exit, Failure, Printer};
use crate::reach::{Operator, ReachArgs};
use crate::served::{find, full_name};
pub(crate) use answer::WhatIf;

/// Show what the operator would do under other conditions
///
/// The operator takes its last snapshot of the cluster, applies the changes and decides with its
/// current state. Nothing is written. Forecasts adapt to a change over several reconciles, as they
/// would in production.
#[derive(Debug, Args)]
pub(crate) struct WhatIfArgs {
    /// The model: NAME, or NAMESPACE/NAME
    #[arg(value_name = "NAME")]
    model: String,

    /// Change of demand: +50%, -20%, 3x
    #[arg(long, value_name = "CHANGE", env = "FLYBALL_WHATIF_RATE", hide_env_values = true)]
    #[arg(value_parser = parse::rate, allow_hyphen_values = true)]
    rate: Option<u32>,

    /// Pool that is lost with everything on it; may be repeated
    #[arg(long, value_name = "POOL", env = "FLYBALL_WHATIF_LOSE_POOL", hide_env_values = true)]
    #[arg(value_delimiter = ',')]
    lose_pool: Vec<String>,

    /// Hourly price of an accelerator: h100=2.0, or h100/spot=1.2; may be repeated
    #[arg(long, value_name = "POOL=PRICE", env = "FLYBALL_WHATIF_PRICE", hide_env_values = true)]
    #[arg(value_delimiter = ',', value_parser = parse::price)]
    price: Vec<OtherPrice>,

    /// Minimum number of replicas
    #[arg(long, value_name = "N", env = "FLYBALL_WHATIF_MIN", hide_env_values = true)]
    min: Option<u32>,

    /// Maximum number of replicas
    #[arg(long, value_name = "N", env = "FLYBALL_WHATIF_MAX", hide_env_values = true)]
    max: Option<u32>,

    #[command(flatten)]
    reach: ReachArgs,
}

/// Show what applying a file would change
///
/// The file contains ModelServices and Pools.
///
/// Nothing is applied. Other kinds in the file are ignored. Shows replicas and hourly cost before
/// and after, with the reason, also for models outside the file that share its pools.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// YAML file with any number of documents; - is stdin
    #[arg(short, long, value_name = "FILE", env = "FLYBALL_DIFF_FILE", hide_env_values = true)]
    file: PathBuf,

    /// Exit with 1 if anything would change
    #[arg(long, env = "FLYBALL_DIFF_EXIT_CODE")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    exit_code: bool,

    #[command(flatten)]
    reach: ReachArgs,
}

pub(crate) async fn run(
    args: &WhatIfArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let mut changes = Changes {
        rate_percent: args.rate,
        min: args.min,
        max: args.max,
        lost_pools: args.lose_pool.clone(),
        prices: args.price.clone(),
        ..Changes::default()
    };
    if changes == Changes::default() {
        return Err(Failure::new(Exit::Usage, "no condition is changed")
            .hint("set one: --rate +50%, --lose-pool X, --price X=2.0, --min N or --max N"));
    }
    let cluster = connect(global).await?;
    let model = full_name(&find(&cluster, global, &args.model).await?);
    changes.model = Some(model);
    let operator = Operator::reach(&args.reach, Some(&cluster), global).await?;
    let outcome = operator.what_if(&changes).await?;
    Ok(printer.answer(&WhatIf::new(parse::words(&changes), outcome, false)))
}

pub(crate) async fn diff(
    args: &DiffArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let read = file::read(&args.file, global.namespace.as_deref())?;
    let operator = Operator::reach(&args.reach, None, global).await?;
    let outcome = operator.what_if(&read.changes).await?;
    Ok(printer.answer(&WhatIf::new(read.words, outcome, args.exit_code)))
}
