//! The choice: the cheapest of what the deadline allows, with the reason and what each alternative would cost.

use crate::deadline;
use crate::hours::{hours, micros, per_hour};
use crate::interval;
use crate::lifetimes::{Lifetimes, class_of};
use crate::memory::{FAR_H, RunMemory};
use crate::outlook::{Now, Outlook, Place, Terms};
use crate::snapshot::{HeldMachine, TrainingChoice, TrainingSnapshot, ZoneName};
use flyball_core::units::{Micros, Money, Timestamp};
use std::fmt;

/// What a run should do, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingDecision {
    /// Where it should be.
    pub choice: TrainingChoice,
    /// Whether it should save now, before anything else: before it leaves its machines, or because only then it may stay.
    pub save_now: bool,
    /// How long to compute from one save to the next where it should be.
    pub save_every: Micros,
    /// Why.
    pub reason: TrainingReason,
    /// What finishing from here is expected to cost, by choice: the chosen one and every other that was allowed.
    pub candidates: Vec<(TrainingChoice, Money)>,
    /// When on-demand machines must be asked for at the latest, counted from the last save.
    pub latest_on_demand: Timestamp,
}

/// Why a run should be where it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrainingReason {
    /// No work is left.
    Finished,
    /// Not even on-demand machines can finish it in time.
    TooLate,
    /// Only on-demand machines are sure to finish it in time.
    DeadlineNear,
    /// It stays where it is: that is the cheapest, or leaving would cost more than it gains.
    Stays,
    /// Spot machines are the cheapest.
    SpotCheaper,
    /// Spot machines of another zone are so much cheaper or safer that they are worth the restart.
    ZoneBetter,
    /// Spot machines are expected soon enough, so that waiting costs less than on-demand.
    SpotExpected,
    /// On-demand costs less than to wait: slack is scarce, or spot machines are not expected soon or at all.
    OnDemandCheaper,
}

impl TrainingReason {
    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::Finished,
        Self::TooLate,
        Self::DeadlineNear,
        Self::Stays,
        Self::SpotCheaper,
        Self::ZoneBetter,
        Self::SpotExpected,
        Self::OnDemandCheaper,
    ];

    /// One sentence for people.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Finished => "No work is left.",
            Self::TooLate => "Even on-demand cannot finish in time; it ends the run soonest.",
            Self::DeadlineNear => "Only on-demand is sure to finish in time.",
            Self::Stays => "Any change would cost more than it saves.",
            Self::SpotCheaper => "Spot is the cheapest way to finish in time.",
            Self::ZoneBetter => "Another zone is cheaper or safer by more than a restart costs.",
            Self::SpotExpected => "Spot is expected back soon, and there is time to wait for it.",
            Self::OnDemandCheaper => "Slack is worth more than what waiting for spot would save.",
        }
    }
}

impl fmt::Display for TrainingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.summary())
    }
}

impl TrainingDecision {
    /// The decision in two sentences: what and why, then what else it could have done and how much slack there is.
    pub fn explain(&self, snapshot: &TrainingSnapshot) -> String {
        let costs = self.candidates.iter().map(|(choice, cost)| {
            let cents =
                Money::from_micros((cost.micros() + 5_000) / 10_000 * 10_000, cost.currency());
            format!("{choice} {cents}")
        });
        let slack = deadline::slack(snapshot).unwrap_or(Micros::ZERO);
        let save = if self.save_now { " Save first." } else { "" };
        format!(
            "{}: {}{save} Expected cost to finish: {}; slack {slack}.",
            self.choice,
            self.reason,
            costs.collect::<Vec<_>>().join(", "),
        )
    }
}

/// What to do about a run, and what was learnt from its zones.
///
/// `previous` is what was decided last: machines that it asked for and that are not there yet count as held, so that
/// deciding twice on one snapshot changes nothing.
pub fn decide(
    snapshot: &TrainingSnapshot,
    previous: Option<&TrainingDecision>,
    mut memory: RunMemory,
) -> (TrainingDecision, RunMemory) {
    memory.see(snapshot);
    let held = held(snapshot, previous);
    let (choice, reason, candidates) = choose(snapshot, &held, &mut memory);
    let leaves = choice != snapshot.held.at && snapshot.held.at != TrainingChoice::Wait;
    let there = has(snapshot, &snapshot.held.at);
    let save_now = there
        && !snapshot.unsaved.is_zero()
        && ((leaves && deadline::save_fits(snapshot)) || deadline::needs_save(snapshot));
    let save_every = match &choice {
        TrainingChoice::Spot(zone) => {
            let age = age_of(snapshot, zone);
            interval::spot(snapshot.save, &memory.lives(zone), age)
        }
        TrainingChoice::OnDemand | TrainingChoice::Wait => interval::on_demand(snapshot.save),
    };
    let decision = TrainingDecision {
        choice,
        save_now,
        save_every,
        reason,
        candidates,
        latest_on_demand: deadline::latest_request(snapshot),
    };
    (decision, memory)
}

/// The machines that the run has, or has asked for and will get.
fn held(snapshot: &TrainingSnapshot, previous: Option<&TrainingDecision>) -> HeldMachine {
    let requested =
        previous.map(|previous| &previous.choice).filter(|choice| **choice != snapshot.held.at);
    let held = match requested {
        Some(TrainingChoice::Wait) => HeldMachine::NONE,
        Some(choice) => HeldMachine { at: choice.clone(), ready_in: snapshot.restart },
        None => snapshot.held.clone(),
    };
    if has(snapshot, &held.at) { held } else { HeldMachine::NONE }
}

fn has(snapshot: &TrainingSnapshot, choice: &TrainingChoice) -> bool {
    match choice {
        TrainingChoice::Wait => false,
        TrainingChoice::Spot(zone) => snapshot.is_available(zone),
        TrainingChoice::OnDemand => true,
    }
}

type Chosen = (TrainingChoice, TrainingReason, Vec<(TrainingChoice, Money)>);

fn choose(snapshot: &TrainingSnapshot, held: &HeldMachine, memory: &mut RunMemory) -> Chosen {
    if snapshot.work_from_save().is_zero() {
        return (TrainingChoice::Wait, TrainingReason::Finished, Vec::new());
    }
    if snapshot.zones.is_empty() {
        return without_spot(snapshot, held);
    }
    let costs = Costs::new(snapshot, held, memory);
    let mut candidates = costs.candidates();
    // Held first, so that a tie changes nothing.
    candidates.sort_by(|(one, cost), (other, more)| {
        cost.total_cmp(more).then((*one != held.at).cmp(&(*other != held.at)))
    });
    let allowed: Vec<_> =
        candidates.into_iter().filter(|(choice, _)| deadline::allows(snapshot, choice)).collect();
    let only = allowed.len() == 1;
    let choice = allowed.first().map_or(TrainingChoice::OnDemand, |(choice, _)| choice.clone());
    let reason = match &choice {
        _ if deadline::slack(snapshot).is_none() && held.at != TrainingChoice::OnDemand => {
            TrainingReason::TooLate
        }
        TrainingChoice::OnDemand if only => TrainingReason::DeadlineNear,
        choice if *choice == held.at && held.at != TrainingChoice::Wait => TrainingReason::Stays,
        TrainingChoice::Spot(_) if matches!(held.at, TrainingChoice::Spot(_)) => {
            TrainingReason::ZoneBetter
        }
        TrainingChoice::Spot(_) => TrainingReason::SpotCheaper,
        TrainingChoice::Wait => TrainingReason::SpotExpected,
        TrainingChoice::OnDemand => TrainingReason::OnDemandCheaper,
    };
    let currency = snapshot.on_demand.amount().currency();
    let money = |cost: f64| Money::from_micros((cost * 1e6).round() as i64, currency);
    (choice, reason, allowed.into_iter().map(|(choice, cost)| (choice, money(cost))).collect())
}

/// A run that may use no spot machines has none to wait for.
fn without_spot(snapshot: &TrainingSnapshot, held: &HeldMachine) -> Chosen {
    let choice = TrainingChoice::OnDemand;
    let is_held = held.at == choice;
    let reason = match deadline::slack(snapshot) {
        None if !is_held => TrainingReason::TooLate,
        slack if slack.is_none_or(|slack| slack < snapshot.tick) => TrainingReason::DeadlineNear,
        _ if is_held => TrainingReason::Stays,
        _ => TrainingReason::OnDemandCheaper,
    };
    let start = if is_held { held.ready_in } else { snapshot.restart };
    let time = deadline::on_demand_time(snapshot.work_left, snapshot.save).saturating_add(start);
    let price = per_hour(snapshot.on_demand, snapshot.gpus);
    let currency = snapshot.on_demand.amount().currency();
    let cost = Money::from_micros((price * hours(time) * 1e6).round() as i64, currency);
    (choice.clone(), reason, vec![(choice, cost)])
}

/// What each choice is expected to cost.
struct Costs<'a> {
    snapshot: &'a TrainingSnapshot,
    held: &'a HeldMachine,
    memory: &'a RunMemory,
    outlook: &'a Outlook,
    time: f64,
    work: f64,
}

impl<'a> Costs<'a> {
    fn new(
        snapshot: &'a TrainingSnapshot,
        held: &'a HeldMachine,
        memory: &'a mut RunMemory,
    ) -> Self {
        let (time, work) = (hours(snapshot.time_left()), hours(snapshot.work_left));
        let terms = terms(snapshot, memory);
        if !memory.outlook.as_ref().is_some_and(|outlook| still_good(outlook, &terms, time)) {
            memory.outlook = Some(Outlook::new(terms, time.max(hours(snapshot.tick)), work));
        }
        let memory = &*memory;
        let outlook = memory.outlook.as_ref().expect("it was just put there");
        Self { snapshot, held, memory, outlook, time, work }
    }

    fn candidates(&self) -> Vec<(TrainingChoice, f64)> {
        let wait = self.cost(Place::Nowhere, self.market_age(), 0.0);
        let debt = self.debt(&TrainingChoice::OnDemand);
        let on_demand = self.cost(Place::OnDemand, self.market_age(), debt);
        let mut all = vec![(TrainingChoice::Wait, wait), (TrainingChoice::OnDemand, on_demand)];
        let spots = self.snapshot.available().map(|(zone, of, _)| (self.spot(zone), zone, of));
        let spots: Vec<_> = spots.collect();
        // Where even the best zone is worse than usual, it still is when the run has waited or was on demand for a while:
        // counted against spot alone, it would wait for days beside machines that it could have.
        let cheap = spots.iter().filter(|(_, _, of)| self.snapshot.is_cheap(of));
        let least = cheap.map(|((_, worse), ..)| *worse).min_by(f64::total_cmp);
        let least = least.unwrap_or(0.0).max(0.0);
        let mut spots: Vec<(f64, &ZoneName)> =
            spots.iter().map(|((usual, worse), zone, _)| (usual + worse - least, *zone)).collect();
        spots.sort_by(|(cost, zone), (more, other)| cost.total_cmp(more).then(zone.cmp(other)));
        let is_held = |zone: &ZoneName| self.held.at == TrainingChoice::Spot(zone.clone());
        let shown =
            spots.iter().enumerate().filter(|(place, (_, zone))| *place == 0 || is_held(zone));
        all.extend(shown.map(|(_, (cost, zone))| (TrainingChoice::Spot((*zone).clone()), *cost)));
        all
    }

    /// How much of a restart is still to be waited for there. The save before leaving is left out: it is the same whatever
    /// comes after it, waiting included.
    fn debt(&self, choice: &TrainingChoice) -> f64 {
        let is_held = self.held.at == *choice;
        hours(if is_held { self.held.ready_in } else { self.snapshot.restart })
    }

    fn cost(&self, place: Place, age: usize, debt: f64) -> f64 {
        let slack = deadline::slack(self.snapshot).unwrap_or(Micros::ZERO);
        let longest = hours(slack.max(self.snapshot.tick));
        let up = self.snapshot.available_cheaply().next().is_some();
        self.outlook.cost(self.time, self.work, Now { up, age, longest }, place, debt)
    }

    /// The market's class of age: of the oldest machines that can be had, or of their absence. It does not depend on what
    /// is held, so that asking twice answers the same.
    fn market_age(&self) -> usize {
        let oldest = self.snapshot.available_cheaply().map(|(_, _, age)| age).max();
        class_of(hours(oldest.unwrap_or_else(|| self.memory.none_for(self.snapshot.now))))
    }

    /// In this zone: what it costs on usual machines of this age, and what it costs more because these are dearer or last
    /// shorter.
    fn spot(&self, zone: &ZoneName) -> (f64, f64) {
        let age = hours(age_of(self.snapshot, zone));
        let class = class_of(age);
        let choice = TrainingChoice::Spot(zone.clone());
        let usual = self.cost(Place::Spot, class, self.debt(&choice));
        let restart = self.outlook.restart_cost(self.time, self.work, class);
        let mean = |lives: &Lifetimes| lives.expected_h(age, FAR_H);
        let (own, all) = (mean(&self.memory.lives(zone)), mean(&self.outlook.terms.up));
        let price = per_hour(self.snapshot.zones[zone].price, self.snapshot.gpus);
        let dearer = price - self.outlook.terms.spot + restart * (1.0 / own - 1.0 / all);
        (usual, dearer * own.min(self.work))
    }
}

fn age_of(snapshot: &TrainingSnapshot, zone: &ZoneName) -> Micros {
    let zone = snapshot.zones.get(zone);
    zone.and_then(|zone| zone.available_for(snapshot.now)).unwrap_or(Micros::ZERO)
}

fn terms(snapshot: &TrainingSnapshot, memory: &RunMemory) -> Terms {
    let on_demand = per_hour(snapshot.on_demand, snapshot.gpus);
    let (save, every) = (hours(snapshot.save), hours(usual_interval(snapshot, memory)));
    let useful = if every > 0.0 { every / (every + save) } else { 1.0 };
    let usual = memory.usual(snapshot, on_demand * hours(snapshot.restart));
    Terms {
        on_demand,
        spot: usual.price,
        restart: hours(snapshot.restart),
        useful,
        lost: every / 2.0,
        up: usual.lives,
        none: memory.none_lives(snapshot),
        elsewhere: memory.elsewhere(snapshot),
    }
}

/// The interval of machines that are an hour old, in the middle of what a run sees.
fn usual_interval(snapshot: &TrainingSnapshot, memory: &RunMemory) -> Micros {
    interval::spot(snapshot.save, &memory.all, micros(1.0))
}

/// Whether what was worked out still holds: prices as they were, and not so much later that its steps are too coarse.
fn still_good(outlook: &Outlook, terms: &Terms, time: f64) -> bool {
    let near = |one: f64, other: f64| (one - other).abs() <= 0.02 * other.abs();
    near(terms.on_demand, outlook.terms.on_demand)
        && near(terms.spot, outlook.terms.spot)
        && near(terms.restart, outlook.terms.restart)
        && time <= outlook.time
        && time >= 0.75 * outlook.time
}
