//! What holds a recommendation back: orders of people, signals that cannot be trusted, steps, reversals,
//! money and bounds, in this order. Pools come after, because they weigh models against each other.

use crate::demand::Clearing;
use crate::memory::ModelMemory;
use crate::mix::whole;
use crate::model_state::ModelState;
use crate::variant_state::VariantState;
use flyball_core::decision::Bound;
use flyball_core::reason::Reason;
use flyball_core::snapshot::Freshness;
use flyball_core::units::Micros;

/// Holds the recommendation of one model within what is allowed.
pub(crate) fn apply(state: &mut ModelState<'_>, memory: &ModelMemory) {
    if state.variants.is_empty() {
        return;
    }
    if state.observed.frozen {
        hold(state);
        (state.bound, state.reason) = (Bound::Freeze, Reason::Frozen);
        return;
    }
    if let Some(pin) = state.observed.pinned {
        hold(state);
        fit(state, pin.get());
        note(state, Bound::Pin, pin.get());
        (state.bound, state.reason) = (Bound::Pin, Reason::Pinned);
        return;
    }
    if state.blind {
        hold(state);
        grow_on_what_is_seen(state, memory);
    } else {
        unproven(state, memory);
        step(state);
        reversal(state);
    }
    first_replica(state);
    budget(state);
    bounds(state);
    wake(state);
}

/// No change.
fn hold(state: &mut ModelState<'_>) {
    for variant in &mut state.variants {
        variant.target = variant.baseline;
        variant.buys = [0; 3];
    }
}

/// With a signal stale or missing nothing goes down. Up goes what somebody sees now: work that waits, or
/// more work at those sources that are heard than there are replicas for, the silent ones counted as they
/// last told. So one dead source adds at most what it once told, once, and while all are silent nothing
/// is added.
fn grow_on_what_is_seen(state: &mut ModelState<'_>, memory: &ModelMemory) {
    state.bound = Bound::Staleness;
    state.reason = match state.observed.demand.freshness() {
        Freshness::Stale => Reason::SignalsStale,
        Freshness::Missing => Reason::SignalsMissing,
        // Then it is the capacity that nobody knows.
        Freshness::Fresh => Reason::CapacityUnknown,
    };
    let seen = waits(state) || state.observed.demand.sources.is_partial();
    let (Some(yardstick), true) = (memory.yardstick, seen) else { return };
    let main = &state.variants[state.main];
    let reading =
        state.variants.iter().map(|variant| f64::from(variant.ready) * variant.reading).sum();
    let slack_s = state.observed.objectives.first_token.map_or(2.0, Micros::as_seconds);
    let clearing = Clearing { reading, cold_start_s: main.cold_s, slack_s };
    let need = whole(main.fleet().replicas(state.load.with_backlog(&yardstick, &clearing)));
    let need = need.max(u32::from(state.load.backlog > 0.0));
    let total = state.baseline();
    if main.known && need > total {
        let main = &mut state.variants[state.main];
        main.target += need - total;
        main.recommended = main.recommended.max(main.target);
        (state.bound, state.reason) = (Bound::NeedNow, Reason::ScaledUp);
        step(state);
    }
}

fn waits(state: &ModelState<'_>) -> bool {
    state.observed.demand.backlog.fresh().is_some_and(|backlog| !backlog.is_zero())
}

/// Work that is seen to wait for a model without replicas gets the first, whatever is not known: what a
/// replica can do, who else is silent, or whether an earlier start failed.
fn first_replica(state: &mut ModelState<'_>) {
    if state.baseline() == 0 && state.target() == 0 && waits(state) && state.ceiling() > 0 {
        fit(state, 1);
        for variant in &mut state.variants {
            variant.recommended = variant.recommended.max(variant.target);
        }
        (state.bound, state.reason) = (Bound::NeedNow, Reason::ScaledUp);
    }
}

/// That a replica was seen to do so much does not say that it can do no more: while nobody waits and no more miss than
/// may, nothing is added. Each replica that is added makes the others do less, and the next look would see less still.
fn unproven(state: &mut ModelState<'_>, memory: &ModelMemory) {
    let at_least =
        |variant: &VariantState<'_>| variant.is_used() && variant.observed.capacity.is_at_least();
    let unproven = state.variants.iter().any(at_least);
    let fine = !waits(state) && memory.feedback.overdrawn(state.allowed()) <= 0.0;
    if unproven && fine && state.target() > state.baseline().max(state.floor()) {
        hold(state);
        (state.bound, state.reason) = (Bound::Staleness, Reason::CapacityUnknown);
    }
}

/// One decision goes only so far. Steps are counted from the replicas that are there, so that
/// deciding again before they change goes no further.
fn step(state: &mut ModelState<'_>) {
    if state.reason == Reason::Sleeping {
        return;
    }
    let limits = state.policy.step;
    let live: u32 = state.variants.iter().map(VariantState::live).sum();
    let baseline = state.baseline();
    let most =
        live.saturating_mul(limits.up_times).max(live.saturating_add(limits.up_at_least.get()));
    let most = most.max(baseline);
    if state.target() > most {
        fit(state, most);
        note(state, Bound::Step, most);
        (state.bound, state.reason) = (Bound::Step, Reason::StepLimited);
    }
    let part = (u64::from(live) * u64::from(limits.down_percent.min(100)) / 100) as u32;
    let least = live.saturating_sub(part.max(1)).min(baseline);
    if state.target() < least {
        fit(state, least);
        note(state, Bound::Step, least);
        (state.bound, state.reason) = (Bound::Step, Reason::StepLimited);
    }
}

/// No replica goes within a cold start after one came: it would have been paid for nothing
/// (ray-project/ray#18925 is an endless cycle, ai-dynamo/dynamo PR #9294 one at constant load). More
/// is never refused because less was asked for before: that would make requests pay for stability.
fn reversal(state: &mut ModelState<'_>) {
    let now = state.now;
    let mut held = false;
    for variant in &mut state.variants {
        let last = variant.last;
        // What was asked for and never came is asked for again and again, and was not paid for.
        let started = !variant.absent && variant.is_recent(last.and_then(|last| last.started), now);
        if variant.target < variant.baseline && started {
            variant.target = variant.baseline;
            variant.buys = [0; 3];
            held = true;
        }
    }
    if held {
        note(state, Bound::Step, state.target());
        (state.bound, state.reason) = (Bound::Step, Reason::StepLimited);
    }
}

/// Money that is gone stops growth. It takes nothing away: requests that run are paid for.
fn budget(state: &mut ModelState<'_>) {
    let Some(budget) = state.policy.hourly_budget else { return };
    let budget = budget.micros() as f64;
    let mut cost: f64 =
        state.variants.iter().map(|variant| variant.price() * f64::from(variant.target)).sum();
    let mut cut = false;
    while cost > budget {
        let grown = state.variants.iter_mut().filter(|variant| variant.target > variant.baseline);
        let dearest = grown.max_by(|a, b| a.price_of_work().total_cmp(&b.price_of_work()));
        let Some(variant) = dearest else { break };
        variant.target -= 1;
        cost -= variant.price();
        cut = true;
    }
    if cut {
        note(state, Bound::Budget, state.target());
        (state.bound, state.reason) = (Bound::Budget, Reason::BudgetReached);
    }
}

/// The owner's fewest and most.
fn bounds(state: &mut ModelState<'_>) {
    let (floor, ceiling) = (state.floor(), state.ceiling());
    if state.target() > ceiling {
        fit(state, ceiling);
        note(state, Bound::Maximum, ceiling);
        (state.bound, state.reason) = (Bound::Maximum, Reason::LimitReached);
    }
    let may_sleep = state.observed.bounds.may_sleep;
    let asleep = may_sleep && state.target() == 0;
    let floor = if may_sleep { floor } else { floor.max(1).min(ceiling) };
    if state.target() < floor && !asleep && state.bound != Bound::Budget {
        let grows = floor > state.baseline();
        fit(state, floor);
        note(state, Bound::Minimum, floor);
        state.bound = Bound::Minimum;
        state.reason = if grows { Reason::ScaledUp } else { Reason::Steady };
    }
}

fn wake(state: &mut ModelState<'_>) {
    if state.observed.bounds.may_sleep && state.baseline() == 0 && state.target() > 0 {
        state.reason = Reason::Waking;
    }
}

/// Brings the total to `total`: adds where work is cheapest, takes where it is dearest.
///
/// What goes back to the baseline goes first, so that a limit moves nothing that need not move.
fn fit(state: &mut ModelState<'_>, total: u32) {
    let mut left = i64::from(total) - i64::from(state.target());
    let mut order: Vec<usize> = (0..state.variants.len()).collect();
    let key = |variant: &VariantState<'_>| (!variant.known, variant.backs_off);
    order.sort_by(|a, b| {
        let (a, b) = (&state.variants[*a], &state.variants[*b]);
        key(a).cmp(&key(b)).then(a.price_of_work().total_cmp(&b.price_of_work()))
    });
    if left < 0 {
        order.reverse();
    }
    for to_baseline in [true, false] {
        for n in &order {
            let variant = &mut state.variants[*n];
            let (target, baseline) = (i64::from(variant.target), i64::from(variant.baseline));
            let room = match (left > 0, to_baseline) {
                (true, true) => (baseline - target).max(0),
                (true, false) => i64::MAX,
                (false, true) => (target - baseline).max(0),
                (false, false) => target,
            };
            let part = room.min(left.abs()) * left.signum();
            variant.target = u32::try_from(target + part).unwrap_or(u32::MAX);
            left -= part;
        }
    }
}

fn note(state: &mut ModelState<'_>, bound: Bound, count: u32) {
    state.candidates.push((bound, crate::variant_state::replicas(count)));
}

/// Holds a recommendation that was spread anew within steps, reversals, money and bounds.
pub(crate) fn again(state: &mut ModelState<'_>) {
    let (bound, reason) = (state.bound, state.reason);
    step(state);
    reversal(state);
    budget(state);
    bounds(state);
    if state.bound == bound && state.target() >= state.baseline() {
        state.reason = Reason::VariantSwitched;
    } else if !state.bound.can_starve() {
        (state.bound, state.reason) = (bound, reason);
    }
}
