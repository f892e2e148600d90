//! KEDA: a `ScaledObject` with its generated HPA.
//!
//! The operator moves between nothing and one (or idle and the minimum) every polling interval;
//! above that a generated HPA decides. Sources: keda.sh "ScaledObject specification" and
//! "Prometheus" and "Cron" scalers; `pkg/scaling/executor` and `pkg/fallback` of kedacore/keda.
//!
//! It does not know the HTTP add-on: who holds requests while nothing runs is the world's matter.

use super::calendar::Cron;
use super::hpa::{self, Hpa, HpaSource};
use super::{RivalLaw, RivalMetric};
use crate::policy::Reading;
use crate::seconds::Seconds;

/// What a `ScaledObject` says.
#[derive(Clone, Debug, PartialEq)]
pub struct KedaSettings {
    /// What it scales on.
    pub triggers: Vec<Trigger>,
    /// Hours in which more replicas are wanted.
    pub crons: Vec<CronTrigger>,
    /// How often the operator looks: `pollingInterval`.
    pub polling: Seconds,
    /// How long no trigger must have been active before the last replica goes: `cooldownPeriod`.
    pub cooldown: Seconds,
    /// `minReplicaCount`.
    pub min: u32,
    /// `maxReplicaCount`.
    pub max: u32,
    /// Replicas while no trigger is active, if fewer than the least: `idleReplicaCount`.
    pub idle: Option<u32>,
    /// What to do when triggers cannot be read.
    pub fallback: Option<Fallback>,
    /// How the generated HPA moves: `advanced.horizontalPodAutoscalerConfig.behavior`.
    pub behaviour: hpa::Behaviour,
    /// How far into its week the replay starts, for `cron` triggers.
    pub starts_at: Seconds,
}

/// One trigger that reads a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trigger {
    /// What is read, and `threshold`.
    pub source: HpaSource,
    /// Above which value it is active: `activationThreshold`.
    pub activation: f64,
    /// Whether an answer without a value counts as zero: `ignoreNullValues`.
    pub null_is_zero: bool,
}

/// A `cron` trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronTrigger {
    /// When it begins to hold.
    pub start: Cron,
    /// When it ends.
    pub end: Cron,
    /// How many replicas it wants meanwhile.
    pub replicas: u32,
}

/// What to do when a trigger cannot be read for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// After how many failures in a row it takes over: `failureThreshold`.
    pub failures: u32,
    /// `replicas`.
    pub replicas: u32,
    /// How `replicas` is read.
    pub kind: FallbackKind,
}

/// How the replicas of a fallback are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackKind {
    /// As they are: `static`.
    Static,
    /// The current ones instead: `currentReplicas`.
    Current,
    /// The larger of both: `currentReplicasIfHigher`.
    Higher,
    /// The smaller of both: `currentReplicasIfLower`.
    Lower,
}

impl Trigger {
    /// A `prometheus` trigger with the defaults: active above zero, no answer counts as zero.
    pub const fn new(metric: RivalMetric, threshold: f64) -> Self {
        let source = HpaSource::average_value(metric, threshold);
        Self { source, activation: 0.0, null_is_zero: true }
    }

    /// What is read. Neither NaN nor infinity is a value, as neither is no answer at all.
    fn read(&self, reading: &Reading) -> Option<f64> {
        let value = self.source.value(reading).filter(|value| value.is_finite());
        value.or(self.null_is_zero.then_some(0.0))
    }
}

impl Default for KedaSettings {
    /// The published defaults with the trigger of the vLLM production stack's KEDA tutorial: five
    /// waiting requests per replica.
    fn default() -> Self {
        Self {
            triggers: vec![Trigger::new(RivalMetric::Waiting, 5.0)],
            crons: Vec::new(),
            polling: Seconds(30.0),
            cooldown: Seconds(300.0),
            min: 0,
            max: 100,
            idle: None,
            fallback: None,
            behaviour: hpa::Behaviour::default(),
            starts_at: Seconds::ZERO,
        }
    }
}

/// A `ScaledObject` at work on one model.
#[derive(Clone, Debug)]
pub struct Keda {
    settings: KedaSettings,
    hpa: Hpa,
    failures: Vec<u32>,
    last_active: Option<Seconds>,
    polled: Option<Seconds>,
}

impl Keda {
    /// One that has decided nothing yet.
    pub fn new(settings: KedaSettings) -> Self {
        let sources = settings.triggers.iter().map(|trigger| {
            let null = trigger.null_is_zero.then_some(0.0);
            HpaSource { missing: trigger.source.missing.or(null), ..trigger.source }
        });
        let hpa = Hpa::new(hpa::HpaSettings {
            sources: sources.collect(),
            // An HPA cannot have a minimum of zero, so KEDA writes one.
            min: settings.min.max(1),
            max: settings.max,
            behaviour: settings.behaviour.clone(),
            ..hpa::HpaSettings::default()
        });
        let failures = vec![0; settings.triggers.len()];
        Self { settings, hpa, failures, last_active: None, polled: None }
    }

    /// Between nothing and one, or idle and the least. `None` leaves the number to the HPA.
    fn poll(&mut self, now: Seconds, reading: &Reading, current: u32) -> Option<u32> {
        let KedaSettings { triggers, min, idle, .. } = &self.settings;
        let values: Vec<Option<f64>> =
            triggers.iter().map(|trigger| trigger.read(reading)).collect();
        for (failures, value) in self.failures.iter_mut().zip(&values) {
            *failures = if value.is_some() { 0 } else { failures.saturating_add(1) };
        }
        let above = |(trigger, value): (&Trigger, &Option<f64>)| {
            value.is_some_and(|value| value > trigger.activation)
        };
        let active = triggers.iter().zip(&values).any(above)
            || self.settings.crons.iter().any(|cron| self.settings.holds(cron, now));
        let failed = values.iter().any(Option::is_none);
        if active {
            self.last_active = Some(now);
            let asleep = current == 0 || (idle.is_some() && current < *min);
            return asleep.then_some((*min).max(1));
        }
        if failed {
            // Not known is not idle: without a fallback nothing moves.
            return self.fallback(current).filter(|_| self.failed_for_long());
        }
        let cooled = self.last_active.is_none_or(|last| now - last > self.settings.cooldown);
        match idle {
            Some(idle) if current > *idle => cooled.then_some(*idle),
            Some(_) => None,
            None if current > 0 && *min == 0 => cooled.then_some(0),
            None => (current < *min).then_some(*min),
        }
    }

    fn failed_for_long(&self) -> bool {
        let threshold = self.settings.fallback.map_or(u32::MAX, |fallback| fallback.failures);
        self.failures.iter().any(|failures| *failures > threshold)
    }

    fn fallback(&self, current: u32) -> Option<u32> {
        let Fallback { replicas, kind, .. } = self.settings.fallback?;
        Some(match kind {
            FallbackKind::Static => replicas,
            FallbackKind::Current => current,
            FallbackKind::Higher => replicas.max(current),
            FallbackKind::Lower => replicas.min(current),
        })
    }
}

impl KedaSettings {
    fn holds(&self, cron: &CronTrigger, now: Seconds) -> bool {
        cron.start.is_on(&cron.end, now + self.starts_at)
    }
}

impl RivalLaw for Keda {
    fn desired(&mut self, now: Seconds, reading: &Reading, current: u32) -> u32 {
        let due = self.polled.is_none_or(|last| now < last || now - last >= self.settings.polling);
        if due {
            self.polled = Some(now);
            if let Some(replicas) = self.poll(now, reading, current) {
                return replicas;
            }
        }
        if current == 0 || self.settings.idle.is_some_and(|idle| current <= idle) {
            return current;
        }
        let mut proposals = self.hpa.proposals(reading, current);
        for (proposal, failures) in proposals.iter_mut().zip(&self.failures) {
            let long = self.settings.fallback.is_some_and(|how| *failures > how.failures);
            if proposal.is_none() && long {
                *proposal = self.fallback(current);
            }
        }
        // Outside its hours a cron trigger shows one, as published.
        let crons = self.settings.crons.iter();
        proposals.extend(
            crons.map(|cron| Some(if self.settings.holds(cron, now) { cron.replicas } else { 1 })),
        );
        self.hpa.settle(now, &proposals, current)
    }

    fn interval(&self) -> Seconds {
        self.hpa.interval().min(self.settings.polling)
    }
}

#[cfg(test)]
mod tests {
    use super::{CronTrigger, Fallback, FallbackKind, Keda, KedaSettings, Trigger};
    use crate::policy::Reading;
    use crate::rivals::calendar::Cron;
    use crate::rivals::{RivalLaw, RivalMetric};
    use crate::seconds::Seconds;

    fn waiting(ready: u32, waiting: f64) -> Reading {
        Reading { ready, waiting: Some(waiting), ..Reading::default() }
    }

    #[test]
    fn the_first_request_wakes_it_and_the_hpa_takes_over() {
        let mut keda = Keda::new(KedaSettings::default());
        assert_eq!(keda.desired(Seconds(0.0), &waiting(0, 0.0), 0), 0);
        // The HPA looks every 15 s, the operator every 30 s.
        assert_eq!(keda.desired(Seconds(15.0), &waiting(0, 1.0), 0), 0);
        assert_eq!(keda.desired(Seconds(30.0), &waiting(0, 1.0), 0), 1);
        // 21 waiting at 5 each: five replicas, which the first 15 s allow (1 + 4).
        assert_eq!(keda.desired(Seconds(45.0), &waiting(1, 21.0), 1), 5);
    }

    #[test]
    fn it_sleeps_only_when_no_trigger_was_active_for_the_cooldown() {
        let mut keda = Keda::new(KedaSettings::default());
        assert_eq!(keda.desired(Seconds(0.0), &waiting(1, 2.0), 1), 1);
        for step in 1..=10 {
            assert_eq!(keda.desired(Seconds(f64::from(step) * 30.0), &waiting(1, 0.0), 1), 1);
        }
        assert_eq!(keda.desired(Seconds(330.0), &waiting(1, 0.0), 1), 0);
    }

    #[test]
    fn an_activation_threshold_keeps_it_asleep() {
        let mut trigger = Trigger::new(RivalMetric::Waiting, 5.0);
        trigger.activation = 3.0;
        let mut keda =
            Keda::new(KedaSettings { triggers: vec![trigger], ..KedaSettings::default() });
        assert_eq!(keda.desired(Seconds(0.0), &waiting(0, 3.0), 0), 0);
        assert_eq!(keda.desired(Seconds(30.0), &waiting(0, 4.0), 0), 1);
    }

    #[test]
    fn idle_replicas_stay_below_the_minimum() {
        let settings = KedaSettings { min: 3, idle: Some(1), ..KedaSettings::default() };
        let mut keda = Keda::new(settings);
        assert_eq!(keda.desired(Seconds(0.0), &waiting(3, 0.0), 3), 1);
        assert_eq!(keda.desired(Seconds(30.0), &waiting(1, 0.0), 1), 1);
        assert_eq!(keda.desired(Seconds(60.0), &waiting(1, 1.0), 1), 3);
    }

    #[test]
    fn a_missing_value_counts_as_zero_unless_told_otherwise() {
        let blind = Reading { ready: 4, ..Reading::default() };
        let mut keda = Keda::new(KedaSettings { min: 1, ..KedaSettings::default() });
        assert_eq!(keda.desired(Seconds(0.0), &blind, 4), 4, "held by the stabilisation");
        assert_eq!(keda.desired(Seconds(300.0), &blind, 4), 1, "read as nobody waiting");

        let mut trigger = Trigger::new(RivalMetric::Waiting, 5.0);
        trigger.null_is_zero = false;
        let mut keda =
            Keda::new(KedaSettings { min: 1, triggers: vec![trigger], ..KedaSettings::default() });
        for step in 0..100 {
            assert_eq!(keda.desired(Seconds(f64::from(step) * 30.0), &blind, 4), 4);
        }
    }

    #[test]
    fn a_fallback_takes_over_after_its_failures() {
        let mut trigger = Trigger::new(RivalMetric::Waiting, 5.0);
        trigger.null_is_zero = false;
        let how = Fallback { failures: 3, replicas: 6, kind: FallbackKind::Static };
        let settings = KedaSettings {
            triggers: vec![trigger],
            fallback: Some(how),
            ..KedaSettings::default()
        };
        let mut keda = Keda::new(settings);
        let blind = Reading { ready: 2, ..Reading::default() };
        let answers: Vec<u32> =
            (0..5).map(|step| keda.desired(Seconds(f64::from(step) * 30.0), &blind, 2)).collect();
        assert_eq!(answers, [2, 2, 2, 6, 6]);
    }

    #[test]
    fn a_cron_trigger_holds_its_replicas_in_its_hours() {
        let cron = CronTrigger {
            start: Cron::read("0 8 * * *").expect("cron"),
            end: Cron::read("0 9 * * *").expect("cron"),
            replicas: 4,
        };
        let mut keda = Keda::new(KedaSettings { crons: vec![cron], ..KedaSettings::default() });
        assert_eq!(keda.desired(Seconds(7.9 * 3600.0), &waiting(0, 0.0), 0), 0);
        let eight = 8.0 * 3600.0;
        assert_eq!(keda.desired(Seconds(eight), &waiting(0, 0.0), 0), 1);
        assert_eq!(keda.desired(Seconds(eight + 15.0), &waiting(1, 0.0), 1), 4);
        let nine = 9.0 * 3600.0;
        assert_eq!(keda.desired(Seconds(nine - 15.0), &waiting(4, 0.0), 4), 4);
        assert_eq!(keda.desired(Seconds(nine + 15.0), &waiting(4, 0.0), 4), 4, "stabilised");
        assert_eq!(keda.desired(Seconds(nine + 285.0), &waiting(4, 0.0), 4), 1);
        assert_eq!(keda.desired(Seconds(nine + 315.0), &waiting(1, 0.0), 1), 0, "cooled down");
    }
}
