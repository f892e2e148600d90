mod batch;

use super::enter::{Ask, Entered};
use super::gate::Gate;
use super::prompt::Prompt;
use crate::answer::Problem;
use crate::sse::Usage;
use flyball_engines::Engine;
use flyball_fleet::{FleetEndpoint, Flight, FoundEngines};
use flyball_routing::fair::Class;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

fn endpoint(number: u16) -> Arc<FleetEndpoint> {
    Arc::new(FleetEndpoint::new(&FoundEngines {
        name: format!("engine-{number}"),
        address: ([127, 0, 0, 1], number).into(),
        uid: None,
        draining: false,
        engine: Engine::Vllm,
    }))
}

fn gate(engines: u16) -> (Arc<Gate>, Vec<Arc<FleetEndpoint>>) {
    let endpoints: Vec<_> = (1..=engines).map(endpoint).collect();
    let gate = Arc::new(Gate::new());
    gate.list(endpoints.clone());
    (gate, endpoints)
}

fn ask(caller: u64, prompt_tokens: u64) -> Ask {
    Ask {
        caller,
        weight: 1,
        class: Class::Normal,
        prompt: Prompt { tokens: prompt_tokens, uncached: prompt_tokens, ..Prompt::default() },
        most_output: Some(100),
        wait: Duration::from_secs(10),
        hold: None,
        again: Duration::from_mins(1),
        most_waiting: 100,
    }
}

/// Fills an engine's reading: two prompts of any length, and the rest must wait.
fn busy(endpoint: &Arc<FleetEndpoint>) -> [Flight; 2] {
    [0; 2].map(|_| Flight::begin(Arc::clone(endpoint), 50_000, 50_000, true, Instant::now()))
}

#[tokio::test]
async fn who_finds_room_passes_and_who_does_not_waits_for_it() {
    let (gate, engines) = gate(1);
    let (Entered::Now(first), false) = gate.enter(&ask(1, 100)).unwrap() else { panic!() };
    first.begun(&engines[0], 1_000);
    let mut flights = Vec::from(busy(&engines[0]));
    let (Entered::Waits(line), false) = gate.enter(&ask(1, 100)).unwrap() else { panic!() };
    assert_eq!((gate.waiting(), line.held), (1, false));
    flights.pop();
    drop(first);
    let turn = line.turn().await.unwrap();
    assert!(turn.allows(&engines[0], Instant::now()));
    assert_eq!(gate.waiting(), 0);
}

#[tokio::test]
async fn whoever_leaves_the_line_or_a_turn_leaves_nothing_behind() {
    let (gate, engines) = gate(1);
    let flights = busy(&engines[0]);
    let enter = |caller| match gate.enter(&ask(caller, 100)).unwrap().0 {
        Entered::Waits(line) => line,
        Entered::Now(_) => panic!("there is no room"),
    };
    let (gone, granted, last) = (enter(1), enter(2), enter(3));
    drop(gone);
    assert_eq!(gate.waiting(), 2);
    drop(flights);
    // Two can go: one engine, one grant at a time.
    gate.stir();
    assert_eq!(gate.waiting(), 1);
    // It hangs up before it has heard, and its grant goes to the next.
    drop(granted);
    assert_eq!(gate.waiting(), 0);
    drop(last.turn().await.unwrap());
    let Entered::Now(_) = gate.enter(&ask(1, 100)).unwrap().0 else { panic!("a grant leaked") };
}

#[tokio::test]
async fn a_model_without_engines_is_called_once_and_comes() {
    let (gate, _) = gate(0);
    assert!(matches!(gate.enter(&ask(1, 100)), Err(Problem::NoEndpoint)));
    let held = Ask { hold: Some(Duration::from_mins(5)), ..ask(1, 100) };
    let entered: Vec<_> = (0..50).map(|_| gate.enter(&held).unwrap()).collect();
    assert_eq!(entered.iter().filter(|(_, call)| *call).count(), 1);
    let demand = gate.demand("m");
    assert_eq!((demand.waiting, demand.held, demand.engines), (50, 50, 0));
    assert!(demand.waking);
    let engine = endpoint(1);
    gate.list(vec![Arc::clone(&engine)]);
    let mut turns = 0;
    for (entered, _) in entered {
        let Entered::Waits(line) = entered else { panic!("nothing to go to") };
        assert!(line.held);
        let turn = line.turn().await.unwrap();
        turn.begun(&engine, 1_000);
        turns += 1;
    }
    assert_eq!((turns, gate.waiting()), (50, 0));
    assert!(!gate.demand("m").waking);
}

#[tokio::test]
async fn too_many_and_too_late_are_told_so() {
    let (gate, engines) = gate(1);
    let _flights = busy(&engines[0]);
    let hasty = Ask { wait: Duration::ZERO, ..ask(1, 100) };
    let (Entered::Waits(line), _) = gate.enter(&hasty).unwrap() else { panic!() };
    gate.pulse(None, false);
    assert_eq!(line.turn().await.err(), Some(Problem::QueueTimeout));
    let few = Ask { most_waiting: 1, ..ask(1, 100) };
    let waits = gate.enter(&few).unwrap();
    assert!(matches!(gate.enter(&few), Err(Problem::QueueFull { .. })));
    gate.pulse(None, true);
    let (Entered::Waits(line), _) = waits else { panic!() };
    assert_eq!(line.turn().await.err(), Some(Problem::Draining));
}

#[tokio::test]
async fn a_caller_who_floods_keeps_to_its_engines_and_others_pass() {
    let (gate, engines) = gate(4);
    for caller in 2..6 {
        let Entered::Now(_) = gate.enter(&ask(caller, 1_000)).unwrap().0 else { panic!() };
    }
    let mut flights = Vec::new();
    let mut lines = Vec::new();
    for _ in 0..20 {
        match gate.enter(&ask(1, 50_000)).unwrap().0 {
            Entered::Now(turn) => {
                let engine = engines.iter().find(|e| turn.allows(e, Instant::now())).unwrap();
                flights.push(Flight::begin(
                    Arc::clone(engine),
                    50_000,
                    50_000,
                    true,
                    Instant::now(),
                ));
                turn.begun(engine, 1_000);
            }
            Entered::Waits(line) => lines.push(Box::pin(line.turn())),
        }
        // Whoever was told to go meanwhile goes.
        let mut waits = Vec::new();
        for mut line in lines {
            let Poll::Ready(turn) = futures::poll!(&mut line) else {
                waits.push(line);
                continue;
            };
            let turn = turn.unwrap();
            let engine = engines.iter().find(|e| turn.allows(e, Instant::now())).unwrap();
            flights.push(Flight::begin(Arc::clone(engine), 50_000, 50_000, true, Instant::now()));
            turn.begun(engine, 1_000);
        }
        lines = waits;
    }
    let touched = engines.iter().filter(|engine| engine.in_flight() > 0).count();
    assert!(touched <= 2, "one, and one that came before it was known as a flood");
    let waiting = gate.waiting();
    assert!(waiting > 10, "{waiting}");
    let Entered::Waits(other) = gate.enter(&ask(2, 1_000)).unwrap().0 else {
        panic!("somebody waits, so that the queue says who is next")
    };
    assert_eq!(gate.waiting(), waiting, "and it is the other caller");
    drop(other.turn().await.unwrap());
}

#[test]
fn what_was_spent_is_counted_and_teaches() {
    let (gate, _) = gate(1);
    let Entered::Now(turn) = gate.enter(&ask(1, 1_000)).unwrap().0 else { panic!() };
    turn.spend(Usage { input: 1_000, cached: Some(900), output: 10 }, Duration::from_secs(1));
    drop(turn);
    // 100 read, 10 written at 7, 1,005 held for a second at a 50th.
    assert_eq!(gate.demand("m").spent_cost, 100 + 70 + 20);
    assert_eq!(gate.demand("m").uncached_tokens, 1_000, "as it was thought when it came");
    let Entered::Now(_) = gate.enter(&ask(1, 1_000)).unwrap().0 else { panic!() };
    let next = gate.demand("m").uncached_tokens - 1_000;
    assert!((850..950).contains(&next), "a ninth of what was known is new: {next}");
}
