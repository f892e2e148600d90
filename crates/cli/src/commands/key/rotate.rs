//! `flyball key rotate`.

use std::time::Duration;

use clap::Args;
use flyball_resources::Tenant;
use jiff::Timestamp;

use super::answer::KeyChange;
use super::edit::{self, Fresh};
use super::secret::Target;
use super::{MakeArgs, key_name, later, length, make, write};
use crate::cluster::connect;
use crate::flags::ClusterArgs;
use crate::output::{Exit, Failure, Printer};
use crate::served::{find_one, full_name};

/// Create a key in place of another, which ends a little later
///
/// The new key has a name of its own, and both are valid during the overlap. With --to-secret the
/// Secret gets the new key; a Secret that has another key of the tenant is written over.
#[derive(Debug, Args)]
pub(super) struct RotateArgs {
    /// The tenant: NAME, or NAMESPACE/NAME
    #[arg(value_name = "TENANT")]
    tenant: String,

    /// Name of the key to replace
    #[arg(value_name = "KEY-NAME")]
    key: String,

    /// How long the old key stays valid
    #[arg(long, value_name = "TIME", env = "FLYBALL_KEY_OVERLAP", hide_env_values = true)]
    #[arg(default_value = "24h", value_parser = length)]
    overlap: Duration,

    #[command(flatten)]
    make: MakeArgs,
}

pub(super) async fn run(
    args: &RotateArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    if key_name(&args.key).is_err() {
        // It may be a key that was pasted, and must not stand in a message.
        return Err(Failure::new(Exit::Usage, "that is no name of a key")
            .hint("flyball key list TENANT shows names"));
    }
    let now = Timestamp::now();
    let expires = args.make.expires.end(now)?;
    let end = later(now, args.overlap)?;
    let cluster = connect(global).await?;
    let tenant: Tenant = find_one(&cluster, global, &args.tenant).await?;
    let id = full_name(&tenant);
    let whose = id.split_once('/').unwrap_or_default();
    let secret = match &args.make.to_secret {
        Some(place) => {
            Some(Target::find(&cluster.client, place, whose, true, global.timeout).await?)
        }
        None => None,
    };
    let key = make()?;
    let fresh = Fresh { key: &key, expires };
    if args.make.dry.dry_run {
        let stored = serde_json::to_value(&tenant.spec.keys).unwrap_or_default();
        let mut keys = stored.as_array().cloned().unwrap_or_default();
        let (name, end) = edit::rotate(&mut keys, &args.key, end, &fresh)?;
        let planned = KeyChange::planned_creation(&id, &name, expires, now);
        return Ok(printer.answer(&planned.replacing(&args.key, end)));
    }
    let changed = write::change(&cluster, &tenant, global.timeout, |keys| {
        edit::rotate(keys, &args.key, end, &fresh)
    });
    let (name, end) = changed.await?;
    let change = KeyChange::created(&id, &name, &key, expires, now);
    let mut change = change.replacing(&args.key, end);
    change.hand_over(&key, secret.as_ref(), global.timeout).await?;
    change.advise(printer);
    Ok(printer.answer(&change))
}
