//! How much capacity a model should have: up at once and in full, down slowly and only if the
//! rest can carry it.
//!
//! Two numbers come from the outlook: one that is worth buying, where a replica counts a little
//! dearer than it is, and one that is worth keeping, where it counts a little cheaper. Between the
//! two nothing changes, which is why constant load never oscillates.

use crate::feedback::Feedback;
use crate::fleet::Fleet;
use crate::forecast::Outlook;
use crate::memory::ModelMemory;
use crate::mix::{self, Offer, whole};
use crate::model_state::ModelState;
use crate::policy::Law;
use crate::starts::seconds;
use crate::variant_state::{VariantState, replicas};
use flyball_core::decision::Bound;
use flyball_core::reason::Reason;
use flyball_core::units::{Micros, Timestamp};
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
    last: Answers,
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
    let up = outlook.best(fleet, buying, worth, last.0);
    let keep = outlook.best(fleet, keeping, worth, last.1.max(up)).max(up);
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
        if gap.is_some_and(|gap| gap.is_none_or(|gap| seconds(gap) > GAP_S + window_s / 2.0)) {
            self.recent.clear();
            // What a replica does is known by now.
            self.since = Some(now.saturating_sub(length((FIRST_S - window_s).max(0.0))));
        }
        while self.recent.back().is_some_and(|(_, last)| *last <= recommendation) {
            self.recent.pop_back();
        }
        self.recent.push_back((now, recommendation));
        let old = |at: Timestamp| now.since(at).is_none_or(|age| seconds(age) > window_s);
        while self.recent.len() > 1 && self.recent.front().is_some_and(|(at, _)| old(*at)) {
            self.recent.pop_front();
        }
        let since = *self.since.get_or_insert(now);
        if now.since(since).is_none_or(|age| seconds(age) < window_s.max(FIRST_S)) {
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

/// Settles what the model wants, before bounds and pools.
pub(crate) fn want(state: &mut ModelState<'_>, memory: &mut ModelMemory) {
    if state.variants.is_empty() {
        return;
    }
    let main = state.variants[state.main].clone();
    let awake = !sleeps(state, memory, &main);
    if state.blind || !awake {
        if !awake {
            for variant in &mut state.variants {
                (variant.recommended, variant.target) = (0, 0);
            }
            (state.reason, state.bound) = (Reason::Sleeping, Bound::NeedNow);
        }
        return;
    }
    let waiting = queue_ahead(state, memory, main.usual_s);
    let outlook = memory.forecaster.outlook(waiting, state.slack_s(), main.usual_s);
    memory.feedback.expect(outlook.misses(state.together(state.alone(|variant| variant.ready))));
    state.worth = memory.feedback.worth(state);
    let (recommendations, fleet) = (&mut memory.recommendations, main.fleet());
    let (up, keep) = weigh(&outlook, &fleet, state.worth, main.usual_s, &mut recommendations.last);
    let overdrawn = memory.feedback.overdrawn(state);
    let standby = memory.forecaster.standby(Feedback::aim(state), overdrawn);
    let standby = whole(fleet.replicas(standby));
    let (up, keep) = (up.max(standby), keep.max(standby));
    state.wanted = Some((up, keep));
    let keep = recommendations.most(state.now, keep, patience_s(main.usual_s));

    state.need_now = memory.forecaster.lasting();
    state.look_ahead = fleet.carries(f64::from(up));
    state.outlook = Some(outlook);
    let calendar = state.policy.floor(state.now, length(main.cold_s)).get();
    let need = whole(fleet.replicas(state.need_now));
    let (law, keep) = match state.policy.law {
        Law::Forecast { .. } => ([(Bound::NeedNow, need), (Bound::LookAhead, up)], keep),
        // It has windows and paces of its own.
        Law::Stated(count) => ([(Bound::Replay, count.get()); 2], count.get()),
    };
    state.candidates.extend([
        (Bound::NeedNow, replicas(need)),
        (Bound::LookAhead, replicas(up)),
        (Bound::Calendar, replicas(calendar)),
    ]);
    if let Law::Stated(count) = state.policy.law {
        state.candidates.push((Bound::Replay, count));
    }
    let (mut bound, mut most) = law[0];
    for (pull, count) in [law[1], (Bound::Calendar, calendar)] {
        if count > most {
            (bound, most) = (pull, count);
        }
    }
    // The owner's bounds are part of the recommendation, or each look would recommendation for what they undo.
    let (floor, ceiling) = (state.floor(), state.ceiling());
    if floor > most {
        bound = Bound::Minimum;
        state.candidates.push((bound, replicas(floor)));
    }
    let unbounded = most;
    let (most, keep) = (most.clamp(floor, ceiling), keep.max(most).clamp(floor, ceiling));
    settle(state, bound, f64::from(most) * main.size, f64::from(keep) * main.size);
    if unbounded > ceiling && state.target() == ceiling {
        // More is wanted and the owner does not allow it: that is what a person should read.
        state.candidates.push((Bound::Maximum, replicas(ceiling)));
        (state.bound, state.reason) = (Bound::Maximum, Reason::LimitReached);
    }
}

/// Goes up to `most` if there is less, down to `keep` if there is more, and else holds.
fn settle(state: &mut ModelState<'_>, bound: Bound, most: f64, keep: f64) {
    let has = state.capacity();
    let goal = if most > has + 1e-9 {
        state.bound = bound;
        state.reason = match bound {
            Bound::LookAhead => Reason::Forecast,
            Bound::Calendar => Reason::Calendar,
            _ => Reason::ScaledUp,
        };
        most
    } else if keep < has - 1e-9 {
        (state.bound, state.reason) = (bound, Reason::ScaledDown);
        keep
    } else {
        // What has no less than its owner wants and needs no more is held by the owner's word.
        let holds = bound == Bound::Minimum && most > has - 1e-9;
        state.bound = if holds { Bound::Minimum } else { Bound::BreakEven };
        state.reason = Reason::Steady;
        has
    };
    // Replicas move between variants only when their number changes anyway, or when some that
    // were asked for do not come: a switch for its own sake would never be the last one.
    let late = state
        .variants
        .iter()
        .any(|variant| variant.backs_off && variant.baseline > variant.ready + variant.starting);
    if state.reason == Reason::Steady && !late {
        return;
    }
    state.goal = Some(goal);
    spread(state, goal, &[]);
    if state.target() == state.baseline() && state.reason == Reason::ScaledDown {
        (state.bound, state.reason) = (Bound::BreakEven, Reason::BreakEvenNotReached);
    }
}

/// Spreads work over variants and purchases. `granted` caps variants that pools could not fill.
pub(crate) fn spread(state: &mut ModelState<'_>, work: f64, granted: &[Option<u32>]) {
    let mut offers = Vec::with_capacity(state.variants.len());
    let mut places = Vec::with_capacity(state.variants.len());
    let alone = state.variants.iter().filter(|variant| variant.known).count() == 1;
    for (n, variant) in state.variants.iter().enumerate() {
        if !variant.known {
            continue;
        }
        let mut most = state.ceiling();
        if let Some(Some(granted)) = granted.get(n) {
            most = *granted;
        }
        if variant.backs_off {
            // Nobody can provide more: not here, not now. Another variant may.
            let held = if alone {
                variant.baseline
            } else {
                variant.baseline.min(variant.ready + variant.starting)
            };
            most = most.min(held);
        }
        offer_variant(state, variant, n, most, &mut offers, &mut places);
    }
    // Where more is wanted and a pool has no more, what is there stays: another variant adds to it. Else one large
    // replica that is yet to start would take the place of all that serve.
    let stays = !granted.is_empty() && work > state.capacity() + 1e-9;
    let kept = |offer: &Offer| if stays { offer.have.min(offer.most) } else { 0 };
    let kept: Vec<u32> = offers.iter().map(kept).collect();
    let rest: Vec<Offer> =
        offers.iter().zip(&kept).map(|(offer, kept)| offer.beyond(*kept)).collect();
    let carried = offers.iter().zip(&kept).map(|(offer, kept)| f64::from(*kept) * offer.size);
    let more = mix::solve(&rest, work - carried.sum::<f64>(), &state.policy.spot);
    let counts = more.into_iter().zip(kept).map(|(more, kept)| more + kept);
    for variant in state.variants.iter_mut().filter(|variant| variant.known) {
        (variant.target, variant.buys) = (0, [0; 3]);
    }
    for ((n, purchase), (offer, count)) in places.into_iter().zip(offers.iter().zip(counts)) {
        let variant = &mut state.variants[n];
        variant.target += count;
        variant.buys[purchase] = count.saturating_sub(offer.have);
    }
    for variant in &mut state.variants {
        variant.recommended = variant.recommended.max(variant.target);
        if granted.is_empty() {
            variant.recommended = variant.target;
        }
    }
}

/// The offers of one variant: what is firm at its cheapest, and spot where it is allowed.
fn offer_variant(
    state: &ModelState<'_>,
    variant: &VariantState<'_>,
    n: usize,
    most: u32,
    offers: &mut Vec<Offer>,
    places: &mut Vec<(usize, usize)>,
) {
    let [reserved, on_demand, spot] = variant.offers;
    let (firm, price) = match (reserved, on_demand) {
        (Some(reserved), Some(other)) if reserved <= other => (0, reserved),
        (Some(reserved), None) => (0, reserved),
        (_, Some(on_demand)) => (1, on_demand),
        (None, None) => (1, variant.price()),
    };
    let hours = variant.usual_s / 3_600.0;
    let on_spot = if spot.is_some() { variant.count_spot() } else { 0 };
    offers.push(Offer {
        size: variant.size,
        price,
        start: price * hours,
        have: variant.baseline.saturating_sub(on_spot),
        most,
        loss: None,
    });
    places.push((n, firm));
    if let Some(price) = spot.filter(|spot| *spot < price && state.policy.spot.most_percent > 0) {
        let share = f64::from(state.policy.spot.most_percent) / 100.0;
        offers.push(Offer {
            size: variant.size,
            price,
            start: price * hours,
            have: on_spot,
            most: (f64::from(most) * share) as u32,
            loss: Some((state.policy.spot.reclaims_per_hour * hours).min(0.5)),
        });
        places.push((n, 2));
    }
}

/// Work that will still wait when a replica asked for now could serve, in replica-seconds.
///
/// Replicas that start are counted from when they are expected. Clients hang up after a while, so
/// that a queue is never longer than their patience.
fn queue_ahead(state: &ModelState<'_>, memory: &ModelMemory, cold_start_s: f64) -> f64 {
    let load = &state.load;
    let level = memory.forecaster.level();
    let ready = state.alone(|variant| variant.ready);
    if load.backlog <= 0.0 && level <= state.together(ready) {
        return 0.0;
    }
    // What waits is work of the kind that arrives: so many seconds of it.
    let unit = memory.yardstick.map_or(f64::INFINITY, |unit| unit.prefill);
    let work = state.work_now;
    let arriving = if load.prefill > 0.0 { load.backlog / load.prefill * work } else { 0.0 };
    let mut waiting = arriving.max(load.backlog / unit);
    let mut arrivals: Vec<(f64, f64)> = Vec::new();
    for variant in &state.variants {
        if let Some(learnt) =
            memory.variants.get(variant.id.name()).filter(|_| variant.starting > 0)
        {
            let left = learnt.starts.arrivals(state.now, variant.usual_s);
            arrivals.extend(left.map(|left_s| (left_s, variant.size)));
        }
    }
    arrivals.retain(|(left_s, _)| *left_s < cold_start_s);
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    arrivals.push((cold_start_s, 0.0));
    let (mut then, mut serving) = (0.0, ready);
    for (left_s, size) in arrivals {
        let does = state.together(serving);
        waiting =
            (waiting + (level - does) * (left_s - then)).clamp(0.0, PATIENCE_S * does.max(1.0));
        (then, serving) = (left_s, serving + size);
    }
    waiting
}

/// Clients hang up after about this long; half a minute is what chat clients wait at most.
const PATIENCE_S: f64 = 30.0;

fn sleeps(state: &ModelState<'_>, memory: &ModelMemory, main: &VariantState<'_>) -> bool {
    if !state.observed.bounds.may_sleep || state.blind || state.observed.pinned.is_some() {
        return false;
    }
    let calendar = state.policy.floor(state.now, length(main.cold_s)).get();
    if calendar > 0 || !state.load.is_idle() {
        return false;
    }
    // A start costs a cold start of running, and the first requests wait as long again.
    let break_even_s = (2.0 * main.cold_s).max(300.0);
    state.baseline() == 0 || memory.idle.may_sleep(state.now, break_even_s)
}

pub(crate) fn length(seconds: f64) -> Micros {
    Micros::from_millis((seconds * 1000.0).clamp(0.0, 1e15) as u64)
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
        for look in 0..20 {
            assert_eq!(recommendation(1_000 + 15 * look, 3), u32::MAX, "it has not lasted");
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
