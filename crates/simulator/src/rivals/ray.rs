//! Ray Serve's autoscaling on requests in flight.
//!
//! A recommendation must persist for a delay before it is followed; factors soften each step. Sources:
//! `python/ray/serve/autoscaling_policy.py` and `AutoscalingConfig` of ray-project/ray.
//!
//! It sees requests and not tokens, cache or latency.

use super::window::Window;
use super::{RivalLaw, RivalMetric};
use crate::policy::Reading;
use crate::seconds::Seconds;

/// What an `autoscaling_config` says.
#[derive(Clone, Debug, PartialEq)]
pub struct RaySettings {
    /// Requests in flight per replica: `target_ongoing_requests`.
    pub target: f64,
    /// How long a recommendation for more must persist: `upscale_delay_s`.
    pub up_delay: Seconds,
    /// How long a recommendation for fewer must persist: `downscale_delay_s`.
    pub down_delay: Seconds,
    /// The same for the last replica, if it differs: `downscale_to_zero_delay_s`.
    pub zero_delay: Option<Seconds>,
    /// Which part of a step up is taken: `upscaling_factor`.
    pub up_factor: f64,
    /// Which part of a step down is taken: `downscaling_factor`.
    pub down_factor: f64,
    /// Over how long requests in flight are averaged: `look_back_period_s`.
    pub look_back: Seconds,
    /// Least replicas.
    pub min: u32,
    /// Most replicas.
    pub max: u32,
}

impl Default for RaySettings {
    /// The published defaults; the most replicas are those of `num_replicas="auto"`.
    fn default() -> Self {
        Self {
            target: 2.0,
            up_delay: Seconds(30.0),
            down_delay: Seconds(600.0),
            zero_delay: None,
            up_factor: 1.0,
            down_factor: 1.0,
            look_back: Seconds(30.0),
            min: 1,
            max: 100,
        }
    }
}

impl RaySettings {
    /// Replicas for so many requests in flight, before any delay.
    pub fn replicas(&self, in_flight: f64, running: u32) -> u32 {
        let here = f64::from(running);
        let change = in_flight / self.target - here;
        let factor = if change > 0.0 { self.up_factor } else { self.down_factor };
        let mut recommendation = (here + factor * change - 5e-7).ceil();
        // A factor must not keep a step down from ever being taken.
        if (here + change).ceil() < here && recommendation >= here {
            recommendation = here - 1.0;
        }
        (recommendation.max(0.0) as u32).clamp(self.min, self.max)
    }
}

/// The policy at work on one model.
#[derive(Clone, Debug)]
pub struct Ray {
    settings: RaySettings,
    seen: Window,
    // Which way the recommendation points and since when.
    leaning: Option<(Lean, Seconds)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lean {
    Up,
    Down,
}

impl Ray {
    /// One that has decided nothing yet.
    pub fn new(settings: RaySettings) -> Self {
        Self { seen: Window::new(settings.look_back), settings, leaning: None }
    }

    /// Follows a recommendation once it has pointed the same way for long enough.
    fn delayed(&mut self, now: Seconds, recommendation: u32, current: u32) -> u32 {
        let lean = match recommendation.cmp(&current) {
            std::cmp::Ordering::Greater => Lean::Up,
            std::cmp::Ordering::Less => Lean::Down,
            std::cmp::Ordering::Equal => {
                self.leaning = None;
                return current;
            }
        };
        let since = match self.leaning {
            Some((same, since)) if same == lean && since <= now => since,
            _ => now,
        };
        self.leaning = Some((lean, since));
        let RaySettings { up_delay, down_delay, zero_delay, .. } = self.settings;
        // Only the last replica may go to zero, so a larger fleet stops at one first.
        let (delay, recommendation) = match lean {
            Lean::Up => (up_delay, recommendation),
            Lean::Down if current == 1 => (zero_delay.unwrap_or(down_delay), recommendation),
            Lean::Down => (down_delay, recommendation.max(1)),
        };
        if now - since < delay {
            return current;
        }
        self.leaning = None;
        recommendation
    }
}

impl RivalLaw for Ray {
    fn desired(&mut self, now: Seconds, reading: &Reading, current: u32) -> u32 {
        let Some(in_flight) = RivalMetric::WaitingPlusRunning.sum(reading) else { return current };
        self.seen.push(now, in_flight);
        let mean = self.seen.mean(now, self.settings.look_back).unwrap_or(in_flight);
        if reading.ready == 0 {
            // Nothing runs: the first request is answered at once, without a delay.
            let first = if in_flight > 0.0 { self.settings.up_factor.ceil() as u32 } else { 0 };
            return current.max(first).max(self.settings.min);
        }
        let recommendation = self.settings.replicas(mean, reading.ready);
        self.delayed(now, recommendation, current)
    }

    fn interval(&self) -> Seconds {
        // `metrics_interval_s`; between two of these nothing new is known.
        Seconds(10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ray, RaySettings};
    use crate::policy::Reading;
    use crate::rivals::RivalLaw;
    use crate::seconds::Seconds;

    fn in_flight(ready: u32, requests: f64) -> Reading {
        Reading { ready, waiting: Some(0.0), running: Some(requests), ..Reading::default() }
    }

    #[test]
    fn replicas_follow_requests_in_flight() {
        let law = RaySettings::default();
        assert_eq!(law.replicas(20.0, 2), 10);
        assert_eq!(law.replicas(3.0, 2), 2);
        assert_eq!(law.replicas(0.0, 2), 1);
    }

    #[test]
    fn factors_soften_each_step_and_never_block_a_step_down() {
        let law = RaySettings { up_factor: 0.5, down_factor: 0.1, ..RaySettings::default() };
        assert_eq!(law.replicas(20.0, 2), 6, "half of the way from 2 to 10");
        // A tenth of the way from 10 to 9 rounds up to 10 again, so one is taken off.
        assert_eq!(law.replicas(18.0, 10), 9);
    }

    #[test]
    fn more_is_followed_after_thirty_seconds_and_fewer_after_ten_minutes() {
        let mut ray = Ray::new(RaySettings::default());
        for tick in 0..3 {
            assert_eq!(ray.desired(Seconds(f64::from(tick) * 10.0), &in_flight(2, 20.0), 2), 2);
        }
        assert_eq!(ray.desired(Seconds(30.0), &in_flight(2, 20.0), 2), 10);
        let mut fewer_since = None;
        for tick in 4..200 {
            let now = Seconds(f64::from(tick) * 10.0);
            if ray.desired(now, &in_flight(10, 2.0), 10) == 1 {
                fewer_since = Some(now);
                break;
            }
        }
        // At 40 s the mean over 30 s, of 20, 20 and 2, is 14: seven replicas, so it begins there.
        assert_eq!(fewer_since, Some(Seconds(640.0)));
    }

    #[test]
    fn a_recommendation_that_turns_begins_anew() {
        let settings = RaySettings { look_back: Seconds(10.0), ..RaySettings::default() };
        let mut ray = Ray::new(settings);
        for tick in 0..50 {
            let requests = if tick % 3 == 0 { 4.0 } else { 20.0 };
            let now = Seconds(f64::from(tick) * 10.0);
            assert_eq!(ray.desired(now, &in_flight(2, requests), 2), 2);
        }
    }

    #[test]
    fn the_first_request_is_answered_at_once() {
        let mut ray = Ray::new(RaySettings { min: 0, ..RaySettings::default() });
        assert_eq!(ray.desired(Seconds(0.0), &in_flight(0, 0.0), 0), 0);
        assert_eq!(ray.desired(Seconds(10.0), &in_flight(0, 5.0), 0), 1);
    }

    #[test]
    fn a_larger_fleet_stops_at_one_before_zero() {
        let settings =
            RaySettings { min: 0, zero_delay: Some(Seconds(60.0)), ..RaySettings::default() };
        let mut ray = Ray::new(settings);
        let mut replicas = 3;
        let mut went = Vec::new();
        for tick in 0..100 {
            let next =
                ray.desired(Seconds(f64::from(tick) * 10.0), &in_flight(replicas, 0.0), replicas);
            if next != replicas {
                went.push((tick * 10, next));
            }
            replicas = next;
        }
        assert_eq!(went, [(600, 1), (670, 0)]);
    }
}
