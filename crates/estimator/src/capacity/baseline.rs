//! What work is counted in: replicas as they were first thought to be.

use flyball_core::interval::Interval;
use flyball_core::snapshot::Capacity;
use flyball_core::units::TokensPerSecond;

/// What one replica is thought to do, in tokens per second: what everything is counted in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Baseline {
    pub(super) prefill: f64,
    pub(super) decode: f64,
    /// The part of its work that is reading; the larger share counts where that is not known.
    pub(super) reading: Option<f64>,
    /// Whether somebody stated or predicted it; else it is the first work that was seen.
    pub(super) stated: bool,
}

impl Baseline {
    pub(super) fn of(capacity: &Capacity) -> Option<Self> {
        let rate =
            |part: Option<Interval<TokensPerSecond>>| part.map(|part| part.point().get() as f64);
        let (prefill, decode) = (rate(capacity.prefill)?, rate(capacity.decode)?);
        let reading = capacity.reading_per_million.map(|part| f64::from(part) / 1e6);
        (prefill >= 1.0 && decode >= 1.0).then_some(Self { prefill, decode, reading, stated: true })
    }

    /// So much work in replicas.
    pub(super) fn share(&self, (prefill, decode): (f64, f64)) -> f64 {
        let (read, written) = (prefill / self.prefill, decode / self.decode);
        match self.reading {
            Some(reading) => reading * read + (1.0 - reading) * written,
            None => read.max(written),
        }
    }
}
