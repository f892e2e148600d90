//! How fast weeks are replayed and decisions made, on one core.

use super::contenders;
use super::worlds::{Part, Source, cold_starts, world};
use flyball_figures::quantile::quantile;
use flyball_simulator::fluid::run;
use flyball_simulator::policy::{PolicyView, ScaleOrder, ScalingPolicy};
use flyball_simulator::seconds::Seconds;
use std::time::Instant;

/// What was measured.
pub(super) struct Pace {
    /// Processor seconds for two weeks of three models under the governor, arrivals drawn before.
    pub(super) two_weeks_s: f64,
    /// The middle and the 99th percentile of a decision for one model, in microseconds.
    pub(super) decision_us: (f64, f64),
}

pub(super) fn measure(sources: &[Source]) -> Pace {
    let all: Vec<&Source> = sources.iter().collect();
    let world = world(&all, &cold_starts()[2].1, None, Part::Test, 1);
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let before = processor_seconds();
        let outcome = run(&world, contenders::governor().as_mut());
        assert!(outcome.gpu_seconds > 0.0, "a replay that did nothing is no measurement");
        best = best.min(processor_seconds() - before);
    }
    let mut timed = Timed { inner: contenders::governor(), micros: Vec::new() };
    run(&world, &mut timed);
    let mut at = |share| quantile(&mut timed.micros, share);
    Pace { two_weeks_s: best, decision_us: (at(0.5), at(0.99)) }
}

/// Times each decision. The middle of them is free of what else the machine does.
struct Timed {
    inner: Box<dyn ScalingPolicy>,
    micros: Vec<f64>,
}

impl ScalingPolicy for Timed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn interval(&self) -> Seconds {
        self.inner.interval()
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        let before = Instant::now();
        let order = self.inner.decide(sight);
        let models = sight.readings.len().max(1) as f64;
        self.micros.push(before.elapsed().as_secs_f64() * 1e6 / models);
        order
    }
}

/// Processor time of this thread. Wall time on a shared machine says little.
pub(super) fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos: f64 = text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0);
    nanos / 1e9
}
