//! Policies of others, from what is published about them.
//!
//! All save as often as our own policy would, by what they have seen, so that only the choice of machines differs. Among
//! zones with spot machines each stays where it is, or takes the cheapest.

use flyball_core::units::Micros;
use flyball_training::{RunMemory, SpotZone, TrainingChoice, TrainingSnapshot, ZoneName, deadline};

use super::policy::{PolicyChoice, RunPolicy};

/// Whose rule it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunRival {
    /// On-demand machines from the first step to the last.
    OnDemandOnly,
    /// Spot wherever there is some; without, it waits as long as it can, then takes on-demand machines to the end.
    Greedy,
    /// "Can't Be Late" (NSDI 2024), section 4: on spot wherever there is some; without, on demand while less is done than
    /// time has passed. From on-demand machines it goes back once it is ahead by two restarts.
    UniformProgress,
    /// `SkyPilot`'s managed jobs with `use_spot` and on-demand as the last resort: spot in any zone, else on demand, where
    /// it stays. It has no deadline.
    SpotWithFallback,
}

impl RunRival {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::OnDemandOnly, Self::Greedy, Self::UniformProgress, Self::SpotWithFallback];

    /// As it is typed and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnDemandOnly => "on-demand",
            Self::Greedy => "greedy",
            Self::UniformProgress => "uniform-progress",
            Self::SpotWithFallback => "skypilot",
        }
    }

    /// Ready for a run of so much work in so much time.
    pub fn policy(self, work: Micros, allowed: Micros, memory: RunMemory) -> RivalPolicy {
        RivalPolicy { rival: self, work, allowed, memory, is_last: false }
    }
}

/// A rival with what it knows of its run.
#[derive(Clone, Debug)]
pub struct RivalPolicy {
    rival: RunRival,
    work: Micros,
    allowed: Micros,
    memory: RunMemory,
    /// Whether on-demand machines are held to the end.
    is_last: bool,
}

impl RunPolicy for RivalPolicy {
    fn choose(&mut self, snapshot: &TrainingSnapshot) -> PolicyChoice {
        self.memory.see(snapshot);
        let choice = self.place(snapshot);
        let leaves = choice != snapshot.held.at
            && snapshot.held.at != TrainingChoice::Wait
            && snapshot.held.ready_in.is_zero();
        PolicyChoice {
            save_now: leaves && !snapshot.unsaved.is_zero() && deadline::save_fits(snapshot),
            save_every: self.memory.save_every(snapshot, &choice),
            choice,
            reason: None,
            broken: Vec::new(),
        }
    }
}

impl RivalPolicy {
    fn place(&mut self, snapshot: &TrainingSnapshot) -> TrainingChoice {
        if snapshot.work_from_save().is_zero() {
            return TrainingChoice::Wait;
        }
        if self.is_last || self.rival == RunRival::OnDemandOnly {
            return TrainingChoice::OnDemand;
        }
        let has_deadline = self.rival != RunRival::SpotWithFallback;
        if has_deadline && !deadline::allows(snapshot, &TrainingChoice::Wait) {
            self.is_last = true;
            return TrainingChoice::OnDemand;
        }
        let on_demand = snapshot.held.at == TrainingChoice::OnDemand;
        match (self.rival, spot(snapshot)) {
            (RunRival::UniformProgress, _) if on_demand && !self.is_ahead(snapshot) => {
                TrainingChoice::OnDemand
            }
            (_, Some(zone)) => TrainingChoice::Spot(zone),
            (RunRival::SpotWithFallback, None) => {
                self.is_last = true;
                TrainingChoice::OnDemand
            }
            (RunRival::UniformProgress, None) if self.is_behind(snapshot) => {
                TrainingChoice::OnDemand
            }
            (_, None) => TrainingChoice::Wait,
        }
    }

    /// Less is done than time has passed, as shares of all work and of all time.
    fn is_behind(&self, snapshot: &TrainingSnapshot) -> bool {
        self.done(snapshot) < self.expected(snapshot, Micros::ZERO)
    }

    fn is_ahead(&self, snapshot: &TrainingSnapshot) -> bool {
        self.done(snapshot) >= self.expected(snapshot, snapshot.restart.saturating_mul(2))
    }

    fn done(&self, snapshot: &TrainingSnapshot) -> f64 {
        self.work.saturating_sub(snapshot.work_left).as_seconds()
    }

    fn expected(&self, snapshot: &TrainingSnapshot, ahead: Micros) -> f64 {
        let passed = self.allowed.saturating_sub(snapshot.time_left()).saturating_add(ahead);
        self.work.as_seconds() * passed.as_seconds() / self.allowed.as_seconds()
    }
}

/// The zone that is held, else the cheapest with machines.
fn spot(snapshot: &TrainingSnapshot) -> Option<ZoneName> {
    if let TrainingChoice::Spot(zone) = &snapshot.held.at
        && snapshot.is_available(zone)
    {
        return Some(zone.clone());
    }
    let price = |(_, zone, _): &(&ZoneName, &SpotZone, Micros)| zone.price.amount().micros();
    let cheapest = snapshot.available().min_by_key(price);
    cheapest.map(|(name, ..)| name.clone())
}
