//! Bets against a share.

/// How far above the bound the shares lie that are bet on, as parts of what is left to one.
const ALTERNATIVES: [f64; 4] = [0.08, 0.15, 0.3, 0.6];

/// A Shiryaev-Roberts e-detector against "a request has this property at most so often, whatever came before".
///
/// Each alternative multiplies what it has, and one more, by the likelihood ratio of the request. While the share is within
/// its bound the ratio's mean is at most one, so that the value after n requests has a mean of at most n; by optional
/// stopping the mean time until it reaches A is at least A requests. A mean of such detectors is one again, which is why
/// many may be watched without a correction. Unlike a plain product it does not lose its stake while nothing happens.
#[derive(Clone, Debug)]
pub(super) struct BoundDetector {
    bound: f64,
    values: [f64; ALTERNATIVES.len()],
    /// The share of late, for people.
    recent: f64,
}

/// Requests over which the share of late is taken.
const RECENT: f64 = 256.0;

impl BoundDetector {
    pub(super) const fn new(bound: f64, share: f64) -> Self {
        Self { bound, values: [0.0; ALTERNATIVES.len()], recent: share }
    }

    pub(super) fn observe(&mut self, hit: bool) {
        for (value, part) in self.values.iter_mut().zip(ALTERNATIVES) {
            let alternative = self.bound + part * (1.0 - self.bound);
            let ratio = if hit {
                alternative / self.bound
            } else {
                (1.0 - alternative) / (1.0 - self.bound)
            };
            *value = ratio * (*value + 1.0);
        }
        self.recent += (f64::from(u8::from(hit)) - self.recent) / RECENT;
    }

    pub(super) fn value(&self) -> f64 {
        self.values.iter().sum::<f64>() / ALTERNATIVES.len() as f64
    }

    pub(super) const fn bound(&self) -> f64 {
        self.bound
    }

    pub(super) const fn recent(&self) -> f64 {
        self.recent
    }
}

/// The largest share that so many hits of so many requests leave possible, but for a chance of `error`: Chernoff's bound
/// with the exact divergence, which is tight for rare things too.
pub(super) fn highest_share(hits: usize, of: usize, error: f64) -> f64 {
    let (seen, room) = (hits as f64 / of as f64, -error.ln() / of as f64);
    let divergence = |share: f64| {
        let part = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 };
        part(seen, share) + part(1.0 - seen, 1.0 - share)
    };
    let (mut low, mut high) = (seen, 1.0 - 1e-9);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if divergence(middle) < room { low = middle } else { high = middle }
    }
    high
}
