//! What was considered, so that a person can check it and a replay can judge it.

use crate::forecast::horizon_s;
use crate::memory::ModelMemory;
use crate::mix::whole;
use crate::model_state::ModelState;
use crate::starts::length;
use crate::steps::{self, Scene};
use crate::variant_state::replicas;
use flyball_core::decision::{Expected, ModelDecision, Receipt, Work};
use flyball_core::interval::{Interval, Origin};
use flyball_core::reason::Reason;
use flyball_core::snapshot::Mode;
use flyball_core::units::{MilliReplicas, Money, Replicas, Requests};

/// Turns what was settled for a model into its part of the decision.
pub(crate) fn decided(mut state: ModelState<'_>, memory: &mut ModelMemory) -> ModelDecision {
    let receipt = receipt(&state);
    let expected = expected(&state, memory);
    let live: u32 = state.variants.iter().map(|variant| variant.live()).sum();
    if state.observed.mode == Mode::Recommend && state.target() != live && !state.observed.frozen {
        state.reason = Reason::Recommending;
    }
    let frozen = state.observed.frozen;
    let scene = Scene {
        now: state.now,
        // A person's maximum or pin is followed even blind; see the second invariant.
        blind: state.blind && state.baseline() <= state.ceiling(),
        serves: state.variants.iter().any(|variant| variant.ready > 0),
    };
    let targets = state.variants.into_iter().map(|variant| {
        let learnt = memory.variants.get_mut(variant.id.name()).filter(|_| !frozen);
        steps::target(variant, learnt, scene)
    });
    ModelDecision {
        model: state.id.clone(),
        reason: state.reason,
        bound: state.bound,
        targets: targets.collect(),
        expected,
        receipt,
    }
}

/// A horizontal pod autoscaler with a target of 75 %, which is where people end up, and its
/// tolerance of 10 %.
fn hpa(state: &ModelState<'_>) -> Option<Replicas> {
    let main = state.variants.get(state.main)?;
    let work = main.fleet().replicas(state.work_now);
    let ready = f64::from(state.variants.iter().map(|variant| variant.ready).sum::<u32>());
    let proposed = work / 0.75;
    let within = ready > 0.0 && (proposed / ready - 1.0).abs() <= 0.1;
    // One that is switched on keeps at least one.
    Some(replicas(if within { ready as u32 } else { whole(proposed).max(1) }))
}

fn receipt(state: &ModelState<'_>) -> Receipt {
    let work = state.outlook.is_some().then(|| {
        let main = &state.variants[state.main];
        let milli = |work: f64| {
            MilliReplicas::from_sample(main.fleet().replicas(work) * 1000.0)
                .unwrap_or(MilliReplicas::MAX)
        };
        let enough =
            state.outlook.as_ref().map_or(0.0, |outlook| 1.0 - outlook.exceeds(state.look_ahead));
        Work {
            ready: state.variants.iter().map(|variant| replicas(variant.ready)).sum(),
            coming: state.variants.iter().map(|variant| replicas(variant.starting)).sum(),
            need_now: milli(state.need_now),
            look_ahead: milli(state.look_ahead),
            quantile_per_million: (enough * 1e6).round() as u32,
            cold_start: length(main.usual_s),
            hold: length((horizon_s(main.usual_s) - main.usual_s).max(0.0)),
            capacity_per_million: main.observed.capacity.measured_per_million.unwrap_or(1_000_000),
            hourly_price: main
                .currency
                .map(|currency| Money::from_micros(main.price() as i64, currency)),
        }
    });
    Receipt {
        signals: state.observed.demand.signals().to_vec(),
        candidates: state.candidates.clone(),
        hpa_would_want: if state.blind { None } else { hpa(state) },
        work,
        unreachable: state.observed.unreachable,
        slow: state.variants.iter().flat_map(|variant| variant.observed.slow.clone()).collect(),
        law: None,
    }
}

fn expected(state: &ModelState<'_>, memory: &ModelMemory) -> Expected {
    let priced = state.variants.iter().filter(|variant| variant.target > 0);
    let currency =
        priced.clone().map(|variant| variant.currency).reduce(|a, b| if a == b { a } else { None });
    let hourly_cost = currency.flatten().and_then(|currency| {
        let micros: f64 = priced.map(|variant| variant.price() * f64::from(variant.target)).sum();
        Interval::exact(Money::from_micros(micros as i64, currency), Origin::Catalogued).ok()
    });
    let hourly_misses = state.outlook.as_ref().and_then(|outlook| {
        let capacity = state.together(state.alone(|variant| variant.target));
        let requests = outlook.misses(capacity) * memory.feedback.requests_per_work()? * 3_600.0;
        // What is said is held against what came: a queue that is thought of takes no turns.
        let requests = requests * memory.feedback.missed_of_expected(state.allowed());
        // A model of a queue is right to a factor of about three in its tail.
        let [low, point, high] =
            [requests / 3.0, requests, requests * 3.0].map(Requests::from_sample);
        Interval::new(low?, point?, high?, Origin::Forecast).ok()
    });
    Expected { hourly_cost, hourly_misses }
}
