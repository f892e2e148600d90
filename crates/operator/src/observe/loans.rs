//! Who borrows of pools, and how soon it is back. Pure.

use super::jobs::GangKey;
use flyball_core::ids::{PoolId, RunId};
use flyball_core::units::{Gpus, Micros, Price, Timestamp};
use flyball_resources::pool::LendingStatus;
use std::collections::BTreeMap;

/// Take-backs of a pool that are remembered.
const REMEMBERED: usize = 32;

/// From a decision until a run is asked to save or its Workload is stopped, from there until its pods are told to end, and
/// until it is seen that they are gone.
const AROUND: Micros = Micros::from_seconds(15);

/// A save that was asked for takes twice its time at most, and so much more until the run's next step.
const SAVE_EXTRA: Micros = Micros::from_seconds(10);

/// What of a promise is left for a save, where the pods' grace is this.
pub(crate) fn time_to_save(promise: Micros, grace: Micros) -> Micros {
    promise.saturating_sub(grace).saturating_sub(AROUND)
}

/// A run that borrows, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Borrower {
    /// Whose pods are its.
    pub gang: GangKey,
    /// What it borrows of.
    pub pool: PoolId,
    /// What it needs: all of it or nothing.
    pub gpus: Gpus,
    /// Whether it can be started and stopped.
    pub acts: bool,
    /// Whether it was told to stand still.
    pub stopped: bool,
    /// When it must have ended.
    pub deadline: Option<Timestamp>,
    /// When it last saved.
    pub last_saved: Option<Timestamp>,
    /// The time of a save that it can be asked for.
    pub save: Option<Micros>,
    /// The time that its pods get to end.
    pub grace: Micros,
    /// Work since the last save, and a restart: what taking it back now would throw away.
    pub thrown_away: Micros,
    /// What its machines cost for an hour, in millionths of the pool's currency, where that is known.
    pub hourly_micros: Option<i64>,
    /// What an accelerator is worth to it for an hour, if its owner says so.
    pub value: Option<Price>,
}

impl Borrower {
    /// How long it takes at most to get back what it has, as far as its own times say.
    pub fn take_back(&self) -> Micros {
        let save = self.save.map(|save| save.saturating_mul(2).saturating_add(SAVE_EXTRA));
        save.unwrap_or(Micros::ZERO).saturating_add(self.grace).saturating_add(AROUND)
    }
}

/// Take-backs of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakeBacks {
    /// How long the last took, in seconds, newest last.
    pub seconds: Vec<i64>,
    /// All of them so far.
    pub count: i64,
    /// Those that took longer than was promised.
    pub late: i64,
}

impl TakeBacks {
    /// Goes on from a status.
    pub fn resume(status: Option<&LendingStatus>) -> Self {
        status.map_or_else(Self::default, |status| Self {
            seconds: status.last_seconds.clone(),
            count: status.take_backs,
            late: status.late_take_backs,
        })
    }

    /// Counts one.
    pub fn add(&mut self, took: Micros, promised: Micros) {
        self.count += 1;
        self.late += i64::from(took > promised);
        self.seconds.push(i64::try_from(took.get().div_ceil(1_000_000)).unwrap_or(i64::MAX));
        let surplus = self.seconds.len().saturating_sub(REMEMBERED);
        self.seconds.drain(..surplus);
    }

    /// The longest of the last, and a quarter more.
    fn bound(&self) -> Micros {
        let longest = self.seconds.iter().copied().max().unwrap_or(0);
        let longest = u64::try_from(longest).unwrap_or(0);
        Micros::from_seconds(longest.saturating_add(longest.div_ceil(4)))
    }
}

/// What is known of loans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoanFacts {
    /// Runs that borrow, or would.
    pub borrowers: BTreeMap<RunId, Borrower>,
    /// How long it took to get loans of each pool back.
    pub take_backs: BTreeMap<PoolId, TakeBacks>,
}

impl LoanFacts {
    /// Within which time all that is lent of a pool is back. Absent while nobody borrows of it.
    pub fn promise(&self, pool: &PoolId) -> Option<Micros> {
        let borrow = self.borrowers.values().filter(|one| one.acts && one.pool == *pool);
        let needed = borrow.map(Borrower::take_back).max()?;
        let measured = self.take_backs.get(pool).map_or(Micros::ZERO, TakeBacks::bound);
        Some(needed.max(measured))
    }
}
