//! What all Tenants of a cluster come to together: who is let in, for which models, and how much.
//!
//! A Tenant may do what itself and every Tenant above it allow. One that cannot be understood, or that hangs on such a
//! one, lets nobody in; a key that two have lets nobody in either. Nothing is decided by who came first, so that gateways
//! that have read the same objects agree.
//!
//! [`resolve`] is the beginning. `tree` says who stands above whom, `read` takes a spec apart, `keys` finds keys that two
//! have, `models` has names with a `*`, `problems` what is wrong, `status` says it all in the API's words, `quota` lists all
//! limits and budgets. Pure: the time is an argument of what depends on it.

mod keys;
mod models;
mod problems;
mod quota;
mod read;
mod status;
#[cfg(test)]
mod tests;
mod tree;

pub use models::ModelPattern;
pub use problems::{MAX_PROBLEMS, TenantProblem, TenantProblems};
pub use quota::{budgets, rate_limits};

use crate::Tenant;
use crate::tenant::{PriorityCeiling, TenantMember, WhenExhausted};
use flyball_core::reason::Reason;
use flyball_core::units::Timestamp;
use flyball_quota::{BudgetSpec, Scope};
use keys::Twins;
use kube::ResourceExt as _;
use std::collections::BTreeMap;
use std::fmt;
use tree::Place;

/// Tenants that may stand above each other, the lowest counted.
pub const MAX_DEPTH: usize = 4;

/// Pico-dollars of a millionth of a dollar.
const PICOS: u128 = 1_000_000;

/// A Tenant of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TenantId {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What a Tenant comes to beside the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedTenant {
    /// What it may do; `None` if nobody is let in by it.
    pub access: Option<TenantAccess>,
    /// What is wrong with it.
    pub problems: TenantProblems,
    /// Keys that are not let in, whatever the time.
    pub refused_keys: usize,
}

/// What a Tenant may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantAccess {
    /// Its namespace, the Tenants above it and itself: `ml/org/team`.
    pub path: Scope,
    /// Tenants in the path.
    pub depth: usize,
    /// Its own limits, which it shares with those below it.
    pub limits: TenantLimits,
    /// Of each limit the lowest of its own and those above it: more it never gets.
    pub lowest: TenantLimits,
    /// Its part when there is not enough for all.
    pub weight: u32,
    /// The highest priority that its requests may ask for.
    pub priority_ceiling: PriorityCeiling,
    /// Those with the same one share what engines have cached; a group ends with its namespace.
    pub cache_group: Option<String>,
    /// The models that it may ask for, as all above it allow too. In order, and none stands for a part of another.
    pub models: Vec<ModelPattern>,
    /// Its keys, without those that another one has too.
    pub keys: Vec<TenantKey>,
    /// Who belongs to it by a token.
    pub members: Vec<TenantMember>,
    /// Its own budgets. Those of Tenants above it hold too: their scopes cover its own.
    pub budgets: Vec<TenantBudget>,
}

/// How much a Tenant may ask for at a time; `None` is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantLimits {
    /// Requests per minute.
    pub requests_per_minute: Option<u64>,
    /// Prompt tokens per minute.
    pub input_tokens_per_minute: Option<u64>,
    /// Output tokens per minute.
    pub output_tokens_per_minute: Option<u64>,
    /// Requests in flight.
    pub concurrency: Option<u64>,
}

/// A key, and when it is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantKey {
    /// What it is for.
    pub name: String,
    /// What may be shown of it.
    pub id: String,
    /// SHA-256 of the whole key.
    pub sha256: [u8; 32],
    /// From when on.
    pub not_before: Option<Timestamp>,
    /// Until when.
    pub expires: Option<Timestamp>,
    /// Whether the key is disabled, regardless of time.
    pub disabled: bool,
}

/// Whether a key is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It is.
    Valid,
    /// Its time has not begun.
    Pending,
    /// Its time has passed.
    Expired,
    /// A person has disabled it.
    Disabled,
}

/// A budget with what happens along it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantBudget {
    /// As the bank takes it.
    pub spec: BudgetSpec,
    /// Shares in percent that are worth a word, in order.
    pub alert_percents: Vec<u32>,
    /// What happens when the budget is exhausted.
    pub on_exhausted: WhenExhausted,
}

/// What each Tenant comes to. Tenants are told apart by namespace and name.
pub fn resolve<'a>(
    tenants: impl IntoIterator<Item = &'a Tenant>,
) -> BTreeMap<TenantId, ResolvedTenant> {
    let all: BTreeMap<TenantId, &Tenant> =
        tenants.into_iter().map(|tenant| (TenantId::of(tenant), tenant)).collect();
    let twins = keys::twins(&all);
    let mut resolved = BTreeMap::new();
    for (id, place) in tree::places(&all) {
        if let Some(tenant) = all.get(&id) {
            let one = one(&id, tenant, place, &resolved, &twins);
            resolved.insert(id, one);
        }
    }
    resolved
}

impl TenantId {
    /// That of an object.
    pub fn of(tenant: &Tenant) -> Self {
        Self { namespace: tenant.namespace().unwrap_or_default(), name: tenant.name_any() }
    }

    /// Another Tenant of its namespace.
    fn beside(&self, name: &str) -> Self {
        Self { namespace: self.namespace.clone(), name: name.to_owned() }
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl TenantAccess {
    /// Whether it may ask for a model.
    pub fn allows(&self, model: &str) -> bool {
        self.models.iter().any(|pattern| pattern.matches(model))
    }

    /// What is spent by one of its keys is spent by this. No Tenant below it can have the same path: there is no colon
    /// in their names.
    pub fn scope_of(&self, key: &TenantKey) -> Scope {
        Scope::new(&format!("{}/key:{}", self.path, key.name))
    }
}

impl TenantLimits {
    /// The lower one of each.
    #[must_use]
    pub fn lowest(self, other: Self) -> Self {
        let lower = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        Self {
            requests_per_minute: lower(self.requests_per_minute, other.requests_per_minute),
            input_tokens_per_minute: lower(
                self.input_tokens_per_minute,
                other.input_tokens_per_minute,
            ),
            output_tokens_per_minute: lower(
                self.output_tokens_per_minute,
                other.output_tokens_per_minute,
            ),
            concurrency: lower(self.concurrency, other.concurrency),
        }
    }
}

impl TenantKey {
    /// Whether it is let in at this moment.
    pub fn state(&self, now: Timestamp) -> KeyState {
        if self.disabled {
            KeyState::Disabled
        } else if self.expires.is_some_and(|expires| expires <= now) {
            KeyState::Expired
        } else if self.not_before.is_some_and(|begin| now < begin) {
            KeyState::Pending
        } else {
            KeyState::Valid
        }
    }
}

fn one(
    id: &TenantId,
    tenant: &Tenant,
    place: Place,
    resolved: &BTreeMap<TenantId, ResolvedTenant>,
    twins: &Twins<'_>,
) -> ResolvedTenant {
    let mut problems = TenantProblems::default();
    let above = above(id, tenant, place, resolved).unwrap_or_else(|problem| {
        problems.note(problem);
        None
    });
    // What is wrong with the spec is said of a Tenant too that hangs on nothing: all at once.
    let mut access = read::read(id, &tenant.spec, above, &mut problems);
    keys::refuse(id, &mut access.keys, twins, &mut problems);
    if let Some(above) = above {
        access.models = models::within(&access.models, &above.models, &mut problems);
    }
    access.models = models::reduced(access.models);
    let access = (!problems.refuse()).then_some(access);
    let accepted = access.as_ref().map_or(0, |access| access.keys.len());
    let refused_keys = tenant.spec.keys.len().saturating_sub(accepted);
    ResolvedTenant { access, problems, refused_keys }
}

/// The Tenant above this one, if there is one.
fn above<'a>(
    id: &TenantId,
    tenant: &Tenant,
    place: Place,
    resolved: &'a BTreeMap<TenantId, ResolvedTenant>,
) -> Result<Option<&'a TenantAccess>, TenantProblem> {
    let name = tenant.spec.parent.as_deref().unwrap_or_default();
    let wrong = |reason, what: String| Err(TenantProblem::new(reason, "spec.parent", what));
    let namespace = &id.namespace;
    match place {
        Place::Top => Ok(None),
        Place::Missing => wrong(
            Reason::TenantParentMissing,
            format!("is {name}, which does not exist in namespace {namespace}"),
        ),
        Place::Circle => wrong(
            Reason::TenantParentCycle,
            format!("is {name}, whose parents include this Tenant"),
        ),
        Place::Below => match resolved.get(&id.beside(name)).and_then(|one| one.access.as_ref()) {
            None => wrong(
                Reason::TenantParentRefused,
                format!("is {name}, which is refused; its own conditions say why"),
            ),
            Some(above) if above.depth >= MAX_DEPTH => wrong(
                Reason::TenantTooDeep,
                format!(
                    "is {name}, which has {} above it; the maximum is {MAX_DEPTH} in all",
                    above.depth - 1
                ),
            ),
            Some(above) => Ok(Some(above)),
        },
    }
}
