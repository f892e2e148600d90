//! How many replicas are worth buying and worth keeping, and for how long fewer were enough.
//!
//! A replica that is to be bought counts a little dearer than it is, and one that is to be kept a little cheaper.

use crate::fleet::Fleet;
use crate::forecast::{Outlook, Weighing};
use crate::starts::length;
use flyball_core::units::Timestamp;
use std::collections::VecDeque;

/// What a replica counts, in prices, when it is to be bought and when it is to be kept.
///
/// A start costs a cold start and a drain of running for nothing. Spread over the ten minutes that
/// a level lasts, that is the share of the price by which buying is dearer and keeping cheaper.
fn prices(cold_start_s: f64) -> (f64, f64) {
    let start = cold_start_s + 20.0;
    let share = 1.2 * start / (start + 600.0);
    (1.0 + share, (1.0 - share).max(0.1))
}

/// Between two looks, usually.
const GAP_S: f64 = 15.0;

/// The most recommendations that are handed on. They fall from one to the next, so that there are never many.
const HANDED_ON: usize = 32;

/// Nothing is given back before this has passed: the first readings of a service that just begins are not its load, and a
/// capacity that is stated three times too high shows as such in a few minutes of all the replicas, while with a third
/// of them every request misses. The rule that most people run keeps them as long (`HorizontalPodAutoscaler`, 300 s).
const FIRST_S: f64 = 300.0;

/// How long a recommendation for fewer must last: a minute of noise, and the longer the dearer a start is.
pub(crate) fn patience_s(cold_start_s: f64) -> f64 {
    60.0 + 0.3 * (cold_start_s + 20.0)
}

/// Recommendations for fewer replicas, and the last answers of the search.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recommendations {
    /// The most recommended for since each moment, in order and falling: its head is the most of all.
    recent: VecDeque<(Timestamp, u32)>,
    /// The first of all.
    since: Option<Timestamp>,
    pub(crate) last: Answers,
}

/// The last answers of the search, where the next one begins: worth buying, and worth keeping.
pub(crate) type Answers = (u32, u32);

/// How many replicas of this size are worth buying, and how many worth keeping, where one takes so
/// long to serve.
pub(crate) fn weigh(
    outlook: &Outlook,
    fleet: &Fleet,
    worth: f64,
    cold_start_s: f64,
    last: &mut Answers,
) -> Answers {
    let (buying, keeping) = prices(cold_start_s);
    let mut weighing = Weighing::of(outlook, fleet);
    let up = weighing.best(buying, worth, last.0);
    let keep = weighing.best(keeping, worth, last.1.max(up)).max(up);
    *last = (up, keep);
    *last
}

impl Recommendations {
    /// The most that was recommended for within the window.
    pub(crate) fn most(&mut self, now: Timestamp, recommendation: u32, window_s: f64) -> u32 {
        // Whoever saw nothing for long begins anew: one look does not show that fewer would have done all
        // the time. A short gap is forgiven, or one scrape a minute that fails would keep everything. So does
        // whoever was handed recommendations of a time that is yet to come.
        let gap = self.recent.back().map(|(last, _)| now.since(*last));
        if gap.is_some_and(|gap| gap.is_none_or(|gap| gap.as_seconds() > GAP_S + window_s / 2.0)) {
            self.recent.clear();
            // What a replica does is known by now.
            self.since = Some(now.saturating_sub(length((FIRST_S - window_s).max(0.0))));
        }
        while self.recent.back().is_some_and(|(_, last)| *last <= recommendation) {
            self.recent.pop_back();
        }
        self.recent.push_back((now, recommendation));
        let old = |at: Timestamp| now.since(at).is_none_or(|age| age.as_seconds() > window_s);
        while self.recent.len() > 1 && self.recent.front().is_some_and(|(at, _)| old(*at)) {
            self.recent.pop_front();
        }
        let since = *self.since.get_or_insert(now);
        if now.since(since).is_none_or(|age| age.as_seconds() < window_s.max(FIRST_S)) {
            return u32::MAX;
        }
        self.recent.front().map_or(recommendation, |(_, most)| *most)
    }
}

impl Recommendations {
    /// As numbers: the last answers, when the first was made, and then each with its moment.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let (up, keep) = self.last;
        let since = self.since.map_or(0.0, |since| since.as_micros() as f64);
        let recent = self.recent.iter().take(HANDED_ON);
        let recent = recent.flat_map(|(at, count)| [at.as_micros() as f64, f64::from(*count)]);
        [f64::from(up), f64::from(keep), since].into_iter().chain(recent).collect()
    }

    /// The same back; `None` if it cannot be.
    pub(crate) fn restored(numbers: &[f64]) -> Option<Self> {
        let [up, keep, since, recent @ ..] = numbers else { return None };
        let is_count = |count: &f64| (0.0..=f64::from(u32::MAX)).contains(count);
        let is_moment = |at: &f64| (0.0..9e15).contains(at);
        let at = |micros: f64| Timestamp::from_micros(micros as u64);
        let (pairs, rest) = recent.as_chunks::<2>();
        let possible = is_count(up)
            && is_count(keep)
            && is_moment(since)
            && rest.is_empty()
            && pairs.len() <= HANDED_ON
            && pairs.iter().all(|[at, count]| is_moment(at) && is_count(count))
            && pairs.is_sorted_by(|[a, more], [b, fewer]| a <= b && more > fewer);
        possible.then(|| Self {
            recent: pairs.iter().map(|[moment, count]| (at(*moment), *count as u32)).collect(),
            since: (*since > 0.0).then(|| at(*since)),
            last: (*up as u32, *keep as u32),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::testing::at;

    #[test]
    fn after_a_long_blindness_a_lower_recommendation_must_last_anew() {
        let mut recommendations = Recommendations::default();
        let mut recommendation =
            |now: u64, recommendation: u32| recommendations.most(at(now), recommendation, 70.0);
        for tick in 0..20 {
            assert_eq!(recommendation(1_000 + 15 * tick, 3), u32::MAX, "it has not lasted");
        }
        assert_eq!(recommendation(1_300, 3), 3, "the first five minutes are over");
        assert_eq!(recommendation(1_345, 3), 3, "one or two looks fail: nothing is forgotten");
        assert_eq!(recommendation(1_600, 1), u32::MAX, "one look shows nothing");
        for second in [1_615, 1_630, 1_645, 1_660] {
            assert_eq!(recommendation(second, 1), u32::MAX);
        }
        assert_eq!(
            recommendation(1_675, 1),
            1,
            "capacity is known by then, and only the load is not"
        );
        assert_eq!(recommendation(1_000, 1), u32::MAX, "a clock that was set back begins anew too");
    }

    #[test]
    fn recommendations_are_handed_on_and_those_that_cannot_be_are_refused() {
        let mut recommendations = Recommendations { last: (4, 5), ..Recommendations::default() };
        for (second, count) in [(1_000, 9), (1_015, 7), (1_030, 3), (1_045, 4)] {
            recommendations.most(at(second), count, 70.0);
        }
        let numbers = recommendations.numbers();
        assert_eq!(Recommendations::restored(&numbers), Some(recommendations));
        for bad in [f64::NAN, f64::INFINITY, -2.0, 1e17] {
            for place in 0..numbers.len() {
                let mut broken = numbers.clone();
                broken[place] = bad;
                assert_eq!(Recommendations::restored(&broken), None, "{bad} at {place}");
            }
        }
        assert_eq!(Recommendations::restored(&numbers[..4]), None);
        assert_eq!(Recommendations::restored(&[]), None);
    }
}
