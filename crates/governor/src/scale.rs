//! How much capacity a model should have: up at once and in full, down slowly and only if the
//! rest can carry it.
//!
//! Two numbers come from the outlook: one that is worth buying, where a replica counts a little
//! dearer than it is, and one that is worth keeping, where it counts a little cheaper. Between the
//! two nothing changes, which is why constant load never oscillates.

use crate::feedback::Feedback;
use crate::memory::ModelMemory;
use crate::mix::{self, Offer, whole};
use crate::model_state::ModelState;
use crate::policy::Law;
use crate::recommendations::{patience_s, weigh};
use crate::starts::length;
use crate::variant_state::{VariantState, replicas};
use flyball_core::decision::Bound;
use flyball_core::reason::Reason;

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
    let allowed = state.allowed();
    let waiting = queue_ahead(state, memory, main.usual_s);
    let outlook = memory.forecaster.outlook(waiting, state.slack_s(), main.usual_s);
    memory.feedback.expect(outlook.misses(state.together(state.alone(|variant| variant.ready))));
    state.worth = memory.feedback.worth(allowed, state.policy, main.price_of_work());
    let (recommendations, fleet) = (&mut memory.recommendations, main.fleet());
    let (up, keep) = weigh(&outlook, &fleet, state.worth, main.usual_s, &mut recommendations.last);
    let overdrawn = memory.feedback.overdrawn(allowed);
    let standby = memory.forecaster.standby(Feedback::aim(allowed), overdrawn);
    let standby = whole(fleet.replicas(standby));
    let risen = nearest(fleet.replicas(memory.forecaster.after_a_rise()));
    let held = standby.max(risen);
    let (up, keep) = (up.max(held), keep.max(held));
    state.recommended = Some((up, keep));
    // A replica that has yet to serve was not tried: one that was asked for and given back a quarter of a minute after it
    // served was missing two minutes later.
    let tried = if main.starting > 0 { keep.max(main.baseline) } else { keep };
    let keep = recommendations.most(state.now, tried, patience_s(main.usual_s));

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
    let staying = |offer: &Offer| if stays { offer.have.min(offer.most) } else { 0 };
    let staying: Vec<u32> = offers.iter().map(staying).collect();
    let rest: Vec<Offer> =
        offers.iter().zip(&staying).map(|(offer, staying)| offer.beyond(*staying)).collect();
    let carried =
        offers.iter().zip(&staying).map(|(offer, staying)| f64::from(*staying) * offer.size);
    let more = mix::solve(&rest, work - carried.sum::<f64>(), &state.policy.spot);
    let counts = more.into_iter().zip(staying).map(|(more, staying)| more + staying);
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

/// The nearest number: a rise may come, so that half a replica too few for it is no more wrong than half one too many.
fn nearest(replicas: f64) -> u32 {
    replicas.round().max(0.0) as u32
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
