//! What was drawn from the wall: watts, joules a token, kilowatt-hours, grams of carbon dioxide.
//!
//! Watts come from a meter where there is one. Elsewhere they come from the catalogue's power limit, with an interval that
//! holds what accelerators draw between idle and full work; the ends are wide on purpose. Nothing is known of cooling but
//! what the user states.

use crate::uses::{GpuUse, Spending};
use flyball_core::interval::{Interval, Origin};
use flyball_core::units::GpuMicros;
use std::collections::BTreeMap;
use thiserror::Error;

const JOULES_PER_KWH: f64 = 3.6e6;

/// Parts of the power limit that an accelerator draws: at least, at most, and what is taken for likely.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PowerParts(f64, f64, f64);

/// While computing: decoding reads memory and draws little over half, prefill and training reach the limit.
const COMPUTING: PowerParts = PowerParts(0.35, 0.65, 1.0);
/// With nothing to do: 60 to 120 of 700 W on an H100 with a model loaded, a tenth without.
const AT_REST: PowerParts = PowerParts(0.07, 0.13, 0.25);

/// Watts of one accelerator for a use.
///
/// `limit_w` is the catalogue's `tdp_w`, `measured_w` what a meter said of this use.
pub fn watts(use_: GpuUse, limit_w: Option<f64>, measured_w: Option<f64>) -> Option<Interval<f64>> {
    let usable = |watts: f64| watts.is_finite() && watts >= 0.0;
    if let Some(measured) = measured_w.filter(|watts| usable(*watts)) {
        return Interval::exact(measured, Origin::Measured).ok();
    }
    let limit = limit_w.filter(|watts| usable(*watts))?;
    let PowerParts(low, point, high) = match use_ {
        GpuUse::Useful | GpuUse::Missed | GpuUse::RedoingLostWork => COMPUTING,
        // Neither is known to be the one or the other.
        GpuUse::Starting | GpuUse::Saving | GpuUse::Unseen | GpuUse::Drained | GpuUse::Lent => {
            PowerParts(AT_REST.0, AT_REST.2, COMPUTING.2)
        }
        GpuUse::Quiet | GpuUse::Parked | GpuUse::WaitingForGang | GpuUse::Unallocated => AT_REST,
    };
    Interval::new(limit * low, limit * point, limit * high, Origin::Catalogued).ok()
}

/// Energy of GPU time by use, in joules; unknown if that of any use is.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergyUse {
    pub joules: Interval<f64>,
    /// Overhead of the building that was multiplied with, one for none.
    pub pue: f64,
}

/// Energy of what was spent on accelerators of one kind. `pue` is the building's energy over that of its machines.
pub fn energy(
    spent: &Spending,
    limit_w: Option<f64>,
    measured_w: &BTreeMap<GpuUse, f64>,
    pue: f64,
) -> Option<EnergyUse> {
    let pue = if pue.is_finite() && pue >= 1.0 { pue } else { return None };
    let (mut low, mut point, mut high, mut origin) = (0.0, 0.0, 0.0, Origin::Measured);
    for (use_, one) in spent.iter() {
        let watts = watts(use_, limit_w, measured_w.get(&use_).copied())?;
        let seconds = seconds(one.time) * pue;
        low += watts.low() * seconds;
        point += watts.point() * seconds;
        high += watts.high() * seconds;
        origin = origin.min(watts.origin());
    }
    Some(EnergyUse { joules: Interval::new(low, point, high, origin).ok()?, pue })
}

fn seconds(time: GpuMicros) -> f64 {
    time.get() as f64 / 1e6
}

impl EnergyUse {
    pub fn kwh(&self) -> Option<Interval<f64>> {
        self.over(JOULES_PER_KWH)
    }

    /// Unknown without tokens.
    pub fn joules_per_token(&self, tokens: u64) -> Option<Interval<f64>> {
        if tokens == 0 { None } else { self.over(tokens as f64) }
    }

    /// Grams of carbon dioxide at so many for a kilowatt-hour.
    pub fn grams_co2(&self, grams_per_kwh: f64) -> Option<Interval<f64>> {
        let kwh = self.kwh()?;
        let times = |value: f64| value * grams_per_kwh;
        Interval::new(times(kwh.low()), times(kwh.point()), times(kwh.high()), kwh.origin()).ok()
    }

    fn over(&self, parts: f64) -> Option<Interval<f64>> {
        let Self { joules, .. } = self;
        Interval::new(
            joules.low() / parts,
            joules.point() / parts,
            joules.high() / parts,
            joules.origin(),
        )
        .ok()
    }
}

/// A line of the file of intensities is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "line {line}: {what}; write the region, a comma and grams of CO2 for a kilowatt-hour, as in eu-north-1,41"
)]
pub struct IntensityError {
    pub line: usize,
    pub what: String,
}

/// Reads a user's file of grams of carbon dioxide for a kilowatt-hour by region: `region,grams_per_kwh` in the first line,
/// then a line each. There is none built in: they change with the hour, and everybody's source is another.
pub fn intensities(text: &str) -> Result<BTreeMap<String, f64>, IntensityError> {
    let mut regions = BTreeMap::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: &str| IntensityError { line: index + 1, what: what.to_owned() };
        let (region, grams) = line.split_once(',').ok_or_else(|| wrong("no comma"))?;
        if index == 0 && region.trim() == "region" {
            continue;
        }
        let grams: f64 =
            grams.trim().parse().map_err(|_| wrong("the second value is no number"))?;
        // The dirtiest grids are near 1,000.
        if !(0.0..=3_000.0).contains(&grams) {
            return Err(wrong("the number is not between 0 and 3000"));
        }
        if regions.insert(region.trim().to_owned(), grams).is_some() {
            return Err(wrong("the region comes twice"));
        }
    }
    Ok(regions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uses::Spent;
    use flyball_core::units::{Gpus, Micros};

    fn hour(use_: GpuUse) -> Spending {
        Spending::of(
            use_,
            Spent { time: GpuMicros::of(Gpus::new(1), Micros::HOUR), ..Spent::default() },
        )
    }

    #[test]
    fn a_measured_hour_is_exact_and_a_catalogued_one_has_an_interval() {
        let measured = energy(
            &hour(GpuUse::Useful),
            Some(700.0),
            &BTreeMap::from([(GpuUse::Useful, 500.0)]),
            1.0,
        )
        .unwrap();
        assert_eq!(measured.kwh().unwrap().point(), 0.5);
        assert_eq!(measured.joules.low(), measured.joules.high());
        assert_eq!(measured.joules_per_token(1_800_000).unwrap().point(), 1.0);
        assert_eq!(measured.joules_per_token(0), None);
        assert_eq!(measured.grams_co2(400.0).unwrap().point(), 200.0);
        let listed = energy(&hour(GpuUse::Useful), Some(700.0), &BTreeMap::new(), 1.2).unwrap();
        let joules = listed.joules;
        assert!(joules.low() < joules.point() && joules.high() == 700.0 * 3_600.0 * 1.2);
        assert_eq!(joules.origin(), Origin::Catalogued);
    }

    #[test]
    fn what_is_at_rest_draws_less_than_what_computes() {
        let all = |use_| watts(use_, Some(700.0), None).unwrap();
        assert!(all(GpuUse::Parked).high() < all(GpuUse::Useful).low());
        for use_ in GpuUse::ALL {
            assert!(all(use_).low() > 0.0 && all(use_).high() <= 700.0);
        }
    }

    #[test]
    fn without_a_limit_or_with_nonsense_it_is_unknown() {
        assert_eq!(energy(&hour(GpuUse::Quiet), None, &BTreeMap::new(), 1.0), None);
        for pue in [0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(energy(&hour(GpuUse::Quiet), Some(700.0), &BTreeMap::new(), pue), None);
        }
        assert_eq!(watts(GpuUse::Useful, Some(f64::NAN), Some(-1.0)), None);
    }

    #[test]
    fn intensities_are_read_and_nonsense_is_refused_with_its_line() {
        let regions =
            intensities("region,grams_per_kwh\neu-north-1,41\nus-east-1, 380.5\n\n").unwrap();
        assert_eq!(regions["us-east-1"], 380.5);
        for (text, line) in [("a", 1), ("a,x", 1), ("a,1\na,2", 2), ("a,1\nb,-1", 2), ("a,nan", 1)]
        {
            assert_eq!(intensities(text).unwrap_err().line, line, "{text}");
        }
    }
}
