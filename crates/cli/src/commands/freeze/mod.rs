//! `flyball freeze` and `flyball resume`: a person's hand on the brake, with a reason and an end.
//!
//! `write` changes the cluster, `answer` says what was or would be done, `crate::ask` asks first.

mod answer;
#[cfg(test)]
mod tests;
mod write;

use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;
use jiff::{RoundMode, TimestampRound, Unit};

use crate::ask::may_go_on;
use crate::cluster::connect;
use crate::flags::{ClusterArgs, time_above_zero};
use crate::output::{Exit, Failure, Printer};
use crate::reach;
use crate::served::find;
pub(crate) use answer::Brake;
use answer::Target;

/// Stop all changes to a model for some time
///
/// Everybody can see the reason. The model keeps its replicas regardless of demand; decisions are still made and
/// shown. The freeze ends by itself, or with `flyball resume`. `--all` freezes every model until `flyball resume
/// --all`.
#[derive(Debug, Args)]
pub(crate) struct FreezeArgs {
    /// The model: NAME, or NAMESPACE/NAME
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    model: Option<String>,

    /// For how long, as in 30m, 2h
    #[arg(long = "for", value_name = "TIME", env = "FLYBALL_FREEZE_FOR", hide_env_values = true)]
    #[arg(value_parser = time_above_zero, required_unless_present = "all", conflicts_with = "all")]
    length: Option<Duration>,

    /// Reason to show with the freeze
    #[arg(long, value_name = "TEXT", env = "FLYBALL_FREEZE_REASON", hide_env_values = true)]
    #[arg(value_parser = words)]
    reason: String,

    /// Every model of the operator, without an end
    #[arg(long, env = "FLYBALL_FREEZE_ALL")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    all: bool,

    #[command(flatten)]
    care: Care,
}

/// Allow changes again
///
/// Ends what `flyball freeze` started.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The model: NAME, or NAMESPACE/NAME
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    model: Option<String>,

    /// End `flyball freeze --all`
    #[arg(long, env = "FLYBALL_RESUME_ALL")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    all: bool,

    #[command(flatten)]
    care: Care,
}

/// How carefully a change is made.
#[derive(Debug, Args)]
pub(crate) struct Care {
    /// Only show what would be done
    #[arg(long, env = "FLYBALL_DRY_RUN")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    dry_run: bool,

    /// Do not ask for confirmation
    #[arg(short, long, env = "FLYBALL_YES")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    yes: bool,

    /// With --all: namespace of the operator; that of its Service if not set
    #[arg(long, value_name = "NAME", env = "FLYBALL_OPERATOR_NAMESPACE", hide_env_values = true)]
    operator_namespace: Option<String>,
}

pub(crate) async fn freeze(
    args: &FreezeArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let length = args.length.unwrap_or_default();
    let brake = |now: jiff::Timestamp| {
        let until = now.checked_add(length).unwrap_or(jiff::Timestamp::MAX);
        // Nobody freezes to the microsecond, and people read this in `kubectl get -o yaml`.
        let second = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil);
        let until = until.round(second).unwrap_or(until);
        Brake::freeze(&args.reason, (!args.all).then_some(until), now)
    };
    carry_out(args.model.as_deref(), &args.care, brake, global, printer).await
}

pub(crate) async fn resume(
    args: &ResumeArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    carry_out(args.model.as_deref(), &args.care, Brake::resume, global, printer).await
}

async fn carry_out(
    model: Option<&str>,
    care: &Care,
    brake: impl Fn(jiff::Timestamp) -> Brake,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let cluster = connect(global).await?;
    let mut brake = brake(jiff::Timestamp::now());
    let target = match model {
        Some(name) => Target::Model(Box::new(find(&cluster, global, name).await?)),
        None => {
            let namespace = match &care.operator_namespace {
                Some(namespace) => namespace.clone(),
                None => operator_namespace(&cluster, global).await?,
            };
            let now = write::switch(&cluster, &namespace, global.timeout).await?;
            Target::All { namespace, now }
        }
    };
    brake.of(&target);
    brake.dry_run = care.dry_run;
    if care.dry_run || !brake.changes {
        return Ok(printer.answer(&brake));
    }
    if !care.yes && !may_go_on(&brake.plan())? {
        return Err(Failure::new(Exit::No, "nothing was changed").because("the answer was no"));
    }
    write::write(&cluster, &target, &brake, global.timeout).await?;
    brake.done = true;
    Ok(printer.answer(&brake))
}

async fn operator_namespace(
    cluster: &crate::cluster::Cluster,
    global: &ClusterArgs,
) -> Result<String, Failure> {
    let service = reach::service(cluster, global.timeout).await.map_err(|failure| {
        failure.hint("--operator-namespace names the namespace of the operator")
    })?;
    Ok(service.metadata.namespace.unwrap_or_default())
}

fn words(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.len() {
        0 => Err("give a reason in a few words".to_owned()),
        1..=500 => Ok(text.to_owned()),
        _ => Err("at most 500 characters".to_owned()),
    }
}
