//! What became of each Tenant, for people. Pure.

use flyball_resources::resolve::{ResolvedTenant, TenantId};
use serde::Serialize;
use std::fmt;

/// Tenants that are said to have a problem; of more there is the count.
const NAMED: usize = 100;

/// What became of all Tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantReport {
    /// Tenants whose keys are accepted.
    pub accepted: usize,
    /// Tenants that let nobody in.
    pub refused: usize,
    /// Keys that are accepted, whatever the time.
    pub keys: usize,
    /// Keys that are not accepted, whatever the time.
    pub refused_keys: usize,
    /// What is wrong with whom, at most 100, those that let nobody in first.
    pub troubles: Vec<TenantTrouble>,
    /// Tenants with a problem beyond those.
    pub more_troubles: usize,
}

/// What is wrong with one Tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantTrouble {
    /// Whether it lets somebody in all the same.
    pub accepted: bool,
    /// `namespace/name`.
    pub tenant: String,
    /// The reason, as its condition `Ready` has it.
    pub reason: String,
    /// What is wrong and what to do, at most 16 of them.
    pub problems: Vec<String>,
}

impl TenantReport {
    /// Takes in what became of one, and why its object cannot be used, if it cannot.
    pub(super) fn add(
        &mut self,
        id: &TenantId,
        resolved: &ResolvedTenant,
        unusable: Option<&'static str>,
    ) {
        let accepted = resolved.access.is_some();
        self.accepted += usize::from(accepted);
        self.refused += usize::from(!accepted);
        self.keys += resolved.access.as_ref().map_or(0, |access| access.keys.len());
        self.refused_keys += resolved.refused_keys;
        let listed = resolved.problems.first();
        let Some(first) = listed.first() else { return };
        let problems = match unusable {
            Some(why) => vec![why.to_owned()],
            None => listed.iter().map(ToString::to_string).collect(),
        };
        let reason = first.reason.name().to_owned();
        self.troubles.push(TenantTrouble { accepted, tenant: id.to_string(), reason, problems });
    }

    /// Whole: in order, and no longer than anybody reads.
    pub(super) fn end(mut self) -> Self {
        self.troubles.sort();
        self.more_troubles = self.troubles.len().saturating_sub(NAMED);
        self.troubles.truncate(NAMED);
        self
    }
}

impl fmt::Display for TenantTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.accepted { "is accepted in part" } else { "is refused" };
        write!(f, "Tenant {} {verdict}: {}", self.tenant, self.reason)
    }
}
