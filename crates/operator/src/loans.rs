//! Between the loop over models and the loop over training runs: who would borrow, and what is lent to whom.
//!
//! Both write what they know and read what the other wrote. What is old is as good as nothing: then nothing is given and
//! nothing taken back.

use crate::observe::{Borrower, LoanFacts, TakeBacks};
use flyball_core::decision::RunDecision;
use flyball_core::ids::{PoolId, RunId};
use flyball_core::units::{Gpus, Micros, Timestamp};
use flyball_resources::Pool;
use kube::ResourceExt as _;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What was written longer ago is not followed.
const CURRENT: Micros = Micros::from_minutes(1);

/// What is decided about one run that borrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoanOrder {
    /// What it should have.
    pub gpus: Gpus,
    /// Since when it should have anything, or nothing.
    pub since: Timestamp,
    /// Within which time all that is lent was promised back, then.
    pub promise: Micros,
}

/// What the two loops tell each other.
#[derive(Debug, Default)]
pub struct LoanBoard {
    shared: Mutex<Shared>,
    ordered: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Shared {
    borrowers: BTreeMap<RunId, Borrower>,
    offered_at: Timestamp,
    orders: BTreeMap<RunId, LoanOrder>,
    decided_at: Timestamp,
    take_backs: BTreeMap<PoolId, TakeBacks>,
}

impl LoanBoard {
    /// Says who borrows or would.
    pub fn offer(&self, borrowers: BTreeMap<RunId, Borrower>, now: Timestamp) {
        let mut shared = self.shared();
        (shared.borrowers, shared.offered_at) = (borrowers, now);
    }

    /// Says how long a take-back took.
    pub fn took(&self, pool: &PoolId, took: Micros, promised: Micros) {
        self.shared().take_backs.entry(pool.clone()).or_default().add(took, promised);
    }

    /// What is known of loans. Of take-backs before this operator led, the statuses know.
    pub fn facts(&self, pools: &[Arc<Pool>], now: Timestamp) -> LoanFacts {
        let mut shared = self.shared();
        let lending = pools.iter().filter(|pool| pool.spec.lending.is_some());
        let lending: BTreeMap<PoolId, &Arc<Pool>> =
            lending.filter_map(|pool| Some((PoolId::new(&pool.name_any()).ok()?, pool))).collect();
        shared.take_backs.retain(|id, _| lending.contains_key(id));
        for (id, pool) in lending {
            let known = || {
                let status = pool.status.as_ref();
                TakeBacks::resume(status.and_then(|status| status.lending.as_ref()))
            };
            shared.take_backs.entry(id).or_insert_with(known);
        }
        let current = is_current(shared.offered_at, now);
        LoanFacts {
            borrowers: if current { shared.borrowers.clone() } else { BTreeMap::new() },
            take_backs: shared.take_backs.clone(),
        }
    }

    /// Says what was decided.
    pub fn decide(&self, runs: &[RunDecision], facts: &LoanFacts, now: Timestamp) {
        let mut shared = self.shared();
        let before = std::mem::take(&mut shared.orders);
        let mut turned = false;
        for run in runs {
            let Some(borrower) = facts.borrowers.get(&run.run) else { continue };
            let promise = facts.promise(&borrower.pool).unwrap_or_else(|| borrower.take_back());
            let new = LoanOrder { gpus: run.gpus, since: now, promise };
            let same = before.get(&run.run).filter(|old| old.gpus.is_zero() == new.gpus.is_zero());
            turned |= same.is_none();
            let order = same.map_or(new, |old| LoanOrder { gpus: run.gpus, ..*old });
            shared.orders.insert(run.run.clone(), order);
        }
        shared.decided_at = now;
        drop(shared);
        if turned {
            self.ordered.notify_one();
        }
    }

    /// What was decided lately.
    pub fn orders(&self, now: Timestamp) -> BTreeMap<RunId, LoanOrder> {
        let shared = self.shared();
        let current = is_current(shared.decided_at, now);
        if current { shared.orders.clone() } else { BTreeMap::new() }
    }

    /// Waits until something else is decided.
    pub async fn ordered(&self) {
        self.ordered.notified().await;
    }

    /// Forgets everything, because another operator leads: its word stands in the statuses.
    pub fn stand_by(&self) {
        *self.shared() = Shared::default();
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // Each change is whole before the lock is given back.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_current(at: Timestamp, now: Timestamp) -> bool {
    // What is from the future was written a moment ago.
    now.since(at).is_none_or(|age| age <= CURRENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::JobKind;
    use flyball_core::decision::RunAction;
    use flyball_core::reason::Reason;
    use serde_json::{Value, json};

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
    }

    fn borrower(save: Option<u64>) -> Borrower {
        Borrower {
            gang: ("ml".to_owned(), JobKind::JobSet, "ft".to_owned()),
            pool: "h100".parse().unwrap(),
            gpus: Gpus::new(2),
            acts: true,
            stopped: false,
            deadline: None,
            last_saved: None,
            save: save.map(Micros::from_seconds),
            grace: Micros::from_seconds(30),
            thrown_away: Micros::ZERO,
            hourly_micros: None,
            value: None,
        }
    }

    fn pools(lending: &Value) -> Vec<Arc<Pool>> {
        let pool = json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool", "metadata": { "name": "h100" },
            "spec": { "accelerator": "h100-sxm-80gb", "lending": { "keepFree": 1 } },
            "status": { "lending": lending },
        });
        vec![Arc::new(serde_json::from_value(pool).unwrap())]
    }

    fn decided(gpus: u32) -> Vec<RunDecision> {
        let (run, gpus) = ("ml/ft".parse().unwrap(), Gpus::new(gpus));
        vec![RunDecision { run, gpus, reason: Reason::Steady, action: RunAction::Hold }]
    }

    #[test]
    fn an_order_has_the_time_at_which_it_turned_and_is_forgotten_when_it_is_old() {
        let board = LoanBoard::default();
        let id: RunId = "ml/ft".parse().unwrap();
        board.offer([(id.clone(), borrower(None))].into(), at(0));
        let facts = board.facts(&pools(&json!({ "lentGpus": 0 })), at(10));
        for (now, gpus) in [(10, 2), (20, 2), (30, 0), (40, 0)] {
            board.decide(&decided(gpus), &facts, at(now));
        }
        let order = board.orders(at(100))[&id];
        assert_eq!((order.gpus, order.since), (Gpus::ZERO, at(30)));
        assert_eq!(order.promise, Micros::from_seconds(45));
        assert!(board.orders(at(101)).is_empty());
        // Nor is a run believed that nobody has seen lately.
        assert_eq!(board.facts(&pools(&Value::Null), at(61)).borrowers.len(), 0);
    }

    #[test]
    fn a_promise_is_the_longest_of_the_last_take_backs_and_what_the_runs_say_at_least() {
        let board = LoanBoard::default();
        let pool: PoolId = "h100".parse().unwrap();
        let before =
            json!({ "lentGpus": 0, "takeBacks": 40, "lateTakeBacks": 1, "lastSeconds": [80, 20] });
        assert_eq!(board.facts(&pools(&before), at(0)).promise(&pool), None, "nobody borrows");
        board.offer([("ml/ft".parse().unwrap(), borrower(Some(40)))].into(), at(0));
        let promised =
            |board: &LoanBoard| board.facts(&pools(&before), at(0)).promise(&pool).unwrap();
        // Two saves and ten seconds, a grace of thirty, and fifteen; 80 and a quarter are less.
        assert_eq!(promised(&board), Micros::from_seconds(135));
        board.took(&pool, Micros::from_seconds(120), Micros::from_seconds(110));
        assert_eq!(promised(&board), Micros::from_seconds(150));
        let known = board.facts(&pools(&before), at(0)).take_backs[&pool].clone();
        assert_eq!((known.count, known.late, known.seconds), (41, 2, vec![80, 20, 120]));
        for _ in 0..32 {
            board.took(&pool, Micros::from_seconds(1), Micros::from_seconds(110));
        }
        assert_eq!(promised(&board), Micros::from_seconds(135), "long ago");
    }
}
