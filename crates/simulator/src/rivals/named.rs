//! Every rival by name: with published defaults, and with a grid of settings worth trying.
//!
//! A published default may make no sense without knowing the model (an HPA has no default target).
//! It is then derived from [`RivalFacts`] in the way the rival's documents advise; `docs/reference/
//! policies.md` lists each with its source.

use super::calendar::{Calendar, Learning, Static};
use super::hpa::HpaSource;
use super::{RivalLaw, RivalMetric, aibrix, ceil, dynamo, hpa, keda, kpa, llmd, ray};
use crate::seconds::Seconds;

/// Every rival's name.
pub const NAMES: &[&str] = &[
    "hpa",
    "hpa-running",
    "hpa-cache",
    "hpa-rate",
    "keda",
    "keda-running",
    "kpa",
    "llm-d-slo",
    "llm-d-tokens",
    "aibrix",
    "aibrix-linear",
    "ray",
    "dynamo-load",
    "dynamo-throughput",
    "dynamo-hybrid",
    "cron",
    "static",
];

/// What an operator knows of a model when writing its autoscaler.
#[derive(Clone, Debug, PartialEq)]
pub struct RivalFacts {
    /// Requests per second that one replica serves within the objectives.
    pub replica_per_second: f64,
    /// Prompt tokens per second that one replica takes in at its peak.
    pub prompt_tokens_per_second: f64,
    /// Tokens of a mean prompt.
    pub prompt_tokens: f64,
    /// Requests that one replica runs at a time within the objectives.
    pub max_running: f64,
    /// Objective of the time to the first token.
    pub first_token: Seconds,
    /// Objective of the time between tokens.
    pub between_tokens: Seconds,
    /// How long a replica takes to start.
    pub cold_start: Seconds,
    /// Least replicas.
    pub min: u32,
    /// Most replicas.
    pub max: u32,
    /// Most requests per second that the training week saw, if there was one.
    pub peak_per_second: Option<f64>,
    /// Requests per second over the training week, by time since the start of the replay.
    pub week: Vec<(Seconds, f64)>,
    /// How far into its week, from Monday midnight, the replay starts.
    pub starts_at: Seconds,
}

impl Default for RivalFacts {
    /// A middling model: figures to be replaced, with llm-d's objectives.
    fn default() -> Self {
        Self {
            replica_per_second: 1.5,
            prompt_tokens_per_second: 15_000.0,
            prompt_tokens: 3_000.0,
            max_running: 64.0,
            first_token: Seconds(3.0),
            between_tokens: Seconds(0.1),
            cold_start: Seconds(100.0),
            min: 1,
            max: 100,
            peak_per_second: None,
            week: Vec::new(),
            starts_at: Seconds::ZERO,
        }
    }
}

impl RivalFacts {
    /// With what the training week saw: requests per second by time since the start.
    #[must_use]
    pub fn with_week(mut self, rates: &[(Seconds, f64)]) -> Self {
        self.week = rates.to_vec();
        let peak = rates.iter().map(|(_, rate)| *rate).max_by(f64::total_cmp);
        self.peak_per_second = self.peak_per_second.or(peak);
        self
    }

    pub(super) fn calendar(&self, quantile: f64, headroom: f64) -> Calendar {
        let per_second = self.replica_per_second;
        let demand: Vec<_> = self.week.iter().map(|(at, rate)| (*at, rate / per_second)).collect();
        let how = Learning { quantile, headroom, min: self.min, max: self.max };
        // A calendar is looked at once a minute, so it may be late by one.
        let lead = self.cold_start + Seconds::MINUTE;
        Calendar { lead, ..Calendar::learned(&demand, self.starts_at, how) }
    }
}

/// One rival with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum RivalSettings {
    /// The Kubernetes HPA, and llm-d's loop on tokens, which is one.
    Hpa(hpa::HpaSettings),
    /// KEDA.
    Keda(keda::KedaSettings),
    /// Knative.
    Kpa(kpa::KpaSettings),
    /// llm-d's loop on latency.
    SloAware(llmd::SloAware),
    /// llm-d's loop on tokens.
    TokenAware(llmd::TokenAware),
    /// AIBrix.
    Aibrix(aibrix::AibrixSettings),
    /// Ray Serve.
    Ray(ray::RaySettings),
    /// Dynamo.
    Dynamo(dynamo::DynamoSettings),
    /// A calendar.
    Calendar(Calendar),
    /// A fixed number.
    Static(Static),
}

/// Why there is no such rival.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RivalError {
    /// Nobody is called so.
    #[error("no policy is called `{0}`; hint: one of {list}", list = NAMES.join(", "))]
    Unknown(String),
    /// What follows the `@` is not a number above zero.
    #[error("`{0}` is not a number above zero; hint: write `kpa@0.7`")]
    NotANumber(String),
    /// It learns from a week that is not there.
    #[error(
        "`{0}` needs a training week; hint: give a number, as in `static@8`, or traffic to train on"
    )]
    NeedsWeek(String),
}

/// The rival of this name with its published defaults. A number after `@` replaces its main
/// setting: the target of an HPA or KEDA metric in its own unit, the share of the limit for `kpa`,
/// the upper saturation for `llm-d-slo`, seconds of backlog for `llm-d-tokens`, the target for
/// `aibrix` and `ray`, the share of one engine's capacity for `dynamo-throughput` and
/// `dynamo-hybrid`, the sensitivity for `dynamo-load`, the quantile for `cron` and the replicas for
/// `static`.
pub fn named(name: &str, facts: &RivalFacts) -> Result<RivalSettings, RivalError> {
    let (bare, number) = match name.split_once('@') {
        Some((bare, text)) => {
            let number =
                text.parse().ok().filter(|number: &f64| *number > 0.0 && number.is_finite());
            (bare, Some(number.ok_or_else(|| RivalError::NotANumber(text.to_owned()))?))
        }
        None => (name, None),
    };
    Ok(match bare {
        "hpa" => hpa_on(facts, RivalMetric::Waiting, number.unwrap_or(5.0)),
        // GKE's best practices name the batch for lower latencies than the queue can hold; how far
        // below the largest is ours to choose.
        "hpa-running" => {
            hpa_on(facts, RivalMetric::Running, number.unwrap_or(0.8 * facts.max_running))
        }
        "hpa-cache" => hpa_on(facts, RivalMetric::CacheUsed, number.unwrap_or(0.8)),
        "hpa-rate" => hpa_on(facts, utilisation(facts), number.unwrap_or(0.7)),
        "keda" => keda_on(facts, RivalMetric::Waiting, number.unwrap_or(5.0)),
        // As for `hpa-running`. What waits counts too, so that a queue grows the fleet beyond the batch.
        "keda-running" => {
            let target = number.unwrap_or(0.8 * facts.max_running);
            keda_on(facts, RivalMetric::WaitingPlusRunning, target)
        }
        "kpa" => kpa_at(facts, number.unwrap_or(0.7)),
        "llm-d-slo" => slo_aware(facts, number.unwrap_or(0.55)),
        "llm-d-tokens" => {
            let RivalFacts { first_token, prompt_tokens, prompt_tokens_per_second, .. } = *facts;
            let derived =
                llmd::TokenAware::backlog_for(first_token, prompt_tokens, prompt_tokens_per_second);
            token_aware(facts, number.map_or(derived, Seconds))
        }
        "aibrix" => aibrix_at(facts, number.unwrap_or(0.5), None),
        "aibrix-linear" => {
            aibrix_at(facts, number.unwrap_or(0.5), Some(aibrix::Forecast::default()))
        }
        "ray" => ray_at(facts, number.unwrap_or(2.0)),
        "dynamo-load" => planner(facts, dynamo::Loops::Load, number),
        "dynamo-throughput" => planner(facts, dynamo::Loops::Throughput, number),
        "dynamo-hybrid" => planner(facts, dynamo::Loops::Both, number),
        "cron" if facts.week.is_empty() => return Err(RivalError::NeedsWeek(bare.to_owned())),
        "cron" => RivalSettings::Calendar(facts.calendar(number.unwrap_or(0.95), 1.0)),
        "static" => {
            let peak = facts.peak_per_second.map(|peak| peak / facts.replica_per_second);
            let fixed = number.or(peak).ok_or_else(|| RivalError::NeedsWeek(bare.to_owned()))?;
            RivalSettings::Static(Static { replicas: ceil(fixed).clamp(facts.min, facts.max) })
        }
        _ => return Err(RivalError::Unknown(bare.to_owned())),
    })
}

impl RivalSettings {
    /// The law, as one model needs it.
    pub fn law(&self) -> Box<dyn RivalLaw> {
        match self.clone() {
            Self::Hpa(settings) => Box::new(hpa::Hpa::new(settings)),
            Self::Keda(settings) => Box::new(keda::Keda::new(settings)),
            Self::Kpa(settings) => Box::new(kpa::Kpa::new(settings)),
            Self::SloAware(settings) => Box::new(llmd::SloAwareLaw::new(settings)),
            Self::TokenAware(settings) => Box::new(hpa::Hpa::new(settings.hpa())),
            Self::Aibrix(settings) => Box::new(aibrix::Apa::new(settings)),
            Self::Ray(settings) => Box::new(ray::Ray::new(settings)),
            Self::Dynamo(settings) => Box::new(dynamo::Planner::new(settings)),
            Self::Calendar(calendar) => Box::new(calendar),
            Self::Static(fixed) => Box::new(fixed),
        }
    }
}

fn hpa_on(facts: &RivalFacts, metric: RivalMetric, target: f64) -> RivalSettings {
    let sources = vec![HpaSource::per_pod(metric, target)];
    let min = facts.min.max(1);
    RivalSettings::Hpa(hpa::HpaSettings {
        sources,
        min,
        max: facts.max,
        ..hpa::HpaSettings::default()
    })
}

fn keda_on(facts: &RivalFacts, metric: RivalMetric, target: f64) -> RivalSettings {
    RivalSettings::Keda(keda::KedaSettings {
        triggers: vec![keda::Trigger::new(metric, target)],
        min: facts.min,
        max: facts.max,
        starts_at: facts.starts_at,
        ..keda::KedaSettings::default()
    })
}

fn kpa_at(facts: &RivalFacts, utilisation: f64) -> RivalSettings {
    RivalSettings::Kpa(kpa::KpaSettings {
        limit: facts.max_running,
        utilisation,
        min: facts.min,
        max: facts.max,
        ..kpa::KpaSettings::default()
    })
}

fn slo_aware(facts: &RivalFacts, up: f64) -> RivalSettings {
    let published = llmd::SloAware::default();
    RivalSettings::SloAware(llmd::SloAware {
        first_token: facts.first_token,
        between_tokens: facts.between_tokens,
        up,
        // The guide's band, kept in proportion.
        down: up * published.down / published.up,
        min: facts.min,
        max: facts.max,
        ..published
    })
}

fn token_aware(facts: &RivalFacts, backlog: Seconds) -> RivalSettings {
    RivalSettings::TokenAware(llmd::TokenAware {
        prompt_tokens_per_second: facts.prompt_tokens_per_second,
        backlog,
        min: facts.min,
        max: facts.max,
        ..llmd::TokenAware::default()
    })
}

fn aibrix_at(facts: &RivalFacts, target: f64, forecast: Option<aibrix::Forecast>) -> RivalSettings {
    let (min, max) = (facts.min, facts.max);
    RivalSettings::Aibrix(aibrix::AibrixSettings {
        target,
        forecast,
        min,
        max,
        ..aibrix::AibrixSettings::default()
    })
}

fn ray_at(facts: &RivalFacts, target: f64) -> RivalSettings {
    RivalSettings::Ray(ray::RaySettings {
        target,
        min: facts.min,
        max: facts.max,
        ..ray::RaySettings::default()
    })
}

fn planner(facts: &RivalFacts, loops: dynamo::Loops, number: Option<f64>) -> RivalSettings {
    // The load loop alone knows no capacity; its knob is how much must be left over.
    let (sensitivity, share) = match loops {
        dynamo::Loops::Load => (number, None),
        dynamo::Loops::Throughput | dynamo::Loops::Both => (None, number),
    };
    let published = dynamo::DynamoSettings::default();
    RivalSettings::Dynamo(dynamo::DynamoSettings {
        loops,
        sensitivity: sensitivity.unwrap_or(published.sensitivity),
        first_token: facts.first_token,
        between_tokens: facts.between_tokens,
        replica_per_second: facts.replica_per_second * share.unwrap_or(1.0),
        prompt_tokens_per_second: facts.prompt_tokens_per_second,
        prompt_tokens: facts.prompt_tokens,
        min: facts.min.max(1),
        max: facts.max,
        ..published
    })
}

const fn utilisation(facts: &RivalFacts) -> RivalMetric {
    RivalMetric::Utilisation { replica_per_second: facts.replica_per_second }
}
