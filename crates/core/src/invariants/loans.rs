//! The rule about what training borrows. That loans fit into a pool is a rule about all that is reserved.

use super::change::{Change, Changes, RunChange, VariantChange};
use super::rules::Broken;
use crate::decision::Bound;
use crate::ids::PoolId;
use std::collections::BTreeSet;

pub(super) fn models_before_loans(changes: &Changes<'_>) -> Vec<Broken> {
    let growing = changes.runs.iter().filter(grows);
    let pools: BTreeSet<&PoolId> = growing.map(|change| &change.run.pool).collect();
    let broken = pools.into_iter().filter_map(|id| {
        let why = short(changes, id)?;
        let runs: Vec<_> = changes.loans(id).filter(grows).map(|one| one.id.to_string()).collect();
        // By the decisions about runs: no model is to blame.
        Some((Vec::new(), format!("pool {id}: more is lent to {}, and {why}", runs.join(", "))))
    });
    broken.collect()
}

fn grows(change: &&RunChange<'_>) -> bool {
    change.run.acts && change.after > change.before
}

/// Which model has to do with less, if one has.
fn short(changes: &Changes<'_>, pool: &PoolId) -> Option<String> {
    let lacks = |(model, variant): &(&Change<'_>, &VariantChange<'_>)| {
        let bound = model.decided.map(|decided| decided.bound);
        let room = matches!(bound, Some(Bound::Capacity | Bound::PoolLimit));
        model.model.acts() && room && variant.after < variant.unconstrained
    };
    let (model, variant) = changes.in_pool(pool).find(lacks)?;
    let VariantChange { after, unconstrained, .. } = variant;
    Some(format!("model {} has {after} of {unconstrained}", model.id))
}
