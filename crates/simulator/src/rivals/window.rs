//! Samples of the last so many seconds.

use crate::seconds::Seconds;
use std::collections::VecDeque;

/// Samples no older than a length of time.
#[derive(Clone, Debug)]
pub(super) struct Window {
    length: Seconds,
    samples: VecDeque<(Seconds, f64)>,
}

impl Window {
    pub(super) const fn new(length: Seconds) -> Self {
        Self { length, samples: VecDeque::new() }
    }

    /// Adds a sample and forgets what is as old as the window or, after a jump of the clock, what
    /// lies in the future.
    pub(super) fn push(&mut self, now: Seconds, value: f64) {
        self.forget(now);
        self.samples.push_back((now, value));
    }

    /// Forgets what is too old to count.
    pub(super) fn forget(&mut self, now: Seconds) {
        // Samples are in the order of time, so only the ends need a look.
        while self.samples.back().is_some_and(|(at, _)| *at > now) {
            self.samples.pop_back();
        }
        while self.samples.front().is_some_and(|(at, _)| *at <= now - self.length) {
            self.samples.pop_front();
        }
    }

    /// The mean over samples that are at most so old; `None` without any.
    pub(super) fn mean(&self, now: Seconds, length: Seconds) -> Option<f64> {
        let (mut sum, mut count) = (0.0, 0.0);
        for (_, value) in self.samples.iter().filter(|(at, _)| *at > now - length) {
            sum += value;
            count += 1.0;
        }
        (count > 0.0).then(|| sum / count)
    }

    /// The sum over samples that are at most so old.
    pub(super) fn total(&self, now: Seconds, length: Seconds) -> f64 {
        self.samples.iter().filter(|(at, _)| *at > now - length).map(|(_, value)| value).sum()
    }

    pub(super) fn largest(&self) -> Option<f64> {
        self.samples.iter().map(|(_, value)| *value).max_by(f64::total_cmp)
    }

    pub(super) fn smallest(&self) -> Option<f64> {
        self.samples.iter().map(|(_, value)| *value).min_by(f64::total_cmp)
    }

    pub(super) fn samples(&self) -> impl ExactSizeIterator<Item = (Seconds, f64)> {
        self.samples.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{Seconds, Window};

    #[test]
    fn a_sample_as_old_as_the_window_is_forgotten() {
        let mut window = Window::new(Seconds(60.0));
        window.push(Seconds(0.0), 9.0);
        window.push(Seconds(59.0), 1.0);
        assert_eq!(window.largest(), Some(9.0));
        window.push(Seconds(60.0), 3.0);
        assert_eq!(window.largest(), Some(3.0));
        assert_eq!(window.mean(Seconds(60.0), Seconds(60.0)), Some(2.0));
        assert_eq!(window.mean(Seconds(60.0), Seconds(1.0)), Some(3.0));
    }

    #[test]
    fn a_clock_that_jumps_back_leaves_no_sample_from_the_future() {
        let mut window = Window::new(Seconds(60.0));
        window.push(Seconds(500.0), 9.0);
        window.push(Seconds(100.0), 1.0);
        assert_eq!(window.largest(), Some(1.0));
    }
}
