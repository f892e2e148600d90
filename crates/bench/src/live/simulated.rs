//! The same scenario in the simulator, as a series that is scored alike.

use super::arm::{Ruler, running_target};
use super::measured::Measured;
use super::series::{Got, ReplicaSample, Series};
use super::world::World;
use crate::contenders;
use anyhow::{Context, Result};
use flyball_core::units::Replicas;
use flyball_simulator::cluster::{AnsweredBy, Habits, ReplicaHistory, Setup, StartParts, run};
use flyball_simulator::policy::{PolicyView, ScaleOrder, ScalingPolicy};
use flyball_simulator::rivals::hpa::{self, HpaSource};
use flyball_simulator::rivals::{RivalFacts, RivalFleet, RivalMetric, RivalSettings, named};
use flyball_simulator::seconds::Seconds;

/// What the simulator is told of the cluster: nothing, or some of it. Each can be left out to see what it is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Likeness {
    /// Engines are read beside gateways, which tell every second.
    pub(super) sight: bool,
    /// Capacity is predicted from what came, and not told.
    pub(super) predicts: bool,
    /// Gateways keep back what engines have no room for.
    pub(super) keeps_back: bool,
    /// Gateways think caches to have as much of prompts as they told.
    pub(super) uncached: bool,
    /// Pods start and end as they do there, and operators look when they did.
    pub(super) times: bool,
}

impl Likeness {
    pub(super) const ALL: Self =
        Self { sight: true, predicts: true, keeps_back: true, uncached: true, times: true };
    pub(super) const NONE: Self =
        Self { sight: false, predicts: false, keeps_back: false, uncached: false, times: false };
}

/// How long pods may take to end, as the arm's template says.
const GRACE: Seconds = Seconds(180.0);

/// Between two looks of the operator, and between two scrapes.
const TICK_S: f64 = 15.0;
const SCRAPE_S: f64 = 5.0;

/// The controller of HorizontalPodAutoscalers looks at a new one first after one sync period, because its queue delays
/// each entry by that (`NewDefaultHPARateLimiter` of kubernetes/kubernetes).
const HPA_FIRST: Seconds = Seconds(15.0);

/// Plays it.
pub(super) fn play(
    world: &World,
    ruler: Ruler,
    measured: &Measured,
    likeness: Likeness,
) -> Result<Series> {
    let known = if ruler == Ruler::Knew { world.known() } else { world.setup.clone() };
    let mut setup = alike(world, known, (ruler, measured), likeness);
    let mut policy = policy(world, ruler)?;
    if ruler == Ruler::Static {
        setup.models[0].variants[0].initial = world.max;
    }
    let run = run(&setup, policy.as_mut());
    let history = run.histories.first().context("a world without a model")?;
    Ok(Series { samples: samples(history), got: got(history) }.from(world.before))
}

/// A world that is like the cluster in these things.
fn alike(
    world: &World,
    mut setup: Setup,
    (ruler, measured): (Ruler, &Measured),
    likeness: Likeness,
) -> Setup {
    let real = Habits::FLYBALL;
    if likeness.sight {
        setup.habits.report_every = real.report_every;
        setup.habits.engines_beside = real.engines_beside;
        setup.habits.histograms = real.histograms;
        // Prometheus can be asked for what it has just scraped.
        setup.metrics.delay = Seconds::ZERO;
    }
    setup.habits.predicts = likeness.predicts;
    setup.habits.keeps_back = likeness.keeps_back;
    setup.habits.uncached = measured.uncached_share.filter(|_| likeness.uncached);
    if likeness.times {
        setup.grace = GRACE;
        setup.habits.pre_stop = Seconds(f64::from(ruler.pre_stop()));
        let started = f64::from(world.warm_up_seconds) + measured.start_seconds;
        setup.models[0].variants[0].cold_start = StartParts::constant(started);
        let arm = format!("{}-{}", world.name, ruler.name());
        if ruler.is_hpa() {
            setup.habits.first_tick = HPA_FIRST;
        }
        if let Some(first) = measured.first_look_seconds.get(&arm) {
            let first = (world.quiet + first).rem_euclid(TICK_S);
            setup.habits.first_tick = Seconds(first);
            // Engines are scraped one after the other, so that the mean of their ages is what matters.
            let scraped = (first - measured.scrape_age_seconds).rem_euclid(SCRAPE_S);
            setup.habits.first_scrape = Seconds(scraped);
        }
    }
    setup
}

/// Plays it with the replicas that served on the cluster, at the moments at which they did: what then
/// differs is not due to decisions, nor to the chance in them.
pub(super) fn follow(world: &World, live: &Series) -> Result<Series> {
    let mut setup = world.setup.clone();
    setup.models[0].variants[0].cold_start = StartParts::constant(0.0);
    setup.habits.keeps_back = true;
    setup.grace = GRACE;
    let run = run(&setup, &mut Follows { live, before: world.before });
    let history = run.histories.first().context("a world without a model")?;
    Ok(Series { samples: samples(history), got: got(history) }.from(world.before))
}

/// Wants what served on the cluster.
struct Follows<'a> {
    live: &'a Series,
    before: f64,
}

impl ScalingPolicy for Follows<'_> {
    fn name(&self) -> &str {
        "as on the cluster"
    }

    fn interval(&self) -> Seconds {
        Seconds(1.0)
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        let now = sight.now.get() - self.before;
        let until_now = self.live.samples.iter().take_while(|sample| sample.at <= now);
        let sample = until_now.last().or(self.live.samples.first());
        ScaleOrder::Scale(sample.map(|sample| Replicas::new(sample.ready)).into_iter().collect())
    }
}

fn policy(world: &World, ruler: Ruler) -> Result<Box<dyn ScalingPolicy>> {
    let facts = RivalFacts {
        first_token: Seconds(world.first_token_ms / 1e3),
        between_tokens: Seconds(world.between_tokens_ms / 1e3),
        cold_start: Seconds(f64::from(world.warm_up_seconds)),
        min: world.min,
        max: world.max,
        ..RivalFacts::default()
    };
    Ok(match ruler {
        Ruler::Governor | Ruler::Knew => contenders::governor(),
        Ruler::Hpa => {
            let mut law =
                named("llm-d-slo", &facts).map_err(|refused| anyhow::anyhow!("{refused}"))?;
            if let RivalSettings::SloAware(law) = &mut law {
                // The adapter averages a sample every 5 s.
                law.sampled = Seconds(SCRAPE_S);
                law.first = HPA_FIRST;
            }
            Box::new(RivalFleet::uniform("llm-d-slo", &law, 1))
        }
        Ruler::HpaRunning => {
            // The sum over all engines, as an external metric with an average.
            let source = HpaSource::average_value(RivalMetric::Running, running_target(world));
            let law = RivalSettings::Hpa(hpa::HpaSettings {
                sources: vec![source],
                min: world.min,
                max: world.max,
                ..hpa::HpaSettings::default()
            });
            Box::new(RivalFleet::uniform("hpa-running", &law, 1))
        }
        // A model without a law keeps what it has.
        Ruler::Static => Box::new(RivalFleet::new("static", Vec::new())),
    })
}

fn samples(history: &ReplicaHistory) -> Vec<ReplicaSample> {
    let sample = |standing: &flyball_simulator::cluster::ReplicaCounts| ReplicaSample {
        at: standing.at.get(),
        ready: standing.ready,
        starting: standing.pending + standing.starting,
        draining: standing.draining,
        // A Deployment does not count pods that end.
        replicas: standing.pending + standing.starting + standing.ready,
    };
    history.standings.iter().map(sample).collect()
}

fn got(history: &ReplicaHistory) -> Vec<Got> {
    let each = history.answers.iter().zip(&history.ends).map(|((at, _), end)| {
        let times = match end {
            AnsweredBy::Finished { first, between } => {
                Some(((*first - *at).get() * 1e3, between.get() * 1e3))
            }
            AnsweredBy::Killed | AnsweredBy::Refused | AnsweredBy::HungUp => None,
        };
        Got { at: at.get(), times }
    });
    each.collect()
}
