//! What holds a wish back: orders of people, signals that cannot be trusted, steps, reversals,
//! money and bounds, in this order. Pools come after, because they weigh models against each other.

use crate::demand::Clearing;
use crate::lane::Lane;
use crate::memory::ModelMemory;
use crate::mix::whole;
use crate::seat::Seat;
use crate::starts::seconds;
use flyball_core::decision::Bound;
use flyball_core::reason::Reason;
use flyball_core::snapshot::Freshness;

/// Holds the wish of one model within what is allowed.
pub(crate) fn apply(seat: &mut Seat<'_>, memory: &ModelMemory) {
    if seat.lanes.is_empty() {
        return;
    }
    if seat.model.frozen {
        hold(seat);
        (seat.bound, seat.reason) = (Bound::Freeze, Reason::Frozen);
        return;
    }
    if let Some(pin) = seat.model.pinned {
        hold(seat);
        fit(seat, pin.get());
        note(seat, Bound::Pin, pin.get());
        (seat.bound, seat.reason) = (Bound::Pin, Reason::Pinned);
        return;
    }
    if seat.blind {
        hold(seat);
        grow_on_what_is_seen(seat, memory);
    } else {
        unproven(seat, memory);
        step(seat);
        reversal(seat);
    }
    first_replica(seat);
    budget(seat);
    bounds(seat);
    wake(seat);
}

/// No change.
fn hold(seat: &mut Seat<'_>) {
    for lane in &mut seat.lanes {
        lane.target = lane.baseline;
        lane.buys = [0; 3];
    }
}

/// With a signal stale or missing nothing goes down. Up goes what somebody sees now: work that waits, or
/// more work at those sources that are heard than there are replicas for, the silent ones counted as they
/// last told. So one dead source adds at most what it once told, once, and while all are silent nothing
/// is added.
fn grow_on_what_is_seen(seat: &mut Seat<'_>, memory: &ModelMemory) {
    seat.bound = Bound::Staleness;
    seat.reason = match seat.model.demand.freshness() {
        Freshness::Stale => Reason::SignalsStale,
        Freshness::Missing => Reason::SignalsMissing,
        // Then it is the capacity that nobody knows.
        Freshness::Fresh => Reason::CapacityUnknown,
    };
    let seen = waits(seat) || seat.model.demand.sources.is_partial();
    let (Some(yardstick), true) = (memory.yardstick, seen) else { return };
    let main = &seat.lanes[seat.main];
    let reading = seat.lanes.iter().map(|lane| f64::from(lane.ready) * lane.reading).sum();
    let slack_s = seat.model.objectives.first_token.map_or(2.0, seconds);
    let clearing = Clearing { reading, cold_start_s: main.cold_s, slack_s };
    let need = whole(main.fleet().replicas(seat.load.with_backlog(&yardstick, &clearing)));
    let need = need.max(u32::from(seat.load.backlog > 0.0));
    let total = seat.baseline();
    if main.known && need > total {
        let main = &mut seat.lanes[seat.main];
        main.target += need - total;
        main.wanted = main.wanted.max(main.target);
        (seat.bound, seat.reason) = (Bound::NeedNow, Reason::ScaledUp);
        step(seat);
    }
}

fn waits(seat: &Seat<'_>) -> bool {
    seat.model.demand.backlog.fresh().is_some_and(|backlog| !backlog.is_zero())
}

/// Work that is seen to wait for a model without replicas gets the first, whatever is not known: what a
/// replica can do, who else is silent, or whether an earlier start failed.
fn first_replica(seat: &mut Seat<'_>) {
    if seat.baseline() == 0 && seat.target() == 0 && waits(seat) && seat.ceiling() > 0 {
        fit(seat, 1);
        for lane in &mut seat.lanes {
            lane.wanted = lane.wanted.max(lane.target);
        }
        (seat.bound, seat.reason) = (Bound::NeedNow, Reason::ScaledUp);
    }
}

/// That a replica was seen to do so much does not say that it can do no more: while nobody waits and no more miss than
/// may, nothing is added. Each replica that is added makes the others do less, and the next look would see less still.
fn unproven(seat: &mut Seat<'_>, memory: &ModelMemory) {
    let at_least = |lane: &Lane<'_>| lane.is_used() && lane.variant.capacity.is_at_least();
    let unproven = seat.lanes.iter().any(at_least);
    let fine = !waits(seat) && memory.feedback.overdrawn(seat) <= 0.0;
    if unproven && fine && seat.target() > seat.baseline().max(seat.floor()) {
        hold(seat);
        (seat.bound, seat.reason) = (Bound::Staleness, Reason::CapacityUnknown);
    }
}

/// One decision goes only so far. Steps are counted from the replicas that are there, so that
/// deciding again before they change goes no further.
fn step(seat: &mut Seat<'_>) {
    if seat.reason == Reason::Sleeping {
        return;
    }
    let limits = seat.policy.step;
    let live: u32 = seat.lanes.iter().map(Lane::live).sum();
    let baseline = seat.baseline();
    let most =
        live.saturating_mul(limits.up_times).max(live.saturating_add(limits.up_at_least.get()));
    let most = most.max(baseline);
    if seat.target() > most {
        fit(seat, most);
        note(seat, Bound::Step, most);
        (seat.bound, seat.reason) = (Bound::Step, Reason::StepLimited);
    }
    let part = (u64::from(live) * u64::from(limits.down_percent.min(100)) / 100) as u32;
    let least = live.saturating_sub(part.max(1)).min(baseline);
    if seat.target() < least {
        fit(seat, least);
        note(seat, Bound::Step, least);
        (seat.bound, seat.reason) = (Bound::Step, Reason::StepLimited);
    }
}

/// No replica goes within a cold start after one came: it would have been paid for nothing
/// (ray-project/ray#18925 is an endless cycle, ai-dynamo/dynamo PR #9294 one at constant load). More
/// is never refused because less was asked for before: that would make requests pay for stability.
fn reversal(seat: &mut Seat<'_>) {
    let now = seat.now;
    let mut held = false;
    for lane in &mut seat.lanes {
        let last = lane.last;
        // What was asked for and never came is asked for again and again, and was not paid for.
        let started = !lane.absent && lane.is_recent(last.and_then(|last| last.started), now);
        if lane.target < lane.baseline && started {
            lane.target = lane.baseline;
            lane.buys = [0; 3];
            held = true;
        }
    }
    if held {
        note(seat, Bound::Step, seat.target());
        (seat.bound, seat.reason) = (Bound::Step, Reason::StepLimited);
    }
}

/// Money that is gone stops growth. It takes nothing away: requests that run are paid for.
fn budget(seat: &mut Seat<'_>) {
    let Some(budget) = seat.policy.hourly_budget else { return };
    let budget = budget.micros() as f64;
    let mut cost: f64 = seat.lanes.iter().map(|lane| lane.price() * f64::from(lane.target)).sum();
    let mut cut = false;
    while cost > budget {
        let grown = seat.lanes.iter_mut().filter(|lane| lane.target > lane.baseline);
        let dearest = grown.max_by(|a, b| a.price_of_work().total_cmp(&b.price_of_work()));
        let Some(lane) = dearest else { break };
        lane.target -= 1;
        cost -= lane.price();
        cut = true;
    }
    if cut {
        note(seat, Bound::Budget, seat.target());
        (seat.bound, seat.reason) = (Bound::Budget, Reason::BudgetReached);
    }
}

/// The owner's fewest and most.
fn bounds(seat: &mut Seat<'_>) {
    let (floor, ceiling) = (seat.floor(), seat.ceiling());
    if seat.target() > ceiling {
        fit(seat, ceiling);
        note(seat, Bound::Maximum, ceiling);
        (seat.bound, seat.reason) = (Bound::Maximum, Reason::LimitReached);
    }
    let may_sleep = seat.model.bounds.may_sleep;
    let asleep = may_sleep && seat.target() == 0;
    let floor = if may_sleep { floor } else { floor.max(1).min(ceiling) };
    if seat.target() < floor && !asleep && seat.bound != Bound::Budget {
        let grows = floor > seat.baseline();
        fit(seat, floor);
        note(seat, Bound::Minimum, floor);
        seat.bound = Bound::Minimum;
        seat.reason = if grows { Reason::ScaledUp } else { Reason::Steady };
    }
}

fn wake(seat: &mut Seat<'_>) {
    if seat.model.bounds.may_sleep && seat.baseline() == 0 && seat.target() > 0 {
        seat.reason = Reason::Waking;
    }
}

/// Brings the total to `total`: adds where work is cheapest, takes where it is dearest.
///
/// What goes back to the baseline goes first, so that a limit moves nothing that need not move.
fn fit(seat: &mut Seat<'_>, total: u32) {
    let mut left = i64::from(total) - i64::from(seat.target());
    let mut order: Vec<usize> = (0..seat.lanes.len()).collect();
    let key = |lane: &Lane<'_>| (!lane.known, lane.backs_off);
    order.sort_by(|a, b| {
        let (a, b) = (&seat.lanes[*a], &seat.lanes[*b]);
        key(a).cmp(&key(b)).then(a.price_of_work().total_cmp(&b.price_of_work()))
    });
    if left < 0 {
        order.reverse();
    }
    for to_baseline in [true, false] {
        for n in &order {
            let lane = &mut seat.lanes[*n];
            let (target, baseline) = (i64::from(lane.target), i64::from(lane.baseline));
            let room = match (left > 0, to_baseline) {
                (true, true) => (baseline - target).max(0),
                (true, false) => i64::MAX,
                (false, true) => (target - baseline).max(0),
                (false, false) => target,
            };
            let part = room.min(left.abs()) * left.signum();
            lane.target = u32::try_from(target + part).unwrap_or(u32::MAX);
            left -= part;
        }
    }
}

fn note(seat: &mut Seat<'_>, bound: Bound, count: u32) {
    seat.candidates.push((bound, crate::lane::replicas(count)));
}

/// Holds a wish that was spread anew within steps, reversals, money and bounds.
pub(crate) fn again(seat: &mut Seat<'_>) {
    let (bound, reason) = (seat.bound, seat.reason);
    step(seat);
    reversal(seat);
    budget(seat);
    bounds(seat);
    if seat.bound == bound && seat.target() >= seat.baseline() {
        seat.reason = Reason::VariantSwitched;
    } else if !seat.bound.can_starve() {
        (seat.bound, seat.reason) = (bound, reason);
    }
}
