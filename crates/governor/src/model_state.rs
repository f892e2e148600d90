//! One model in the course of a decision: what is seen of it, and what is settled so far.

use crate::demand::{Load, Unit};
use crate::forecast::Outlook;
use crate::memory::ModelMemory;
use crate::policy::ModelPolicy;
use crate::variant_state::VariantState;
use flyball_core::decision::{Bound, Previous};
use flyball_core::ids::{ModelId, VariantId};
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Freshness, Model, Snapshot};
use flyball_core::units::{Micros, Replicas, Timestamp};

/// Bursts are measured over about so long.
const BURST_S: f64 = 5.0;

/// One model in the course of a decision.
#[derive(Clone, Debug)]
pub(crate) struct ModelState<'a> {
    pub(crate) id: &'a ModelId,
    pub(crate) observed: &'a Model,
    pub(crate) policy: &'a ModelPolicy,
    pub(crate) now: Timestamp,
    pub(crate) variants: Vec<VariantState<'a>>,
    pub(crate) load: Load,
    /// Whether it cannot be told that fewer replicas would do.
    pub(crate) blind: bool,
    /// The variant that replicas are counted in: the one that carries most, or else the cheapest.
    pub(crate) main: usize,
    pub(crate) outlook: Option<Outlook>,
    /// What a miss is worth: the work of one replica missed, in prices of one replica.
    pub(crate) worth: f64,
    /// The work as read, in replicas of the yardstick, and its level without the noise.
    pub(crate) work_now: f64,
    pub(crate) need_now: f64,
    pub(crate) look_ahead: f64,
    /// Replicas of the main variant that are worth buying, and worth keeping.
    pub(crate) recommended: Option<(u32, u32)>,
    /// Work that the recommendation is meant to carry.
    pub(crate) goal: Option<f64>,
    pub(crate) candidates: Vec<(Bound, Replicas)>,
    pub(crate) bound: Bound,
    pub(crate) reason: Reason,
}

impl<'a> ModelState<'a> {
    /// Looks at one model, and learns from it.
    pub(crate) fn observe(
        id: &'a ModelId,
        model: &'a Model,
        policy: &'a ModelPolicy,
        snapshot: &'a Snapshot,
        previous: &Previous,
        memory: &mut ModelMemory,
    ) -> Self {
        let variants = model.variants.iter().map(|(name, variant)| {
            let id = VariantId::new(id.clone(), name.clone());
            if !memory.variants.contains_key(name) {
                memory.variants.insert(name.clone(), Default::default());
            }
            let learnt = memory.variants.get_mut(name).expect("it was just put there");
            VariantState::observe(id, variant, snapshot, previous, learnt)
        });
        let mut state = Self {
            variants: variants.collect(),
            load: Load::last_seen(&model.demand),
            blind: false,
            main: 0,
            outlook: None,
            worth: 0.0,
            work_now: 0.0,
            need_now: 0.0,
            goal: None,
            look_ahead: 0.0,
            recommended: None,
            candidates: Vec::with_capacity(6),
            bound: Bound::NeedNow,
            reason: Reason::Steady,
            now: snapshot.taken_at,
            id,
            observed: model,
            policy,
        };
        if memory.variants.len() > state.variants.len() {
            memory.variants.retain(|name, _| model.variants.contains_key(name));
        }
        state.blind = state.is_blind();
        state.learn(memory);
        state
    }

    fn is_blind(&self) -> bool {
        self.observed.demand.freshness() != Freshness::Fresh
            || !self.variants.iter().any(|variant| variant.known)
            || self.variants.iter().any(|variant| variant.is_used() && !variant.known)
    }

    /// Sets the sizes of the variants, and lets capacity and forecast learn where all is fresh.
    fn learn(&mut self, memory: &mut ModelMemory) {
        let new = memory.is_new(self.now);
        let missed = if new { memory.new_misses(self.observed.misses.fresh()) } else { None };
        let fresh = self.observed.demand.freshness() == Freshness::Fresh;
        if memory.yardstick.is_none() {
            let known = self.variants.iter().find(|variant| variant.known);
            memory.yardstick = known.map(|variant| Unit::low(&variant.observed.capacity));
        }
        let Some(yardstick) = memory.yardstick else { return };
        for variant in &mut self.variants {
            let unit = Unit::low(&variant.observed.capacity);
            variant.measure(&unit, &yardstick, &self.load);
        }
        self.main = self.main_variant();
        let work = memory.measure(&self.load);
        self.work_now = work;
        if new && fresh {
            let burst = work * self.load.burst * self.smoothed();
            let cold_s = self.variants[self.main].cold_s;
            memory.forecaster.learn(work, work.max(burst), self.now, cold_s, self.slack_s());
            let unreachable = self.observed.unreachable.is_some();
            let allowed = self.allowed();
            memory.feedback.learn(missed.as_ref(), work, self.now, allowed, unreachable);
            memory.idle.learn(self.load.is_idle(), self.now);
        }
    }

    fn main_variant(&self) -> usize {
        let carries = |variant: &VariantState<'_>| f64::from(variant.baseline) * variant.size;
        let known = self.variants.iter().enumerate().filter(|(_, variant)| variant.known);
        let main = known.min_by(|(_, a), (_, b)| {
            let more = carries(b).total_cmp(&carries(a));
            more.then(a.price_of_work().total_cmp(&b.price_of_work()))
        });
        main.map_or(0, |(n, _)| n)
    }

    /// Replicas of a variant that count in its pool before the decision. A model that does not act has
    /// what is there: what is only shown reserves nothing.
    pub(crate) fn held(&self, variant: &VariantState<'_>) -> u32 {
        if self.observed.acts() { variant.baseline } else { variant.live() }
    }

    /// Replicas of a variant that count in its pool as settled so far.
    pub(crate) fn claimed(&self, variant: &VariantState<'_>) -> u32 {
        if self.observed.acts() { variant.target } else { variant.live() }
    }

    /// Replicas over all variants that no change means.
    pub(crate) fn baseline(&self) -> u32 {
        self.variants.iter().map(|variant| variant.baseline).fold(0, u32::saturating_add)
    }

    /// Replicas over all variants as settled so far.
    pub(crate) fn target(&self) -> u32 {
        self.variants.iter().map(|variant| variant.target).fold(0, u32::saturating_add)
    }

    /// Work that the replicas of the baseline do.
    pub(crate) fn capacity(&self) -> f64 {
        self.alone(|variant| variant.baseline)
    }

    /// What so many replicas of each variant would carry, each of them alone.
    pub(crate) fn alone(&self, count: impl Fn(&VariantState<'_>) -> u32) -> f64 {
        self.variants.iter().map(|variant| f64::from(count(variant)) * variant.size).sum()
    }

    /// What they carry together.
    pub(crate) fn together(&self, alone: f64) -> f64 {
        self.variants.get(self.main).map_or(alone, |main| main.fleet().carries(alone / main.size))
    }

    /// The share of its requests that may miss.
    pub(crate) fn allowed(&self) -> f64 {
        self.policy.may_miss(&self.observed.objectives)
    }

    /// The wait that misses the objective of the first token.
    pub(crate) fn slack_s(&self) -> f64 {
        self.observed.objectives.first_token.map_or(2.0, Micros::as_seconds).max(0.1)
    }

    /// The part of a burst that must be read at once: what comes in five seconds may be read in these and for as
    /// long as its requests may wait, less a second for a prompt of their own.
    fn smoothed(&self) -> f64 {
        BURST_S / (BURST_S + (self.slack_s() - 1.0).max(0.0))
    }

    /// The most replicas that a person allows.
    pub(crate) fn ceiling(&self) -> u32 {
        self.observed.pinned.unwrap_or(self.observed.bounds.max).get()
    }

    /// The fewest replicas that a person asks for while it is awake.
    pub(crate) fn floor(&self) -> u32 {
        let bounds = self.observed.bounds;
        self.observed.pinned.unwrap_or(bounds.min.min(bounds.max)).get()
    }
}
