//! The Knative Pod Autoscaler, with its panic.
//!
//! A slow and a fast mean of concurrency each ask for replicas; when the fast one asks for twice
//! what is ready, the law panics and only adds until a whole stable window was calm. Sources:
//! `pkg/autoscaler/scaling/autoscaler.go` of knative/serving and `config/core/configmaps/
//! autoscaler.yaml` for the defaults.
//!
//! It is blind to tokens, cache and latency.

use super::window::Window;
use super::{RivalLaw, RivalMetric, ceil};
use crate::policy::Reading;
use crate::seconds::Seconds;

/// What the autoscaler's config map and annotations say.
#[derive(Clone, Debug, PartialEq)]
pub struct KpaSettings {
    /// Concurrency (waiting and running) or requests per second.
    pub metric: RivalMetric,
    /// What one replica can take: `containerConcurrency`, or the default target of 100.
    pub limit: f64,
    /// Which share of it is aimed at: `container-concurrency-target-percentage`.
    pub utilisation: f64,
    /// The slow window: `stable-window`.
    pub stable: Seconds,
    /// The fast window: `panic-window-percentage` of the slow one.
    pub panic: Seconds,
    /// From which ratio to what is ready it panics: `panic-threshold-percentage`.
    pub threshold: f64,
    /// How many times as many it may ask for at once: `max-scale-up-rate`.
    pub up_rate: f64,
    /// Which part it may drop at once: `max-scale-down-rate`.
    pub down_rate: f64,
    /// How long the largest recommendation is kept: `scale-down-delay`.
    pub down_delay: Seconds,
    /// How long the last replica stays once nothing is wanted: `scale-to-zero-grace-period`.
    pub grace: Seconds,
    /// Least replicas.
    pub min: u32,
    /// Most replicas.
    pub max: u32,
}

impl Default for KpaSettings {
    fn default() -> Self {
        Self {
            metric: RivalMetric::WaitingPlusRunning,
            limit: 100.0,
            utilisation: 0.7,
            stable: Seconds(60.0),
            panic: Seconds(6.0),
            threshold: 2.0,
            up_rate: 1000.0,
            down_rate: 2.0,
            down_delay: Seconds::ZERO,
            grace: Seconds(30.0),
            min: 0,
            max: u32::MAX,
        }
    }
}

/// The autoscaler at work on one model.
#[derive(Clone, Debug)]
pub struct Kpa {
    settings: KpaSettings,
    seen: Window,
    recommended: Window,
    begun: bool,
    panicked: Option<Seconds>,
    most_in_panic: u32,
    idle_since: Option<Seconds>,
}

impl Kpa {
    /// One that has decided nothing yet.
    pub fn new(settings: KpaSettings) -> Self {
        let (seen, recommended) = (Window::new(settings.stable), Window::new(settings.down_delay));
        Self {
            settings,
            seen,
            recommended,
            begun: false,
            panicked: None,
            most_in_panic: 0,
            idle_since: None,
        }
    }

    /// What the two means ask for, before anything is remembered.
    fn recommendation(&mut self, now: Seconds, ready: f64) -> Option<u32> {
        let KpaSettings {
            stable, panic, limit, utilisation, up_rate, down_rate, threshold, ..
        } = self.settings;
        let target = limit * utilisation;
        let slow = f64::from(ceil(self.seen.mean(now, stable)? / target));
        // With scrapes further apart than the fast window its mean is the newest sample.
        let newest = self.seen.samples().last().map(|(_, value)| value)?;
        let fast = f64::from(ceil(self.seen.mean(now, panic).unwrap_or(newest) / target));
        let (least, most) = ((ready / down_rate).floor(), (ready * up_rate).ceil());
        let held = |desired: f64| desired.max(least).min(most) as u32;
        if fast / ready >= threshold {
            self.panicked = Some(now);
        } else if self.panicked.is_some_and(|since| since + stable < now) {
            self.panicked = None;
            self.most_in_panic = 0;
        }
        if self.panicked.is_none() {
            return Some(held(slow));
        }
        self.most_in_panic = self.most_in_panic.max(held(slow)).max(held(fast));
        Some(self.most_in_panic)
    }
}

impl RivalLaw for Kpa {
    fn desired(&mut self, now: Seconds, reading: &Reading, current: u32) -> u32 {
        if !self.begun {
            self.begun = true;
            // A new autoscaler knows no past; it starts in panic so as not to drop what runs.
            if reading.ready > 1 {
                self.panicked = Some(now);
                self.most_in_panic = reading.ready;
            }
        }
        match self.settings.metric.sum(reading) {
            Some(value) => self.seen.push(now, value),
            None => self.seen.forget(now),
        }
        let ready = f64::from(reading.ready.max(1));
        let Some(recommendation) = self.recommendation(now, ready) else {
            return current.max(self.settings.min);
        };
        let mut desired = recommendation;
        if self.settings.down_delay > Seconds::ZERO {
            self.recommended.push(now, f64::from(recommendation));
            desired = self.recommended.largest().map_or(recommendation, |most| most as u32);
        }
        if desired > 0 {
            self.idle_since = None;
        } else if now - *self.idle_since.get_or_insert(now) < self.settings.grace && current > 0 {
            desired = 1;
        }
        desired.clamp(self.settings.min, self.settings.max)
    }

    fn interval(&self) -> Seconds {
        // `tick-interval`.
        Seconds(2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Kpa, KpaSettings};
    use crate::policy::Reading;
    use crate::rivals::RivalLaw;
    use crate::seconds::Seconds;

    fn busy(ready: u32, running: f64) -> Reading {
        Reading { ready, waiting: Some(0.0), running: Some(running), ..Reading::default() }
    }

    fn kpa() -> Kpa {
        // Ten per replica, as in the worked examples of the Knative documentation.
        Kpa::new(KpaSettings { limit: 10.0, utilisation: 1.0, ..KpaSettings::default() })
    }

    /// Shows it the same for so long, and returns its last recommendation.
    fn hold(kpa: &mut Kpa, from: f64, seconds: u32, reading: &Reading, current: u32) -> u32 {
        let times = (0..=seconds / 2).map(|tick| Seconds(from + f64::from(tick) * 2.0));
        times.fold(current, |current, now| kpa.desired(now, reading, current))
    }

    #[test]
    fn steady_concurrency_over_the_target_gives_the_replicas() {
        assert_eq!(hold(&mut kpa(), 0.0, 60, &busy(1, 15.0), 1), 2);
    }

    #[test]
    fn the_target_is_a_share_of_the_limit() {
        // 70 of 100 per replica: 141 need three.
        let mut kpa = Kpa::new(KpaSettings::default());
        assert_eq!(hold(&mut kpa, 0.0, 60, &busy(1, 141.0), 1), 3);
    }

    #[test]
    fn a_burst_panics_and_is_kept_for_a_stable_window() {
        let mut kpa = kpa();
        assert_eq!(hold(&mut kpa, 0.0, 60, &busy(1, 5.0), 1), 1);
        // Six seconds at 100 make the fast mean ask for 10, five times what is ready and more.
        assert_eq!(hold(&mut kpa, 62.0, 6, &busy(1, 100.0), 1), 10);
        // Calm again: for a whole stable window nothing is dropped.
        assert_eq!(hold(&mut kpa, 70.0, 58, &busy(10, 5.0), 10), 10);
        // Afterwards at most half goes at once.
        assert_eq!(hold(&mut kpa, 130.0, 0, &busy(10, 5.0), 10), 5);
    }

    #[test]
    fn twice_what_is_ready_is_where_panic_begins() {
        let mut kpa = kpa();
        assert_eq!(hold(&mut kpa, 0.0, 60, &busy(10, 100.0), 10), 10);
        hold(&mut kpa, 200.0, 60, &busy(10, 100.0), 10);
        assert!(kpa.panicked.is_none());
        hold(&mut kpa, 262.0, 4, &busy(10, 180.0), 10);
        assert!(kpa.panicked.is_none());
        hold(&mut kpa, 268.0, 6, &busy(10, 200.0), 10);
        assert!(kpa.panicked.is_some());
    }

    #[test]
    fn the_last_replica_goes_after_an_idle_window_and_the_grace() {
        let mut kpa = kpa();
        kpa.desired(Seconds(0.0), &busy(1, 1.0), 1);
        assert_eq!(hold(&mut kpa, 2.0, 56, &busy(1, 0.0), 1), 1, "the window still saw work");
        assert_eq!(hold(&mut kpa, 60.0, 28, &busy(1, 0.0), 1), 1, "grace");
        assert_eq!(hold(&mut kpa, 90.0, 0, &busy(1, 0.0), 1), 0);
    }

    #[test]
    fn without_data_nothing_moves() {
        let mut kpa = kpa();
        let blind = Reading { ready: 4, ..Reading::default() };
        assert_eq!(hold(&mut kpa, 0.0, 200, &blind, 4), 4);
    }

    #[test]
    fn it_starts_in_panic_so_that_a_restart_drops_nothing() {
        assert_eq!(hold(&mut kpa(), 0.0, 60, &busy(6, 0.0), 6), 6);
    }
}
