//! How much capacity a model should have: up at once and in full, down slowly and only if the
//! rest can carry it.
//!
//! Two numbers come from the outlook: one that is worth buying, where a replica counts a little
//! dearer than it is, and one that is worth keeping, where it counts a little cheaper. Between the
//! two nothing changes, which is why constant load never oscillates.

use crate::feedback::Feedback;
use crate::fleet::Fleet;
use crate::forecast::Outlook;
use crate::lane::{Lane, replicas};
use crate::memory::ModelMemory;
use crate::mix::{self, Offer, whole};
use crate::policy::Law;
use crate::seat::Seat;
use crate::starts::seconds;
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

/// The most wishes that are handed on. They fall from one to the next, so that there are never many.
const HANDED_ON: usize = 32;

/// Nothing is given back before this has passed: the first readings of a service that just begins are not its load, and a
/// capacity that is stated three times too high shows as such in a few minutes of all the replicas, while with a third
/// of them every request misses. The rule that most people run keeps them as long (`HorizontalPodAutoscaler`, 300 s).
const FIRST_S: f64 = 300.0;

/// How long a wish for fewer must last: a minute of noise, and the longer the dearer a start is.
pub(crate) fn patience_s(cold_start_s: f64) -> f64 {
    60.0 + 0.3 * (cold_start_s + 20.0)
}

/// Wishes for fewer replicas, and the last answers of the search.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wishes {
    /// The most wished for since each moment, in order and falling: its head is the most of all.
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

impl Wishes {
    /// The most that was wished for within the window.
    pub(crate) fn most(&mut self, now: Timestamp, wish: u32, window_s: f64) -> u32 {
        // Whoever saw nothing for long begins anew: one look does not show that fewer would have done all
        // the time. A short gap is forgiven, or one scrape a minute that fails would keep everything. So does
        // whoever was handed wishes of a time that is yet to come.
        let gap = self.recent.back().map(|(last, _)| now.since(*last));
        if gap.is_some_and(|gap| gap.is_none_or(|gap| seconds(gap) > GAP_S + window_s / 2.0)) {
            self.recent.clear();
            // What a replica does is known by now.
            self.since = Some(now.saturating_sub(length((FIRST_S - window_s).max(0.0))));
        }
        while self.recent.back().is_some_and(|(_, last)| *last <= wish) {
            self.recent.pop_back();
        }
        self.recent.push_back((now, wish));
        let old = |at: Timestamp| now.since(at).is_none_or(|age| seconds(age) > window_s);
        while self.recent.len() > 1 && self.recent.front().is_some_and(|(at, _)| old(*at)) {
            self.recent.pop_front();
        }
        let since = *self.since.get_or_insert(now);
        if now.since(since).is_none_or(|age| seconds(age) < window_s.max(FIRST_S)) {
            return u32::MAX;
        }
        self.recent.front().map_or(wish, |(_, most)| *most)
    }
}

impl Wishes {
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

/// Settles what the model wants, before rails and pools.
pub(crate) fn want(seat: &mut Seat<'_>, memory: &mut ModelMemory) {
    if seat.lanes.is_empty() {
        return;
    }
    let main = seat.lanes[seat.main].clone();
    let awake = !sleeps(seat, memory, &main);
    if seat.blind || !awake {
        if !awake {
            for lane in &mut seat.lanes {
                (lane.wanted, lane.target) = (0, 0);
            }
            (seat.reason, seat.bound) = (Reason::Sleeping, Bound::NeedNow);
        }
        return;
    }
    let waiting = queue_ahead(seat, memory, main.usual_s);
    let outlook = memory.forecaster.outlook(waiting, seat.slack_s(), main.usual_s);
    memory.feedback.expect(outlook.misses(seat.together(seat.alone(|lane| lane.ready))));
    seat.worth = memory.feedback.worth(seat);
    let (wishes, fleet) = (&mut memory.wishes, main.fleet());
    let (up, keep) = weigh(&outlook, &fleet, seat.worth, main.usual_s, &mut wishes.last);
    let overdrawn = memory.feedback.overdrawn(seat);
    let standby = memory.forecaster.standby(Feedback::aim(seat), overdrawn);
    let standby = whole(fleet.replicas(standby));
    let (up, keep) = (up.max(standby), keep.max(standby));
    seat.wanted = Some((up, keep));
    let keep = wishes.most(seat.now, keep, patience_s(main.usual_s));

    seat.need_now = memory.forecaster.lasting();
    seat.look_ahead = fleet.carries(f64::from(up));
    seat.outlook = Some(outlook);
    let calendar = seat.policy.floor(seat.now, length(main.cold_s)).get();
    let need = whole(fleet.replicas(seat.need_now));
    let (law, keep) = match seat.policy.law {
        Law::Forecast { .. } => ([(Bound::NeedNow, need), (Bound::LookAhead, up)], keep),
        // It has windows and paces of its own.
        Law::Stated(count) => ([(Bound::Replay, count.get()); 2], count.get()),
    };
    seat.candidates.extend([
        (Bound::NeedNow, replicas(need)),
        (Bound::LookAhead, replicas(up)),
        (Bound::Calendar, replicas(calendar)),
    ]);
    if let Law::Stated(count) = seat.policy.law {
        seat.candidates.push((Bound::Replay, count));
    }
    let (mut bound, mut most) = law[0];
    for (pull, count) in [law[1], (Bound::Calendar, calendar)] {
        if count > most {
            (bound, most) = (pull, count);
        }
    }
    // The owner's bounds are part of the wish, or each look would wish for what they undo.
    let (floor, ceiling) = (seat.floor(), seat.ceiling());
    if floor > most {
        bound = Bound::Minimum;
        seat.candidates.push((bound, replicas(floor)));
    }
    let unbounded = most;
    let (most, keep) = (most.clamp(floor, ceiling), keep.max(most).clamp(floor, ceiling));
    settle(seat, bound, f64::from(most) * main.size, f64::from(keep) * main.size);
    if unbounded > ceiling && seat.target() == ceiling {
        // More is wanted and the owner does not allow it: that is what a person should read.
        seat.candidates.push((Bound::Maximum, replicas(ceiling)));
        (seat.bound, seat.reason) = (Bound::Maximum, Reason::LimitReached);
    }
}

/// Goes up to `most` if there is less, down to `keep` if there is more, and else holds.
fn settle(seat: &mut Seat<'_>, bound: Bound, most: f64, keep: f64) {
    let has = seat.capacity();
    let goal = if most > has + 1e-9 {
        seat.bound = bound;
        seat.reason = match bound {
            Bound::LookAhead => Reason::Forecast,
            Bound::Calendar => Reason::Calendar,
            _ => Reason::ScaledUp,
        };
        most
    } else if keep < has - 1e-9 {
        (seat.bound, seat.reason) = (bound, Reason::ScaledDown);
        keep
    } else {
        // What has no less than its owner wants and needs no more is held by the owner's word.
        let holds = bound == Bound::Minimum && most > has - 1e-9;
        seat.bound = if holds { Bound::Minimum } else { Bound::BreakEven };
        seat.reason = Reason::Steady;
        has
    };
    // Replicas move between variants only when their number changes anyway, or when some that
    // were asked for do not come: a switch for its own sake would never be the last one.
    let late =
        seat.lanes.iter().any(|lane| lane.backs_off && lane.baseline > lane.ready + lane.coming);
    if seat.reason == Reason::Steady && !late {
        return;
    }
    seat.goal = Some(goal);
    spread(seat, goal, &[]);
    if seat.target() == seat.baseline() && seat.reason == Reason::ScaledDown {
        (seat.bound, seat.reason) = (Bound::BreakEven, Reason::BreakEvenNotReached);
    }
}

/// Spreads work over variants and purchases. `granted` caps lanes that pools could not fill.
pub(crate) fn spread(seat: &mut Seat<'_>, work: f64, granted: &[Option<u32>]) {
    let mut offers = Vec::with_capacity(seat.lanes.len());
    let mut places = Vec::with_capacity(seat.lanes.len());
    let alone = seat.lanes.iter().filter(|lane| lane.known).count() == 1;
    for (n, lane) in seat.lanes.iter().enumerate() {
        if !lane.known {
            continue;
        }
        let mut most = seat.ceiling();
        if let Some(Some(granted)) = granted.get(n) {
            most = *granted;
        }
        if lane.backs_off {
            // Nobody can provide more: not here, not now. Another variant may.
            let held =
                if alone { lane.baseline } else { lane.baseline.min(lane.ready + lane.coming) };
            most = most.min(held);
        }
        offer_lane(seat, lane, n, most, &mut offers, &mut places);
    }
    // Where more is wanted and a pool has no more, what is there stays: another variant adds to it. Else one large
    // replica that is yet to start would take the place of all that serve.
    let stays = !granted.is_empty() && work > seat.capacity() + 1e-9;
    let kept = |offer: &Offer| if stays { offer.have.min(offer.most) } else { 0 };
    let kept: Vec<u32> = offers.iter().map(kept).collect();
    let rest: Vec<Offer> =
        offers.iter().zip(&kept).map(|(offer, kept)| offer.beyond(*kept)).collect();
    let carried = offers.iter().zip(&kept).map(|(offer, kept)| f64::from(*kept) * offer.size);
    let more = mix::solve(&rest, work - carried.sum::<f64>(), &seat.policy.spot);
    let counts = more.into_iter().zip(kept).map(|(more, kept)| more + kept);
    for lane in seat.lanes.iter_mut().filter(|lane| lane.known) {
        (lane.target, lane.buys) = (0, [0; 3]);
    }
    for ((n, purchase), (offer, count)) in places.into_iter().zip(offers.iter().zip(counts)) {
        let lane = &mut seat.lanes[n];
        lane.target += count;
        lane.buys[purchase] = count.saturating_sub(offer.have);
    }
    for lane in &mut seat.lanes {
        lane.wanted = lane.wanted.max(lane.target);
        if granted.is_empty() {
            lane.wanted = lane.target;
        }
    }
}

/// The offers of one variant: what is firm at its cheapest, and spot where it is allowed.
fn offer_lane(
    seat: &Seat<'_>,
    lane: &Lane<'_>,
    n: usize,
    most: u32,
    offers: &mut Vec<Offer>,
    places: &mut Vec<(usize, usize)>,
) {
    let [reserved, on_demand, spot] = lane.offers;
    let (firm, price) = match (reserved, on_demand) {
        (Some(reserved), Some(other)) if reserved <= other => (0, reserved),
        (Some(reserved), None) => (0, reserved),
        (_, Some(on_demand)) => (1, on_demand),
        (None, None) => (1, lane.price()),
    };
    let hours = lane.usual_s / 3_600.0;
    let on_spot = if spot.is_some() { lane.count_spot() } else { 0 };
    offers.push(Offer {
        size: lane.size,
        price,
        start: price * hours,
        have: lane.baseline.saturating_sub(on_spot),
        most,
        loss: None,
    });
    places.push((n, firm));
    if let Some(price) = spot.filter(|spot| *spot < price && seat.policy.spot.most_percent > 0) {
        let share = f64::from(seat.policy.spot.most_percent) / 100.0;
        offers.push(Offer {
            size: lane.size,
            price,
            start: price * hours,
            have: on_spot,
            most: (f64::from(most) * share) as u32,
            loss: Some((seat.policy.spot.reclaims_per_hour * hours).min(0.5)),
        });
        places.push((n, 2));
    }
}

/// Work that will still wait when a replica asked for now could serve, in replica-seconds.
///
/// Replicas that start are counted from when they are expected. Clients hang up after a while, so
/// that a queue is never longer than their patience.
fn queue_ahead(seat: &Seat<'_>, memory: &ModelMemory, cold_start_s: f64) -> f64 {
    let load = &seat.load;
    let level = memory.forecaster.level();
    let ready = seat.alone(|lane| lane.ready);
    if load.backlog <= 0.0 && level <= seat.together(ready) {
        return 0.0;
    }
    // What waits is work of the kind that arrives: so many seconds of it.
    let unit = memory.yardstick.map_or(f64::INFINITY, |unit| unit.prefill);
    let work = seat.work_now;
    let arriving = if load.prefill > 0.0 { load.backlog / load.prefill * work } else { 0.0 };
    let mut waiting = arriving.max(load.backlog / unit);
    let mut arrivals: Vec<(f64, f64)> = Vec::new();
    for lane in &seat.lanes {
        if let Some(learnt) = memory.variants.get(lane.id.name()).filter(|_| lane.coming > 0) {
            let left = learnt.starts.arrivals(seat.now, lane.usual_s);
            arrivals.extend(left.map(|left_s| (left_s, lane.size)));
        }
    }
    arrivals.retain(|(left_s, _)| *left_s < cold_start_s);
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    arrivals.push((cold_start_s, 0.0));
    let (mut then, mut serving) = (0.0, ready);
    for (left_s, size) in arrivals {
        let does = seat.together(serving);
        waiting =
            (waiting + (level - does) * (left_s - then)).clamp(0.0, PATIENCE_S * does.max(1.0));
        (then, serving) = (left_s, serving + size);
    }
    waiting
}

/// Clients hang up after about this long; half a minute is what chat clients wait at most.
const PATIENCE_S: f64 = 30.0;

fn sleeps(seat: &Seat<'_>, memory: &ModelMemory, main: &Lane<'_>) -> bool {
    if !seat.model.bounds.may_sleep || seat.blind || seat.model.pinned.is_some() {
        return false;
    }
    let calendar = seat.policy.floor(seat.now, length(main.cold_s)).get();
    if calendar > 0 || !seat.load.is_idle() {
        return false;
    }
    // A start costs a cold start of running, and the first requests wait as long again.
    let break_even_s = (2.0 * main.cold_s).max(300.0);
    seat.baseline() == 0 || memory.idle.may_sleep(seat.now, break_even_s)
}

pub(crate) fn length(seconds: f64) -> Micros {
    Micros::from_millis((seconds * 1000.0).clamp(0.0, 1e15) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::testing::at;

    #[test]
    fn after_a_long_blindness_a_wish_for_fewer_must_last_anew() {
        let mut wishes = Wishes::default();
        let mut wish = |now: u64, wish: u32| wishes.most(at(now), wish, 70.0);
        for look in 0..20 {
            assert_eq!(wish(1_000 + 15 * look, 3), u32::MAX, "it has not lasted");
        }
        assert_eq!(wish(1_300, 3), 3, "the first five minutes are over");
        assert_eq!(wish(1_345, 3), 3, "one or two looks fail: nothing is forgotten");
        assert_eq!(wish(1_600, 1), u32::MAX, "one look shows nothing");
        for second in [1_615, 1_630, 1_645, 1_660] {
            assert_eq!(wish(second, 1), u32::MAX);
        }
        assert_eq!(wish(1_675, 1), 1, "capacity is known by then, and only the load is not");
        assert_eq!(wish(1_000, 1), u32::MAX, "a clock that was set back begins anew too");
    }

    #[test]
    fn wishes_are_handed_on_and_those_that_cannot_be_are_refused() {
        let mut wishes = Wishes { last: (4, 5), ..Wishes::default() };
        for (second, count) in [(1_000, 9), (1_015, 7), (1_030, 3), (1_045, 4)] {
            wishes.most(at(second), count, 70.0);
        }
        let numbers = wishes.numbers();
        assert_eq!(Wishes::restored(&numbers), Some(wishes));
        for bad in [f64::NAN, f64::INFINITY, -2.0, 1e17] {
            for place in 0..numbers.len() {
                let mut broken = numbers.clone();
                broken[place] = bad;
                assert_eq!(Wishes::restored(&broken), None, "{bad} at {place}");
            }
        }
        assert_eq!(Wishes::restored(&numbers[..4]), None);
        assert_eq!(Wishes::restored(&[]), None);
    }
}
