//! `flyball key create`.

use clap::Args;
use flyball_resources::Tenant;
use jiff::Timestamp;

use super::answer::KeyChange;
use super::edit::{self, Fresh};
use super::secret::Target;
use super::{MakeArgs, key_name, make, write};
use crate::cluster::connect;
use crate::flags::ClusterArgs;
use crate::output::{Exit, Failure, Printer};
use crate::served::{find_one, full_name};

/// Create a key and show it once
///
/// The key is the only line on stdout. The Tenant gets its hash, and nobody can show the key again.
/// It is valid for 90 days unless --expires says otherwise.
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// The tenant: NAME, or NAMESPACE/NAME
    #[arg(value_name = "TENANT")]
    tenant: String,

    /// Name of the key; the first free of key-1, key-2 and so on if not set
    #[arg(long, value_name = "NAME", env = "FLYBALL_KEY_NAME", hide_env_values = true)]
    #[arg(value_parser = key_name)]
    name: Option<String>,

    #[command(flatten)]
    make: MakeArgs,
}

pub(super) async fn run(
    args: &CreateArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let now = Timestamp::now();
    let expires = args.make.expires.end(now)?;
    let cluster = connect(global).await?;
    let tenant: Tenant = find_one(&cluster, global, &args.tenant).await?;
    let id = full_name(&tenant);
    let whose = id.split_once('/').unwrap_or_default();
    let secret = match &args.make.to_secret {
        Some(place) => {
            Some(Target::find(&cluster.client, place, whose, false, global.timeout).await?)
        }
        None => None,
    };
    let key = make()?;
    let fresh = Fresh { key: &key, expires };
    if args.make.dry.dry_run {
        let mut keys: Vec<serde_json::Value> =
            tenant.spec.keys.iter().map(|key| serde_json::json!({ "name": key.name })).collect();
        let name = edit::add(&mut keys, args.name.as_deref(), &fresh)?;
        return Ok(printer.answer(&KeyChange::planned_creation(&id, &name, expires, now)));
    }
    let name = args.name.as_deref();
    let name =
        write::change(&cluster, &tenant, global.timeout, |keys| edit::add(keys, name, &fresh));
    let name = name.await?;
    let mut change = KeyChange::created(&id, &name, &key, expires, now);
    change.hand_over(&key, secret.as_ref(), global.timeout).await?;
    change.advise(printer);
    Ok(printer.answer(&change))
}
