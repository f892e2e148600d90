//! Settings worth trying for each rival on a training week: at most forty each.
//!
//! Targets, windows, paces and headroom, around the published defaults and on the metrics each
//! rival can read. A rival that loses here loses at its best, not at its defaults.

use super::hpa::{Behaviour, HpaRules, Rate};
use super::{RivalFacts, RivalMetric, RivalSettings, aibrix, dynamo, named};
use crate::seconds::Seconds;

/// Settings of the rival of this name to try; none if nobody is called so or it lacks a week.
pub fn grid(name: &str, facts: &RivalFacts) -> Vec<RivalSettings> {
    let Ok(base) = named(name, facts) else { return Vec::new() };
    match base {
        RivalSettings::Hpa(base) => hpa(name, facts, &base),
        RivalSettings::Keda(base) => keda(facts, &base),
        RivalSettings::Kpa(base) => kpa(&base),
        RivalSettings::SloAware(base) => latency(&base),
        RivalSettings::TokenAware(base) => tokens(&base),
        RivalSettings::Aibrix(base) => apa(facts, &base),
        RivalSettings::Ray(base) => ray(facts, &base),
        RivalSettings::Dynamo(base) => planner(facts, &base),
        RivalSettings::Calendar(_) => calendars(facts),
        RivalSettings::Static(base) => fixed(facts, base),
    }
}

impl RivalSettings {
    /// What sets it apart within its grid, in one line.
    pub fn label(&self) -> String {
        match self {
            Self::Hpa(hpa) => {
                let sources: Vec<String> = hpa
                    .sources
                    .iter()
                    .map(|source| format!("{} {:.3}", source.metric, source.target))
                    .collect();
                format!("{}, down after {}", sources.join(" or "), hpa.behaviour.down.stabilisation)
            }
            Self::Keda(keda) => {
                let triggers: Vec<String> = keda
                    .triggers
                    .iter()
                    .map(|trigger| {
                        format!("{} {:.3}", trigger.source.metric, trigger.source.target)
                    })
                    .collect();
                format!(
                    "{}, down after {}",
                    triggers.join(" or "),
                    keda.behaviour.down.stabilisation
                )
            }
            Self::Kpa(kpa) => format!(
                "{:.2} of {:.1} in flight, stable window {}, down delay {}",
                kpa.utilisation, kpa.limit, kpa.stable, kpa.down_delay
            ),
            Self::SloAware(slo) => format!(
                "up {:.2}, down {:.2}, {} after {}",
                slo.up,
                slo.down,
                pace(&slo.behaviour.down),
                slo.behaviour.down.stabilisation
            ),
            Self::TokenAware(tokens) => format!(
                "backlog {}, cache {:.2}, up {}, down {}",
                tokens.backlog,
                tokens.cache,
                pace(&tokens.behaviour.up),
                pace(&tokens.behaviour.down)
            ),
            Self::Aibrix(apa) => {
                let ahead = apa
                    .forecast
                    .map_or_else(String::new, |line| format!(", {} ahead", line.horizon));
                format!("{} {:.3}, down after {}{ahead}", apa.metric, apa.target, apa.down_cooldown)
            }
            Self::Ray(ray) => {
                format!(
                    "{:.1} in flight, up after {}, down after {}",
                    ray.target, ray.up_delay, ray.down_delay
                )
            }
            Self::Dynamo(planner) => format!(
                "{:?} {:?}, {:.3} requests/s an engine every {}, sensitivity {:.2}, objective {}",
                planner.loops,
                planner.predictor,
                planner.replica_per_second,
                planner.throughput_interval,
                planner.sensitivity,
                planner.first_token
            ),
            Self::Calendar(calendar) => calendar.origin.clone(),
            Self::Static(fixed) => format!("{} replicas", fixed.replicas),
        }
    }
}

/// Targets of the metric that the name stands for, by how long it waits before it removes.
fn hpa(name: &str, facts: &RivalFacts, base: &super::hpa::HpaSettings) -> Vec<RivalSettings> {
    let bare = name.split('@').next().unwrap_or(name);
    let targets: Vec<f64> = match bare {
        "hpa" => vec![0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0],
        "hpa-running" => {
            [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0].map(|share| share * facts.max_running).to_vec()
        }
        "hpa-cache" => vec![0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        _ => vec![0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9],
    };
    cross(targets, [60.0, 300.0, 900.0], |target, window| {
        let mut settings = base.clone();
        for source in &mut settings.sources {
            source.target = target;
        }
        settings.behaviour.down.stabilisation = Seconds(window);
        RivalSettings::Hpa(settings)
    })
}

fn keda(facts: &RivalFacts, base: &super::keda::KedaSettings) -> Vec<RivalSettings> {
    let rate = RivalMetric::Utilisation { replica_per_second: facts.replica_per_second };
    let rates = [0.5, 0.6, 0.7, 0.8, 0.9].map(|target| (rate, target));
    let waiting = [1.0, 5.0, 20.0].map(|target| (RivalMetric::Waiting, target));
    let in_flight = [0.4, 0.55, 0.7, 0.85]
        .map(|share| (RivalMetric::WaitingPlusRunning, share * facts.max_running));
    let triggers = rates.into_iter().chain(waiting).chain(in_flight);
    cross(triggers, [120.0, 300.0, 900.0], |(metric, target), window| {
        let mut settings = base.clone();
        settings.triggers = vec![super::keda::Trigger::new(metric, target)];
        settings.behaviour.down.stabilisation = Seconds(window);
        RivalSettings::Keda(settings)
    })
}

fn kpa(base: &super::kpa::KpaSettings) -> Vec<RivalSettings> {
    let windows = [(60.0, 0.0), (60.0, 300.0), (60.0, 900.0), (300.0, 0.0)];
    cross([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], windows, |utilisation, (stable, delay)| {
        let (stable, down_delay) = (Seconds(stable), Seconds(delay));
        let panic = stable * 0.1;
        RivalSettings::Kpa(super::kpa::KpaSettings {
            utilisation,
            stable,
            panic,
            down_delay,
            ..base.clone()
        })
    })
}

fn latency(base: &super::llmd::SloAware) -> Vec<RivalSettings> {
    let paces = [(180.0, 120.0), (300.0, 120.0), (180.0, 30.0), (600.0, 60.0)];
    cross([0.25, 0.35, 0.45, 0.55, 0.7, 0.9], paces, |up, (window, period)| {
        // The guide's band, kept in proportion.
        let mut settings = super::llmd::SloAware { up, down: up * 0.40 / 0.55, ..base.clone() };
        let rate = Rate::Pods { value: 1, period: Seconds(period) };
        settings.behaviour.down = HpaRules::new(Seconds(window), vec![rate]);
        RivalSettings::SloAware(settings)
    })
}

fn ray(facts: &RivalFacts, base: &super::ray::RaySettings) -> Vec<RivalSettings> {
    let shares = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
    let delays = [(30.0, 600.0), (0.0, 600.0), (0.0, 300.0), (10.0, 1200.0)];
    cross(shares, delays, |share, (up, down)| {
        let target = share * facts.max_running;
        let (up_delay, down_delay) = (Seconds(up), Seconds(down));
        RivalSettings::Ray(super::ray::RaySettings { target, up_delay, down_delay, ..base.clone() })
    })
}

fn calendars(facts: &RivalFacts) -> Vec<RivalSettings> {
    let quantiles = [0.5, 0.8, 0.95, 1.0];
    let all = cross(quantiles, [1.0, 1.1, 1.25, 1.5], |quantile, headroom| {
        facts.calendar(quantile, headroom)
    });
    let mut different: Vec<super::calendar::Calendar> = Vec::new();
    for calendar in all {
        // A short week has few samples an hour, and then quantiles coincide.
        if different.iter().all(|other| other.hours != calendar.hours) {
            different.push(calendar);
        }
    }
    different.into_iter().map(RivalSettings::Calendar).collect()
}

/// The peak, less than it and a little more than it.
fn fixed(facts: &RivalFacts, base: super::calendar::Static) -> Vec<RivalSettings> {
    let shares: [f64; 10] = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5];
    let replicas = |share: f64| (f64::from(base.replicas) * share).round().max(1.0) as u32;
    let counts = shares.map(|share| replicas(share).clamp(facts.min, facts.max));
    let mut counts = counts.to_vec();
    counts.dedup();
    let fixed = |replicas| RivalSettings::Static(super::calendar::Static { replicas });
    counts.into_iter().map(fixed).collect()
}

/// The guide limits itself to one replica in three minutes; an HPA's own pace is tried too.
fn tokens(base: &super::llmd::TokenAware) -> Vec<RivalSettings> {
    let fast = Behaviour::default();
    let paces = [base.behaviour.clone(), fast];
    let points = cross([0.25, 0.5, 1.0, 2.0], [0.3, 0.45, 0.6, 0.8], |share, cache| (share, cache));
    cross(paces, points, |behaviour, (share, cache)| {
        let backlog = base.backlog * share;
        RivalSettings::TokenAware(super::llmd::TokenAware {
            backlog,
            cache,
            behaviour,
            ..base.clone()
        })
    })
}

fn apa(facts: &RivalFacts, base: &aibrix::AibrixSettings) -> Vec<RivalSettings> {
    let in_flight = [0.4, 0.55, 0.7, 0.85]
        .map(|share| (RivalMetric::WaitingPlusRunning, share * facts.max_running));
    let cache = [0.3, 0.4, 0.5, 0.6, 0.7].map(|target| (RivalMetric::CacheUsed, target));
    let ahead: Vec<Option<aibrix::Forecast>> = match base.forecast {
        Some(line) => [60.0, 120.0, 300.0]
            .map(|horizon| Some(aibrix::Forecast { horizon: Seconds(horizon), ..line }))
            .to_vec(),
        None => vec![None],
    };
    // A forecast triples the points, so its waits are fewer.
    let waits: &[f64] = if base.forecast.is_some() { &[300.0] } else { &[60.0, 300.0, 900.0] };
    let points = cross(waits.to_vec(), ahead, |wait, forecast| (wait, forecast));
    cross(in_flight.into_iter().chain(cache), points, |(metric, target), (wait, forecast)| {
        let down_cooldown = Seconds(wait);
        RivalSettings::Aibrix(aibrix::AibrixSettings {
            metric,
            target,
            down_cooldown,
            forecast,
            ..base.clone()
        })
    })
}

fn planner(facts: &RivalFacts, base: &dynamo::DynamoSettings) -> Vec<RivalSettings> {
    let shares = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
    match base.loops {
        dynamo::Loops::Load => {
            cross([0.3, 0.5, 0.65, 0.8, 0.9], [0.4, 0.6, 0.8, 1.0], |sensitivity, tight| {
                // A tighter objective is the only way to make the loop act earlier.
                let (first_token, between_tokens) =
                    (base.first_token * tight, base.between_tokens * tight);
                RivalSettings::Dynamo(dynamo::DynamoSettings {
                    sensitivity,
                    first_token,
                    between_tokens,
                    ..base.clone()
                })
            })
        }
        dynamo::Loops::Throughput | dynamo::Loops::Both => {
            let predictors =
                [dynamo::Predictor::Constant, dynamo::Predictor::Arima, dynamo::Predictor::Kalman];
            let ways = cross(predictors, [60.0, 180.0], |predictor, every| (predictor, every));
            cross(shares, ways, |share, (predictor, every)| {
                let replica_per_second = share * facts.replica_per_second;
                let throughput_interval = Seconds(every);
                RivalSettings::Dynamo(dynamo::DynamoSettings {
                    replica_per_second,
                    predictor,
                    throughput_interval,
                    ..base.clone()
                })
            })
        }
    }
}

/// The first rate of a direction, in words.
fn pace(rules: &HpaRules) -> String {
    match rules.rates.first() {
        Some(Rate::Pods { value, period }) => format!("{value} in {period}"),
        Some(Rate::Percent { value, period }) => format!("{value} % in {period}"),
        None => "at any pace".to_owned(),
    }
}

/// Every pair.
fn cross<A: Clone, B: Clone, T>(
    first: impl IntoIterator<Item = A>,
    second: impl IntoIterator<Item = B>,
    make: impl Fn(A, B) -> T,
) -> Vec<T> {
    let second: Vec<B> = second.into_iter().collect();
    let mut all = Vec::new();
    for one in first {
        all.extend(second.iter().map(|other| make(one.clone(), other.clone())));
    }
    all
}
