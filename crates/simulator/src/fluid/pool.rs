//! The accelerators that models share, counted in slots: what one replica needs.
//!
//! A slot is bought, used, idle, lent to training, or given back. A replica that finds an idle slot
//! starts in the time of a swap; one that does not must wait for a slot to be bought.

use super::loans::{FluidRun, Loans};
use crate::cold_start::ColdStart;
use crate::seconds::Seconds;
use flyball_core::decision::Decision;

/// How accelerators are shared. Replicas of all models need equally many.
#[derive(Clone, Debug, PartialEq)]
pub struct FluidPool {
    /// Time until a replica serves on a slot that is there and idle.
    pub swap: Seconds,
    /// How long a slot stays idle before it is given back, where no policy says how many to hold.
    /// The cluster autoscaler's default is 10 minutes.
    pub idle: Seconds,
    /// So many slots, no more and no fewer.
    pub fixed: Option<u32>,
    /// Training that may borrow idle slots of a fixed pool.
    pub training: Option<Training>,
}

/// Training that borrows.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// From the order to give a slot back until it is idle: a checkpoint and the end of the pods.
    pub take_back: Seconds,
    /// Runs that borrow whole; if none, as many slots as there are, one by one.
    pub runs: Vec<FluidRun>,
}

/// The slots of a replay.
#[derive(Clone, Debug)]
pub(super) struct Accelerators {
    pool: Option<FluidPool>,
    used: u32,
    /// Since when each idle slot is idle; oldest first.
    idle: Vec<Seconds>,
    /// When each slot that was bought ahead, or is coming back from training, will be idle.
    coming: Vec<Seconds>,
    lent: u32,
    /// Runs that borrow whole.
    loans: Loans,
    /// How many slots a policy says to hold.
    hold: Option<u32>,
}

impl Accelerators {
    pub(super) fn new(pool: Option<&FluidPool>, used: u32) -> Self {
        let fixed = pool.and_then(|pool| pool.fixed).unwrap_or(0);
        let idle = vec![Seconds::ZERO; fixed.saturating_sub(used) as usize];
        let runs = pool.and_then(|pool| pool.training.as_ref()).map(|one| one.runs.as_slice());
        let loans = Loans::new(runs.unwrap_or_default());
        Self { pool: pool.cloned(), used, idle, coming: Vec::new(), lent: 0, loans, hold: None }
    }

    /// Slots that exist or are coming, whoever has them.
    pub(super) fn total(&self) -> u32 {
        self.used + self.idle.len() as u32 + self.coming.len() as u32 + self.lent
    }

    /// Runs that borrow whole.
    pub(super) const fn loans(&self) -> &Loans {
        &self.loans
    }

    /// Lets runs train.
    pub(super) fn train(&mut self, now: Seconds, step: Seconds) {
        self.loans.train(now, step);
    }

    /// Slots that training has.
    pub(super) const fn lent(&self) -> u32 {
        self.lent
    }

    /// Lets bought slots arrive and idle ones go.
    pub(super) fn settle(&mut self, now: Seconds) {
        let Some(pool) = &self.pool else { return };
        let arrived = self.coming.iter().filter(|at| **at <= now).count();
        if arrived > 0 {
            self.coming.retain(|at| *at > now);
            self.idle.extend(std::iter::repeat_n(now, arrived));
        }
        if pool.fixed.is_none() && self.hold.is_none() {
            self.idle.retain(|since| now - *since < pool.idle);
        }
    }

    /// Takes a slot for a replica: how long until it serves, or nothing if there is no slot.
    pub(super) fn acquire(
        &mut self,
        now: Seconds,
        buy: impl FnOnce() -> Seconds,
    ) -> Option<Seconds> {
        let Some(pool) = &self.pool else {
            self.used += 1;
            return Some(buy());
        };
        let delay = if self.idle.pop().is_some() {
            pool.swap
        } else if let Some(place) = earliest(&self.coming) {
            self.coming.remove(place) - now + pool.swap
        } else if let (Some(training), true) =
            (&pool.training, self.lent > 0 && !self.loans.are_whole())
        {
            self.lent -= 1;
            training.take_back + pool.swap
        } else if pool.fixed.is_some() {
            return None;
        } else {
            buy().max(pool.swap)
        };
        self.used += 1;
        Some(delay)
    }

    /// Gives a slot back.
    pub(super) fn release(&mut self, now: Seconds) {
        self.used -= 1;
        if self.pool.is_some() {
            self.idle.push(now);
        }
    }

    /// Does what a decision says about training and about slots to hold.
    pub(super) fn follow(&mut self, decision: &Decision, now: Seconds, cold: &ColdStart) {
        let Some(pool) = self.pool.clone() else { return };
        if let Some(training) = pool.training.as_ref().filter(|_| self.loans.are_whole()) {
            let idle = self.idle.len() as u32;
            let (given, back) = self.loans.follow(decision, idle, now);
            self.idle.truncate((idle - given) as usize);
            self.lent = self.lent + given - back;
            self.coming.extend(std::iter::repeat_n(now + training.take_back, back as usize));
        } else if let Some(training) = &pool.training {
            let desired: u32 = decision.runs.iter().map(|run| run.gpus.get()).sum();
            while self.lent < desired && self.idle.pop().is_some() {
                self.lent += 1;
            }
            while self.lent > desired {
                self.lent -= 1;
                self.coming.push(now + training.take_back);
            }
        }
        if let (Some(hold), None) = (held(decision), pool.fixed) {
            self.hold = Some(hold);
            for _ in self.total()..hold {
                self.coming.push(now + (cold.quantile(0.5) - pool.swap).max(Seconds::ZERO));
            }
            while self.total() > hold && self.idle.pop().is_some() {}
        }
    }

    /// Slots that are paid for, given those that replicas hold, and slots that are lent.
    pub(super) fn paid(&self, held: u32) -> (f64, f64) {
        let slots = if self.pool.is_some() { self.total() } else { held };
        (f64::from(slots), f64::from(self.lent))
    }
}

/// How many slots a decision says to hold.
fn held(decision: &Decision) -> Option<u32> {
    decision.pools.first().map(|pool| pool.hold.get())
}

fn earliest(coming: &[Seconds]) -> Option<usize> {
    let soonest = coming.iter().enumerate().min_by_key(|(_, at)| **at)?;
    Some(soonest.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(fixed: Option<u32>, training: bool) -> FluidPool {
        let training = training.then_some(Training { take_back: Seconds(60.0), runs: Vec::new() });
        FluidPool { swap: Seconds(5.0), idle: Seconds(600.0), fixed, training }
    }

    #[test]
    fn an_idle_slot_is_used_before_one_is_bought_and_is_given_back_when_it_times_out() {
        let mut slots = Accelerators::new(Some(&pool(None, false)), 1);
        slots.release(Seconds(0.0));
        slots.settle(Seconds(599.0));
        assert_eq!(slots.acquire(Seconds(599.0), || Seconds(100.0)), Some(Seconds(5.0)));
        assert_eq!(slots.acquire(Seconds(599.0), || Seconds(100.0)), Some(Seconds(100.0)));
        slots.release(Seconds(600.0));
        slots.settle(Seconds(1200.0));
        assert_eq!(slots.total(), 1);
    }

    #[test]
    fn a_fixed_pool_lends_and_takes_back_and_never_grows() {
        let mut slots = Accelerators::new(Some(&pool(Some(3), true)), 1);
        slots.lent = 2;
        slots.idle.clear();
        assert_eq!(slots.acquire(Seconds(0.0), || Seconds(1.0)), Some(Seconds(65.0)));
        assert_eq!(slots.acquire(Seconds(0.0), || Seconds(1.0)), Some(Seconds(65.0)));
        assert_eq!(slots.acquire(Seconds(0.0), || Seconds(1.0)), None);
        assert_eq!(slots.total(), 3);
    }

    #[test]
    fn without_a_pool_each_start_is_bought() {
        let mut slots = Accelerators::new(None, 0);
        assert_eq!(slots.acquire(Seconds(0.0), || Seconds(7.0)), Some(Seconds(7.0)));
        slots.release(Seconds(1.0));
        assert_eq!(slots.acquire(Seconds(1.0), || Seconds(7.0)), Some(Seconds(7.0)));
        assert_eq!(slots.paid(1), (1.0, 0.0));
    }
}
