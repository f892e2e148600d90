//! Replicas that are slower than the others of their variant.
//!
//! A token takes `t0 + c n` where `n` requests are inside, so that one that is busy takes longer and need not be slow.
//! Each is held against what the others would take with as much to do as it has: where it has less, against what they
//! take as they are, since nobody is slower for having less to do.

use crate::reading::{EngineCounts, EngineReading, VariantReading};
use flyball_core::ids::ReplicaId;
use flyball_core::quantile;
use flyball_core::snapshot::{Replica, ReplicaState};
use flyball_core::units::{Micros, Timestamp};
use std::collections::BTreeMap;

/// So many times as long as the others take is clearly slower.
const CLEARLY: f64 = 1.5;
/// One that is known to be slow is so until it takes less than this.
const STILL: f64 = 1.25;
/// It must last: a burst of long prompts ends sooner.
const LASTS: Micros = Micros::from_seconds(60);
/// Fewer tokens do not tell how long one takes.
const ENOUGH: f64 = 100.0;
/// The least that a replica counts for: it serves.
const LEAST: f64 = 0.1;

/// What is known of the replicas of one variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Slow {
    replicas: BTreeMap<ReplicaId, Slower>,
}

/// One that takes longer than the others.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slower {
    since: Timestamp,
    /// How many times as long as they would.
    times: f64,
    lasts: bool,
}

/// One replica at work.
#[derive(Clone, Copy, Debug)]
struct AtWork {
    /// Seconds per token.
    pace: f64,
    /// Requests that write, on the mean.
    writes: f64,
    /// Prompt tokens per second.
    reads: f64,
}

impl Slow {
    /// Learns from one look. `idle`: what a token takes on one with next to nothing to do, if known.
    pub(crate) fn learn(&mut self, variant: &VariantReading, idle: Option<f64>, now: Timestamp) {
        self.replicas.retain(|id, _| variant.engines.contains_key(id));
        let at_work: Vec<(&ReplicaId, AtWork)> = variant
            .engines
            .iter()
            .filter(|(_, engine)| is_warm(engine, now))
            .filter_map(|(id, engine)| Some((id, AtWork::of(engine)?)))
            .collect();
        for (id, one) in &at_work {
            let others = at_work.iter().filter(|(other, _)| other != id);
            let others = others.map(|(_, other)| other.with_work_of(one, idle.unwrap_or(0.0)));
            if let Some(usual) = median(others.collect()) {
                self.judge(id, one.pace / usual, now);
            }
        }
    }

    fn judge(&mut self, id: &ReplicaId, times: f64, now: Timestamp) {
        let known = self.replicas.get(id);
        let least = if known.is_some_and(|known| known.lasts) { STILL } else { CLEARLY };
        if times.is_nan() || times < least {
            self.replicas.remove(id);
            return;
        }
        let since = known.map_or(now, |known| known.since);
        let lasts = now.since(since).is_some_and(|age| age >= LASTS);
        self.replicas.insert(id.clone(), Slower { since, times, lasts });
    }

    /// What a slow one does of what the others do; `None` of one that is not slow.
    pub(crate) fn share(&self, id: &ReplicaId) -> Option<f64> {
        let slower = self.replicas.get(id).filter(|slower| slower.lasts)?;
        Some((1.0 / slower.times).clamp(LEAST, 1.0))
    }

    /// Those of these replicas that serve and are slow, in millionths.
    pub(crate) fn among(
        &self,
        replicas: &BTreeMap<ReplicaId, Replica>,
    ) -> BTreeMap<ReplicaId, u32> {
        let serving = replicas.iter().filter(|(_, one)| one.state == ReplicaState::Ready);
        let slow = serving.filter_map(|(id, _)| Some((id.clone(), self.share(id)?)));
        slow.map(|(id, share)| (id, (share * 1e6).round() as u32)).collect()
    }
}

fn is_warm(engine: &EngineReading, now: Timestamp) -> bool {
    let age = engine.serves_since.and_then(|since| now.since(since));
    age.is_some_and(|age| age >= crate::WARM_UP)
}

impl AtWork {
    fn of(engine: &EngineReading) -> Option<Self> {
        let span = engine.counts.span()?;
        let grown = |count: fn(&EngineCounts) -> f64| span.grown(count);
        let (tokens, seconds) = (grown(|one| one.paced_tokens), grown(|one| one.paced_seconds));
        // All requests together spend so many seconds writing in each second.
        let writes = span.rate(|one| one.paced_seconds);
        let known = tokens >= ENOUGH && seconds > 0.0 && writes > 0.0;
        let reads = span.rate(EngineCounts::read_tokens);
        known.then_some(Self { pace: seconds / tokens, writes, reads })
    }

    /// What a token would take here with as much to do as `other` has.
    fn with_work_of(&self, other: &Self, idle: f64) -> f64 {
        let times = |other: f64, own: f64| if own > 0.0 { other / own } else { 1.0 };
        let busier = times(other.writes, self.writes).max(times(other.reads, self.reads)).max(1.0);
        let idle = idle.clamp(0.0, self.pace);
        idle + (self.pace - idle) * busier
    }
}

fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    quantile::median(&all).filter(|one| *one > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::snapshot::{Capacity, Observed};
    use flyball_core::units::Gpus;
    use std::collections::BTreeSet;

    const IDLE: f64 = 0.02;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn id(n: usize) -> ReplicaId {
        ReplicaId::new("a", &format!("m-{n}")).expect("a name")
    }

    /// An engine that writes with so many requests inside, a token in so many seconds.
    fn engine(now: u64, (writes, pace): (f64, f64)) -> EngineReading {
        let counts = |seconds: u64| EngineCounts {
            prompt_tokens: 100.0 * writes * seconds as f64,
            cached_tokens: f64::NAN,
            output_tokens: writes / pace * seconds as f64,
            answered: f64::NAN,
            paced_tokens: writes / pace * seconds as f64,
            paced_seconds: writes * seconds as f64,
        };
        let mut engine = EngineReading::counted(at(now - 30), counts(now - 30));
        engine.counts.add(at(now), Timestamp::default(), counts(now));
        EngineReading { serves_since: Some(at(0)), ..engine }
    }

    fn variant(now: u64, engines: &[(f64, f64)]) -> VariantReading {
        let replica = Replica {
            state: ReplicaState::Ready,
            since: at(0),
            in_flight: Observed::Missing,
            nodes: BTreeSet::new(),
            purchase: None,
        };
        let engines = engines.iter().enumerate();
        VariantReading {
            pool: "h100".parse().expect("a pool"),
            gpus_per_replica: Gpus::new(1),
            stated: Capacity::UNKNOWN,
            predicted: None,
            paces: None,
            cold_start: None,
            replicas: (0..engines.len()).map(|n| (id(n), replica.clone())).collect(),
            started: Vec::new(),
            engines: engines.map(|(n, one)| (id(n), engine(now, *one))).collect(),
            lapsed: false,
        }
    }

    /// Who is slow after two minutes of this, and what it does.
    fn slow(engines: &[(f64, f64)]) -> Vec<(ReplicaId, u32)> {
        let mut slow = Slow::default();
        let tick = |slow: &mut Slow, now| slow.learn(&variant(now, engines), Some(IDLE), at(now));
        (0..9).for_each(|n| tick(&mut slow, 1_000 + 15 * n));
        slow.among(&variant(1_200, engines).replicas).into_iter().collect()
    }

    #[test]
    fn one_of_half_the_speed_is_told_and_counts_as_half_or_so() {
        // Each gets as many requests, and the slow one has twice as many inside.
        let found = slow(&[(8.0, 0.022), (8.0, 0.022), (16.0, 0.044)]);
        assert_eq!(found.len(), 1);
        let (who, share) = &found[0];
        assert_eq!(who, &id(2));
        assert!((400_000..700_000).contains(share), "{share}");
    }

    #[test]
    fn one_that_is_busier_is_not_slow() {
        // Twice the work: 0.02 and what the work adds.
        assert_eq!(slow(&[(8.0, 0.03), (8.0, 0.03), (16.0, 0.04)]), []);
        assert_eq!(slow(&[(8.0, 0.03), (1.0, 0.021), (7.0, 0.029)]), []);
    }

    #[test]
    fn one_alone_and_those_that_are_alike_are_not_slow() {
        assert_eq!(slow(&[(16.0, 0.08)]), []);
        assert_eq!(slow(&[(16.0, 0.08), (16.0, 0.08), (15.0, 0.082)]), []);
        assert_eq!(slow(&[(0.01, 0.02), (0.01, 0.08)]), [], "too few tokens to tell");
    }

    #[test]
    fn it_must_last_and_is_over_when_it_is() {
        let mut all = Slow::default();
        let tick = |all: &mut Slow, now: u64, pace: f64| {
            all.learn(&variant(now, &[(8.0, 0.022), (8.0, pace)]), Some(IDLE), at(now));
            all.share(&id(1)).is_some()
        };
        assert!(!tick(&mut all, 1_000, 0.05));
        assert!(!tick(&mut all, 1_045, 0.05), "not for long");
        assert!(tick(&mut all, 1_060, 0.05));
        assert!(tick(&mut all, 1_075, 0.03), "still slower by more than a quarter");
        assert!(!tick(&mut all, 1_090, 0.022));
        assert!(!tick(&mut all, 1_105, 0.05), "it must last anew");
    }

    #[test]
    fn one_that_warms_up_is_not_slow() {
        let mut all = Slow::default();
        for now in [100, 115] {
            let reading = variant(now, &[(8.0, 0.022), (8.0, 0.05)]);
            all.learn(&reading, Some(IDLE), at(now));
        }
        assert_eq!(all, Slow::default());
    }
}
