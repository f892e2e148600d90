//! The work of a model as it came, bounded: a week of it, look by look.

use flyball_core::snapshot::{Misses, Model, ReplicaState};
use flyball_core::units::Timestamp;
use flyball_governor::MeasuredDemand;
use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::FlowLoad;
use std::collections::VecDeque;

/// One look.
pub(crate) const STEP_S: f64 = 15.0;
/// A look is replayed as so many steps: bursts are counted in five seconds.
const PARTS: usize = 3;
/// A week of looks: about two thirds of a megabyte.
const LONGEST: usize = 7 * 24 * 240;
/// Gaps up to this many looks are filled with what came last; longer ones are left out.
const LONGEST_GAP: usize = 4;
/// How fast the mean of what is in flight follows: ten minutes.
const MEAN_TICKS: f64 = 40.0;

/// The work of a model as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    ticks: VecDeque<Tick>,
    seen_at: Option<Timestamp>,
    misses: Option<Misses>,
    /// Looks ever taken down.
    pub(crate) count: u64,
    /// Means of what was in flight and of the work that came meanwhile.
    in_flight: f64,
    work: f64,
}

#[derive(Clone, Copy, Debug)]
struct Tick {
    work: f32,
    /// The busiest five seconds over the mean.
    burst: f32,
    /// Requests that were judged since the look before, and those that missed.
    judged: f32,
    missed: f32,
}

impl Record {
    /// Takes a look down. Sooner looks than one a step teach nothing.
    pub(crate) fn add(&mut self, now: Timestamp, model: &Model, measured: &MeasuredDemand) {
        let apart = self.seen_at.and_then(|seen| now.since(seen));
        let apart = apart.map_or(STEP_S, |apart| apart.as_seconds());
        if apart < 0.9 * STEP_S {
            return;
        }
        self.seen_at = Some(now);
        let burst = match (model.demand.burst.fresh(), model.demand.prefill.fresh()) {
            (Some(most), Some(mean)) if mean.get() > 0 => most.get() as f64 / mean.get() as f64,
            _ => 1.0,
        };
        let burst = burst.clamp(1.0, PARTS as f64) as f32;
        let (judged, missed) = self.judged(model.misses.fresh());
        let tick = Tick { work: measured.work as f32, burst, judged, missed };
        let gap = (apart / STEP_S).round().max(1.0) as usize;
        let filled = if gap <= LONGEST_GAP { gap } else { 1 };
        for n in 0..filled {
            let counted = if n == 0 { tick } else { Tick { judged: 0.0, missed: 0.0, ..tick } };
            self.ticks.push_back(counted);
            self.count += 1;
        }
        while self.ticks.len() > LONGEST {
            self.ticks.pop_front();
        }
        let follow = 1.0 / MEAN_TICKS.min(self.count as f64);
        self.work += follow * (measured.work - self.work);
        self.in_flight += follow * (in_flight(model) - self.in_flight);
    }

    /// Requests and misses since the look before; none where a counter began anew.
    fn judged(&mut self, seen: Option<&Misses>) -> (f32, f32) {
        let before = seen.and_then(|seen| self.misses.replace(*seen));
        let since = before.zip(seen).and_then(|(before, seen)| {
            let judged = seen.requests.checked_sub(before.requests)?;
            Some((judged.get() as f32, seen.missed.checked_sub(before.missed)?.get() as f32))
        });
        since.unwrap_or_default()
    }

    /// The share of requests that missed from so long after the beginning on; `None` where none was judged.
    pub(crate) fn missed(&self, from: Seconds) -> Option<f64> {
        let ticks = self.ticks.iter().skip((from.get() / STEP_S) as usize);
        let sum = ticks.fold((0.0, 0.0), |(judged, missed), tick| {
            (judged + f64::from(tick.judged), missed + f64::from(tick.missed))
        });
        (sum.0 > 0.0).then(|| sum.1 / sum.0)
    }

    /// How much there is.
    pub(crate) fn length(&self) -> Seconds {
        Seconds(STEP_S * self.ticks.len() as f64)
    }

    /// How long a unit of work takes, by what is in flight; `None` before there was any.
    pub(crate) fn service(&self) -> Option<Seconds> {
        let length = self.in_flight / self.work;
        (length.is_finite() && length > 0.0).then_some(Seconds(length))
    }

    /// As a flow of requests, so many to a unit of work.
    pub(crate) fn load(&self, requests_per_work: f64) -> FlowLoad {
        let mut requests = Vec::with_capacity(PARTS * self.ticks.len());
        for (index, tick) in self.ticks.iter().enumerate() {
            let even = f64::from(tick.work) * requests_per_work * STEP_S / PARTS as f64;
            // A burst is told for half a minute: it came in one of two looks.
            let burst = if index % 2 == 0 { f64::from(tick.burst) } else { 1.0 };
            let rest = (PARTS as f64 - burst) / (PARTS - 1) as f64;
            requests.push((burst * even) as f32);
            requests.extend((1..PARTS).map(|_| (rest * even) as f32));
        }
        let step = Seconds(STEP_S / PARTS as f64);
        FlowLoad { step, work: requests.clone(), requests, masked: Vec::new() }
    }

    /// The mean work.
    pub(crate) fn mean(&self) -> f64 {
        let sum: f64 = self.ticks.iter().map(|tick| f64::from(tick.work)).sum();
        sum / self.ticks.len().max(1) as f64
    }

    /// The mean work of the first ten minutes.
    pub(crate) fn begins_at(&self) -> f64 {
        let first = self.ticks.len().min(MEAN_TICKS as usize);
        let sum: f64 = self.ticks.iter().take(first).map(|tick| f64::from(tick.work)).sum();
        sum / first.max(1) as f64
    }
}

/// Requests that engines work on.
pub(crate) fn in_flight(model: &Model) -> f64 {
    let replicas = model.variants.values().flat_map(|variant| variant.replicas.values());
    let serving = replicas.filter(|replica| replica.state == ReplicaState::Ready);
    serving.filter_map(|replica| replica.in_flight.fresh()).map(|count| count.get() as f64).sum()
}
