//! How long a replica takes from the order until it serves: a distribution, not a number.

use crate::chance::Chance;
use crate::seconds::Seconds;
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};

/// The distribution of cold starts.
#[derive(Clone, Debug, PartialEq)]
pub enum ColdStart {
    /// Always the same.
    Constant(Seconds),
    /// A lognormal one, by its middle and its 99th percentile.
    LogNormal {
        /// Half of the starts are quicker.
        median: Seconds,
        /// One of a hundred is slower.
        p99: Seconds,
    },
    /// One of those that were measured, each equally likely; sorted by [`ColdStart::measured`].
    Measured(Vec<Seconds>),
}

/// Distance of the 99th percentile of a normal distribution from its middle, in deviations.
const NORMAL_P99: f64 = 2.326_348;

impl ColdStart {
    /// Those that were measured. An empty list starts in no time.
    pub fn measured(mut starts: Vec<Seconds>) -> Self {
        starts.sort();
        if starts.is_empty() { Self::Constant(Seconds::ZERO) } else { Self::Measured(starts) }
    }

    /// One start.
    pub fn draw(&self, chance: &mut Chance) -> Seconds {
        match self {
            Self::Constant(length) => *length,
            Self::LogNormal { median, p99 } => {
                let normal: f64 = StandardNormal.sample(chance);
                Seconds(median.get() * (spread(*median, *p99) * normal).exp())
            }
            Self::Measured(starts) => starts[chance.random_range(0..starts.len())],
        }
    }

    /// The start that a share of all starts does not exceed.
    pub fn quantile(&self, share: f64) -> Seconds {
        match self {
            Self::Constant(length) => *length,
            Self::LogNormal { median, p99 } => {
                Seconds(median.get() * (spread(*median, *p99) * normal_quantile(share)).exp())
            }
            Self::Measured(starts) => {
                // As the estimator counts starts, so that a replay expects what an operator would.
                let place = (share.clamp(0.0, 1.0) * (starts.len() - 1) as f64).round();
                starts[place as usize]
            }
        }
    }

    /// The mean start, which is what a start costs on average.
    pub fn mean(&self) -> Seconds {
        match self {
            Self::Constant(length) => *length,
            Self::LogNormal { median, p99 } => {
                let deviation = spread(*median, *p99);
                Seconds(median.get() * (deviation * deviation / 2.0).exp())
            }
            Self::Measured(starts) => {
                Seconds(starts.iter().map(|start| start.get()).sum::<f64>() / starts.len() as f64)
            }
        }
    }
}

/// Deviation of the logarithm.
fn spread(median: Seconds, p99: Seconds) -> f64 {
    (p99.get() / median.get()).ln() / NORMAL_P99
}

/// Quantile of the standard normal distribution by bisection of its integral: exact enough for a
/// prior, asked a few times per replay.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if normal_share(middle) < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Share of a standard normal distribution below `x`: Abramowitz and Stegun 26.2.17, whose error
/// is below 1e-7.
fn normal_share(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let poly = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let upper = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * poly;
    if x >= 0.0 { 1.0 - upper } else { upper }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{Purpose, stream};

    #[test]
    fn a_lognormal_start_has_the_middle_tail_and_mean_it_says() {
        let start = ColdStart::LogNormal { median: Seconds(100.0), p99: Seconds(300.0) };
        assert!((start.quantile(0.5).get() - 100.0).abs() < 0.01);
        assert!((start.quantile(0.99).get() - 300.0).abs() < 0.1);
        let mut chance = stream(1, Purpose::ColdStarts, 0);
        let draws: Vec<f64> = (0..20_000).map(|_| start.draw(&mut chance).get()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean / start.mean().get() - 1.0).abs() < 0.02, "{mean}");
        let below = draws.iter().filter(|draw| **draw <= 300.0).count() as f64 / 20_000.0;
        assert!((below - 0.99).abs() < 0.003, "{below}");
    }

    #[test]
    fn measured_starts_are_drawn_from_themselves() {
        let start = ColdStart::measured([30.0, 10.0, 20.0].map(Seconds).to_vec());
        assert_eq!([0.0, 0.5, 1.0].map(|q| start.quantile(q).get()), [10.0, 20.0, 30.0]);
        assert_eq!(start.mean(), Seconds(20.0));
        assert_eq!(ColdStart::measured(Vec::new()), ColdStart::Constant(Seconds::ZERO));
    }
}
