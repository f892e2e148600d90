//! AIBrix's application-specific pod autoscaler (APA), plain and with its straight-line forecast.
//!
//! Sources: `pkg/controller/podautoscaler` of vllm-project/aibrix: `algorithm/apa.go` (the law),
//! `context/context.go` (defaults), `autoscaler.go` (replicas that start), `prediction/
//! predictor.go` (the forecast). Its optimizer over kinds of accelerators is not here.

use super::predict::line;
use super::window::Window;
use super::{RivalLaw, RivalMetric, ceil};
use crate::policy::Reading;
use crate::seconds::Seconds;

/// What a `PodAutoscaler` says.
#[derive(Clone, Debug, PartialEq)]
pub struct AibrixSettings {
    /// What it scales on: a mean per replica.
    pub metric: RivalMetric,
    /// The target of that mean.
    pub target: f64,
    /// How far above the target it does nothing.
    pub up_tolerance: f64,
    /// How far below the target it does nothing.
    pub down_tolerance: f64,
    /// How many times as many it may ask for at once.
    pub up_rate: f64,
    /// Which part it may drop at once.
    pub down_rate: f64,
    /// Over how long the smallest recommendation counts on the way up.
    pub up_cooldown: Seconds,
    /// Over how long the largest recommendation counts on the way down.
    pub down_cooldown: Seconds,
    /// Whether it looks ahead along a straight line.
    pub forecast: Option<Forecast>,
    /// Least replicas.
    pub min: u32,
    /// Most replicas.
    pub max: u32,
    /// How often it decides.
    pub sync: Seconds,
}

/// How far a straight line is followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Over how long the line is fitted.
    pub window: Seconds,
    /// How far ahead it is read.
    pub horizon: Seconds,
}

impl Forecast {
    // `prediction/predictor.go`: MinDataPoints, MinCoverage, MaxGrowthRatio.
    const LEAST_POINTS: usize = 3;
    const LEAST_COVERAGE: f64 = 0.5;
    const MOST_GROWTH: f64 = 4.0;

    /// What the line says; `None` where the samples do not carry one.
    fn ahead(&self, samples: &Window) -> Option<f64> {
        let points: Vec<(f64, f64)> = samples.samples().map(|(at, value)| (at.0, value)).collect();
        let covered = points.last()?.0 - points.first()?.0;
        if points.len() < Self::LEAST_POINTS || covered < self.window.0 * Self::LEAST_COVERAGE {
            return None;
        }
        let (_, slope) = line(&points)?;
        let mean = points.iter().map(|(_, value)| value).sum::<f64>() / points.len() as f64;
        // As published it starts from the mean of the window and not from its end, so the real
        // look-ahead is half a window shorter.
        let predicted = (mean + slope * self.horizon.0).max(0.0);
        Some(if mean > 0.0 { predicted.min(mean * Self::MOST_GROWTH) } else { predicted })
    }
}

impl Default for AibrixSettings {
    /// The published defaults, with the metric and target of AIBrix's own sample.
    fn default() -> Self {
        Self {
            metric: RivalMetric::CacheUsed,
            target: 0.5,
            up_tolerance: 0.1,
            down_tolerance: 0.1,
            up_rate: 2.0,
            down_rate: 2.0,
            up_cooldown: Seconds::ZERO,
            down_cooldown: Seconds(300.0),
            forecast: None,
            min: 1,
            max: 100,
            sync: Seconds(10.0),
        }
    }
}

impl Default for Forecast {
    /// Two minutes ahead as published, along the three minutes of the stable window.
    fn default() -> Self {
        Self { window: Seconds(180.0), horizon: Seconds(120.0) }
    }
}

impl AibrixSettings {
    /// The law: replicas for a mean use per replica.
    pub fn replicas(&self, current: u32, mean: f64) -> u32 {
        let (count, ratio) = (f64::from(current), mean / self.target);
        if ratio > 1.0 + self.up_tolerance {
            let most = (self.up_rate * count).ceil() as u32;
            ceil(count * ratio).min(most)
        } else if ratio < 1.0 - self.down_tolerance {
            let least = (count / self.down_rate).floor() as u32;
            ceil(count * ratio).max(least)
        } else {
            current
        }
    }

    /// The same with replicas that start: at zero on the way up, at the target on the way down.
    fn guarded(&self, recommendation: u32, current: u32, mean: f64, reading: &Reading) -> u32 {
        let ready = reading.ready.min(current);
        let pending = current - ready;
        if pending == 0 || recommendation == current {
            return recommendation;
        }
        let busy = mean * f64::from(ready) / self.target;
        if recommendation > current {
            ceil(busy).clamp(current, recommendation)
        } else {
            ceil(busy + f64::from(pending)).clamp(recommendation, current)
        }
    }
}

/// A `PodAutoscaler` at work on one model.
#[derive(Clone, Debug)]
pub struct Apa {
    settings: AibrixSettings,
    seen: Window,
    up: Window,
    down: Window,
}

impl Apa {
    /// One that has decided nothing yet.
    pub fn new(settings: AibrixSettings) -> Self {
        let window = settings.forecast.map_or(Seconds::ZERO, |forecast| forecast.window);
        Self {
            seen: Window::new(window),
            up: Window::new(settings.up_cooldown),
            down: Window::new(settings.down_cooldown),
            settings,
        }
    }
}

impl RivalLaw for Apa {
    fn desired(&mut self, now: Seconds, reading: &Reading, current: u32) -> u32 {
        let AibrixSettings { metric, forecast, min, max, .. } = self.settings;
        let Some(mean) = metric.mean(reading) else { return current.clamp(min, max) };
        self.seen.push(now, mean);
        let mut recommendation = self.settings.replicas(current, mean);
        if let Some(ahead) = forecast.and_then(|forecast| forecast.ahead(&self.seen)) {
            // A forecast may only ask for more; tolerance and rates do not apply to it.
            recommendation =
                recommendation.max(ceil(f64::from(current) * ahead / self.settings.target));
        }
        let recommendation = self.settings.guarded(recommendation, current, mean, reading);
        let recommendation = recommendation.clamp(min, max);
        self.up.push(now, f64::from(recommendation));
        self.down.push(now, f64::from(recommendation));
        let upward = self.up.smallest().map_or(recommendation, |least| least as u32);
        let downward = self.down.largest().map_or(recommendation, |most| most as u32);
        current.max(upward).min(downward).clamp(min, max)
    }

    fn interval(&self) -> Seconds {
        self.settings.sync
    }
}

#[cfg(test)]
mod tests {
    use super::{AibrixSettings, Apa, Forecast};
    use crate::policy::Reading;
    use crate::rivals::RivalLaw;
    use crate::seconds::Seconds;

    fn cache(ready: u32, starting: u32, used: f64) -> Reading {
        Reading { ready, starting, cache_used: Some(used), ..Reading::default() }
    }

    #[test]
    fn the_law_scales_by_the_ratio_within_its_rates() {
        let law = AibrixSettings::default();
        assert_eq!(law.replicas(10, 0.55), 10, "within tolerance");
        assert_eq!(law.replicas(10, 0.6), 12);
        assert_eq!(law.replicas(10, 1.5), 20, "at most twice");
        assert_eq!(law.replicas(10, 0.46), 10);
        assert_eq!(law.replicas(10, 0.4), 8);
        assert_eq!(law.replicas(10, 0.01), 5, "at least half");
    }

    #[test]
    fn replicas_that_start_count_as_idle_up_and_as_busy_down() {
        let law = AibrixSettings::default();
        // Four of eight ready at 0.9: 7.2 are busy, fewer than the eight that are coming.
        assert_eq!(law.guarded(15, 8, 0.9, &cache(4, 4, 0.9)), 8);
        // Six of eight ready at 0.9: 10.8.
        assert_eq!(law.guarded(15, 8, 0.9, &cache(6, 2, 0.9)), 11);
        // Four of eight ready at 0.2: 1.6 busy and four at their target.
        assert_eq!(law.guarded(4, 8, 0.2, &cache(4, 4, 0.2)), 6);
    }

    #[test]
    fn down_waits_until_every_recommendation_of_five_minutes_agrees() {
        let mut apa = Apa::new(AibrixSettings::default());
        assert_eq!(apa.desired(Seconds(0.0), &cache(8, 0, 0.5), 8), 8);
        for tick in 1..30 {
            assert_eq!(apa.desired(Seconds(f64::from(tick) * 10.0), &cache(8, 0, 0.3), 8), 8);
        }
        assert_eq!(apa.desired(Seconds(300.0), &cache(8, 0, 0.3), 8), 5);
    }

    #[test]
    fn a_missing_metric_moves_nothing() {
        let mut apa = Apa::new(AibrixSettings::default());
        let blind = Reading { ready: 6, ..Reading::default() };
        assert_eq!(apa.desired(Seconds(0.0), &blind, 6), 6);
    }

    #[test]
    fn a_climb_is_followed_ahead_from_the_mean_of_the_window() {
        let forecast = Some(Forecast::default());
        let mut last = 0;
        // 0.01 more each 10 s: the mean of the 18 samples in the window is 0.575, and 120 s at
        // 0.001 a second make 0.695; 100 replicas become 139.
        let mut apa = Apa::new(AibrixSettings { forecast, max: 500, ..AibrixSettings::default() });
        for tick in 0..=18 {
            let used = 0.48 + 0.01 * f64::from(tick);
            last = apa.desired(Seconds(f64::from(tick) * 10.0), &cache(100, 0, used), 100);
        }
        assert_eq!(last, 139);
    }

    #[test]
    fn its_own_step_down_looks_like_a_climb() {
        // The forecast is of the mean per replica, as published. When two replicas become one,
        // that mean doubles, the line points up, and the replica comes back.
        let forecast = Some(Forecast::default());
        let mut apa = Apa::new(AibrixSettings { forecast, ..AibrixSettings::default() });
        let mut replicas = 2;
        let mut changes = 0;
        for tick in 0..720 {
            let seen = cache(replicas, 0, 0.45 / f64::from(replicas));
            let next = apa.desired(Seconds(f64::from(tick) * 10.0), &seen, replicas);
            changes += u32::from(next != replicas);
            replicas = next;
        }
        assert!(changes > 10, "{changes} changes in two hours of constant load");
    }

    #[test]
    fn too_few_samples_carry_no_forecast() {
        let forecast = Some(Forecast::default());
        let mut apa = Apa::new(AibrixSettings { forecast, ..AibrixSettings::default() });
        assert_eq!(apa.desired(Seconds(0.0), &cache(10, 0, 0.3), 10), 10 / 2 + 1);
        // 80 s do not cover half of the window.
        assert_eq!(apa.desired(Seconds(40.0), &cache(10, 0, 0.4), 10), 8);
        assert_eq!(apa.desired(Seconds(80.0), &cache(10, 0, 0.5), 10), 10);
    }
}
