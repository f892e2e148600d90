//! What one replica can do before anything was measured: as its owner says, or as `perf` predicts it for the
//! requests that come.

use crate::reach::Alone;
use crate::reading::{Paces, PredictedReplica, VariantReading};
use crate::shape::Means;
use flyball_core::snapshot::{Capacity, Objectives};
use flyball_perf::serving::batch::{Batch, StepTime as _};
use flyball_perf::serving::capacity::{self, CapacityQuestion};
use flyball_perf::serving::chunk;
use flyball_perf::serving::steady::{EngineLimits, RequestShape, operating};

/// A prediction stays until requests changed by this share: a capacity that moves with every look would move the
/// target with it.
const CHANGED: f64 = 0.15;

/// The last prediction of a variant, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prior {
    inputs: (PredictedReplica, Objectives),
    shape: (f64, f64),
    capacity: Capacity,
    pub(crate) paces: Option<Paces>,
    pub(crate) alone: Alone,
}

/// What one replica of a variant can do.
pub(crate) fn capacity(
    last: &mut Option<Prior>,
    variant: &VariantReading,
    shape: Option<Means>,
    objectives: &Objectives,
) -> Capacity {
    let stated = variant.stated;
    let Some(predicted) = variant.predicted.as_ref().filter(|_| !stated.is_known()) else {
        return stated;
    };
    let shape = shape.map_or(RequestShape::CHAT, |known| (known.prompt, known.output));
    let inputs = (predicted.clone(), *objectives);
    let same = last.as_ref().filter(|last| {
        last.inputs == inputs && near(last.shape.0, shape.0) && near(last.shape.1, shape.1)
    });
    let predicted = match same {
        Some(same) => same.capacity,
        None => {
            let Predictions { capacity, paces, alone } = predict(&inputs, shape);
            *last = Some(Prior { inputs, shape, capacity, paces, alone });
            capacity
        }
    };
    // How a prediction divides its work and pools it says nothing about rates that somebody states.
    let rates = match (stated.prefill, stated.decode) {
        (None, None) => &predicted,
        _ => &stated,
    };
    Capacity {
        prefill: stated.prefill.or(predicted.prefill),
        decode: stated.decode.or(predicted.decode),
        resident: stated.resident.or(predicted.resident),
        reading_per_million: rates.reading_per_million,
        pooled_per_million: rates.pooled_per_million,
        measured_per_million: None,
    }
}

struct Predictions {
    capacity: Capacity,
    paces: Option<Paces>,
    alone: Alone,
}

fn predict(
    (predicted, objectives): &(PredictedReplica, Objectives),
    shape: (f64, f64),
) -> Predictions {
    let unset = CapacityQuestion::unset(&predicted.model, &predicted.accelerator, predicted.tensor);
    let question = CapacityQuestion {
        step_tokens: predicted.step_tokens.unwrap_or(unset.step_tokens),
        ..unset
    };
    let usual = RequestShape::usual(shape.0, shape.1);
    let Ok((step, cache)) = capacity::predicted(&question, &usual) else {
        return Predictions { capacity: Capacity::UNKNOWN, paces: None, alone: Alone::default() };
    };
    let idle = step.seconds(&Batch::decoding(1.0, shape.0 + shape.1 / 2.0));
    let limits = |objectives: &Objectives| {
        let between = objectives.between_tokens.map(|time| time.as_seconds());
        let chosen = || between.map(|limit| chunk::largest(&step, limit));
        let step_tokens = predicted.step_tokens.or_else(chosen).unwrap_or(question.step_tokens);
        EngineLimits {
            chunk: f64::from(step_tokens),
            copies: 1.0,
            sequences: f64::from(question.most_running),
            cache_tokens: cache.get() as f64,
            output_held: 1.0,
        }
    };
    let first = operating(&step, &usual, &limits(objectives), 0.1);
    let alone = Alone {
        pace: Some(idle),
        first_token: Some((first.ttft_mean, first.ttft_p95)),
        ..Alone::default()
    };
    // What a replica carries inside of objectives that none can keep is what it carries without them.
    let objectives = &alone.reachable(objectives);
    let limits = limits(objectives);
    let at = capacity::carried(&step, &limits, &usual, objectives);
    let timely = capacity::in_time(&step, &limits, &usual, objectives);
    let paces = at.zip(timely).map(|(at, timely)| Paces {
        idle,
        full: at.tpot.max(timely.tpot),
        carried: at.tpot,
    });
    let capacity = capacity::capacity(&step, &limits, &usual, objectives);
    Predictions { capacity, paces, alone }
}

fn near(before: f64, now: f64) -> bool {
    (now / before - 1.0).abs() < CHANGED
}
