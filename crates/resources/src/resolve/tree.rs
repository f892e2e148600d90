//! Which Tenant stands above which.

use super::TenantId;
use crate::Tenant;
use std::collections::{BTreeMap, BTreeSet};

/// Where a Tenant stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It has no parent.
    Top,
    /// Its parent comes before it.
    Below,
    /// Its parent is not there.
    Missing,
    /// It is above itself.
    Circle,
}

/// Every Tenant once, none before its parent, but for those in a circle.
pub(super) fn places(all: &BTreeMap<TenantId, &Tenant>) -> Vec<(TenantId, Place)> {
    let mut order = Vec::with_capacity(all.len());
    let mut below: BTreeMap<TenantId, Vec<TenantId>> = BTreeMap::new();
    for (id, tenant) in all {
        match parent(id, tenant) {
            None => order.push((id.clone(), Place::Top)),
            Some(parent) if all.contains_key(&parent) => {
                below.entry(parent).or_default().push(id.clone());
            }
            Some(_) => order.push((id.clone(), Place::Missing)),
        }
    }
    descend(&mut order, &mut below, 0);
    // Whoever is left stands in a circle or below one.
    let circles = circles(all, &below);
    for children in below.values_mut() {
        children.retain(|child| !circles.contains(child));
    }
    let first = order.len();
    order.extend(circles.into_iter().map(|id| (id, Place::Circle)));
    descend(&mut order, &mut below, first);
    order
}

fn parent(id: &TenantId, tenant: &Tenant) -> Option<TenantId> {
    tenant.spec.parent.as_deref().map(|name| id.beside(name))
}

/// Adds everybody below those from `first` on.
fn descend(
    order: &mut Vec<(TenantId, Place)>,
    below: &mut BTreeMap<TenantId, Vec<TenantId>>,
    first: usize,
) {
    let mut next = first;
    while next < order.len() {
        let children = below.remove(&order[next].0).unwrap_or_default();
        order.extend(children.into_iter().map(|child| (child, Place::Below)));
        next += 1;
    }
}

/// Those that stand above themselves: what remains once whoever has nobody below is taken away, again and again.
fn circles(
    all: &BTreeMap<TenantId, &Tenant>,
    below: &BTreeMap<TenantId, Vec<TenantId>>,
) -> BTreeSet<TenantId> {
    let children = |id: &TenantId| below.get(id).map_or(0, Vec::len);
    let mut left: BTreeMap<TenantId, usize> =
        below.values().flatten().map(|id| (id.clone(), children(id))).collect();
    let mut ends: Vec<TenantId> =
        left.iter().filter(|(_, count)| **count == 0).map(|(id, _)| id.clone()).collect();
    while let Some(end) = ends.pop() {
        left.remove(&end);
        let Some(parent) = all.get(&end).and_then(|tenant| parent(&end, tenant)) else { continue };
        if let Some(count) = left.get_mut(&parent) {
            *count -= 1;
            if *count == 0 {
                ends.push(parent);
            }
        }
    }
    left.into_keys().collect()
}
