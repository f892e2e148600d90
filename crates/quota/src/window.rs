//! What was used within the last minute.

use flyball_core::units::Micros;
use std::collections::VecDeque;

/// Rates are per minute.
pub(crate) const MINUTE: Micros = Micros::from_minutes(1);

/// Uses within so short a time are one: they count until the last of them is a minute old. So a limit is used to
/// 60 / 60.25 at least, and a window takes at most 242 entries.
const GRAIN: Micros = Micros::from_millis(250);

/// Uses of the last minute, by a clock that never goes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindow {
    /// When each grain ends, and what was used in it.
    grains: VecDeque<(Micros, u64)>,
    sum: u64,
}

impl SlidingWindow {
    /// Counts a use.
    pub fn add(&mut self, amount: u64, now: Micros) {
        self.forget(now);
        self.sum = self.sum.saturating_add(amount);
        match self.grains.back_mut() {
            Some((end, used)) if now < *end => *used = used.saturating_add(amount),
            _ => self.grains.push_back((now.saturating_add(GRAIN), amount)),
        }
    }

    /// Takes back a part of what was used at this moment: less was needed than was counted. If that is more than a minute
    /// ago, nothing: what others have used since stays used.
    pub fn take_back(&mut self, amount: u64, at: Micros) {
        let place = self.grains.partition_point(|(end, _)| *end <= at);
        let Some((end, used)) = self.grains.get_mut(place) else { return };
        if *end <= at.saturating_add(GRAIN) {
            let part = amount.min(*used);
            *used -= part;
            self.sum -= part;
        }
    }

    /// What was used within the last minute.
    pub fn used(&mut self, now: Micros) -> u64 {
        self.forget(now);
        self.sum
    }

    /// How long until so much of it is more than a minute old; `None` if less was used.
    pub fn until_free(&mut self, amount: u64, now: Micros) -> Option<Micros> {
        self.forget(now);
        let mut free = 0_u64;
        self.grains.iter().find_map(|(end, used)| {
            free = free.saturating_add(*used);
            (free >= amount).then(|| end.saturating_add(MINUTE).saturating_sub(now))
        })
    }

    /// How long until all of it is more than a minute old.
    pub fn until_empty(&mut self, now: Micros) -> Micros {
        self.forget(now);
        let last = self.grains.iter().rfind(|(_, used)| *used > 0);
        last.map_or(Micros::ZERO, |(end, _)| end.saturating_add(MINUTE).saturating_sub(now))
    }

    fn forget(&mut self, now: Micros) {
        while let Some((end, used)) = self.grains.front().copied() {
            if end.saturating_add(MINUTE) > now {
                return;
            }
            self.sum -= used;
            self.grains.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Micros {
        Micros::from_millis(millis)
    }

    #[test]
    fn a_use_counts_for_a_minute_and_at_most_a_grain_longer() {
        let mut window = SlidingWindow::default();
        window.add(3, at(1_000));
        window.add(2, at(1_240));
        window.add(1, at(1_251));
        assert_eq!(window.used(at(61_249)), 6);
        assert_eq!(window.used(at(61_250)), 1);
        assert_eq!(window.used(at(61_501)), 0);
    }

    #[test]
    fn what_was_not_needed_is_taken_back_and_the_rest_comes_free_in_order() {
        let mut window = SlidingWindow::default();
        window.add(10, at(0));
        window.add(10, at(5_000));
        window.take_back(2, at(0));
        window.take_back(10, at(5_000));
        assert_eq!(window.used(at(6_000)), 8);
        assert_eq!(window.until_free(8, at(6_000)), Some(at(54_250)));
        assert_eq!(window.until_free(9, at(6_000)), None);
        assert_eq!(window.until_empty(at(6_000)), at(54_250));
        window.take_back(100, at(0));
        assert_eq!(window.used(at(6_000)), 0);
        assert_eq!(window.until_empty(at(6_000)), at(0));
    }

    #[test]
    fn what_is_a_minute_old_is_not_taken_back_from_what_others_have_used_since() {
        let mut window = SlidingWindow::default();
        window.add(10, at(0));
        window.add(7, at(30_000));
        window.take_back(4, at(0));
        assert_eq!(window.used(at(31_000)), 13);
        assert_eq!(window.used(at(60_300)), 7);
        window.take_back(4, at(0));
        assert_eq!(window.used(at(61_000)), 7);
    }

    #[test]
    fn a_window_stays_small() {
        let mut window = SlidingWindow::default();
        for step in 0..100_000_u64 {
            window.add(1, at(step * 7));
        }
        assert!(window.grains.len() <= 242, "{}", window.grains.len());
    }
}
