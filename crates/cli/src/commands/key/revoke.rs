//! `flyball key revoke`.

use clap::Args;
use clap::builder::BoolishValueParser;
use flyball_resources::Tenant;
use jiff::Timestamp;

use super::answer::KeyChange;
use super::edit::{self, Which};
use super::{DryRun, key_name, write};
use crate::ask::may_go_on;
use crate::cluster::connect;
use crate::flags::ClusterArgs;
use crate::output::{Exit, Failure, Printer};
use crate::served::{find_one, full_name};

/// Disable keys at once
///
/// A key that was disabled is refused whatever its time says. It stays in the list, so that its id
/// keeps its name in logs and bills.
#[derive(Debug, Args)]
#[command(override_usage = "flyball key revoke [OPTIONS] <TENANT> <KEY-NAME|--id <ID>|--all>")]
#[command(group = clap::ArgGroup::new("which").required(true).args(["key", "id", "all_keys"]))]
pub(super) struct RevokeArgs {
    /// The tenant: NAME, or NAMESPACE/NAME
    #[arg(value_name = "TENANT")]
    tenant: String,

    /// Name of the key
    #[arg(value_name = "KEY-NAME")]
    key: Option<String>,

    /// Id of the key: the ten characters after sk-fly-
    #[arg(long, value_name = "ID", env = "FLYBALL_KEY_ID", hide_env_values = true)]
    id: Option<String>,

    /// Every key of the tenant; asks first
    #[arg(long = "all", id = "all_keys", env = "FLYBALL_KEY_ALL")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    all: bool,

    /// With --all: do not ask for confirmation
    #[arg(short, long, env = "FLYBALL_KEY_YES")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    yes: bool,

    #[command(flatten)]
    dry: DryRun,
}

pub(super) async fn run(
    args: &RevokeArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let which = which(args)?;
    let cluster = connect(global).await?;
    let tenant: Tenant = find_one(&cluster, global, &args.tenant).await?;
    let id = full_name(&tenant);
    let now = Timestamp::now();
    let stored = serde_json::to_value(&tenant.spec.keys).unwrap_or_default();
    let mut keys = stored.as_array().cloned().unwrap_or_default();
    let planned = KeyChange::planned_revocation(&id, edit::disable(&mut keys, &which)?, now);
    if args.dry.dry_run {
        return Ok(printer.answer(&planned));
    }
    if which == Which::All && !args.yes && !may_go_on(&planned.lines())? {
        return Err(Failure::new(Exit::No, "nothing was changed").because("the answer was no"));
    }
    let disabled =
        write::change(&cluster, &tenant, global.timeout, |keys| edit::disable(keys, &which));
    Ok(printer.answer(&KeyChange::revoked(&id, disabled.await?, now)))
}

/// Which keys are meant. Somebody who was sent a leaked key may paste all of it, and it must not stand in a message, as it
/// would if the command line refused it.
fn which(args: &RevokeArgs) -> Result<Which, Failure> {
    match (&args.key, &args.id) {
        (Some(name), _) if key_name(name).is_ok() => Ok(Which::Name(name.clone())),
        (Some(_), _) => Err(Failure::new(Exit::Usage, "that is no name of a key").hint(
            "flyball key list TENANT shows names; --id takes the ten characters after sk-fly-",
        )),
        (None, Some(id)) => {
            let fits = id.len() == 10 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
            fits.then(|| Which::Id(id.clone())).ok_or_else(|| {
                Failure::new(Exit::Usage, "that is no id of a key")
                    .hint("an id is the ten characters after sk-fly-, and not the whole key")
            })
        }
        (None, None) => Ok(Which::All),
    }
}
