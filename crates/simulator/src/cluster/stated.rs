//! What policies are told that a replica can do.

use super::World;
use super::faults::{Fault, StatedCapacity};
use super::setup::VariantSetup;
use crate::seconds::Seconds;
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{Capacity, Objectives};
use flyball_core::units::{Micros, Tokens, TokensPerSecond};
use flyball_estimator::reading::Paces;

/// Of what owners state, as the operator takes it.
const STATED_ERROR_PERCENT: u64 = 20;
const STATED_START_TIMES: u64 = 2;

/// Gateways have this long to come to an operator that has just begun, before it takes what it hears for all.
const COME_WITHIN: Seconds = Seconds(60.0);

impl World<'_> {
    /// How long a start takes, as the owner of a variant says it or as somebody who knows its parts would.
    pub(super) fn stated_start(&self, variant: &VariantSetup) -> Option<Interval<Micros>> {
        if !self.setup.habits.predicts {
            return variant.cold_start.expected(&self.setup.pools[variant.pool].node_supply);
        }
        let micros = variant.cold_start.median().to_micros().get();
        let [low, point, high] =
            [micros / STATED_START_TIMES, micros, micros * STATED_START_TIMES].map(Micros::new);
        Interval::new(low, point, high, Origin::Stated).ok()
    }

    /// Gateways that may be there and have not come to whoever decides.
    pub(super) fn silent_gateways(&self) -> u32 {
        let begins = self.now - self.decides_since < COME_WITHIN;
        u32::from(self.setup.habits.report_every.is_some() && begins)
    }

    /// What is told of a variant now.
    pub(super) fn stated(&self, model: usize, variant: usize) -> (Capacity, Option<Paces>) {
        let setup = &self.setup.models[model];
        let VariantSetup { capacity, paces, ref predicted, .. } = setup.variants[variant];
        // What can be predicted nobody states, but somebody who is wrong.
        let predicts = self.setup.habits.predicts && predicted.is_some();
        let mut stated_now = if predicts { (Capacity::UNKNOWN, None) } else { (capacity, paces) };
        for fault in &self.faults {
            let Fault::StatedCapacity { stated: wrong, .. } = &self.setup.faults[*fault] else {
                continue;
            };
            stated_now = match wrong {
                StatedCapacity::Times(factor) if predicts => (stated(&capacity, *factor), None),
                StatedCapacity::Times(factor) => times(stated_now, *factor, &setup.objectives),
                StatedCapacity::Nothing => (Capacity::UNKNOWN, None),
                StatedCapacity::Exactly(all) => {
                    let known = all.get(model).and_then(|variants| variants.get(variant));
                    known.copied().unwrap_or(stated_now)
                }
            };
        }
        stated_now
    }
}

/// What an owner states who thinks that it is so many times as fast, with the error that stated numbers are taken to have.
pub fn stated(capacity: &Capacity, factor: f64) -> Capacity {
    fn with_error<T: Copy + PartialOrd>(
        value: u64,
        unit: impl Fn(u64) -> T,
    ) -> Option<Interval<T>> {
        let error = value * STATED_ERROR_PERCENT / 100;
        Interval::new(unit(value - error), unit(value), unit(value + error), Origin::Stated).ok()
    }
    let rate = |rate: Interval<TokensPerSecond>| {
        with_error((rate.point().get() as f64 * factor) as u64, TokensPerSecond::new)
    };
    Capacity {
        prefill: capacity.prefill.and_then(rate),
        decode: capacity.decode.and_then(rate),
        resident: capacity.resident.and_then(|all| with_error(all.point().get(), Tokens::new)),
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
    let allowed = objectives.between_tokens.map_or(f64::MAX, |time| time.as_seconds());
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
