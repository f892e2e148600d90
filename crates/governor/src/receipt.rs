//! What was considered, so that a person can check it and a replay can judge it.

use crate::forecast::horizon_s;
use crate::lane::replicas;
use crate::memory::ModelMemory;
use crate::mix::whole;
use crate::scale::length;
use crate::seat::Seat;
use crate::steps::{self, Scene};
use flyball_core::decision::{Expected, ModelDecision, Receipt, Work};
use flyball_core::interval::{Interval, Origin};
use flyball_core::reason::Reason;
use flyball_core::snapshot::Mode;
use flyball_core::units::{MilliReplicas, Money, Replicas, Requests};

/// Turns what was settled for a model into its part of the decision.
pub(crate) fn decided(mut seat: Seat<'_>, memory: &mut ModelMemory) -> ModelDecision {
    let receipt = receipt(&seat);
    let expected = expected(&seat, memory);
    let live: u32 = seat.lanes.iter().map(|lane| lane.live()).sum();
    if seat.model.mode == Mode::Recommend && seat.target() != live && !seat.model.frozen {
        seat.reason = Reason::Recommending;
    }
    let frozen = seat.model.frozen;
    let scene = Scene {
        now: seat.now,
        // A person's maximum or pin is followed even blind; see the second invariant.
        blind: seat.blind && seat.baseline() <= seat.ceiling(),
        serves: seat.lanes.iter().any(|lane| lane.ready > 0),
    };
    let targets = seat.lanes.into_iter().map(|lane| {
        let learnt = memory.variants.get_mut(lane.id.name()).filter(|_| !frozen);
        steps::target(lane, learnt, scene)
    });
    ModelDecision {
        model: seat.id.clone(),
        reason: seat.reason,
        bound: seat.bound,
        targets: targets.collect(),
        expected,
        receipt,
    }
}

/// A horizontal pod autoscaler with a target of 75 %, which is where people end up, and its
/// tolerance of 10 %.
fn hpa(seat: &Seat<'_>) -> Option<Replicas> {
    let main = seat.lanes.get(seat.main)?;
    let work = main.fleet().replicas(seat.work_now);
    let ready = f64::from(seat.lanes.iter().map(|lane| lane.ready).sum::<u32>());
    let wanted = work / 0.75;
    let within = ready > 0.0 && (wanted / ready - 1.0).abs() <= 0.1;
    // One that is switched on keeps at least one.
    Some(replicas(if within { ready as u32 } else { whole(wanted).max(1) }))
}

fn receipt(seat: &Seat<'_>) -> Receipt {
    let work = seat.outlook.is_some().then(|| {
        let main = &seat.lanes[seat.main];
        let milli = |work: f64| {
            MilliReplicas::from_sample(main.fleet().replicas(work) * 1000.0)
                .unwrap_or(MilliReplicas::MAX)
        };
        let enough =
            seat.outlook.as_ref().map_or(0.0, |outlook| 1.0 - outlook.exceeds(seat.look_ahead));
        Work {
            ready: seat.lanes.iter().map(|lane| replicas(lane.ready)).sum(),
            coming: seat.lanes.iter().map(|lane| replicas(lane.coming)).sum(),
            need_now: milli(seat.need_now),
            look_ahead: milli(seat.look_ahead),
            quantile_per_million: (enough * 1e6).round() as u32,
            cold_start: length(main.usual_s),
            hold: length((horizon_s(main.usual_s) - main.usual_s).max(0.0)),
            capacity_per_million: main.variant.capacity.measured_per_million.unwrap_or(1_000_000),
            hourly_price: main
                .currency
                .map(|currency| Money::from_micros(main.price() as i64, currency)),
        }
    });
    Receipt {
        signals: seat.model.demand.signals().to_vec(),
        candidates: seat.candidates.clone(),
        hpa_would_want: if seat.blind { None } else { hpa(seat) },
        work,
        unreachable: seat.model.unreachable,
        slow: seat.lanes.iter().flat_map(|lane| lane.variant.slow.clone()).collect(),
        law: None,
    }
}

fn expected(seat: &Seat<'_>, memory: &ModelMemory) -> Expected {
    let priced = seat.lanes.iter().filter(|lane| lane.target > 0);
    let currency =
        priced.clone().map(|lane| lane.currency).reduce(|a, b| if a == b { a } else { None });
    let hourly_cost = currency.flatten().and_then(|currency| {
        let micros: f64 = priced.map(|lane| lane.price() * f64::from(lane.target)).sum();
        Interval::exact(Money::from_micros(micros as i64, currency), Origin::Catalogued).ok()
    });
    let hourly_misses = seat.outlook.as_ref().and_then(|outlook| {
        let capacity = seat.together(seat.alone(|lane| lane.target));
        let requests = outlook.misses(capacity) * memory.feedback.requests_per_work()? * 3_600.0;
        // What is said is held against what came: a queue that is thought of takes no turns.
        let requests = requests * memory.feedback.missed_of_expected(seat);
        // A model of a queue is right to a factor of about three in its tail.
        let [low, point, high] =
            [requests / 3.0, requests, requests * 3.0].map(Requests::from_sample);
        Interval::new(low?, point?, high?, Origin::Forecast).ok()
    });
    Expected { hourly_cost, hourly_misses }
}
