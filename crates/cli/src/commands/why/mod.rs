//! `flyball why`: why a model has the replicas it has, and why it wants others; whether a tenant is served (`tenant`);
//! or where a training run stands (`run`).
//!
//! The last decision stands in the status of the ModelService, so that it can be told without the
//! operator; earlier ones only the operator remembers. `pods` adds what waits and since when, `tree`
//! shows it all.

mod answer;
mod numbers;
mod pods;
mod run;
mod tenant;
#[cfg(test)]
mod tests;
mod tree;

use clap::Args;
use clap::builder::BoolishValueParser;
use flyball_resources::admin_api::Entry;

use crate::cluster::{Cluster, connect};
use crate::flags::ClusterArgs;
use crate::moment;
use crate::output::document::Block;
use crate::output::{Document, Exit, Failure, Printer};
use crate::reach::{Operator, ReachArgs};
use crate::served::{find, full_name};
pub(crate) use answer::Why;
#[cfg(test)]
pub(crate) use run::WhyRun;
#[cfg(test)]
pub(crate) use tenant::WhyTenant;

/// Explain the replicas of a model, whether a tenant is served, or where a training run stands
///
/// The last decision comes from the status of the ModelService. Earlier ones come from the
/// operator, which keeps them in memory until it restarts. Times are UTC. For a tenant: its keys, its
/// budgets and what a request gets, as the statuses of Tenants say. For a training run: how far it is, where it should be,
/// what it cost and lost.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The model: NAME, or NAMESPACE/NAME. A tenant: tenant/NAME. A training run: run/NAME
    #[arg(value_name = "NAME")]
    model: String,

    /// Show the decision in effect at this time: 14:02, 2026-11-15T14:02:10Z, or 20m ago
    #[arg(long, value_name = "TIME", env = "FLYBALL_WHY_AT", hide_env_values = true)]
    at: Option<String>,

    /// Also show the last N decisions
    #[arg(long, value_name = "N", env = "FLYBALL_WHY_LAST", hide_env_values = true)]
    #[arg(conflicts_with = "at")]
    last: Option<usize>,

    /// One line per reason instead of a tree, for grep
    #[arg(long, env = "FLYBALL_WHY_FLAT")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    flat: bool,

    #[command(flatten)]
    reach: ReachArgs,
}

pub(crate) async fn run(
    args: &WhyArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let now = jiff::Timestamp::now();
    let at = args
        .at
        .as_ref()
        .map(|text| moment::parse(text, now))
        .transpose()
        .map_err(|why| Failure::new(Exit::Usage, "--at is not a moment").because(why))?;
    let cluster = connect(global).await?;
    let [of_tenant, of_run] = tenant_or_run(&args.model);
    if (of_tenant.is_some() || of_run.is_some()) && (args.at.is_some() || args.last.is_some()) {
        return Err(Failure::new(Exit::Usage, "--at and --last are about models")
            .because("nobody records what was said about tenants and training runs before"));
    }
    if let Some(name) = of_tenant {
        return Ok(printer.answer(&tenant::read(&cluster, global, name).await?));
    }
    if let Some(name) = of_run {
        return Ok(printer.answer(&run::read(&cluster, global, name).await?));
    }
    let model = find(&cluster, global, &args.model).await?;
    let mut why = match at {
        Some(at) => {
            let past = past(args, &cluster, global, &full_name(&model)).await?;
            Why::then(held_at(&past, at, now)?, now)
        }
        None => Why::of(&model, now),
    };
    if !why.past && why.is_in_motion() {
        match pods::waiting(&cluster.client, &model, global.timeout).await {
            Ok(waiting) => why.waiting = waiting,
            Err(unknown) => why.waiting_unknown = Some(unknown),
        }
    }
    if let Some(last) = args.last {
        let mut past = past(args, &cluster, global, &full_name(&model)).await?;
        why.earlier = past.split_off(past.len().saturating_sub(last));
    }
    why.flat = args.flat;
    Ok(printer.answer(&why))
}

/// The name of a tenant, or of a training run, if the argument means one.
fn tenant_or_run(argument: &str) -> [Option<&str>; 2] {
    ["tenant/", "run/"].map(|kind| argument.strip_prefix(kind))
}

/// What is told of a tenant and of a run: a few sentences.
fn sentences<const N: usize>(all: [&String; N]) -> Document {
    let mut document = Document::new();
    document.push(Block::Notes(all.into_iter().cloned().collect()));
    document
}

async fn past(
    args: &WhyArgs,
    cluster: &Cluster,
    global: &ClusterArgs,
    model: &str,
) -> Result<Vec<Entry>, Failure> {
    let operator = Operator::reach(&args.reach, Some(cluster), global).await?;
    Ok(operator.decisions(Some(model)).await?.decisions)
}

/// The last decision that was made by then.
fn held_at(past: &[Entry], at: jiff::Timestamp, now: jiff::Timestamp) -> Result<&Entry, Failure> {
    let made =
        |entry: &&Entry| entry.receipt.at.parse::<jiff::Timestamp>().is_ok_and(|made| made <= at);
    past.iter().rev().find(made).ok_or_else(|| {
        let failure =
            Failure::new(Exit::Unknown, "the operator remembers no decision of that time");
        match past.first() {
            Some(first) => failure.because(format!(
                "its first is of {} UTC",
                moment::clock_of(&first.receipt.at, now)
            )),
            None => failure.because("it has decided nothing about this model yet"),
        }
    })
}
