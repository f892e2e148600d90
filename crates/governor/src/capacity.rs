//! What one replica can really do: the prediction, corrected by what is measured.
//!
//! A prediction is wrong by a factor that is much the same for reading and for writing tokens, so
//! one factor per variant is learnt. It stays inside a trust region, because a measurement may be
//! wrong too, and samples in which a replica was still warming up are dropped: such samples once
//! made a planner scale wildly (ai-dynamo/dynamo#12430).

use crate::demand::{Load, Unit};
use flyball_core::snapshot::Capacity;
use flyball_core::units::{Micros, Timestamp};

/// A replica is warm after this. Compilation, caches and the first batches are over by then; vLLM
/// reports about 100 s from ready to full speed in llm-d's guide.
pub(crate) const WARM_UP: Micros = Micros::from_seconds(120);

/// What was measured of one variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Correction {
    /// Measured over predicted.
    factor: f64,
    /// Samples that it rests on.
    samples: u32,
    /// The last moment at which all replicas were warm, and its load.
    last: Option<(Timestamp, u32, f64)>,
}

/// One moment, as far as it tells about capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) at: Timestamp,
    pub(crate) load: Load,
    /// Replicas that serve, all of them warm; `None` if some are not.
    pub(crate) warm: Option<u32>,
    /// Whether requests missed an objective since the last moment; `None` if not known.
    pub(crate) missed: Option<bool>,
}

impl Correction {
    pub(crate) const NONE: Self = Self { factor: 1.0, samples: 0, last: None };

    /// Measured over predicted, in millionths.
    pub(crate) fn per_million(&self) -> u32 {
        (self.factor * 1e6).round() as u32
    }

    /// The low end of what one replica can do.
    ///
    /// The prediction's own doubt fades as samples come: with the square root of their number, as
    /// the error of a mean does, and ten samples weigh as much as the prediction.
    pub(crate) fn unit(&self, capacity: &Capacity) -> Unit {
        let (point, low) = (Unit::point(capacity), Unit::low(capacity));
        // What was learnt of another capacity, or elsewhere, is trusted no further than what is learnt here.
        let (least, most) = trust(capacity);
        let factor = self.factor.clamp(least, most);
        let doubt = 1.0 / (1.0 + f64::from(self.samples) / 10.0).sqrt();
        let part = |point: f64, low: f64| {
            if point.is_finite() {
                (point * factor - (point - low) * doubt).max(point / 10.0)
            } else {
                point
            }
        };
        Unit {
            prefill: part(point.prefill, low.prefill),
            decode: part(point.decode, low.decode),
            // How much memory there is does not depend on speed.
            resident: low.resident,
        }
    }

    /// What was learnt, as numbers.
    pub(crate) fn numbers(&self) -> [f64; 2] {
        [self.factor, f64::from(self.samples)]
    }

    /// The same back; `None` if it cannot be.
    pub(crate) fn restored(&[factor, samples]: &[f64; 2]) -> Option<Self> {
        let possible = (0.01..=100.0).contains(&factor) && (0.0..=MOST_SAMPLES).contains(&samples);
        possible.then_some(Self { factor, samples: samples as u32, last: None })
    }

    /// Learns from one moment.
    ///
    /// Work done with nobody waiting and nobody missed shows that at least so much is possible.
    /// Work done while a queue stands shows that no more is. A queue never *raises* the factor: a
    /// full engine does more than it can do within its objectives.
    pub(crate) fn learn(&mut self, capacity: &Capacity, sample: &Sample) {
        let Some(warm) = sample.warm.filter(|warm| *warm > 0) else {
            self.last = None;
            return;
        };
        let before = self.last.replace((sample.at, warm, sample.load.backlog));
        let Some((at, same, backlog)) = before.filter(|(_, same, _)| *same == warm) else { return };
        debug_assert_eq!(same, warm);
        let seconds = sample.at.since(at).map_or(0.0, |time| time.get() as f64 / 1e6);
        if !(1.0..=300.0).contains(&seconds) {
            return;
        }
        let point = Unit::point(capacity);
        let read = (sample.load.prefill - (sample.load.backlog - backlog) / seconds).max(0.0);
        let each = (read / point.prefill).max(sample.load.decode / point.decode) / f64::from(warm);
        // One second's reading of all replicas is a queue that stands; a tenth is noise.
        let second = point.prefill * f64::from(warm);
        let queue = sample.load.backlog.min(backlog) / second;
        let no_queue = sample.load.backlog.max(backlog) / second < 0.1;
        let shows_less = queue > 1.0 && each < self.factor;
        let shows_more = no_queue && sample.missed == Some(false) && each > self.factor;
        if shows_less || shows_more {
            let (low, high) = trust(capacity);
            self.factor = (self.factor + GAIN * (each - self.factor)).clamp(low, high);
            self.samples = self.samples.saturating_add(1).min(MOST_SAMPLES as u32);
        }
    }
}

/// A factor rests on no more samples than these.
const MOST_SAMPLES: f64 = 1_000.0;

/// Twenty samples move the factor by two thirds of what they show: a single odd minute by 5 %.
const GAIN: f64 = 0.05;

/// The prediction's own interval, and 15 % more on either side: the error that `plan` shows for
/// engines it has no rows of.
fn trust(capacity: &Capacity) -> (f64, f64) {
    let ends = capacity.prefill.or(capacity.decode).map(|part| {
        let point = (part.point().get() as f64).max(f64::MIN_POSITIVE);
        (part.low().get() as f64 / point, part.high().get() as f64 / point)
    });
    let (low, high) = ends.unwrap_or((1.0, 1.0));
    (0.85 * low, 1.15 * high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::interval::{Interval, Origin};
    use flyball_core::testing::{at, capacity};
    use flyball_core::units::TokensPerSecond;

    fn feed(correction: &mut Correction, count: u64, load: Load, warm: Option<u32>) {
        for n in 0..count {
            let sample = Sample { at: at(n * 10), load, warm, missed: Some(false) };
            correction.learn(&capacity(10_000, 1_000, 100_000), &sample);
        }
    }

    #[test]
    fn work_done_without_misses_raises_and_a_standing_queue_lowers() {
        let mut up = Correction::NONE;
        let busy = Load { prefill: 22_000.0, ..Load::default() };
        feed(&mut up, 200, busy, Some(2));
        assert!((up.factor - 1.1).abs() < 1e-3, "{up:?}");

        let mut down = Correction::NONE;
        // The queue neither grows nor shrinks, so what arrives is what is read: 9,000 each.
        feed(&mut down, 200, Load { prefill: 18_000.0, backlog: 90_000.0, ..busy }, Some(2));
        assert!((down.factor - 0.9).abs() < 1e-3, "{down:?}");
    }

    #[test]
    fn the_factor_stays_in_the_trust_region() {
        let mut wild = Correction::NONE;
        feed(&mut wild, 500, Load { prefill: 90_000.0, ..Load::default() }, Some(1));
        assert!((wild.factor - 1.15).abs() < 1e-9);
        let mut poor = Correction::NONE;
        let stuck = Load { prefill: 100.0, backlog: 1e6, ..Load::default() };
        feed(&mut poor, 500, stuck, Some(1));
        assert!((poor.factor - 0.85).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_learnt_from_a_replica_that_warms_up_nor_from_quiet() {
        let mut correction = Correction::NONE;
        feed(&mut correction, 50, Load { prefill: 90_000.0, ..Load::default() }, None);
        feed(&mut correction, 50, Load { prefill: 900.0, ..Load::default() }, Some(2));
        assert_eq!(correction.samples, 0);
        assert_eq!(correction.per_million(), 1_000_000);
    }

    #[test]
    fn the_low_end_is_used_and_comes_closer_with_evidence() {
        let rate = TokensPerSecond::new;
        let wide = Interval::new(rate(8_000), rate(10_000), rate(12_000), Origin::Modelled).ok();
        let capacity = Capacity { prefill: wide, ..capacity(1, 1_000, 100_000) };
        assert_eq!(Correction::NONE.unit(&capacity).prefill, 8_000.0);
        // 30 samples: the doubt of 2,000 is halved, since the square root of 1 + 30 / 10 is 2.
        let known = Correction { samples: 30, ..Correction::NONE };
        assert_eq!(known.unit(&capacity).prefill, 9_000.0);
    }
}
