//! `flyball key list`.

use clap::Args;
use flyball_resources::Tenant;
use jiff::Timestamp;

use super::answer::KeyList;
use crate::cluster::connect;
use crate::flags::ClusterArgs;
use crate::output::{Exit, Failure, Printer};
use crate::served::{find_one, full_name};

/// List the keys of a tenant
///
/// Shows names, ids and what each key may still do; the keys themselves are stored nowhere.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// The tenant: NAME, or NAMESPACE/NAME
    #[arg(value_name = "TENANT")]
    tenant: String,
}

pub(super) async fn run(
    args: &ListArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let cluster = connect(global).await?;
    let tenant: Tenant = find_one(&cluster, global, &args.tenant).await?;
    let list = KeyList::of(&full_name(&tenant), &tenant.spec.keys, Timestamp::now());
    Ok(printer.answer(&list))
}
