//! One run, step by step: machines come and go, the policy chooses, time passes.

use flyball_core::units::{Gpus, Micros, Timestamp};
use flyball_training::{HeldMachine, TrainingChoice, TrainingReason, TrainingSnapshot};

use super::market::{SpotMarket, dollars};
use super::policy::{PolicyChoice, RunPolicy};

/// A run to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunToReplay {
    /// The step of the market at which it begins.
    pub start: usize,
    /// Machine time that it needs, without restarts and saves.
    pub work: Micros,
    /// The time that it may take.
    pub allowed: Micros,
    /// From asking for machines until the first new step.
    pub restart: Micros,
    /// How long steps stand still for a save.
    pub save: Micros,
    /// Its GPUs.
    pub gpus: Gpus,
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayedRun {
    /// What was paid for machines.
    pub dollars: f64,
    /// How long it took; absent if it had not ended when the recording did.
    pub took: Option<Micros>,
    /// Whether it ended after its deadline, or not at all.
    pub late: bool,
    /// Times in which machines were paid for, and times without any.
    pub spot: Micros,
    /// The same, on demand.
    pub on_demand: Micros,
    /// Time without machines.
    pub waited: Micros,
    /// Work that was done and lost with its machines.
    pub lost: Micros,
    /// Time in which machines started.
    pub starting: Micros,
    /// Time in which steps stood still for saves.
    pub saving: Micros,
    /// How often spot machines were reclaimed.
    pub reclaims: u32,
    /// How often machines were asked for.
    pub restarts: u32,
    /// Saves that were finished.
    pub saves: u32,
    /// Where it was, in order.
    pub stays: Vec<RunStay>,
    /// What decisions broke.
    pub broken: Vec<&'static str>,
}

/// A time in which a run was in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStay {
    /// Where.
    pub at: TrainingChoice,
    /// From when, counted from the run's start.
    pub from: Micros,
    /// Until when.
    pub until: Micros,
    /// Why it went there.
    pub reason: Option<TrainingReason>,
    /// Whether it ended because the machines were reclaimed.
    pub reclaimed: bool,
}

impl RunToReplay {
    /// When it must have ended.
    pub fn deadline(&self, market: &SpotMarket) -> Timestamp {
        market.at(self.start).saturating_add(self.allowed)
    }

    /// The first step after its deadline.
    pub fn end(&self, market: &SpotMarket) -> usize {
        self.start + self.allowed.get().div_ceil(market.step.get()) as usize
    }

    /// What on-demand machines alone would cost, without a failure: work, one restart and the last save.
    pub fn on_demand_dollars(&self, market: &SpotMarket) -> f64 {
        let time = self.work.saturating_add(self.restart).saturating_add(self.save);
        dollars(market.on_demand, self.gpus, time)
    }
}

/// Plays a run until it has ended, or the recording has.
pub fn play(market: &SpotMarket, run: &RunToReplay, policy: &mut dyn RunPolicy) -> ReplayedRun {
    let mut world = World::new(market, run);
    for step in run.start..market.steps {
        world.step(step, policy);
        if world.ended.is_some() {
            break;
        }
    }
    world.finish()
}

/// What is known when the run begins.
pub(super) fn first_snapshot(market: &SpotMarket, run: &RunToReplay) -> TrainingSnapshot {
    TrainingSnapshot {
        now: market.at(run.start),
        deadline: run.deadline(market),
        work_left: run.work,
        unsaved: Micros::ZERO,
        restart: run.restart,
        save: run.save,
        tick: market.step,
        gpus: run.gpus,
        on_demand: market.on_demand,
        held: HeldMachine::NONE,
        zones: market.seen_at(run.start),
    }
}

/// A run in the middle of its replay.
pub(super) struct World<'a> {
    market: &'a SpotMarket,
    run: &'a RunToReplay,
    snapshot: TrainingSnapshot,
    /// What is left of a save; steps stand still.
    saving: Micros,
    /// Where it goes once that save is done.
    next: Option<(TrainingChoice, Option<TrainingReason>)>,
    ended: Option<Timestamp>,
    result: ReplayedRun,
}

impl<'a> World<'a> {
    pub(super) fn new(market: &'a SpotMarket, run: &'a RunToReplay) -> Self {
        let snapshot = first_snapshot(market, run);
        let result = ReplayedRun::default();
        Self { market, run, snapshot, saving: Micros::ZERO, next: None, ended: None, result }
    }

    pub(super) fn snapshot(&self) -> &TrainingSnapshot {
        &self.snapshot
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Sees what there is at a step; machines that are gone are gone.
    pub(super) fn observe(&mut self, step: usize) {
        self.snapshot.now = self.market.at(step);
        self.snapshot.zones = self.market.seen_at(step);
        self.reclaim();
    }

    /// Leaves its machines with what is saved, for as many as `run` has, with which its work takes another time.
    pub(super) fn resize(
        &mut self,
        market: &'a SpotMarket,
        run: &'a RunToReplay,
        scaled: impl Fn(Micros) -> Micros,
    ) {
        self.go(TrainingChoice::Wait, None, self.snapshot.now);
        self.snapshot.work_left = scaled(self.snapshot.work_left);
        self.snapshot.gpus = run.gpus;
        (self.market, self.run) = (market, run);
    }

    pub(super) fn step(&mut self, step: usize, policy: &mut dyn RunPolicy) {
        self.observe(step);
        let PolicyChoice { choice, save_now, save_every, reason, broken } =
            policy.choose(&self.snapshot);
        self.result.broken.extend(broken);
        self.next = None;
        if save_now && self.saving.is_zero() && !self.snapshot.unsaved.is_zero() {
            self.begin_save();
        }
        if choice != self.snapshot.held.at {
            if save_now && !self.saving.is_zero() {
                self.next = Some((choice, reason));
            } else {
                self.go(choice, reason, self.snapshot.now);
            }
        }
        self.pass(step, save_every);
    }

    /// Machines that are gone take with them what is not saved.
    fn reclaim(&mut self) {
        let snapshot = &mut self.snapshot;
        let TrainingChoice::Spot(zone) = &snapshot.held.at else { return };
        if snapshot.is_available(zone) {
            return;
        }
        self.result.reclaims += 1;
        if let Some(stay) = self.result.stays.last_mut() {
            stay.reclaimed = true;
        }
        self.go(TrainingChoice::Wait, None, self.snapshot.now);
    }

    /// Leaves its machines with what is saved, for others or for none.
    fn go(&mut self, to: TrainingChoice, reason: Option<TrainingReason>, now: Timestamp) {
        let snapshot = &mut self.snapshot;
        self.result.lost = self.result.lost.saturating_add(snapshot.unsaved);
        snapshot.work_left = snapshot.work_from_save();
        snapshot.unsaved = Micros::ZERO;
        self.saving = Micros::ZERO;
        let at = now.since(self.market.at(self.run.start)).unwrap_or(Micros::ZERO);
        if to == TrainingChoice::Wait {
            snapshot.held = HeldMachine::NONE;
        } else {
            snapshot.held = HeldMachine { at: to.clone(), ready_in: snapshot.restart };
            self.result.restarts += 1;
        }
        // A stay of no length was never there.
        self.result.stays.retain(|stay| stay.from < at);
        self.result.stays.push(RunStay { at: to, from: at, until: at, reason, reclaimed: false });
    }

    fn begin_save(&mut self) {
        self.saving = self.snapshot.save;
        if self.saving.is_zero() {
            self.snapshot.unsaved = Micros::ZERO;
            self.result.saves += 1;
        }
    }

    /// A step of the recording: starting, saving, computing, in parts that each end with a change.
    fn pass(&mut self, step: usize, save_every: Micros) {
        let end = self.market.at(step + 1);
        while self.snapshot.now < end && self.ended.is_none() {
            let left = end.since(self.snapshot.now).unwrap_or(Micros::ZERO);
            let part = self.part(left, save_every);
            self.pay(step, part);
            self.snapshot.now = self.snapshot.now.saturating_add(part);
            if self.is_done() {
                self.ended = Some(self.snapshot.now);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.snapshot.work_from_save().is_zero() && self.saving.is_zero()
    }

    /// Does one thing for at most so long, and says how long it took.
    fn part(&mut self, left: Micros, save_every: Micros) -> Micros {
        if self.snapshot.held.at == TrainingChoice::Wait {
            self.result.waited = self.result.waited.saturating_add(left);
            return left;
        }
        let snapshot = &mut self.snapshot;
        if !snapshot.held.ready_in.is_zero() {
            let part = snapshot.held.ready_in.min(left);
            snapshot.held.ready_in = snapshot.held.ready_in.saturating_sub(part);
            self.result.starting = self.result.starting.saturating_add(part);
            return part;
        }
        if !self.saving.is_zero() {
            return self.save(left);
        }
        let due = snapshot.work_left.is_zero() || snapshot.unsaved >= save_every;
        if due && !snapshot.unsaved.is_zero() {
            self.begin_save();
            return Micros::ZERO;
        }
        let snapshot = &mut self.snapshot;
        // Where saves cost nothing, every step is saved.
        let part = match save_every.is_zero() {
            true => left,
            false => save_every.saturating_sub(snapshot.unsaved).min(left),
        };
        let part = snapshot.work_left.min(part);
        snapshot.work_left = snapshot.work_left.saturating_sub(part);
        snapshot.unsaved = snapshot.unsaved.saturating_add(part);
        part
    }

    fn save(&mut self, left: Micros) -> Micros {
        let part = self.saving.min(left);
        self.saving = self.saving.saturating_sub(part);
        self.result.saving = self.result.saving.saturating_add(part);
        if self.saving.is_zero() {
            self.snapshot.unsaved = Micros::ZERO;
            self.result.saves += 1;
        }
        part
    }

    fn pay(&mut self, step: usize, part: Micros) {
        let gpus = self.run.gpus;
        match &self.snapshot.held.at {
            TrainingChoice::Wait => {}
            TrainingChoice::OnDemand => {
                self.result.dollars += dollars(self.market.on_demand, gpus, part);
                self.result.on_demand = self.result.on_demand.saturating_add(part);
            }
            TrainingChoice::Spot(name) => {
                let zone = self.market.zone(name);
                let price =
                    zone.map_or(self.market.on_demand, |zone| self.market.spot_price(zone, step));
                self.result.dollars += dollars(price, gpus, part);
                self.result.spot = self.result.spot.saturating_add(part);
            }
        }
        if let Some(stay) = self.result.stays.last_mut() {
            stay.until = stay.until.saturating_add(part);
        }
        self.move_on(part);
    }

    /// A save that was made to leave is done: now it goes.
    fn move_on(&mut self, part: Micros) {
        if self.saving.is_zero()
            && self.snapshot.unsaved.is_zero()
            && let Some((to, reason)) = self.next.take()
        {
            self.go(to, reason, self.snapshot.now.saturating_add(part));
        }
    }

    pub(super) fn finish(mut self) -> ReplayedRun {
        let start = self.market.at(self.run.start);
        self.result.took = self.ended.and_then(|ended| ended.since(start));
        self.result.late = self.result.took.is_none_or(|took| took > self.run.allowed);
        self.result
    }
}
