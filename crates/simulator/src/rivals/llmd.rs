//! llm-d's two loops on KEDA: one on latency against objectives, one on tokens.
//!
//! Sources: llm-d/llm-d `guides/workload-autoscaling/README.slo-aware.md` and
//! `guides/workload-autoscaling/keda-epp-token-aware` with its `scaledobject.yaml`. Both end in an
//! HPA, whose pace and memory they set.
//!
//! The guide may take latencies from a predictor; here they are those that were measured, which
//! the guide names as the other source.

use super::hpa::{self, Behaviour, Hpa, HpaRules, HpaSource, Rate};
use super::window::Window;
use super::{RivalLaw, RivalMetric, ceil};
use crate::policy::Reading;
use crate::seconds::Seconds;

/// The loop on latency: its constants and objectives.
#[derive(Clone, Debug, PartialEq)]
pub struct SloAware {
    /// Objective of the time to the first token, 90th percentile.
    pub first_token: Seconds,
    /// Objective of the time between tokens, 90th percentile.
    pub between_tokens: Seconds,
    /// Saturation above which it adds.
    pub up: f64,
    /// Saturation below which it removes.
    pub down: f64,
    /// The most that one sample of saturation counts.
    pub clamp: f64,
    /// Over how long saturation is averaged.
    pub smoothing: Seconds,
    /// How often it is sampled: with every decision, or more often by rules of their own.
    pub sampled: Seconds,
    /// When it decides first, counted from when it was made.
    pub first: Seconds,
    /// Least replicas.
    pub min: u32,
    /// Most replicas.
    pub max: u32,
    /// How its HPA moves.
    pub behaviour: Behaviour,
}

impl Default for SloAware {
    /// As benchmarked by the guide.
    fn default() -> Self {
        let period = Seconds(60.0);
        let up = vec![Rate::Percent { value: 100, period }, Rate::Pods { value: 4, period }];
        let down = vec![Rate::Pods { value: 1, period: Seconds(120.0) }];
        Self {
            first_token: Seconds(3.0),
            between_tokens: Seconds(0.1),
            up: 0.55,
            down: 0.40,
            clamp: 2.0,
            smoothing: Seconds(45.0),
            // Recording rules and the HPA both run every 15 s.
            sampled: SYNC,
            first: Seconds::ZERO,
            min: 3,
            max: 8,
            behaviour: Behaviour {
                up: HpaRules::new(Seconds(30.0), up),
                down: HpaRules::new(Seconds(180.0), down),
            },
        }
    }
}

impl SloAware {
    /// The formula: how many replicas a saturation asks for, of which so many are ready.
    pub fn formula(&self, saturation: f64, replicas: u32, ready: u32) -> u32 {
        let all = f64::from(replicas);
        if saturation > self.up {
            // What starts already will take its share of the load.
            let credit = if ready > 0 && ready < replicas { f64::from(ready) / all } else { 1.0 };
            // Rounded up as llm-d writes it, also when the credit makes it negative.
            let change = (all * (saturation * credit / self.up - 1.0) - 5e-7).ceil();
            return (all + change).max(0.0) as u32;
        }
        if saturation < self.down {
            return (all - (all * (1.0 - saturation / self.down) + 5e-7).floor()).max(0.0) as u32;
        }
        replicas
    }

    fn saturation(&self, reading: &Reading) -> f64 {
        let share = |time: Option<Seconds>, objective: Seconds| {
            // Without traffic there is no percentile, which the rules turn into zero.
            time.map_or(0.0, |time| time.0 / objective.0)
        };
        let first = share(reading.first_token_p90, self.first_token);
        let between = share(reading.between_tokens_p90, self.between_tokens);
        // A percentile of nothing is no number, and stays none where both are.
        let worst = first.max(between);
        if worst.is_nan() { worst } else { worst.min(self.clamp) }
    }
}

/// The loop on latency at work on one model.
#[derive(Clone, Debug)]
pub struct SloAwareLaw {
    settings: SloAware,
    saturation: Window,
    hpa: Hpa,
    /// When it decides next.
    due: Seconds,
}

/// Between two decisions of an HPA.
const SYNC: Seconds = Seconds(15.0);

impl SloAwareLaw {
    /// One that has decided nothing yet.
    pub fn new(settings: SloAware) -> Self {
        let hpa = Hpa::new(hpa::HpaSettings {
            sources: Vec::new(),
            min: settings.min.max(1),
            max: settings.max,
            behaviour: settings.behaviour.clone(),
            ..hpa::HpaSettings::default()
        });
        Self { saturation: Window::new(settings.smoothing), due: settings.first, settings, hpa }
    }
}

impl RivalLaw for SloAwareLaw {
    fn desired(&mut self, now: Seconds, reading: &Reading, current: u32) -> u32 {
        self.saturation.push(now, self.settings.saturation(reading));
        // A clock that jumped back does not stop it.
        if now.get() < self.due.get() - 1e-6 && self.due <= now + SYNC.max(self.settings.first) {
            return current;
        }
        self.due = now + SYNC;
        let smooth = self.saturation.mean(now, self.settings.smoothing);
        let smooth = smooth.filter(|mean| mean.is_finite()).unwrap_or(0.0);
        let exist = reading.ready + reading.starting;
        let by_formula = self.settings.formula(smooth, exist, reading.ready);
        // The formula's answer is an external metric with an average of one, so the HPA's own
        // tolerance still applies to it.
        let ratio = f64::from(by_formula) / f64::from(exist.max(1));
        let Behaviour { up, down } = &self.settings.behaviour;
        let near = 1.0 - down.tolerance - 1e-9 <= ratio && ratio <= 1.0 + up.tolerance + 1e-9;
        let proposal = if near { exist } else { by_formula };
        self.hpa.settle(now, &[Some(proposal)], current)
    }

    fn interval(&self) -> Seconds {
        self.settings.sampled
    }
}

/// The loop on tokens: its constants.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenAware {
    /// Prompt tokens per second that one replica takes in at its peak.
    pub prompt_tokens_per_second: f64,
    /// Seconds of prompt backlog that one replica may have: the objective of the time to the first
    /// token less what a prompt takes by itself.
    pub backlog: Seconds,
    /// Share of the cache that one replica may use.
    pub cache: f64,
    /// Least replicas.
    pub min: u32,
    /// Most replicas.
    pub max: u32,
    /// How its HPA moves.
    pub behaviour: Behaviour,
}

impl Default for TokenAware {
    /// As shipped; the throughput is that of Qwen3-32B on two H100.
    fn default() -> Self {
        let up = vec![Rate::Pods { value: 1, period: Seconds(180.0) }];
        let down = vec![Rate::Pods { value: 1, period: Seconds(300.0) }];
        Self {
            prompt_tokens_per_second: 15_928.0,
            backlog: Seconds(1.5),
            cache: 0.8,
            min: 1,
            max: 10,
            behaviour: Behaviour {
                up: HpaRules::new(Seconds::ZERO, up),
                down: HpaRules::new(Seconds(300.0), down),
            },
        }
    }
}

impl TokenAware {
    /// The HPA that KEDA generates from it: two metrics, the larger counts, nothing read is zero.
    pub fn hpa(&self) -> hpa::HpaSettings {
        let backlog = HpaSource {
            factor: 1.0 / self.prompt_tokens_per_second,
            missing: Some(0.0),
            ..HpaSource::average_value(RivalMetric::WaitingTokens, self.backlog.0)
        };
        let cache = HpaSource {
            missing: Some(0.0),
            ..HpaSource::average_value(RivalMetric::CacheUsed, self.cache)
        };
        hpa::HpaSettings {
            sources: vec![backlog, cache],
            min: self.min.max(1),
            max: self.max,
            behaviour: self.behaviour.clone(),
            ..hpa::HpaSettings::default()
        }
    }

    /// The backlog that leaves a prompt of so many tokens within an objective.
    pub fn backlog_for(
        first_token: Seconds,
        prompt: f64,
        prompt_tokens_per_second: f64,
    ) -> Seconds {
        // Where a prompt alone takes longer, the guide has no answer; a tenth of the objective
        // keeps the law defined.
        (first_token - Seconds(prompt / prompt_tokens_per_second)).max(first_token * 0.1)
    }
}

/// Replicas for tokens that wait and cache in use, without the HPA's memory.
pub fn token_replicas(settings: &TokenAware, waiting_tokens: f64, cache_sum: f64) -> u32 {
    let seconds = waiting_tokens / settings.prompt_tokens_per_second;
    ceil(seconds / settings.backlog.0).max(ceil(cache_sum / settings.cache))
}

#[cfg(test)]
mod tests {
    use super::{SloAware, SloAwareLaw, TokenAware, token_replicas};
    use crate::policy::Reading;
    use crate::rivals::RivalLaw;
    use crate::rivals::hpa::Hpa;
    use crate::seconds::Seconds;

    fn slow(ready: u32, starting: u32, first_token: f64) -> Reading {
        let first_token_p90 = Some(Seconds(first_token));
        Reading { ready, starting, first_token_p90, ..Reading::default() }
    }

    #[test]
    fn the_formula_adds_removes_and_holds_as_the_guide_says() {
        let law = SloAware::default();
        // 3 + ceil(3 (1.1 / 0.55 - 1)) = 6.
        assert_eq!(law.formula(1.1, 3, 3), 6);
        // 8 - floor(8 (1 - 0.2 / 0.4)) = 4.
        assert_eq!(law.formula(0.2, 8, 8), 4);
        assert_eq!(law.formula(0.45, 5, 5), 5);
        assert_eq!(law.formula(0.55, 5, 5), 5);
        assert_eq!(law.formula(0.0, 5, 5), 0);
    }

    #[test]
    fn replicas_that_start_are_credited_on_the_way_up_only() {
        let law = SloAware::default();
        // 6 + ceil(6 (1.1 · 3/6 / 0.55 - 1)) = 6.
        assert_eq!(law.formula(1.1, 6, 3), 6);
        // 6 + ceil(6 (1.6 · 3/6 / 0.55 - 1)) = 6 + ceil(2.73) = 9.
        assert_eq!(law.formula(1.6, 6, 3), 9);
        // 6 - floor(6 (1 - 0.2 / 0.4)) = 3, whatever is ready.
        assert_eq!(law.formula(0.2, 6, 3), 3);
    }

    #[test]
    fn a_spike_is_clamped_before_it_is_averaged() {
        let mut law = SloAwareLaw::new(SloAware { max: 50, ..SloAware::default() });
        law.desired(Seconds(0.0), &slow(4, 0, 1.0), 4);
        law.desired(Seconds(15.0), &slow(4, 0, 1.0), 4);
        // Ninety times the objective counts as 2: the mean is (1/3 + 1/3 + 2) / 3 = 0.89, and
        // 4 + ceil(4 (0.89 / 0.55 - 1)) = 7. Ten seconds ago it still asked for 4, and up moves
        // only when 30 s agree.
        assert_eq!(law.desired(Seconds(30.0), &slow(4, 0, 270.0), 4), 4);
        assert_eq!(law.desired(Seconds(45.0), &slow(4, 0, 1.0), 4), 7);
    }

    #[test]
    fn what_was_just_made_removes_nothing_until_its_first_look_and_its_window_are_over() {
        let first = Seconds(15.0);
        let settings = SloAware { first, sampled: Seconds(5.0), ..SloAware::default() };
        let mut law = SloAwareLaw::new(settings);
        let removed_at = |law: &mut SloAwareLaw| {
            let times = (1..60).map(|tick| Seconds(f64::from(tick) * 5.0));
            times.into_iter().find(|at| law.desired(*at, &slow(8, 0, 0.1), 8) < 8)
        };
        // Proposals of 180 s must agree, and the first one stands for the replicas that were there.
        let window = law.settings.behaviour.down.stabilisation;
        assert_eq!(removed_at(&mut law), Some(first + window));
        let mut older = SloAwareLaw::new(SloAware { first: Seconds::ZERO, ..law.settings });
        assert!(removed_at(&mut older) < Some(first + window));
    }

    #[test]
    fn it_removes_one_replica_in_two_minutes() {
        let mut law = SloAwareLaw::new(SloAware::default());
        let mut replicas = 8;
        for tick in 0..60 {
            replicas =
                law.desired(Seconds(f64::from(tick) * 15.0), &slow(replicas, 0, 0.1), replicas);
            let minutes = f64::from(tick) / 4.0;
            let expected = if minutes < 3.0 { 8 } else { 7 - ((minutes - 3.0) / 2.0) as u32 };
            assert_eq!(replicas, expected.max(3), "after {minutes} minutes");
        }
    }

    #[test]
    fn tokens_and_cache_each_ask_and_the_larger_counts() {
        let settings = TokenAware::default();
        // 60,000 tokens are 3.77 s of one replica's prompts, 1.5 s each: three.
        assert_eq!(token_replicas(&settings, 60_000.0, 1.0), 3);
        assert_eq!(token_replicas(&settings, 60_000.0, 3.3), 5);
        let mut hpa = Hpa::new(settings.hpa());
        let reading = Reading {
            ready: 2,
            waiting_tokens: Some(60_000.0),
            cache_used: Some(0.5),
            ..Reading::default()
        };
        assert_eq!(hpa.desired(Seconds(0.0), &reading, 2), 3);
    }

    #[test]
    fn it_adds_one_replica_in_three_minutes() {
        let mut hpa = Hpa::new(TokenAware::default().hpa());
        let flood = |ready| Reading { ready, waiting_tokens: Some(1e9), ..Reading::default() };
        let mut replicas = 1;
        for tick in 0..=48 {
            replicas = hpa.desired(Seconds(f64::from(tick) * 15.0), &flood(replicas), replicas);
        }
        // At 0, 180, 360, 540 and 720 s.
        assert_eq!(replicas, 6);
    }

    #[test]
    fn the_backlog_is_what_a_prompt_leaves_of_the_objective() {
        let left = TokenAware::backlog_for(Seconds(2.0), 8_000.0, 16_000.0);
        assert_eq!(left, Seconds(1.5));
        let none_left = TokenAware::backlog_for(Seconds(2.0), 64_000.0, 16_000.0);
        assert_eq!(none_left, Seconds(0.2));
    }
}
