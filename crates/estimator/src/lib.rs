//! What is known of a cluster, from what its gateways, engines and pods count.
//!
//! [`Estimator::see`] takes everything that was read at one moment and gives the [`Snapshot`] that decisions are
//! made on. The operator reads a real cluster and the simulator a virtual one; nothing here can tell which, and
//! nobody else makes snapshots.
//!
//! The modules are its steps, in order: [`reading`] (what comes in), `window` (counts into rates), `gateways` and
//! `engines` (all of a model's together), `demand` (both), `shape` (what requests look like), `starts`, `prior`
//! and `capacity` (what a replica can do: stated or predicted, and measured), `slow` (which one does less), `reach`
//! (what none can do), [`learnt`] (what outlives a process).
//!
//! It does no I/O and knows no clock and no randomness. Start at [`Estimator`].

#![deny(missing_docs)]

mod capacity;
mod demand;
mod engines;
mod gateways;
pub mod learnt;
mod prior;
mod reach;
pub mod reading;
mod shape;
mod slow;
mod starts;
mod window;

pub use learnt::EstimatorMemory;
pub use reading::Readings;
pub use shape::Means;
pub use window::{CounterWindow, Counters};

use capacity::{Learned, Moment};
use demand::Beside;
use engines::{Serving, Sum};
use flyball_core::ids::{ModelId, VariantName};
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{
    Capacity, Misses, Model, Replica, ReplicaState, Snapshot, Unreachable, Variant,
};
use flyball_core::units::{Micros, Timestamp, Tokens};
use flyball_perf::serving::steady::RequestShape as PerfShape;
use gateways::GatewaySum;
use prior::Prior;
use reach::{Alone, Judged};
use reading::{CacheUsed, EngineReading, ModelReading, Paces, VariantReading};
use shape::Shape;
use slow::Slow;
use starts::Starts;
use std::collections::BTreeMap;

/// What is remembered from look to look. Bounded: per model and variant a few hundred numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimator {
    models: BTreeMap<ModelId, ModelMemory>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct ModelMemory {
    shape: Shape,
    misses: Option<Misses>,
    judged: Judged,
    /// How many replicas serve, and since when so many do.
    serving: (usize, Timestamp),
    variants: BTreeMap<VariantName, VariantMemory>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct VariantMemory {
    starts: Starts,
    prior: Option<Prior>,
    learned: Learned,
    slow: Slow,
}

/// What is known of a model beside the snapshot, for people to read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownModel {
    /// Engines that should tell and do not: the first few.
    pub silent: Vec<String>,
    /// What requests look like.
    pub shape: Option<Means>,
    /// Starts that were measured, by variant.
    pub starts: BTreeMap<VariantName, usize>,
}

/// A replica is warm after this: compilation, caches and the first batches are over. vLLM reports about 100 s from
/// ready to full speed in llm-d's guide.
const WARM_UP: Micros = Micros::from_seconds(120);

/// After a change of the replicas that serve, requests that were shared out otherwise end within this.
const SETTLES: Micros = Micros::from_seconds(45);

impl Estimator {
    /// The picture that these readings give, together with those before.
    pub fn see(&mut self, readings: Readings) -> (Snapshot, BTreeMap<ModelId, KnownModel>) {
        let time = (readings.taken_at, readings.max_age);
        self.models.retain(|id, _| readings.models.contains_key(id));
        let mut known = BTreeMap::new();
        let mut models = BTreeMap::new();
        for (id, reading) in readings.models {
            let memory = self.models.entry(id.clone()).or_default();
            let (model, beside) = memory.see(reading, time);
            known.insert(id.clone(), beside);
            models.insert(id, model);
        }
        let (pools, runs) = (readings.pools, readings.runs);
        (Snapshot { taken_at: time.0, shard: readings.shard, models, pools, runs }, known)
    }
}

impl ModelMemory {
    fn see(&mut self, reading: ModelReading, time: (Timestamp, Micros)) -> (Model, KnownModel) {
        self.variants.retain(|name, _| reading.variants.contains_key(name));
        let priors: BTreeMap<VariantName, Capacity> = reading
            .variants
            .iter()
            .map(|(name, variant)| {
                let memory = self.variants.entry(name.clone()).or_default();
                memory.starts.learn(&variant.started);
                memory.slow.learn(variant, memory.learned.idle_pace(), time.0);
                let shape = self.shape.known();
                let prior = prior::capacity(&mut memory.prior, variant, shape, &reading.objectives);
                let room = prior.resident.or_else(|| variant.untold_room());
                (name.clone(), Capacity { resident: room, ..prior })
            })
            .collect();
        let (sum, out) = self.engines(&reading, &priors, time);
        let gateways = gateways::sum(&reading.gateways, sum.uncached, time);
        let seen = gateways.and_then(|gateways| gateways.shape).or(sum.shape);
        self.shape.learn(seen, time.0);
        let beside = Beside {
            silent: reading.silent_gateways,
            waited_for: reading.waited_for,
            output: self.shape.known().map(|shape| shape.output),
            held: self.held(&reading, gateways, &sum),
            out,
            in_hand: self.in_hand(&reading),
        };
        let demand::Known { demand, misses } = demand::known(gateways, &sum, beside, time);
        let missed = self.new_misses(misses.fresh());
        self.judged.learn(missed);
        let unreachable = self.unreachable(&reading);
        // What nobody can reach says nothing about what replicas can do.
        let missed = missed.filter(|_| unreachable.is_none());
        self.learn(&reading, &priors, (gateways, &sum), missed, time);
        let starts = self.variants.iter().map(|(name, one)| (name.clone(), one.starts.count()));
        let known = KnownModel {
            // Where gateways tell, engines that nobody collects are not missed.
            silent: if gateways.is_none() || sum.old > 0 { sum.names } else { Vec::new() },
            shape: self.shape.known(),
            starts: starts.collect(),
        };
        let variants = reading.variants.into_iter().map(|(name, variant)| {
            let memory = &self.variants[&name];
            let capacity = memory.learned.capacity(&priors[&name]);
            (name, memory.variant(variant, capacity))
        });
        let model = Model {
            mode: reading.mode,
            pinned: reading.pinned,
            frozen: reading.frozen,
            blocked: reading.blocked,
            bounds: reading.bounds,
            objectives: reading.objectives,
            demand,
            misses,
            unreachable,
            variants: variants.collect(),
        };
        (model, known)
    }

    /// All engines that serve together, and whether there is none although there was one.
    fn engines(
        &self,
        reading: &ModelReading,
        priors: &BTreeMap<VariantName, Capacity>,
        time: (Timestamp, Micros),
    ) -> (Sum, bool) {
        let mut serving = Vec::new();
        let mut lapsed = false;
        for (name, variant) in &reading.variants {
            let room = priors[name].resident;
            lapsed |= variant.lapsed;
            let slow = self.variants.get(name).map(|memory| &memory.slow);
            serving.extend(variant.engines.iter().map(|(id, engine)| Serving {
                id,
                engine,
                room,
                is_slow: slow.is_some_and(|slow| slow.share(id).is_some()),
            }));
        }
        let usual =
            self.shape.known().map_or(PerfShape::CHAT, |shape| (shape.prompt, shape.output));
        let sum = engines::sum(&serving, usual, time);
        (sum, lapsed && serving.is_empty())
    }

    /// Lets capacity learn. Work cannot be told apart by variant, so only a model that runs on one teaches.
    fn learn(
        &mut self,
        reading: &ModelReading,
        priors: &BTreeMap<VariantName, Capacity>,
        (gateways, engines): (Option<GatewaySum>, &Sum),
        missed: Option<Misses>,
        (now, max_age): (Timestamp, Micros),
    ) {
        let mut serving = reading.variants.iter().filter(|(_, one)| one.serving().count() > 0);
        let (Some((name, variant)), None) = (serving.next(), serving.next()) else { return };
        let settled = self.is_settled(variant, now);
        let count = self.variants.get(name).map_or(0.0, |memory| memory.serving(variant));
        let old = |at: Timestamp| now.apart(at) > max_age;
        // What engines do themselves is what was done; what gateways see come is only about that.
        let rates = match (engines.prompt_rate.whole(), engines.output_rate.whole()) {
            (Some(read), Some(written)) if !engines.at.is_none_or(old) => Some((read, written)),
            _ => gateways
                .filter(|gateways| !old(gateways.at))
                .and_then(|gateways| gateways.prompt_rate.zip(gateways.output_rate)),
        };
        let Some((read, written)) = rates else { return };
        let uncached =
            engines.uncached.or_else(|| gateways.and_then(|gateways| gateways.uncached()));
        let reads = |prompt: f64| prompt * uncached.unwrap_or(1.0);
        let moment = Moment {
            at: now,
            each: (read / count, written / count),
            replicas: count,
            pace: pace(gateways, engines),
            reads_per_written: self.shape.known().map(|one| reads(one.prompt) / one.output),
            expected: self.paces(name, variant),
            running: engines
                .running
                .whole()
                .or(gateways.map(|one| one.in_flight))
                .map(|all| all / count),
            waiting: demand::waiting_tokens(gateways, engines, self.in_hand(reading)) / count,
            missed: missed.map(|one| one.missed.get() * 100 > one.requests.get()),
            allowed: reading.objectives.between_tokens.map(|time| time.as_seconds()),
            settled,
        };
        if let Some(memory) = self.variants.get_mut(name) {
            memory.learned.learn(&priors[name], &moment);
        }
    }

    /// The objective that no replica of any variant reaches, unless requests were seen to.
    fn unreachable(&self, reading: &ModelReading) -> Option<Unreachable> {
        let objectives = &reading.objectives;
        if self.judged.are_met(objectives) {
            return None;
        }
        let each = self.variants.iter().map(|(name, memory)| {
            memory.alone(reading.variants.get(name).and_then(|variant| variant.paces))
        });
        let alone: Option<Vec<Alone>> = each.collect();
        let of_each = alone?.into_iter().map(|alone| alone.unreachable(objectives));
        let of_each: Option<Vec<Unreachable>> = of_each.collect();
        of_each?.into_iter().min_by_key(|one| one.takes)
    }

    /// Prompt tokens that replicas may have in hand: one prompt each is being read. A prompt of some seconds' reading
    /// in each of many idle replicas was once taken for a queue, and each replica for one that can do no more.
    fn in_hand(&self, reading: &ModelReading) -> f64 {
        let replicas = reading.variants.values().flat_map(VariantReading::serving).count();
        self.shape.known().map_or(0.0, |shape| shape.prompt) * replicas as f64
    }

    /// How long tokens of a variant are expected to take.
    fn paces(&self, name: &VariantName, variant: &VariantReading) -> Option<Paces> {
        variant.paces.or_else(|| self.variants.get(name)?.prior.as_ref()?.paces)
    }

    /// What replicas would hold over what they hold now, if there were no more of them than the work takes: answers
    /// are then written as slowly as they may be, and held for as long. Without it fewer replicas would hold more, and
    /// ask for the ones that were just given back.
    fn held(&self, reading: &ModelReading, gateways: Option<GatewaySum>, engines: &Sum) -> f64 {
        let mut serving = reading.variants.iter().filter(|(_, one)| one.serving().count() > 0);
        let (Some((name, variant)), None) = (serving.next(), serving.next()) else { return 1.0 };
        let paces = self.paces(name, variant).filter(|paces| paces.carried > paces.idle);
        let Some((paces, pace)) = paces.zip(pace(gateways, engines)) else { return 1.0 };
        let slower = paces.carried / pace.max(paces.idle);
        // Where work waits, what is held is all that can be held and no sign of what would be.
        if demand::waiting_tokens(gateways, engines, 0.0) > 0.0 { slower.max(1.0) } else { slower }
    }

    /// Requests and misses since the last look.
    fn new_misses(&mut self, seen: Option<&Misses>) -> Option<Misses> {
        let now = *seen?;
        let before = self.misses.replace(now)?;
        // A counter that fell was restarted; what it counted meanwhile is not known.
        let requests = now.requests.checked_sub(before.requests)?;
        let missed = now.missed.checked_sub(before.missed)?;
        Some(Misses { requests, missed })
    }

    /// Whether the replicas that serve have been the same for a while, all of them warm.
    fn is_settled(&mut self, variant: &VariantReading, now: Timestamp) -> bool {
        let count = variant.serving().count();
        if self.serving.0 != count {
            self.serving = (count, now);
        }
        let for_long =
            |since: Timestamp, least: Micros| now.since(since).is_some_and(|age| age >= least);
        for_long(self.serving.1, SETTLES)
            && variant.serving().all(|replica| for_long(replica.since, WARM_UP))
    }
}

/// Seconds per output token, if any were written.
fn pace(gateways: Option<GatewaySum>, engines: &Sum) -> Option<f64> {
    let paced =
        if engines.paced.0 > 0.0 { Some(engines.paced) } else { gateways.map(|one| one.paced) };
    let (tokens, seconds) = paced.filter(|paced| paced.0 >= 1.0)?;
    (seconds > 0.0).then(|| seconds / tokens)
}

impl VariantReading {
    /// How much replicas can hold, where they tell or where that limits nothing: engines that do not tell of it, or
    /// that nobody asks, let requests wait when they have no room, and what waits is seen.
    fn untold_room(&self) -> Option<Interval<Tokens>> {
        let untold = |engine: &EngineReading| {
            engine.cache_tokens.is_none() && engine.cache_used != CacheUsed::Missing
        };
        if self.engines.values().all(untold) {
            return Interval::exact(Tokens::MAX, Origin::Assumed).ok();
        }
        let least = self.engines.values().filter_map(|engine| engine.cache_tokens);
        let least = Tokens::from_sample(least.reduce(f64::min)?)?;
        Interval::exact(least, Origin::Measured).ok()
    }

    /// Replicas that serve.
    fn serving(&self) -> impl Iterator<Item = &Replica> {
        self.replicas.values().filter(|replica| replica.state == ReplicaState::Ready)
    }
}

impl VariantMemory {
    /// Replicas that serve, slow ones as the part of one that they are.
    fn serving(&self, reading: &VariantReading) -> f64 {
        let weights = reading.replicas.iter().filter(|(_, one)| one.state == ReplicaState::Ready);
        weights.map(|(id, _)| self.slow.share(id).unwrap_or(1.0)).sum()
    }

    /// What a request takes that is alone on a replica, as far as it is known.
    fn alone(&self, stated: Option<Paces>) -> Option<Alone> {
        let slowed = self.learned.slowed_times();
        let predicted = self.prior.as_ref().map(|prior| prior.alone);
        // What is stated may be wrong; how many times as slow as they were engines became is measured.
        let stated = stated.filter(|_| slowed > 1.0);
        let stated = || stated.map(|paces| Alone { pace: Some(paces.idle), ..Alone::default() });
        let predicted = predicted.or_else(stated).map(|alone| alone.slowed(slowed));
        let measured = self.learned.idle_pace();
        (predicted.is_some() || measured.is_some())
            .then(|| Alone { measured_pace: measured, ..predicted.unwrap_or_default() })
    }

    fn variant(&self, reading: VariantReading, capacity: Capacity) -> Variant {
        let cold_start: Option<Interval<Micros>> = self.starts.measured().or(reading.cold_start);
        Variant {
            pool: reading.pool,
            gpus_per_replica: reading.gpus_per_replica,
            capacity,
            cold_start,
            slow: self.slow.among(&reading.replicas),
            replicas: reading.replicas,
        }
    }
}
