//! What somebody who writes an autoscaler for a model of a scenario would have measured before.

use super::build;
use crate::cluster::Setup;
use crate::rivals::RivalFacts;
use crate::seconds::Seconds;
use crate::traffic::Trace;
use flyball_core::units::Micros;
use flyball_perf::serving::capacity;

/// The facts of a model, by its place in the setup: of replicas as they are when the world begins, whatever anybody is
/// then told of them. Rivals are set up by people who measured.
pub fn facts(setup: &Setup, model: usize) -> RivalFacts {
    let model = &setup.models[model];
    let bounds = (model.bounds.min.get(), model.bounds.max.get());
    let seconds = |time: Option<Micros>, unset: Seconds| time.map_or(unset, Seconds::from);
    let unset = RivalFacts::default();
    let rates = rates(&model.trace, setup.length);
    let facts = RivalFacts {
        first_token: seconds(model.objectives.first_token, unset.first_token),
        between_tokens: seconds(model.objectives.between_tokens, unset.between_tokens),
        min: bounds.0,
        max: bounds.1.max(bounds.0),
        peak_per_second: rates.iter().copied().max_by(f64::total_cmp),
        ..unset
    };
    let Some(variant) = model.variants.first() else { return facts };
    let shape = build::shape(&model.trace);
    let speed = &variant.speed;
    let carried = capacity::carried(&speed.step, &speed.limits(), &shape, &model.objectives);
    let Some(alone) = carried else { return facts };
    // Who measures a replica measures one of those that run: each of many carries more than one alone.
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let each = variant.capacity.pooling().each((mean / alone.rate).max(1.0));
    let supply = &setup.pools[variant.pool].node_supply;
    RivalFacts {
        replica_per_second: each * alone.rate,
        prompt_tokens_per_second: each * alone.rate * shape.input,
        prompt_tokens: shape.input,
        max_running: each * alone.running,
        cold_start: variant
            .cold_start
            .expected(supply)
            .map_or(facts.cold_start, |time| Seconds::from(time.point())),
        ..facts
    }
}

/// Requests per second in each minute.
fn rates(trace: &Trace, length: Seconds) -> Vec<f64> {
    let mut minutes = vec![0.0; (length.get() / 60.0).ceil() as usize];
    for request in &trace.requests {
        if let Some(minute) = minutes.get_mut((request.at.get() / 60.0) as usize) {
            *minute += 1.0 / 60.0;
        }
    }
    minutes
}
