//! The worlds of the benchmark: two weeks of three ServeGen models, six cold starts.

use flyball_core::pooling::Pooling;
use flyball_core::snapshot::ScalingBounds;
use flyball_core::units::{Gpus, Replicas, Timestamp};
use flyball_simulator::cold_start::ColdStart;
use flyball_simulator::fluid::{FluidModel, FluidPool, FluidWorld, Keep};
use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::{FlowLoad, TrafficRates};

/// The step of the flow. The shortest cold start is 5 s.
pub(super) const STEP: Seconds = Seconds(5.0);
pub(super) const WEEK: Seconds = Seconds(7.0 * 86_400.0);
/// Mean replicas of each model, as in the first measurements that the targets come from.
const MEAN_REPLICAS: f64 = 20.0;

/// The most replicas: twice what the highest peak over mean, 3.3, needs.
const MOST: u32 = 132;

/// A source of traffic.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) rates: TrafficRates,
    /// Mean tokens of a prompt and of an answer.
    pub(super) tokens: (f64, f64),
}

/// The cold starts of the benchmark, with their names.
pub(super) fn cold_starts() -> Vec<(String, ColdStart)> {
    let constant = [5.0, 40.0, 100.0, 300.0, 900.0]
        .map(|length| (format!("{length} s"), ColdStart::Constant(Seconds(length))));
    // Half of the starts of a compiled, cached engine take 100 s (llm-d's figure), a slow image
    // pull or a busy node triples it: the shape of published model-load times (p99 2.3 x p50), and
    // node supply on top.
    let spread = ColdStart::LogNormal { median: Seconds(100.0), p99: Seconds(300.0) };
    constant.into_iter().chain([("measured".to_owned(), spread)]).collect()
}

/// Which part of the two weeks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Week 1 alone, all but its first hour scored: for tuning.
    Training,
    /// Both weeks, of which the second is scored: what was learnt in week 1 may be used.
    Test,
    /// The second week with the day before it, the same arrivals: for policies that remember
    /// no longer than a day.
    Later,
}

/// One model alone, or several, at a cold start.
pub(super) fn world(
    sources: &[&Source],
    cold_start: &ColdStart,
    pool: Option<FluidPool>,
    part: Part,
    seed: u64,
) -> FluidWorld {
    let models = (0..).zip(sources).map(|(index, source)| model(source, part, seed * 97 + index));
    FluidWorld {
        start: Timestamp::from_millis(0),
        models: models.collect(),
        cold_start: cold_start.clone(),
        pool,
        price: None,
        unscored: match part {
            Part::Training => Seconds::HOUR,
            Part::Test => WEEK,
            Part::Later => Seconds::DAY,
        },
        gaps_are_outages: false,
        seed,
        keep: Keep::default(),
    }
}

fn model(source: &Source, part: Part, seed: u64) -> FluidModel {
    let both = FlowLoad::from_rates(&source.rates, STEP, seed);
    let per_replica = both.mean_rate() / MEAN_REPLICAS;
    let week = (WEEK.get() / STEP.get()) as usize;
    let load = match part {
        Part::Training => both.part(0..week.min(both.requests.len())),
        Part::Test => both,
        Part::Later => {
            let day = (Seconds::DAY.get() / STEP.get()) as usize;
            both.part(week - day..both.requests.len())
        }
    };
    let minute = (60.0 / STEP.get()) as usize;
    let first: f64 = load.requests.iter().take(minute).map(|one| f64::from(*one)).sum();
    let initial = (first / 60.0 / per_replica * 1.3).ceil().max(1.0) as u32;
    FluidModel {
        id: format!("bench/{}", source.name).parse().expect("source names are names"),
        load,
        per_replica,
        pooling: Pooling::NONE,
        at_most: per_replica,
        reading_per_million: None,
        first_token: Seconds::ZERO,
        first_token_objective: Seconds(3.0),
        between_tokens_objective: Seconds(0.1),
        patience: Seconds(30.0),
        service: Seconds(20.0),
        tokens: source.tokens,
        gpus: Gpus::new(1),
        bounds: ScalingBounds { min: Replicas::new(1), max: Replicas::new(MOST), may_sleep: false },
        initial: Replicas::new(initial),
        attainment_per_million: 990_000,
    }
}
