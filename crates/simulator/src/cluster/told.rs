//! What policies are told that a replica can do.

use super::faults::{Fault, Told};
use super::setup::VariantSetup;
use super::world::World;
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{Capacity, Objectives};
use flyball_core::units::TokensPerSecond;
use flyball_estimator::reading::Paces;

impl World<'_> {
    /// What is told of a variant now.
    pub(super) fn told(&self, model: usize, variant: usize) -> (Capacity, Option<Paces>) {
        let setup = &self.setup.models[model];
        let VariantSetup { capacity, paces, ref predicted, .. } = setup.variants[variant];
        // What can be predicted nobody states, but somebody who is wrong.
        let predicts = self.setup.habits.predicts && predicted.is_some();
        let mut told = if predicts { (Capacity::UNKNOWN, None) } else { (capacity, paces) };
        for fault in &self.faults {
            let Fault::ToldCapacity { told: wrong, .. } = &self.setup.faults[*fault] else {
                continue;
            };
            told = match wrong {
                Told::Times(factor) if predicts => (stated(&capacity, *factor), None),
                Told::Times(factor) => times(told, *factor, &setup.objectives),
                Told::Nothing => (Capacity::UNKNOWN, None),
                Told::Exactly(all) => {
                    let known = all.get(model).and_then(|variants| variants.get(variant));
                    known.copied().unwrap_or(told)
                }
            };
        }
        told
    }
}

/// What an owner states who thinks that it is so many times as fast.
pub fn stated(capacity: &Capacity, factor: f64) -> Capacity {
    let rate = |rate: Interval<TokensPerSecond>| {
        let rate = TokensPerSecond::from_sample(rate.point().get() as f64 * factor)?;
        Interval::exact(rate, Origin::Stated).ok()
    };
    Capacity {
        prefill: capacity.prefill.and_then(rate),
        decode: capacity.decode.and_then(rate),
        resident: capacity.resident.and_then(|all| Interval::exact(all.point(), Origin::Stated).ok()),
        ..Capacity::UNKNOWN
    }
}

/// As of an engine that is so many times as fast. What it holds is not a matter of speed, and no token may take longer
/// than the objective allows, however slow it is.
fn times(
    (capacity, paces): (Capacity, Option<Paces>),
    factor: f64,
    objectives: &Objectives,
) -> (Capacity, Option<Paces>) {
    let rate = |rate: Interval<TokensPerSecond>| {
        let of = |part: TokensPerSecond| TokensPerSecond::from_sample(part.get() as f64 * factor);
        let (low, point, high) = (of(rate.low())?, of(rate.point())?, of(rate.high())?);
        Interval::new(low, point, high, rate.origin()).ok()
    };
    let allowed = objectives.between_tokens.map_or(f64::MAX, |time| time.get() as f64 / 1e6);
    let capacity = Capacity {
        prefill: capacity.prefill.and_then(rate),
        decode: capacity.decode.and_then(rate),
        ..capacity
    };
    let paces = paces.map(|paces| Paces {
        idle: paces.idle / factor,
        full: (paces.full / factor).min(allowed.max(paces.full)),
        carried: (paces.carried / factor).min(allowed.max(paces.carried)),
    });
    (capacity, paces)
}
