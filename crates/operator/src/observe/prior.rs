//! What one replica can do: as its owner says, or as `perf` predicts it for the requests that come.

use super::demand::Means;
use crate::persist;
use flyball_core::ids::{ModelId, VariantId};
use flyball_core::snapshot::{Capacity, Objectives};
use flyball_perf::serving::capacity::{self, Wanted};
use flyball_perf::serving::steady::{Limits, Shape};
use flyball_resources::model_service::{ModelServiceStatus, Variant};
use std::collections::{BTreeMap, BTreeSet};

/// vLLM's defaults: prompt tokens of one step, and requests at once.
const STEP_TOKENS: u32 = 8_192;
const MOST_RUNNING: u32 = 256;

/// What requests look like before any were seen: those of a chat.
const USUAL: (f64, f64) = (1_000.0, 300.0);

/// The weight of a new look at requests: after ten minutes of looks a quarter of a minute apart, what
/// was seen before counts for a third.
const WEIGHT: f64 = 0.025;

/// A prediction stays until requests changed by this share: a capacity that moves with every look
/// would move the target with it.
const CHANGED: f64 = 0.15;

/// Predictions and what they rest on.
#[derive(Clone, Debug, Default)]
pub struct Priors {
    shapes: BTreeMap<ModelId, Means>,
    predicted: BTreeMap<VariantId, Predicted>,
}

#[derive(Clone, Debug)]
struct Predicted {
    asked: (String, String, u32, Objectives),
    shape: (f64, f64),
    capacity: Capacity,
}

impl Priors {
    /// Requests looked like this when a status was last written, for as long as nothing else is known.
    pub(super) fn recall(&mut self, id: &ModelId, status: Option<&ModelServiceStatus>) {
        if self.shapes.contains_key(id) {
            return;
        }
        let text = status.and_then(|status| status.learnt.as_deref());
        if let Some(shape) = text.and_then(|text| persist::read(text).ok()?.shape) {
            self.shapes.insert(id.clone(), shape);
        }
    }

    /// What requests look like.
    pub fn shape(&self, id: &ModelId) -> Option<Means> {
        self.shapes.get(id).copied()
    }

    /// Forgets what requests look like, because another operator leads and is told: its word stands in
    /// the statuses.
    pub fn stand_by(&mut self) {
        self.shapes.clear();
    }

    /// Requests look like this now.
    pub(super) fn learn(&mut self, id: &ModelId, seen: Option<Means>) {
        let Some(seen) = seen.filter(|seen| seen.prompt >= 1.0 && seen.output >= 1.0) else {
            return;
        };
        let known = self.shapes.entry(id.clone()).or_insert(seen);
        // A first mean of a few short answers would otherwise be believed in part for ten minutes: on
        // the cluster a replica was taken to write a quarter less than it did.
        if known.answered < Means::SETTLED && seen.answered >= known.answered {
            *known = seen;
        }
        known.prompt += WEIGHT * (seen.prompt - known.prompt);
        known.output += WEIGHT * (seen.output - known.output);
    }

    /// What one replica of a variant can do.
    pub(super) fn capacity(
        &mut self,
        id: &VariantId,
        variant: &Variant,
        model: Option<&str>,
        accelerator: Option<&str>,
        objectives: &Objectives,
    ) -> Capacity {
        let stated = variant.capacity.as_ref().map(|stated| stated.of_core());
        let stated = stated.unwrap_or(Capacity::UNKNOWN);
        let (Some(model), Some(accelerator), false) = (model, accelerator, stated.is_known())
        else {
            return stated;
        };
        let tensor = u32::try_from(variant.gpus_per_replica.max(1)).unwrap_or(1);
        let predicted = self.predict(id, (model, accelerator, tensor), objectives);
        Capacity {
            prefill: stated.prefill.or(predicted.prefill),
            decode: stated.decode.or(predicted.decode),
            resident: stated.resident.or(predicted.resident),
        }
    }

    fn predict(
        &mut self,
        id: &VariantId,
        (model, accelerator, tensor): (&str, &str, u32),
        objectives: &Objectives,
    ) -> Capacity {
        let shape = self.shapes.get(id.model()).map_or(USUAL, |known| (known.prompt, known.output));
        let asked = (model.to_owned(), accelerator.to_owned(), tensor, *objectives);
        if let Some(known) = self.predicted.get(id)
            && known.asked == asked
            && near(known.shape.0, shape.0)
            && near(known.shape.1, shape.1)
        {
            return known.capacity;
        }
        let wanted = Wanted {
            model,
            accelerator,
            tensor,
            step_tokens: STEP_TOKENS,
            most_running: MOST_RUNNING,
        };
        let uniform = Shape::uniform(shape.0, shape.1);
        let capacity = match capacity::predicted(&wanted, &uniform) {
            Ok((step, cache)) => {
                let limits = Limits {
                    chunk: f64::from(STEP_TOKENS),
                    copies: 1.0,
                    sequences: f64::from(MOST_RUNNING),
                    cache_tokens: cache.get() as f64,
                    output_held: 1.0,
                };
                capacity::capacity(&step, &limits, &uniform, objectives)
            }
            Err(_) => Capacity::UNKNOWN,
        };
        self.predicted.insert(id.clone(), Predicted { asked, shape, capacity });
        capacity
    }

    /// Forgets variants that are gone.
    pub fn keep(&mut self, ids: &BTreeSet<VariantId>) {
        self.predicted.retain(|id, _| ids.contains(id));
        self.shapes.retain(|model, _| ids.iter().any(|id| id.model() == model));
    }
}

fn near(before: f64, now: f64) -> bool {
    (now / before - 1.0).abs() < CHANGED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answers_are_short_and_are_soon_forgotten() {
        let (mut priors, id): (_, ModelId) = (Priors::default(), "a/m".parse().unwrap());
        let mut seen = |output: f64, answered: f64| {
            priors.learn(&id, Some(Means { prompt: 4_000.0, output, answered }));
            priors.shapes[&id].output
        };
        assert_eq!(seen(150.0, 3.0), 150.0);
        assert_eq!(seen(380.0, 200.0), 380.0, "a mean of more is taken as it is");
        assert_eq!(seen(400.0, 310.0), 400.0);
        // From here on slowly, also after a gateway has begun to count anew.
        assert_eq!(seen(200.0, 900.0), 395.0);
        assert_eq!(seen(195.0, 2.0), 390.0);
    }
}
