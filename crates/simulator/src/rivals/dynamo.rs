//! NVIDIA Dynamo's planner: its load loop, its throughput loop and both together.
//!
//! The throughput loop forecasts the next interval's requests and divides by what one engine
//! serves within the objectives; the load loop adds or removes one engine when all of them are
//! outside or well inside. With both, the first is a floor under the second. Sources:
//! `components/src/dynamo/planner/core/{load,throughput}_scaling.py` and `config/defaults.py` of
//! ai-dynamo/dynamo, aggregated mode.
//!
//! The planner searches the order of its ARIMA; here it is fixed at (1, 1, 0). It reads every
//! forward pass of every engine; here all engines are taken to be alike, since a [`Reading`] is of
//! the whole model.

use super::predict::{LocalTrend, line, next_by_differences};
use super::{RivalLaw, ceil};
use crate::policy::Reading;
use crate::seconds::Seconds;
use std::collections::VecDeque;

/// What a planner is told.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamoSettings {
    /// Which loops run.
    pub loops: Loops,
    /// How the next interval's requests are forecast.
    pub predictor: Predictor,
    /// Objective of the time to the first token.
    pub first_token: Seconds,
    /// Objective of the time between tokens.
    pub between_tokens: Seconds,
    /// Requests per second that one engine serves within the objectives.
    pub replica_per_second: f64,
    /// Prompt tokens per second that one engine takes in.
    pub prompt_tokens_per_second: f64,
    /// Tokens of a prompt, where metrics do not say.
    pub prompt_tokens: f64,
    /// Which share of an objective must be left over for a step down:
    /// `load_scaling_down_sensitivity`.
    pub sensitivity: f64,
    /// How often the throughput loop decides.
    pub throughput_interval: Seconds,
    /// How often the load loop decides.
    pub load_interval: Seconds,
    /// Least replicas: `min_endpoint`.
    pub min: u32,
    /// Most replicas, from `max_gpu_budget`.
    pub max: u32,
}

/// Which loops of the planner run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loops {
    /// One engine more or fewer, on latency.
    Load,
    /// As many as the forecast needs.
    Throughput,
    /// Load above a floor from throughput.
    Both,
}

/// How the planner forecasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predictor {
    /// The next interval is as the last.
    Constant,
    /// ARIMA(1, 1, 0).
    Arima,
    /// A level with a trend.
    Kalman,
}

impl Default for DynamoSettings {
    /// The published defaults; capacity has none, since the planner profiles its engines.
    fn default() -> Self {
        Self {
            loops: Loops::Throughput,
            predictor: Predictor::Arima,
            first_token: Seconds(0.5),
            between_tokens: Seconds(0.05),
            replica_per_second: 1.0,
            prompt_tokens_per_second: 10_000.0,
            prompt_tokens: 3_000.0,
            sensitivity: 0.8,
            throughput_interval: Seconds(180.0),
            load_interval: Seconds(5.0),
            min: 1,
            max: 8,
        }
    }
}

/// The planner at work on one model.
#[derive(Clone, Debug)]
pub struct Planner {
    settings: DynamoSettings,
    forecast: Forecast,
    floor: u32,
    // What the current throughput interval has shown so far.
    rates: Vec<f64>,
    planned: Option<Seconds>,
    // Running requests per engine and the time between tokens that went with them.
    decodes: VecDeque<(f64, f64)>,
}

#[derive(Clone, Debug, Default)]
struct Forecast {
    series: Vec<f64>,
    filter: LocalTrend,
}

impl Planner {
    // `max_num_fpm_samples` and `load_min_observations`.
    const MOST_SAMPLES: usize = 64;
    const LEAST_SAMPLES: usize = 5;
    // Points a predictor looks at; `prophet_window_size`, the only window that is published.
    const HISTORY: usize = 50;

    /// One that has decided nothing yet.
    pub fn new(settings: DynamoSettings) -> Self {
        Self {
            floor: settings.min,
            settings,
            forecast: Forecast::default(),
            rates: Vec::new(),
            planned: None,
            decodes: VecDeque::new(),
        }
    }

    /// Every throughput interval: how many engines the forecast needs.
    fn throughput(&mut self, now: Seconds, reading: &Reading) -> Option<u32> {
        self.rates.extend(reading.arrivals_per_second.filter(|rate| rate.is_finite()));
        let since = *self.planned.get_or_insert(now);
        if now >= since && now - since < self.settings.throughput_interval {
            return None;
        }
        self.planned = Some(now);
        let rates = std::mem::take(&mut self.rates);
        if rates.is_empty() {
            // No traffic data: the planner skips its turn.
            return None;
        }
        let rate = rates.iter().sum::<f64>() / rates.len() as f64;
        let next = self.forecast.next(rate, self.settings.predictor);
        let DynamoSettings { replica_per_second, min, .. } = self.settings;
        Some(ceil(next.max(0.0) / replica_per_second).max(min))
    }

    /// One engine more, one fewer, or none of both.
    fn load(&mut self, reading: &Reading, engines: u32) -> u32 {
        let (Some(waiting), Some(running)) = (reading.waiting_tokens, reading.running) else {
            return engines;
        };
        if engines == 0 {
            return engines;
        }
        let count = f64::from(engines);
        let DynamoSettings { first_token, between_tokens, sensitivity, .. } = self.settings;
        let own = self.prompt(reading) / self.settings.prompt_tokens_per_second;
        let queue = waiting / count / self.settings.prompt_tokens_per_second;
        let busy = running / count;
        if let Some(between) = reading.between_tokens_p90 {
            self.decodes.push_back((busy, between.0));
            if self.decodes.len() > Self::MOST_SAMPLES {
                self.decodes.pop_front();
            }
        }
        let between = reading.between_tokens_p90.map_or(0.0, |time| time.0);
        if own + queue > first_token.0 || between > between_tokens.0 {
            return engines + 1;
        }
        // The rest would carry the work of the one that goes.
        let more = count / (count - 1.0).max(1.0);
        let first_fits = queue * more < (first_token.0 - own) * sensitivity;
        let between_fits =
            self.between_at(busy * more, between * more) < between_tokens.0 * sensitivity;
        let cache_fits = reading.cache_used.is_none_or(|used| used * more < 1.0);
        if engines > 1 && first_fits && between_fits && cache_fits { engines - 1 } else { engines }
    }

    /// The time between tokens at so many running requests per engine, from a line through what
    /// was seen. Before a line can be drawn, in proportion, which errs towards keeping the engine.
    fn between_at(&self, busy: f64, in_proportion: f64) -> f64 {
        let points: Vec<(f64, f64)> = self.decodes.iter().copied().collect();
        if points.len() < Self::LEAST_SAMPLES {
            return in_proportion;
        }
        line(&points).map_or(in_proportion, |(level, slope)| level + slope.max(0.0) * busy)
    }

    fn prompt(&self, reading: &Reading) -> f64 {
        let seen = reading.prompt_tokens_per_second.zip(reading.arrivals_per_second);
        let mean = seen.filter(|(_, rate)| *rate > 0.0).map(|(tokens, rate)| tokens / rate);
        mean.unwrap_or(self.settings.prompt_tokens)
    }
}

impl Forecast {
    fn next(&mut self, value: f64, how: Predictor) -> f64 {
        self.filter.observe(value);
        self.series.push(value);
        if self.series.len() > Planner::HISTORY {
            self.series.remove(0);
        }
        let next = match how {
            Predictor::Constant => None,
            Predictor::Arima => next_by_differences(&self.series),
            Predictor::Kalman => self.filter.next(),
        };
        next.unwrap_or(value)
    }
}

impl RivalLaw for Planner {
    fn desired(&mut self, now: Seconds, reading: &Reading, current: u32) -> u32 {
        let DynamoSettings { loops, min, max, .. } = self.settings;
        let planned = match loops {
            Loops::Load => None,
            Loops::Throughput | Loops::Both => self.throughput(now, reading),
        };
        if loops == Loops::Throughput {
            return planned.unwrap_or(current).clamp(min, max);
        }
        self.floor = planned.unwrap_or(self.floor);
        // While engines still come or go, the load loop only watches.
        if reading.ready != current {
            return current;
        }
        let recommendation = self.load(reading, current);
        recommendation.max(self.floor).clamp(min, max)
    }

    fn interval(&self) -> Seconds {
        self.settings.load_interval
    }
}

#[cfg(test)]
mod tests {
    use super::{DynamoSettings, Loops, Planner, Predictor};
    use crate::policy::Reading;
    use crate::rivals::RivalLaw;
    use crate::seconds::Seconds;

    fn planner(loops: Loops, predictor: Predictor) -> Planner {
        Planner::new(DynamoSettings { loops, predictor, max: 50, ..DynamoSettings::default() })
    }

    fn rate(ready: u32, rate: f64) -> Reading {
        Reading { ready, arrivals_per_second: Some(rate), ..Reading::default() }
    }

    /// An engine takes 10,000 prompt tokens a second and prompts have 3,000: 0.3 s of the 0.5 s.
    fn load(ready: u32, waiting_tokens: f64, between_ms: f64) -> Reading {
        Reading {
            ready,
            waiting_tokens: Some(waiting_tokens),
            running: Some(10.0 * f64::from(ready)),
            between_tokens_p90: Some(Seconds(between_ms / 1000.0)),
            ..Reading::default()
        }
    }

    /// Shows it a rate for a whole throughput interval.
    fn interval(planner: &mut Planner, number: u32, reading: &Reading, current: u32) -> u32 {
        let start = f64::from(number) * 180.0;
        (1..=36).fold(current, |current, tick| {
            planner.desired(Seconds(start + f64::from(tick) * 5.0), reading, current)
        })
    }

    #[test]
    fn throughput_divides_the_forecast_by_what_an_engine_serves() {
        let mut planner = planner(Loops::Throughput, Predictor::Constant);
        planner.desired(Seconds(0.0), &rate(1, 7.2), 1);
        assert_eq!(interval(&mut planner, 0, &rate(1, 7.2), 1), 8);
        assert_eq!(interval(&mut planner, 1, &rate(8, 3.0), 8), 3);
        assert_eq!(interval(&mut planner, 2, &rate(3, 0.0), 3), 1, "min_endpoint");
    }

    #[test]
    fn a_steady_climb_is_forecast_one_interval_ahead() {
        let mut planner = planner(Loops::Throughput, Predictor::Arima);
        planner.desired(Seconds(0.0), &rate(1, 10.0), 1);
        for (number, arrivals) in [10.0, 12.0, 14.0, 16.0].into_iter().enumerate() {
            interval(&mut planner, number as u32, &rate(10, arrivals), 10);
        }
        assert_eq!(interval(&mut planner, 4, &rate(10, 18.0), 10), 20);
    }

    #[test]
    fn without_traffic_data_the_planner_skips_its_turn() {
        let mut planner = planner(Loops::Throughput, Predictor::Constant);
        let blind = Reading { ready: 5, ..Reading::default() };
        assert_eq!(interval(&mut planner, 0, &blind, 5), 5);
        assert_eq!(interval(&mut planner, 1, &blind, 5), 5);
    }

    #[test]
    fn load_adds_one_when_engines_are_beyond_an_objective() {
        let mut planner = planner(Loops::Load, Predictor::Constant);
        // 2,100 tokens each wait 0.21 s; with 0.3 s of its own a prompt is past 0.5 s.
        assert_eq!(planner.desired(Seconds(0.0), &load(4, 8_400.0, 45.0), 4), 5);
        assert_eq!(planner.desired(Seconds(5.0), &load(4, 0.0, 51.0), 4), 5);
        assert_eq!(planner.desired(Seconds(10.0), &load(4, 7_900.0, 45.0), 4), 4);
    }

    #[test]
    fn load_removes_one_only_if_the_rest_can_carry_it() {
        let mut planner = planner(Loops::Load, Predictor::Constant);
        // 24 ms · 4/3 = 32 ms, below 40 ms; no queue.
        assert_eq!(planner.desired(Seconds(0.0), &load(4, 0.0, 24.0), 4), 3);
        // 31 ms · 4/3 = 41.3 ms is not.
        assert_eq!(planner.desired(Seconds(5.0), &load(4, 0.0, 31.0), 4), 4);
        // 0.125 s of queue · 4/3 is 0.167 s, above 0.8 · (0.5 - 0.3) s.
        assert_eq!(planner.desired(Seconds(10.0), &load(4, 5_000.0, 24.0), 4), 4);
        // From two to one the load of each doubles.
        assert_eq!(planner.desired(Seconds(15.0), &load(2, 0.0, 24.0), 2), 2);
    }

    #[test]
    fn a_line_through_what_was_seen_replaces_proportion() {
        let mut planner = planner(Loops::Load, Predictor::Constant);
        // 20 ms and half a millisecond per running request.
        for busy in [10.0, 12.0, 14.0, 16.0, 18.0] {
            let seen = Reading { running: Some(busy * 4.0), ..load(4, 5_000.0, 20.0 + busy / 2.0) };
            assert_eq!(planner.desired(Seconds(busy), &seen, 4), 4, "the queue forbids it");
        }
        // At 20 each, 30 ms; a third more gives 33.3 ms, where proportion would say 40 ms.
        let now = Reading { running: Some(80.0), ..load(4, 0.0, 30.0) };
        assert_eq!(planner.desired(Seconds(100.0), &now, 4), 3);
    }

    #[test]
    fn the_load_loop_only_watches_while_engines_come() {
        let mut planner = planner(Loops::Load, Predictor::Constant);
        let busy = Reading { starting: 1, ..load(4, 80_000.0, 90.0) };
        assert_eq!(planner.desired(Seconds(0.0), &busy, 5), 5);
    }

    #[test]
    fn with_both_loops_throughput_is_a_floor() {
        let mut planner = planner(Loops::Both, Predictor::Constant);
        let calm = |ready| Reading { arrivals_per_second: Some(4.5), ..load(ready, 0.0, 10.0) };
        planner.desired(Seconds(0.0), &calm(9), 9);
        let mut engines = 9;
        for tick in 1..=100 {
            engines = planner.desired(Seconds(f64::from(tick) * 5.0), &calm(engines), engines);
        }
        // Load alone would go on down: 10 ms · 2 is below 40 ms.
        assert_eq!(engines, 5);
    }
}
