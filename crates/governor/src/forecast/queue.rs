//! How likely a queue is too long: a queue with random arrivals, as Brownian motion that cannot
//! fall below zero.

/// Work that waits, over time. All in replica-seconds: what one replica does in a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    /// What waits at the start.
    pub(crate) start: f64,
    /// Work that arrives less what is done, per second.
    pub(crate) drift: f64,
    /// Variance of the arriving work, per second.
    pub(crate) variance: f64,
}

impl Queue {
    /// The chance that more than `level` waits after `seconds`.
    ///
    /// The distribution of reflected Brownian motion: Harrison, Brownian Motion and Stochastic
    /// Flow Systems (1985), section 1.8.
    pub(crate) fn exceeds(&self, level: f64, seconds: f64) -> f64 {
        let spread = (self.variance * seconds).sqrt();
        let moved = self.start + self.drift * seconds;
        let exponent = 2.0 * self.drift * level / self.variance;
        // Most cells are far on one side or the other: below 1e-5, or above 1 - 1e-5.
        if moved - level < -4.5 * spread && exponent < -11.0 {
            return 0.0;
        }
        if moved - level > 4.5 * spread {
            return 1.0;
        }
        let direct = normal((moved - level) / spread);
        let far = (level + moved) / spread;
        let reflected = if exponent < 50.0 {
            if exponent < -700.0 { 0.0 } else { exponent.exp() * normal(-far) }
        } else if far > 3.0 {
            // The product of a huge and a tiny number; Mills' ratio gives it without overflow.
            (exponent - far * far / 2.0).exp() / (far * 2.506_628_274_6)
        } else {
            1.0
        };
        (direct + reflected).clamp(0.0, 1.0)
    }
}

/// The standard normal distribution, to 1e-7: Abramowitz and Stegun, formula 7.1.26.
pub(crate) fn normal(x: f64) -> f64 {
    let z = x.abs() * std::f64::consts::FRAC_1_SQRT_2;
    if z > 6.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let tail = 0.5 * poly * (-z * z).exp();
    if x > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_is_that_of_the_tables() {
        for (x, want) in [(0.0, 0.5), (1.0, 0.841_345), (-1.959_964, 0.025), (3.0, 0.998_650)] {
            assert!((normal(x) - want).abs() < 1e-6, "{x}");
        }
    }

    #[test]
    fn in_the_long_run_a_queue_is_exponential() {
        // Known law: P(queue > b) tends to exp(-2 |drift| b / variance); here exp(-2) = 0.1353.
        let queue = Queue { start: 0.0, drift: -0.5, variance: 1.0 };
        assert!((queue.exceeds(2.0, 1e4) - 0.135_335).abs() < 1e-5);
    }

    #[test]
    fn a_queue_that_cannot_be_served_is_too_long_and_an_empty_one_is_not() {
        let growing = Queue { start: 0.0, drift: 2.0, variance: 1.0 };
        assert!(growing.exceeds(10.0, 100.0) > 0.999);
        let idle = Queue { start: 0.0, drift: -10.0, variance: 0.1 };
        assert!(idle.exceeds(10.0, 100.0) < 1e-9);
    }
}
