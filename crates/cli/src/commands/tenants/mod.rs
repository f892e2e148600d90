//! `flyball tenants`: who is served and billed, as the status of each Tenant says.

#[cfg(test)]
mod tests;

use clap::Args;
use clap::builder::BoolishValueParser;
use flyball_resources::Tenant;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cluster::connect;
use crate::flags::ClusterArgs;
use crate::output::document::{Block, Cell, Column, Row, Table, Tone};
use crate::output::{Answer, Detail, Document, Exit, Failure, Printer, plural};
use crate::served::{full_name, list_all};
use crate::tenant::{fresh, ready, unit};

/// Models in a row of the table; JSON has all.
const SHOWN_MODELS: usize = 4;

/// List tenants with their keys, models and budgets
///
/// Whether a tenant is accepted, how many of its keys are valid and what it has spent is what its
/// status says. What no status says is unknown, and shown as a dash.
#[derive(Debug, Args)]
pub(crate) struct TenantsArgs {
    /// All namespaces, regardless of FLYBALL_NAMESPACE
    #[arg(short = 'A', long, env = "FLYBALL_TENANTS_ALL_NAMESPACES")]
    #[arg(hide_env_values = true, value_parser = BoolishValueParser::new())]
    all_namespaces: bool,
}

/// Tenants.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TenantList {
    tenants: Vec<ListedTenant>,
}

/// One tenant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListedTenant {
    /// The tenant, `namespace/name`.
    tenant: String,
    /// Namespace, parents and name, as in logs and bills; unknown if absent.
    path: Option<String>,
    /// Whether it is accepted as it is; unknown if absent.
    ready: Option<bool>,
    /// Why, in a word of the closed list.
    reason: Option<String>,
    /// In a sentence.
    message: Option<String>,
    /// Keys.
    keys: usize,
    /// Valid keys; unknown if absent.
    valid_keys: Option<i32>,
    /// Models that it may use.
    models: Vec<String>,
    /// Its own budgets.
    budgets: Vec<ListedBudget>,
}

/// One budget.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListedBudget {
    /// Its name.
    name: String,
    /// Dollars or tokens.
    unit: &'static str,
    /// Spent in this period; unknown if absent.
    spent: Option<String>,
    /// Left in this period; unknown if absent.
    left: Option<String>,
    /// Next reset, RFC 3339; unknown or never if absent.
    resets_at: Option<String>,
    /// When nothing will be left, RFC 3339; unknown, or not in this period, if absent.
    empty_at: Option<String>,
}

pub(crate) async fn run(
    args: &TenantsArgs,
    global: &ClusterArgs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let cluster = connect(global).await?;
    let namespace = global.namespace.as_deref().filter(|_| !args.all_namespaces);
    let tenants: Vec<Tenant> = list_all(&cluster, namespace, global.timeout).await?;
    Ok(printer.answer(&TenantList::of(&tenants)))
}

impl TenantList {
    fn of(tenants: &[Tenant]) -> Self {
        let mut tenants: Vec<ListedTenant> = tenants.iter().map(ListedTenant::of).collect();
        tenants.sort_by(|a, b| a.tenant.cmp(&b.tenant));
        Self { tenants }
    }
}

impl ListedTenant {
    fn of(tenant: &Tenant) -> Self {
        // A status about an older spec says nothing about the keys of this one, but money that is spent stays spent.
        let status = tenant.status.as_ref();
        let fresh = fresh(tenant);
        let ready = fresh.and_then(ready);
        let budgets = tenant.spec.budgets.iter().map(|budget| {
            let known = status.and_then(|one| one.budgets.iter().find(|b| b.name == budget.name));
            ListedBudget {
                name: budget.name.clone(),
                unit: unit(budget),
                spent: known.map(|one| one.spent.clone()),
                left: known.map(|one| one.left.clone()),
                resets_at: known.and_then(|one| one.resets_at.clone()),
                empty_at: known.and_then(|one| one.empty_at.clone()),
            }
        });
        Self {
            tenant: full_name(tenant),
            path: fresh.and_then(|one| one.path.clone()),
            ready: ready.and_then(|one| match one.status.as_str() {
                "True" => Some(true),
                "False" => Some(false),
                _ => None,
            }),
            reason: ready.map(|one| one.reason.clone()),
            message: ready.map(|one| one.message.clone()),
            keys: tenant.spec.keys.len(),
            valid_keys: fresh.and_then(|one| one.keys.map(|keys| keys.valid)),
            models: tenant.spec.models.clone(),
            budgets: budgets.collect(),
        }
    }

    fn row(&self) -> Row {
        let ready = match self.ready {
            Some(true) => Cell::toned("yes", Tone::Good),
            Some(false) => Cell::toned("no", Tone::Bad),
            None => Cell::toned("unknown", Tone::Caution),
        };
        let valid = self.valid_keys.map_or("–".to_owned(), |valid| valid.to_string());
        let mut models = self.models.iter().take(SHOWN_MODELS).cloned().collect::<Vec<_>>();
        if self.models.len() > SHOWN_MODELS {
            models.push(format!("{} more", self.models.len() - SHOWN_MODELS));
        }
        let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
        let budgets = self.budgets.iter().map(|budget| {
            let unit = if budget.unit == "tokens" { " tokens" } else { " $" };
            let (spent, left) = (known(&budget.spent), known(&budget.left));
            format!("{}: {spent} spent, {left}{unit} left", budget.name)
        });
        Row::new([
            self.tenant.clone().into(),
            self.path.clone().unwrap_or_else(|| "–".to_owned()).into(),
            ready,
            Cell::from(format!("{valid}/{}", self.keys)),
            models.join(", ").into(),
            budgets.collect::<Vec<_>>().join("; ").into(),
        ])
    }
}

impl Answer for TenantList {
    const KIND: &'static str = "TenantList";

    fn view(&self, detail: Detail) -> Document {
        let mut document = Document::new();
        let columns =
            ["TENANT", "PATH", "READY", "KEYS", "MODELS", "BUDGETS"].map(Column::left).into();
        let is_shown = |one: &&ListedTenant| detail == Detail::Full || one.ready != Some(true);
        let rows: Vec<Row> = self.tenants.iter().filter(is_shown).map(ListedTenant::row).collect();
        if !rows.is_empty() {
            document.push(Block::Table(Table { rows, ..Table::new(columns) }));
            document.push(Block::Gap);
        }
        let refused = self.tenants.iter().filter(|one| one.ready == Some(false));
        let notes: Vec<String> = refused
            .filter_map(|one| Some(format!("{}: {}", one.tenant, one.message.as_ref()?)))
            .collect();
        if !notes.is_empty() {
            document.push(Block::Notes(notes));
            document.push(Block::Gap);
        }
        let count = |ready| self.tenants.iter().filter(|one| one.ready == ready).count();
        document.push(Block::Line(format!(
            "{}: {} ready, {} not ready, {} unknown",
            plural(self.tenants.len(), "tenant"),
            count(Some(true)),
            count(Some(false)),
            count(None),
        )));
        document
    }
}
