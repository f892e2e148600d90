//! Keys that two have.

use super::{TenantId, TenantKey, TenantProblem, TenantProblems};
use crate::Tenant;
use flyball_core::reason::Reason;
use std::collections::BTreeMap;

/// A key: whose, and its name there.
type Owner<'a> = (&'a TenantId, &'a str);

/// For each key that shares something with others: what, and one of the others.
#[derive(Debug)]
pub(super) struct Twins<'a>(BTreeMap<Owner<'a>, (&'static str, Owner<'a>)>);

/// Finds them, also among keys that are disabled or whose time has passed: what was revoked here must not come back
/// there.
pub(super) fn twins<'a>(all: &'a BTreeMap<TenantId, &'a Tenant>) -> Twins<'a> {
    let mut ids: BTreeMap<&str, Vec<Owner<'a>>> = BTreeMap::new();
    let mut hashes: BTreeMap<&str, Vec<Owner<'a>>> = BTreeMap::new();
    for (id, tenant) in all {
        for key in &tenant.spec.keys {
            let owner = (id, key.name.as_str());
            ids.entry(&key.id).or_default().push(owner);
            hashes.entry(&key.sha256).or_default().push(owner);
        }
    }
    let mut twins = BTreeMap::new();
    for (field, groups) in [("id", ids), ("sha256", hashes)] {
        for group in groups.into_values().filter(|group| group.len() > 1) {
            // One other for each is enough to say, however many there are.
            for (index, owner) in group.iter().enumerate() {
                let other = group[usize::from(index == 0)];
                twins.entry(*owner).or_insert((field, other));
            }
        }
    }
    Twins(twins)
}

/// Takes away those that two have.
pub(super) fn refuse(
    id: &TenantId,
    keys: &mut Vec<TenantKey>,
    twins: &Twins<'_>,
    problems: &mut TenantProblems,
) {
    keys.retain(|key| {
        let Some((field, other)) = twins.0.get(&(id, key.name.as_str())) else { return true };
        let what = format!(
            "is also that of {}; neither is accepted: create a new key",
            owner_name(id, other)
        );
        let field = format!("spec.keys[{}].{field}", key.name);
        problems.note(TenantProblem::new(Reason::TenantKeyDuplicate, field, what));
        false
    });
}

/// Who else has it. Names of another namespace are none of this one's business.
fn owner_name(id: &TenantId, (other, key): &Owner<'_>) -> String {
    if *other == id {
        format!("the key {key}")
    } else if other.namespace == id.namespace {
        format!("the key {key} of Tenant {}", other.name)
    } else {
        "a key in another namespace".to_owned()
    }
}
