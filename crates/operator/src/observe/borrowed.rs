//! What training runs hold of pools that they borrow of, as the governor sees it. Pure.
//!
//! A run that borrows and acts is a part of the picture, so that what its pods hold is not in use by others. One that does
//! not act is shown what it would get.

use super::facts::{Facts, PodFacts};
use super::jobs::{GangKey, gang_of};
use super::loans::Borrower;
use flyball_core::ids::RunId;
use flyball_core::snapshot::{Observed, TrainingRun};
use flyball_core::units::{Gpus, Micros, Timestamp};
use flyball_governor::policy::Lending;
use flyball_resources::Pool;
use flyball_resources::pool::LendingSpec;
use kube::ResourceExt as _;
use std::collections::BTreeMap;

impl Facts {
    /// Runs that borrow of pools that lend, by name.
    pub(crate) fn borrowers(&self) -> impl Iterator<Item = (&RunId, &Borrower, &Pool)> {
        self.loans.borrowers.iter().filter_map(|(id, borrower)| {
            let pool = self.pools.iter().find(|pool| pool.name_any() == borrower.pool.as_str())?;
            pool.spec.lending.is_some().then_some((id, borrower, &**pool))
        })
    }

    /// Accelerators that a run holds of a pool.
    pub(crate) fn held_by(&self, borrower: &Borrower, pool: &Pool) -> Gpus {
        let pods = self.pods.get(&borrower.gang.0).into_iter().flatten();
        let held = pods.filter(|pod| {
            let node = pod.node.as_ref().and_then(|node| self.nodes.get(node));
            !pod.over && node.is_some_and(|node| node.gpus_of(&pool.spec).is_some())
        });
        let of_run = held.filter(|pod| is_of(pod, &borrower.gang));
        let asks = |pod: &PodFacts| pod.asks.get(&pool.spec.resource_name).copied().unwrap_or(0);
        Gpus::new(of_run.map(asks).fold(0, u32::saturating_add))
    }
}

/// Whether a pod belongs to a workload that trains.
pub(super) fn is_of(pod: &PodFacts, gang: &GangKey) -> bool {
    gang_of(&gang.0, &pod.labels).as_ref() == Some(gang)
}

/// Runs as the governor decides about them.
pub(super) fn runs(facts: &Facts, now: Timestamp) -> BTreeMap<RunId, TrainingRun> {
    let run = |(id, borrower, pool): (&RunId, &Borrower, &Pool)| {
        let held = facts.held_by(borrower, pool);
        // A gang has all of its machines or none: those that are missing come, and those that are left go.
        let gpus = match (borrower.acts, borrower.stopped || held.is_zero()) {
            (false, _) => held,
            (true, true) => Gpus::ZERO,
            (true, false) => borrower.gpus,
        };
        let last_saved = borrower
            .last_saved
            .map_or(Observed::Missing, |value| Observed::Fresh { value, at: now });
        let run = TrainingRun {
            pool: borrower.pool.clone(),
            acts: borrower.acts,
            gpus,
            least: borrower.gpus,
            most: borrower.gpus,
            value: borrower.value,
            deadline: borrower.deadline,
            last_saved,
        };
        (id.clone(), run)
    };
    facts.borrowers().map(run).collect()
}

/// What a pool's owner lends.
pub(super) fn lending(spec: Option<&LendingSpec>) -> Lending {
    let Some(spec) = spec else { return Lending { on: false, ..Lending::default() } };
    Lending {
        on: true,
        keep_free: Gpus::new(u32::try_from(spec.keep_free).unwrap_or(0)),
        settle: Micros::from_seconds(u64::try_from(spec.settle_seconds).unwrap_or(0)),
    }
}
