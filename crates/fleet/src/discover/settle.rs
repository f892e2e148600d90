//! What to believe: the new findings, or for now still the old ones.

use crate::fleet::{FoundEngines, Listing};
use std::collections::{BTreeMap, BTreeSet};

/// Engines in a listing. Three times the 10^4 that a gateway is built for.
pub(super) const ENGINES: usize = 32_768;

/// A listing, and what it leaves open.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) listing: Listing,
    /// Models that seem to have lost all their engines, and keep the old ones until that was
    /// confirmed.
    pub(super) doubted: BTreeSet<String>,
    /// More engines than may be: the old listing stays.
    pub(super) too_many: bool,
}

/// The listing after `before`. A model whose findings are None was not listed yet and keeps what it
/// had. A model that lost every engine at once keeps the old ones too, until it is in `confirmed`:
/// a broken controller or an emptied API server must not stop engines that work. Engines that were
/// all draining may go without a question, because nothing new went to them anyway.
pub(super) fn settle(
    before: &Listing,
    findings: BTreeMap<String, Option<Vec<FoundEngines>>>,
    confirmed: &BTreeSet<String>,
) -> Settled {
    let mut settled = Settled::default();
    for (model, found) in findings {
        let old = before.models.get(&model);
        let had_open = old.is_some_and(|old| old.iter().any(|engine| !engine.draining));
        let believed = match found {
            Some(found) if found.is_empty() && had_open && !confirmed.contains(&model) => {
                settled.doubted.insert(model.clone());
                old.cloned()
            }
            Some(found) => Some(found),
            None => old.cloned(),
        };
        if let Some(believed) = believed {
            settled.listing.models.insert(model, believed);
        }
    }
    if settled.listing.models.values().map(Vec::len).sum::<usize>() > ENGINES {
        settled.too_many = true;
        settled.listing = before.clone();
    }
    settled
}
