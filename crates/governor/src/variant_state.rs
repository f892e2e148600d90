//! One variant of one model as a decision sees it: counts, size, price and the last target.

use crate::demand::{Load, Unit};
use crate::fleet::Fleet;
use crate::memory::VariantMemory;
use crate::starts::Starts;
use flyball_core::decision::{Previous, PreviousTarget};
use flyball_core::ids::{ReplicaId, VariantId};
use flyball_core::snapshot::{Pool, Purchase, ReplicaState, Snapshot, Variant};
use flyball_core::units::{Currency, Micros, Replicas, Timestamp};

/// One variant of one model.
#[derive(Clone, Debug)]
pub(crate) struct VariantState<'a> {
    pub(crate) id: VariantId,
    pub(crate) observed: &'a Variant,
    pub(crate) last: Option<PreviousTarget>,
    /// What no change means.
    pub(crate) baseline: u32,
    pub(crate) ready: u32,
    /// Replicas that start and can be counted on.
    pub(crate) starting: u32,
    /// Replicas that have waited for a node for so long that they cannot be counted on.
    pub(crate) short: u32,
    /// Replicas that hold a place and do not serve, nor will soon.
    pub(crate) sick: Vec<&'a ReplicaId>,
    /// Replicas whose node is lost or will be taken away.
    pub(crate) gone: Vec<&'a ReplicaId>,
    pub(crate) draining: u32,
    /// Of those that are sick and gone, how many others make up for.
    pub(crate) spared: u32,
    pub(crate) replaced: u32,
    /// Whether all of its capacity is known.
    pub(crate) known: bool,
    /// What one replica does, in replicas of the yardstick.
    pub(crate) size: f64,
    /// Prompt tokens per second that one replica reads.
    pub(crate) reading: f64,
    /// What one replica costs for an hour, by purchase, in millionths; `None` is not offered.
    pub(crate) offers: [Option<f64>; 3],
    pub(crate) currency: Option<Currency>,
    /// The cold start that nineteen of twenty stay below, and the usual one.
    pub(crate) cold_s: f64,
    pub(crate) usual_s: f64,
    /// Whether asking for more is useless for now.
    pub(crate) backs_off: bool,
    /// Whether what was asked for is not there, and has not been for a while.
    pub(crate) absent: bool,
    /// What demand asks for.
    pub(crate) recommended: u32,
    /// What it should have.
    pub(crate) target: u32,
    /// What its pool could give it, where that was less than it asked for.
    pub(crate) granted: Option<u32>,
    /// How new replicas are paid for, as a count by purchase; the rest is paid as is cheapest.
    pub(crate) buys: [u32; 3],
}

impl<'a> VariantState<'a> {
    /// Looks at one variant, and learns its cold starts.
    pub(crate) fn observe(
        id: VariantId,
        variant: &'a Variant,
        snapshot: &'a Snapshot,
        previous: &Previous,
        memory: &mut VariantMemory,
    ) -> Self {
        let now = snapshot.taken_at;
        let pool = snapshot.pools.get(&variant.pool);
        let (offers, currency) = offers(pool, variant.gpus_per_replica.get());
        let last = previous.targets.get(&id).copied();
        // One that waits for a loan to come back is not late yet.
        let back_s = pool.and_then(|pool| pool.take_back).map_or(0.0, Micros::as_seconds);
        memory.starts.learn(variant, back_s, now);
        let counted = Counted::of(variant, &memory.starts, now);
        // Where the pool holds or lends accelerators, what a start took includes waiting for one. What
        // counts is how long it takes once there is one, and that is what is stated; a loan may have to
        // come back before that.
        let apart = pool.is_some_and(|pool| pool.supply.is_some() || pool.take_back.is_some());
        let stated = variant.cold_start.filter(|_| apart);
        let (usual_s, cold_s) = match stated {
            Some(stated) => {
                (stated.point().as_seconds().max(1.0), stated.high().as_seconds().max(1.0))
            }
            None => {
                let starts = &memory.starts;
                (starts.usual_s(variant.cold_start), starts.long_s(variant.cold_start))
            }
        };
        let (usual_s, cold_s) = (usual_s + back_s, cold_s + back_s);
        let live = variant.live().get();
        memory.absent.learn(last.map(|last| last.replicas.get()), live, now);
        let baseline = last.map_or(live, |last| last.replicas.get());
        memory.leaving.retain(|id| {
            variant.replicas.get(id).is_some_and(|seen| seen.state != ReplicaState::Draining)
        });
        Self {
            observed: variant,
            last,
            baseline,
            ready: counted.ready,
            starting: counted.coming,
            short: counted.short,
            sick: counted.sick,
            gone: counted.gone,
            draining: counted.draining,
            spared: 0,
            replaced: 0,
            known: variant.capacity.is_known(),
            size: 1.0,
            reading: 0.0,
            offers,
            currency,
            cold_s,
            usual_s,
            backs_off: memory.starts.backs_off(now),
            absent: memory.absent.lasts(now),
            recommended: baseline,
            target: baseline,
            granted: None,
            buys: [0; 3],
            id,
        }
    }

    /// Sets what one replica does.
    pub(crate) fn measure(&mut self, unit: &Unit, yardstick: &Unit, load: &Load) {
        self.size = unit.against(yardstick, load);
        self.reading = if unit.prefill.is_finite() { unit.prefill } else { 0.0 };
    }

    /// Many of it.
    pub(crate) fn fleet(&self) -> Fleet {
        let slow = self.observed.slow.values();
        let lacks = slow.map(|share| 1.0 - f64::from(*share) / 1e6).sum();
        Fleet { size: self.size, pooling: self.observed.capacity.pooling(), lacks }
    }

    /// Replicas that serve or start, and those that do not and that nobody makes up for.
    pub(crate) fn live(&self) -> u32 {
        let failing = (self.sick.len() + self.gone.len()) as u32;
        self.ready + self.starting + self.short + failing - self.spared - self.replaced
    }

    /// Whether it has replicas, or should.
    pub(crate) fn is_used(&self) -> bool {
        self.baseline > 0 || self.live() > 0
    }

    /// Whether a replica does not serve, or will not for long.
    pub(crate) fn is_failing(&self, id: &ReplicaId) -> bool {
        self.sick.contains(&id) || self.gone.contains(&id)
    }

    pub(crate) fn has_failing(&self) -> bool {
        !self.sick.is_empty() || !self.gone.is_empty()
    }

    /// Replicas that hold a place on nodes that stay, or will, if nobody makes up for any.
    pub(crate) fn planned(&self) -> u32 {
        let there = self.ready + self.starting + self.short + self.sick.len() as u32;
        self.target.saturating_sub(self.gone.len() as u32).max(there)
    }

    /// Makes up for what does not serve, as far as `free` accelerators go: for all whose node is lost, and for
    /// a quarter of the sick. An image that does not run must not buy a second fleet.
    pub(crate) fn spare(&mut self, free: &mut u32) {
        let gpus = self.gpus();
        let mut take = |missing: u32| {
            let count = free.checked_div(gpus).map_or(missing, |room| room.min(missing));
            *free -= count * gpus;
            count
        };
        self.replaced = take(self.gone.len() as u32);
        let most = if self.target == 0 { 0 } else { self.target.div_ceil(4) };
        self.spared = take((self.sick.len() as u32).min(most.saturating_sub(self.draining)));
    }

    /// Whether replicas come when they are asked for.
    pub(crate) const fn comes(&self) -> bool {
        !self.absent && !self.backs_off
    }

    /// Live replicas on capacity that can be taken away.
    pub(crate) fn count_spot(&self) -> u32 {
        let spot = self.observed.replicas.values().filter(|replica| {
            replica.purchase == Some(Purchase::Spot) && replica.state != ReplicaState::Draining
        });
        spot.fold(0, |count, _| count + 1)
    }

    pub(crate) fn gpus(&self) -> u32 {
        self.observed.gpus_per_replica.get()
    }

    /// The cheapest offer for one replica and one hour. Where no price is known, accelerators are
    /// counted instead, so that the smaller is the cheaper.
    pub(crate) fn price(&self) -> f64 {
        let least =
            self.offers.iter().flatten().fold(f64::INFINITY, |least, price| least.min(*price));
        if least.is_finite() { least } else { f64::from(self.gpus()) * 1e6 }
    }

    /// The price for the work that one replica of the yardstick does.
    pub(crate) fn price_of_work(&self) -> f64 {
        self.price() / self.size
    }

    /// Whether the last start, or the last cut, is less than one cold start ago.
    pub(crate) fn is_recent(&self, event: Option<Timestamp>, now: Timestamp) -> bool {
        event.and_then(|event| now.since(event)).is_some_and(|age| age.as_seconds() < self.cold_s)
    }
}

/// A replica that served and does not now comes back within this time, or is taken for sick: probes fail for
/// half a minute where an engine is merely overloaded.
const UNREADY: Micros = Micros::from_minutes(2);

/// Replicas by what can be expected of them, in one pass.
struct Counted<'a> {
    ready: u32,
    coming: u32,
    short: u32,
    sick: Vec<&'a ReplicaId>,
    gone: Vec<&'a ReplicaId>,
    draining: u32,
}

impl<'a> Counted<'a> {
    fn of(variant: &'a Variant, starts: &Starts, now: Timestamp) -> Self {
        let (sick, gone) = (Vec::new(), Vec::new());
        let (ready, coming, short, draining) = (0, 0, 0, 0);
        let mut counted = Self { ready, coming, short, sick, gone, draining };
        for (id, replica) in &variant.replicas {
            let age = now.since(replica.since);
            match replica.state {
                ReplicaState::Ready => counted.ready += 1,
                ReplicaState::Pending if starts.is_late(id) => counted.short += 1,
                ReplicaState::Starting if starts.is_late(id) => counted.sick.push(id),
                ReplicaState::Unready if age.is_some_and(|age| age >= UNREADY) => {
                    counted.sick.push(id);
                }
                ReplicaState::Pending | ReplicaState::Starting | ReplicaState::Unready => {
                    counted.coming += 1;
                }
                ReplicaState::Failed => counted.sick.push(id),
                ReplicaState::Lost | ReplicaState::Leaving => counted.gone.push(id),
                ReplicaState::Draining => counted.draining += 1,
            }
        }
        counted
    }
}

/// What one replica costs by purchase. Only one currency can be compared; others are not offered.
fn offers(pool: Option<&Pool>, gpus: u32) -> ([Option<f64>; 3], Option<Currency>) {
    let Some(pool) = pool else { return ([None; 3], None) };
    let currency = pool.prices.values().next().map(|price| price.amount().currency());
    let offers = [Purchase::Reserved, Purchase::OnDemand, Purchase::Spot].map(|purchase| {
        let price = pool.prices.get(&purchase)?.amount();
        let there = pool.can_grow || pool.allocatable.contains_key(&purchase);
        (there && Some(price.currency()) == currency)
            .then(|| price.micros() as f64 * f64::from(gpus))
    });
    (offers, currency)
}

/// So many replicas.
pub(crate) const fn replicas(count: u32) -> Replicas {
    Replicas::new(count)
}

/// The purchases in the order of [`VariantState::offers`].
pub(crate) const PURCHASES: [Purchase; 3] =
    [Purchase::Reserved, Purchase::OnDemand, Purchase::Spot];
