//! What must hold of every decision, in random zones and under the worst that can happen.

use flyball_core::units::{Currency, Gpus, Micros, Money, Price, Timestamp};
use flyball_training::{
    HeldMachine, RunMemory, SpotState, SpotZone, TrainingChoice, TrainingReason, TrainingSnapshot,
    ZoneName, deadline, decide, invariants,
};
use proptest::prelude::*;

const STEP: Micros = Micros::from_minutes(5);

fn usd(cents: i64) -> Price {
    Price::per_gpu_hour(Money::from_micros(cents * 10_000, Currency::USD)).expect("a price")
}

fn at(minutes: u64) -> Timestamp {
    Timestamp::default().saturating_add(Micros::from_minutes(minutes))
}

/// A run without machines, with spot machines in these zones.
fn snapshot(work_min: u64, time_min: u64, zones: &[(&str, bool)]) -> TrainingSnapshot {
    let now = at(100_000);
    let zone = |(name, there): &(&str, bool)| {
        let since = at(100_000 - 60);
        let state =
            if *there { SpotState::Available(since) } else { SpotState::Unavailable(since) };
        (ZoneName::new(name), SpotZone { price: usd(95), state })
    };
    TrainingSnapshot {
        now,
        deadline: now.saturating_add(Micros::from_minutes(time_min)),
        work_left: Micros::from_minutes(work_min),
        unsaved: Micros::ZERO,
        restart: Micros::from_minutes(13),
        save: Micros::from_seconds(30),
        tick: STEP,
        gpus: Gpus::new(8),
        on_demand: usd(306),
        held: HeldMachine::NONE,
        zones: zones.iter().map(zone).collect(),
    }
}

fn decided(snapshot: &TrainingSnapshot) -> (TrainingChoice, TrainingReason) {
    let (decision, _) = decide(snapshot, None, RunMemory::default());
    assert_eq!(invariants::broken(snapshot, &decision), [""; 0], "{decision:?}");
    (decision.choice, decision.reason)
}

#[test]
fn spot_is_taken_where_there_is_some_and_time() {
    let a = ZoneName::new("a");
    let snapshot = snapshot(1_000, 2_000, &[("a", true), ("b", false)]);
    assert_eq!(decided(&snapshot), (TrainingChoice::Spot(a), TrainingReason::SpotCheaper));
}

#[test]
fn with_much_slack_it_waits_and_with_none_it_does_not() {
    let roomy = snapshot(1_000, 6_000, &[("a", false)]);
    assert_eq!(decided(&roomy), (TrainingChoice::Wait, TrainingReason::SpotExpected));
    // Work, a restart, the last save, and less than a step.
    let tight = snapshot(1_000, 1_016, &[("a", true)]);
    assert_eq!(decided(&tight), (TrainingChoice::OnDemand, TrainingReason::DeadlineNear));
    let late = snapshot(1_000, 1_005, &[("a", true)]);
    assert_eq!(decided(&late), (TrainingChoice::OnDemand, TrainingReason::TooLate));
    let done = snapshot(0, 10, &[("a", true)]);
    assert_eq!(decided(&done), (TrainingChoice::Wait, TrainingReason::Finished));
}

#[test]
fn a_zone_of_which_nothing_is_known_is_not_used() {
    let mut snapshot = snapshot(1_000, 2_000, &[("a", true)]);
    for zone in snapshot.zones.values_mut() {
        zone.state = SpotState::Unknown;
    }
    assert!(!matches!(decided(&snapshot).0, TrainingChoice::Spot(_)));
}

#[test]
fn without_zones_there_is_nothing_to_wait_for_however_much_time_there_is() {
    let mut roomy = snapshot(1_000, 6_000, &[]);
    assert_eq!(decided(&roomy), (TrainingChoice::OnDemand, TrainingReason::OnDemandCheaper));
    let (decision, _) = decide(&roomy, None, RunMemory::default());
    // 1,000 minutes of work, 13 of a restart, and saves of 30 s every four hours, at 24.48 an hour.
    let [(TrainingChoice::OnDemand, cost)] = decision.candidates[..] else {
        panic!("{decision:?}")
    };
    assert_eq!((cost.micros() + 5_000) / 10_000, 41_432);
    // Held machines of a kind that it may not use are left for those.
    roomy.held =
        HeldMachine { at: TrainingChoice::Spot(ZoneName::new("a")), ready_in: Micros::ZERO };
    roomy.unsaved = Micros::from_minutes(9);
    let (decision, _) = decide(&roomy, None, RunMemory::default());
    assert_eq!(decision.choice, TrainingChoice::OnDemand);
    roomy.held = HeldMachine { at: TrainingChoice::OnDemand, ready_in: Micros::ZERO };
    assert_eq!(decided(&roomy), (TrainingChoice::OnDemand, TrainingReason::Stays));
    let tight = snapshot(1_000, 1_016, &[]);
    assert_eq!(decided(&tight), (TrainingChoice::OnDemand, TrainingReason::DeadlineNear));
    let late = snapshot(1_000, 1_005, &[]);
    assert_eq!(decided(&late), (TrainingChoice::OnDemand, TrainingReason::TooLate));
    let done = snapshot(0, 10, &[]);
    assert_eq!(decided(&done), (TrainingChoice::Wait, TrainingReason::Finished));
}

#[test]
fn it_saves_when_only_that_lets_it_stay() {
    let mut snapshot = snapshot(1_000, 1_060, &[("a", true)]);
    snapshot.held =
        HeldMachine { at: TrainingChoice::Spot(ZoneName::new("a")), ready_in: Micros::ZERO };
    snapshot.unsaved = Micros::from_minutes(38);
    let (decision, _) = decide(&snapshot, None, RunMemory::default());
    assert_eq!(decision.choice, snapshot.held.at);
    assert!(decision.save_now, "{decision:?}");
}

/// Once it saved at every step there, which took more time than was left.
#[test]
fn on_demand_machines_do_not_save_more_often_because_time_is_short() {
    let mut snapshot = snapshot(1_000, 1_010, &[("a", false)]);
    snapshot.held = HeldMachine { at: TrainingChoice::OnDemand, ready_in: Micros::ZERO };
    snapshot.unsaved = Micros::from_minutes(38);
    let (decision, _) = decide(&snapshot, None, RunMemory::default());
    assert_eq!((decision.choice, decision.save_now), (TrainingChoice::OnDemand, false));
}

#[test]
fn the_explanation_says_what_why_and_what_else() {
    let snapshot = snapshot(1_000, 2_000, &[("a", true)]);
    let (decision, _) = decide(&snapshot, None, RunMemory::default());
    let text = decision.explain(&snapshot);
    assert!(text.starts_with("spot in a: Spot is the cheapest way to finish in time."), "{text}");
    assert!(text.contains("on-demand ") && text.contains("slack 16 h"), "{text}");
}

/// Minutes of a made-up world, with all that a decision may do to a run.
struct World {
    snapshot: TrainingSnapshot,
    memory: RunMemory,
    /// What is left of a save.
    saving: Micros,
    ended: Option<Timestamp>,
}

impl World {
    /// A step under the worst that may happen: nothing that is not saved survives it if machines are reclaimed.
    fn step(&mut self, there: &[bool]) {
        let snapshot = &mut self.snapshot;
        let names: Vec<ZoneName> = snapshot.zones.keys().cloned().collect();
        for (name, there) in names.iter().zip(there) {
            let zone = snapshot.zones.get_mut(name).expect("a zone");
            zone.state = match (zone.state, there) {
                (SpotState::Available(since), true) => SpotState::Available(since),
                (SpotState::Unavailable(since), false) => SpotState::Unavailable(since),
                (_, true) => SpotState::Available(snapshot.now),
                (_, false) => SpotState::Unavailable(snapshot.now),
            };
        }
        if let TrainingChoice::Spot(zone) = &snapshot.held.at
            && !snapshot.is_available(zone)
        {
            snapshot.work_left = snapshot.work_from_save();
            snapshot.unsaved = Micros::ZERO;
            snapshot.held = HeldMachine::NONE;
            self.saving = Micros::ZERO;
        }
        let (decision, memory) = decide(snapshot, None, std::mem::take(&mut self.memory));
        assert_eq!(invariants::broken(snapshot, &decision), [""; 0], "{snapshot:?} {decision:?}");
        let (again, memory) = decide(snapshot, Some(&decision), memory);
        assert_eq!(again.choice, decision.choice, "asked twice: {snapshot:?}");
        self.memory = memory;
        if decision.choice != snapshot.held.at {
            let mut ready_in = snapshot.restart;
            if decision.save_now {
                snapshot.unsaved = Micros::ZERO;
                ready_in = ready_in.saturating_add(snapshot.save);
            }
            snapshot.work_left = snapshot.work_from_save();
            snapshot.unsaved = Micros::ZERO;
            self.saving = Micros::ZERO;
            snapshot.held = match decision.choice {
                TrainingChoice::Wait => HeldMachine::NONE,
                at => HeldMachine { at, ready_in },
            };
        } else if decision.save_now && self.saving.is_zero() {
            self.saving = snapshot.save;
        }
        self.pass(decision.save_every);
    }

    /// Five minutes of starting, saving and computing.
    fn pass(&mut self, save_every: Micros) {
        let snapshot = &mut self.snapshot;
        let end = snapshot.now.saturating_add(STEP);
        let mut left = if snapshot.held.at == TrainingChoice::Wait { Micros::ZERO } else { STEP };
        while !left.is_zero() && self.ended.is_none() {
            let now = end.saturating_sub(left);
            let part = if !snapshot.held.ready_in.is_zero() {
                let part = snapshot.held.ready_in.min(left);
                snapshot.held.ready_in = snapshot.held.ready_in.saturating_sub(part);
                part
            } else if !self.saving.is_zero() {
                let part = self.saving.min(left);
                self.saving = self.saving.saturating_sub(part);
                if self.saving.is_zero() {
                    snapshot.unsaved = Micros::ZERO;
                }
                part
            } else if snapshot.work_from_save().is_zero() {
                self.ended = Some(now);
                Micros::ZERO
            } else if snapshot.work_left.is_zero() || snapshot.unsaved >= save_every {
                self.saving = snapshot.save;
                if snapshot.save.is_zero() {
                    snapshot.unsaved = Micros::ZERO;
                    let part = snapshot.work_left.min(left);
                    snapshot.work_left = snapshot.work_left.saturating_sub(part);
                    part
                } else {
                    Micros::ZERO
                }
            } else {
                let part = snapshot.work_left.min(save_every.saturating_sub(snapshot.unsaved));
                let part = part.min(left);
                snapshot.work_left = snapshot.work_left.saturating_sub(part);
                snapshot.unsaved = snapshot.unsaved.saturating_add(part);
                part
            };
            left = left.saturating_sub(part);
        }
        if snapshot.work_from_save().is_zero() {
            self.ended = self.ended.or(Some(end));
        }
        snapshot.now = end;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Availability may do whatever it likes, also end each time a restart has just been paid.
    #[test]
    fn no_run_is_late_that_could_be_in_time_at_its_start(
        work in 60u64..600,
        spare in 0u64..400,
        save in 0u64..120,
        changes in prop::collection::vec((any::<bool>(), any::<bool>(), 1usize..20), 1..60),
    ) {
        let mut first = snapshot(work, 0, &[("a", false), ("b", false)]);
        first.save = Micros::from_seconds(save);
        let need = deadline::on_demand_from_request(&first, first.work_left);
        first.deadline = first.now.saturating_add(need).saturating_add(Micros::from_minutes(spare));
        let steps: Vec<[bool; 2]> = changes
            .iter()
            .flat_map(|(a, b, length)| std::iter::repeat_n([*a, *b], *length))
            .collect();
        let (memory, saving) = (RunMemory::default(), Micros::ZERO);
        let mut world = World { snapshot: first, memory, saving, ended: None };
        for step in 0.. {
            world.step(&steps[step % steps.len()]);
            if let Some(ended) = world.ended {
                prop_assert!(ended <= world.snapshot.deadline, "{ended} {:?}", world.snapshot);
                break;
            }
            prop_assert!(world.snapshot.now <= world.snapshot.deadline, "{:?}", world.snapshot);
        }
    }

    #[test]
    fn a_decision_is_a_function_of_what_it_is_given(
        work in 10u64..5_000,
        time in 0u64..9_000,
        unsaved in 0u64..60,
        held in 0usize..4,
        a in any::<bool>(),
        b in any::<bool>(),
    ) {
        let mut snapshot = snapshot(work, time, &[("a", a), ("b", b)]);
        let places = [
            TrainingChoice::Wait,
            TrainingChoice::OnDemand,
            TrainingChoice::Spot(ZoneName::new("a")),
            TrainingChoice::Spot(ZoneName::new("b")),
        ];
        let there = |choice: &TrainingChoice| match choice {
            TrainingChoice::Spot(zone) => snapshot.is_available(zone),
            choice => *choice != TrainingChoice::Wait,
        };
        if there(&places[held]) {
            snapshot.held = HeldMachine { at: places[held].clone(), ready_in: Micros::ZERO };
            snapshot.unsaved = Micros::from_minutes(unsaved);
        }
        let one = decide(&snapshot, None, RunMemory::default());
        let other = decide(&snapshot, None, RunMemory::default());
        prop_assert_eq!(&one, &other);
        prop_assert_eq!(invariants::broken(&snapshot, &one.0), [""; 0]);
        let (again, _) = decide(&snapshot, Some(&one.0), one.1);
        prop_assert_eq!(again.choice, one.0.choice);
    }
}
