//! Whose line is next. Pure.
//!
//! The earliest deadline first, which keeps every deadline if any order does. Deadlines within the same quarter of an hour
//! count as one, and between those tenants take turns: nobody's thousand batches of nine o'clock go before another's one
//! of a minute later. What that costs: deadlines are kept wherever a schedule exists that ends a quarter of an hour earlier.

use std::collections::BTreeMap;

/// Deadlines as close as this are one.
pub(crate) const ALIKE_SECONDS: u64 = 15 * 60;

/// A batch with lines to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) id: &'a str,
    pub(crate) deadline: u64,
}

/// Turns that tenants had.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    taken: BTreeMap<String, u64>,
    /// Where whoever comes anew begins: nobody saves turns.
    clock: u64,
}

/// Tenants that are remembered; beyond, all begin anew.
const REMEMBERED: usize = 10_000;

impl Turns {
    /// Which of them is next, as an index.
    pub(crate) fn choose(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        let rank = |one: &Candidate<'_>| (one.deadline / ALIKE_SECONDS, self.at(one.tenant));
        let all = candidates.iter().enumerate();
        all.min_by_key(|(_, one)| (rank(one), one.deadline, one.id)).map(|(index, _)| index)
    }

    /// A line of this tenant was sent.
    pub(crate) fn take(&mut self, tenant: &str) {
        if self.taken.len() >= REMEMBERED {
            self.taken.clear();
        }
        self.clock = self.at(tenant);
        self.taken.insert(tenant.to_owned(), self.clock + 1);
    }

    fn at(&self, tenant: &str) -> u64 {
        self.taken.get(tenant).copied().unwrap_or_default().max(self.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(turns: &mut Turns, candidates: &[Candidate<'_>], lines: usize) -> Vec<usize> {
        let mut counts = vec![0; candidates.len()];
        for _ in 0..lines {
            let chosen = turns.choose(candidates).unwrap();
            turns.take(candidates[chosen].tenant);
            counts[chosen] += 1;
        }
        counts
    }

    #[test]
    fn the_earliest_deadline_goes_first_and_tenants_of_one_quarter_take_turns() {
        let one = |tenant, id, deadline| Candidate { tenant, id, deadline };
        let mut turns = Turns::default();
        assert_eq!(turns.choose(&[]), None);
        let late = one("c", "0", 10 * ALIKE_SECONDS);
        assert_eq!(play(&mut turns, &[late, one("a", "1", 5)], 10), [0, 10]);
        // Two batches of one tenant are one tenant's; who comes later has no turns saved.
        let three = [one("a", "1", 5), one("a", "2", 6), one("b", "3", 899)];
        assert_eq!(play(&mut turns, &three, 100), [50, 0, 50]);
        // Who is alone is not kept waiting.
        assert_eq!(play(&mut turns, &three[..1], 5), [5]);
    }
}
