//! Traffic made up in stages: so many requests per second for so long, then another rate.

use crate::chance::{Purpose, stream};
use crate::seconds::Seconds;
use crate::traffic::{Request, Trace};
use rand::RngExt;
use rand_distr::{Distribution, Exp1, StandardNormal};

/// Traffic in stages.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    /// One after the other.
    pub stages: Vec<TrafficStage>,
    /// How requests follow each other.
    pub spacing: Spacing,
    /// How long prompts are.
    pub prompt: StageTokens,
    /// How long answers are.
    pub output: StageTokens,
    /// Share of clients that hang up, and after how long.
    pub impatient: Option<(f64, Seconds)>,
}

/// A time in which the rate goes along a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrafficStage {
    /// How long.
    pub length: Seconds,
    /// Requests per second at its beginning and end.
    pub rates: (f64, f64),
}

impl TrafficStage {
    /// One rate all the time.
    pub const fn level(rate: f64, seconds: f64) -> Self {
        Self { length: Seconds(seconds), rates: (rate, rate) }
    }
}

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// At like distances, as load generators do.
    Even,
    /// Each as if there were no other, as many users do.
    Poisson,
}

/// How many tokens. The logarithm is normal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageTokens {
    /// Their mean.
    pub mean: f64,
    /// Standard deviation over mean; zero if all are alike.
    pub variation: f64,
}

impl StageTokens {
    /// Always so many.
    pub const fn always(tokens: f64) -> Self {
        Self { mean: tokens, variation: 0.0 }
    }

    fn draw(&self, normal: f64) -> u32 {
        // For a lognormal with variation v, the logarithm has variance ln(1 + v^2), and the mean is
        // exp(mean of the logarithm + half of that).
        let variance = (1.0 + self.variation * self.variation).ln();
        let tokens = self.mean * (variance.sqrt() * normal - variance / 2.0).exp();
        (tokens.round() as u32).max(1)
    }
}

impl Stages {
    /// How long all stages take.
    pub fn length(&self) -> Seconds {
        self.stages.iter().fold(Seconds::ZERO, |sum, stage| sum + stage.length)
    }

    /// The requests. `index` tells several models of one seed apart.
    pub fn trace(&self, seed: u64, index: u64) -> Trace {
        let mut arrivals = stream(seed, Purpose::Arrivals, index);
        let mut lengths = stream(seed, Purpose::Lengths, index);
        let mut requests = Vec::new();
        let mut begin = 0.0;
        // The next request comes when the sum of rate over time has grown by this much.
        let mut due = self.gap(&mut arrivals) * 0.5;
        for stage in &self.stages {
            let mut at = 0.0;
            while let Some(next) = stage.when(at, due) {
                at = next;
                let impatient =
                    self.impatient.filter(|(share, _)| lengths.random::<f64>() < *share);
                let mut normal = || StandardNormal.sample(&mut lengths);
                requests.push(Request {
                    at: Seconds(begin + at),
                    prompt: self.prompt.draw(normal()),
                    output: self.output.draw(normal()),
                    blocks: 0..0,
                    patience: impatient.map(|(_, patience)| patience),
                });
                due = self.gap(&mut arrivals);
            }
            due -= stage.sum(stage.length.get()) - stage.sum(at);
            begin += stage.length.get();
        }
        Trace { requests, ..Trace::default() }
    }

    fn gap(&self, chance: &mut crate::chance::Chance) -> f64 {
        match self.spacing {
            Spacing::Even => 1.0,
            Spacing::Poisson => Exp1.sample(chance),
        }
    }
}

impl TrafficStage {
    /// Requests from its beginning to a time in it.
    fn sum(&self, at: f64) -> f64 {
        let (from, to) = self.rates;
        let slope = (to - from) / self.length.get().max(f64::MIN_POSITIVE);
        from * at + slope * at * at / 2.0
    }

    /// When the sum has grown by `more` since `at`, if that is in this stage.
    fn when(&self, at: f64, more: f64) -> Option<f64> {
        let (target, end) = (self.sum(at) + more, self.length.get());
        if self.sum(end) < target || end <= 0.0 {
            return None;
        }
        let (from, to) = self.rates;
        let slope = (to - from) / end;
        // from * t + slope * t^2 / 2 = target, in the form that does not cancel.
        let root = (from * from + 2.0 * slope * target).max(0.0).sqrt();
        let when = if from + root > 0.0 { 2.0 * target / (from + root) } else { end };
        Some(when.clamp(at, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(stages: Vec<TrafficStage>, spacing: Spacing) -> Stages {
        let (prompt, output) =
            (StageTokens::always(10.0), StageTokens { mean: 100.0, variation: 1.0 });
        Stages { stages, spacing, prompt, output, impatient: None }
    }

    #[test]
    fn even_stages_have_the_requests_that_their_rates_say() {
        let ramp = TrafficStage { length: Seconds(100.0), rates: (0.0, 4.0) };
        let all = stages(
            vec![TrafficStage::level(2.0, 50.0), ramp, TrafficStage::level(0.0, 10.0)],
            Spacing::Even,
        );
        let trace = all.trace(1, 0);
        // 2 * 50 and 4 / 2 * 100.
        assert_eq!(trace.requests.len(), 300);
        let before = trace.requests.iter().filter(|request| request.at < Seconds(100.0)).count();
        // Half of the ramp's time holds a quarter of its requests.
        assert_eq!(before, 150);
        assert!(trace.requests.windows(2).all(|two| two[0].at <= two[1].at));
        assert_eq!(trace.requests[0].at, Seconds(0.25));
    }

    #[test]
    fn poisson_stages_have_about_as_many_and_lengths_their_mean() {
        let all = stages(vec![TrafficStage::level(10.0, 1_000.0)], Spacing::Poisson);
        let trace = all.trace(7, 0);
        // Standard deviation of a Poisson count of 10,000: 100.
        assert!(trace.requests.len().abs_diff(10_000) < 400, "{}", trace.requests.len());
        let mean = trace.requests.iter().map(|request| f64::from(request.output)).sum::<f64>()
            / trace.requests.len() as f64;
        // Standard deviation of the mean of 10,000 with variation 1: 1 %.
        assert!((mean - 100.0).abs() < 4.0, "{mean}");
        assert_eq!(trace, all.trace(7, 0));
        assert_ne!(trace, all.trace(8, 0));
    }
}
