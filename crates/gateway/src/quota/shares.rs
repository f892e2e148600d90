//! The shares of a gateway, each at a place that does not change: requests find theirs without looking for it.

use super::share::Share;
use flyball_quota::RateKey;
use std::collections::BTreeMap;

/// Limits at most: Tenants of a cluster, with four each. Nothing is forgotten while the process lives, because the operator
/// counts on it; so there is an end to what is new.
const MOST: usize = 50_000;

/// Where a share is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShareSlot(u32);

/// Shares by place and by limit.
#[derive(Debug, Default)]
pub(super) struct Shares {
    slots: BTreeMap<RateKey, ShareSlot>,
    all: Vec<(RateKey, Share)>,
}

impl Shares {
    /// The place of a limit's share; `None` if there are too many.
    pub(super) fn slot(&mut self, key: &RateKey) -> Option<ShareSlot> {
        if let Some(slot) = self.slots.get(key) {
            return Some(*slot);
        }
        let slot = ShareSlot(u32::try_from(self.all.len()).ok()?);
        if self.all.len() >= MOST {
            return None;
        }
        self.slots.insert(key.clone(), slot);
        self.all.push((key.clone(), Share::default()));
        Some(slot)
    }

    /// The share at this place, and of which limit it is.
    pub(super) fn at(&mut self, slot: ShareSlot) -> (&RateKey, &mut Share) {
        let (key, share) = &mut self.all[slot.0 as usize];
        (key, share)
    }

    /// All that anything was ever done with.
    pub(super) fn used(&mut self) -> impl Iterator<Item = (&RateKey, &mut Share)> {
        let used = self.all.iter_mut().filter(|(_, share)| share.is_used());
        used.map(|(key, share)| (&*key, share))
    }
}
