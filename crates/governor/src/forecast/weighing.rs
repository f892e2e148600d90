//! How many replicas are worth their price.

use super::Outlook;
use crate::fleet::Fleet;
use std::collections::BTreeMap;

/// One outlook weighed against the price of replicas. What so many of them miss is worked out once, whatever they cost:
/// who asks what is worth buying asks what is worth keeping too, and both searches look at the same few numbers.
pub(crate) struct Weighing<'a> {
    outlook: &'a Outlook,
    fleet: &'a Fleet,
    misses: BTreeMap<u32, f64>,
}

impl<'a> Weighing<'a> {
    pub(crate) const fn of(outlook: &'a Outlook, fleet: &'a Fleet) -> Self {
        Self { outlook, fleet, misses: BTreeMap::new() }
    }

    /// The number of replicas for which `price * replicas + worth * misses` is least.
    ///
    /// The search goes from `from` while it gets better: the last answer is close to the next. It
    /// begins no lower than the level of the work: far below it everything misses, one replica
    /// more or less changes nothing, and the sum would lead down to none. With a queue the sum has
    /// more than one valley, so a few starts are tried.
    pub(crate) fn best(&mut self, price: f64, worth: f64, from: u32) -> u32 {
        let least = (self.fleet.replicas(self.outlook.level).floor() as u32).max(1);
        let mut n = from.max(least);
        let waits = self.outlook.queue > 0.0;
        if !waits {
            n = n.max(self.at(1.05));
        }
        let mut lowest = self.cost(n, price, worth);
        if waits {
            for times in [1.05, 1.25, 1.6, 2.2] {
                let start = self.at(times);
                let next = self.cost(start, price, worth);
                if next < lowest {
                    (n, lowest) = (start, next);
                }
            }
        }
        let mut moved = false;
        while n < MOST {
            let next = self.cost(n + 1, price, worth);
            if next >= lowest {
                break;
            }
            (n, lowest, moved) = (n + 1, next, true);
        }
        while !moved && n > least {
            let next = self.cost(n - 1, price, worth);
            if next > lowest {
                break;
            }
            (n, lowest) = (n - 1, next);
        }
        n
    }

    /// As many as carry so many times the level of the work.
    fn at(&self, times: f64) -> u32 {
        (self.fleet.replicas(times * self.outlook.level).ceil() as u32).max(1)
    }

    fn cost(&mut self, n: u32, price: f64, worth: f64) -> f64 {
        let carries = || self.fleet.carries(f64::from(n));
        let misses = self.misses.entry(n).or_insert_with(|| self.outlook.misses(carries()));
        price * f64::from(n) + worth * *misses
    }
}

/// A model with more replicas than this is searched no further in one decision.
const MOST: u32 = 100_000;
