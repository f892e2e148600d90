//! `flyball decisions`: what was decided, when, and why.

#[cfg(test)]
mod tests;
mod view;

use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;
use flyball_core::reason::Reason;
use flyball_resources::admin_api::Entry;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cluster::connect;
use crate::flags::{ClusterArgs, time_above_zero};
use crate::moment;
use crate::output::{Answer, Detail, Document, Exit, Failure, Printer};
use crate::reach::{Operator, ReachArgs};
use crate::served::{find, full_name};
pub(crate) use view::past;

/// List past decisions of one model or of all
///
/// The operator keeps up to 240 decisions per model in memory until it restarts; a decision that
/// repeats the previous one is not listed. Times are UTC.
#[derive(Debug, Args)]
pub(crate) struct DecisionsArgs {
    /// The model: NAME, or NAMESPACE/NAME; all if absent
    #[arg(value_name = "NAME")]
    model: Option<String>,

    /// All namespaces, regardless of FLYBALL_NAMESPACE
    #[arg(short = 'A', long, env = "FLYBALL_DECISIONS_ALL_NAMESPACES")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    all_namespaces: bool,

    /// Only decisions younger than this, as in 30m, 1h
    #[arg(long, value_name = "TIME", env = "FLYBALL_DECISIONS_SINCE", hide_env_values = true)]
    #[arg(value_parser = time_above_zero)]
    since: Option<Duration>,

    /// Only decisions with this reason; flyball explain lists them
    #[arg(long, value_name = "WORD", env = "FLYBALL_DECISIONS_REASON", hide_env_values = true)]
    reason: Option<String>,

    #[command(flatten)]
    reach: ReachArgs,
}

/// Past decisions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionList {
    /// Time of the query, RFC 3339.
    asked_at: String,
    /// Each decision that differs from the previous one, oldest first.
    decisions: Vec<Entry>,
}

impl Answer for DecisionList {
    const KIND: &'static str = "DecisionList";

    fn view(&self, _: Detail) -> Document {
        view::view(&self.decisions, &self.asked_at)
    }
}

pub(crate) async fn run(
    args: &DecisionsArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let now = jiff::Timestamp::now();
    let reason = args.reason.as_deref().map(reason).transpose()?;
    let cluster = match (&args.model, &args.reach.operator) {
        // Nothing has to be looked up in the cluster.
        (None, Some(_)) => None,
        _ => Some(connect(global).await?),
    };
    let model = match (&args.model, &cluster) {
        (Some(name), Some(cluster)) => Some(full_name(&find(cluster, global, name).await?)),
        _ => None,
    };
    let operator = Operator::reach(&args.reach, cluster.as_ref(), global).await?;
    let mut decisions = operator.decisions(model.as_deref()).await?.decisions;
    let namespace = global.namespace.as_ref().filter(|_| !args.all_namespaces && model.is_none());
    decisions.retain(|entry| {
        let recent = args
            .since
            .is_none_or(|since| moment::ago(&entry.receipt.at, now).is_none_or(|ago| ago <= since));
        let here = namespace.is_none_or(|selected| {
            entry.model.split_once('/').is_some_and(|(own, _)| own == selected)
        });
        let so = reason.is_none_or(|reason| entry.receipt.reason == reason.name());
        recent && here && so
    });
    Ok(printer.answer(&DecisionList { asked_at: now.to_string(), decisions }))
}

/// A reason however it is typed.
fn reason(word: &str) -> Result<Reason, Failure> {
    let same = |reason: &&Reason| reason.name().eq_ignore_ascii_case(word);
    Reason::ALL.iter().find(same).copied().ok_or_else(|| {
        let failure = Failure::new(Exit::Usage, format!("{word:?} is no reason"));
        match crate::pages::nearest(word).filter(|near| Reason::from_name(near).is_some()) {
            Some(near) => failure.hint(format!("did you mean --reason {near}?")),
            None => failure.hint("flyball explain lists them"),
        }
    })
}
