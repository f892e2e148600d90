//! Counts of the last while, from which rates are told.

use flyball_core::units::{Micros, Timestamp};
use std::collections::VecDeque;

/// The shortest time that a rate can be told from.
const SHORTEST: Micros = Micros::from_seconds(4);

/// What somebody counted at some moments, the oldest first. Whoever reads counts keeps one of these for everybody who
/// counts.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterWindow<T> {
    moments: VecDeque<Moment<T>>,
    length: Micros,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Moment<T> {
    at: Timestamp,
    counts_since: Timestamp,
    counts: T,
}

/// What can be counted.
pub trait Counters: Copy {
    /// Whether a count is less than it was: whoever counts has begun anew.
    fn fell(before: &Self, now: &Self) -> bool;
}

/// What was counted between two moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span<T> {
    first: T,
    last: T,
    seconds: f64,
}

impl<T: Counters> CounterWindow<T> {
    /// For rates over this long.
    pub fn of(length: Micros) -> Self {
        Self { moments: VecDeque::new(), length }
    }

    /// Adds counts that began at `counts_since`, unless younger ones are known. Those that began anew, or fell, say
    /// nothing together with those before.
    pub fn add(&mut self, at: Timestamp, counts_since: Timestamp, counts: T) {
        if self.moments.back().is_some_and(|last| last.at >= at) {
            return;
        }
        let anew =
            |last: &Moment<T>| last.counts_since != counts_since || T::fell(&last.counts, &counts);
        if self.moments.back().is_some_and(anew) {
            self.moments.clear();
        }
        self.moments.push_back(Moment { at, counts_since, counts });
        let old = |moment: &Moment<T>| at.since(moment.at).is_some_and(|age| age >= self.length);
        while self.moments.get(1).is_some_and(old) {
            self.moments.pop_front();
        }
    }

    /// Nothing has changed until then.
    pub fn hold(&mut self, at: Timestamp) {
        if let Some(last) = self.moments.back().filter(|last| last.at < at) {
            self.moments.push_back(Moment { at, ..*last });
        }
    }

    /// Every moment as it is kept: when it was read, since when counts began, and the counts. For whoever records it.
    pub fn moments(&self) -> impl ExactSizeIterator<Item = (Timestamp, Timestamp, &T)> {
        self.moments.iter().map(|moment| (moment.at, moment.counts_since, &moment.counts))
    }

    /// One as it was recorded.
    pub fn recorded(
        length: Micros,
        all: impl IntoIterator<Item = (Timestamp, Timestamp, T)>,
    ) -> Self {
        let moment = |(at, counts_since, counts)| Moment { at, counts_since, counts };
        Self { moments: all.into_iter().map(moment).collect(), length }
    }

    /// The last counts, and when they were read.
    pub fn last(&self) -> Option<(Timestamp, &T)> {
        self.moments.back().map(|last| (last.at, &last.counts))
    }

    /// The most that a count grew within about so many seconds, per second; `None` where nobody looked so often.
    pub(crate) fn busiest(&self, seconds: f64, count: impl Fn(&T) -> f64) -> Option<f64> {
        let mut first = 0;
        let mut most: Option<f64> = None;
        for last in &self.moments {
            let apart = |moment: &Moment<T>| {
                last.at.since(moment.at).map_or(0.0, |apart| apart.as_seconds())
            };
            while self.moments.get(first + 1).is_some_and(|next| apart(next) >= seconds) {
                first += 1;
            }
            let begin = &self.moments[first];
            // What nobody looked at for long, and had not grown when somebody did, grew since.
            let still = self.moments.get(first + 1);
            let still = still.is_some_and(|next| count(&next.counts) <= count(&begin.counts));
            let length = if still { seconds } else { apart(begin) };
            if (seconds..2.0 * seconds).contains(&length) {
                let rate = (count(&last.counts) - count(&begin.counts)).max(0.0) / length;
                most = Some(most.map_or(rate, |most| most.max(rate)));
            }
        }
        most
    }

    /// All of it, where it is long enough to tell a rate from.
    pub(crate) fn span(&self) -> Option<Span<T>> {
        let (first, last) = self.moments.front().zip(self.moments.back())?;
        let apart = last.at.since(first.at).filter(|apart| *apart >= SHORTEST)?;
        let seconds = apart.as_seconds();
        Some(Span { first: first.counts, last: last.counts, seconds })
    }
}

impl<T> Span<T> {
    /// How much a count grew. What is no number stays none.
    pub(crate) fn grown(&self, count: impl Fn(&T) -> f64) -> f64 {
        let grown = count(&self.last) - count(&self.first);
        if grown < 0.0 { 0.0 } else { grown }
    }

    /// How much it grew per second.
    pub(crate) fn rate(&self, count: impl Fn(&T) -> f64) -> f64 {
        self.grown(count) / self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000 * seconds)
    }

    const LENGTH: Micros = Micros::from_seconds(30);

    impl Counters for u64 {
        fn fell(before: &Self, now: &Self) -> bool {
            before > now
        }
    }

    fn add(past: &mut CounterWindow<u64>, seconds: u64, since: u64, count: u64) {
        past.add(at(seconds), at(since), count);
    }

    fn rate(past: &CounterWindow<u64>) -> Option<f64> {
        past.span().map(|span| span.rate(|count| *count as f64))
    }

    #[test]
    fn a_rate_is_that_of_the_window_and_needs_four_seconds() {
        let mut past = CounterWindow::of(LENGTH);
        add(&mut past, 100, 0, 1_000);
        assert_eq!(rate(&past), None);
        add(&mut past, 103, 0, 1_030);
        assert_eq!(rate(&past), None);
        add(&mut past, 110, 0, 1_100);
        assert_eq!(rate(&past), Some(10.0));
        // From 110 on twenty a second; what is older than half a minute is forgotten.
        add(&mut past, 130, 0, 1_500);
        add(&mut past, 150, 0, 1_900);
        assert_eq!(rate(&past), Some(20.0));
    }

    #[test]
    fn counts_that_began_anew_or_fell_say_nothing_with_those_before() {
        let mut past = CounterWindow::of(LENGTH);
        add(&mut past, 100, 0, 1_000);
        add(&mut past, 110, 109, 5);
        assert_eq!(rate(&past), None, "another process counts");
        add(&mut past, 120, 109, 3);
        assert_eq!(rate(&past), None, "it fell");
        add(&mut past, 130, 109, 53);
        assert_eq!(rate(&past), Some(5.0));
    }

    #[test]
    fn the_same_moment_twice_is_one() {
        let mut past = CounterWindow::of(LENGTH);
        for seconds in [100, 100, 110, 110] {
            add(&mut past, seconds, 0, seconds);
        }
        assert_eq!(rate(&past), Some(1.0));
    }
}
