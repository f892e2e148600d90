//! Batch requests at the gate.

use super::*;
use crate::admit::{InLine, Turn};
use futures::task::noop_waker_ref;
use std::task::Context;

/// An engine that never reported, which is taken to bear four.
const BEARS: usize = 4;

fn batch(caller: u64) -> Ask {
    Ask { class: Class::Batch, ..ask(caller, 100) }
}

fn now(gate: &Arc<Gate>, ask: &Ask) -> Box<Turn> {
    match gate.enter(ask).unwrap() {
        (Entered::Now(turn), false) => turn,
        other => panic!("{other:?}"),
    }
}

fn line(gate: &Arc<Gate>, ask: &Ask) -> InLine {
    match gate.enter(ask).unwrap() {
        (Entered::Waits(line), false) => line,
        other => panic!("{other:?}"),
    }
}

/// At an engine, with its prompt read.
struct At {
    /// Gone before the turn is, as in the gateway: the turn's end lets in who finds room then.
    flight: Flight,
    turn: Box<Turn>,
}

fn at(engine: &Arc<FleetEndpoint>, turn: Box<Turn>) -> At {
    let mut flight = Flight::begin(Arc::clone(engine), 100, 100, true, Instant::now());
    turn.begun(engine, 100);
    flight.has_read();
    turn.writes();
    At { flight, turn }
}

fn signalled(at: &At) -> bool {
    at.turn.poll_make_room(&Context::from_waker(noop_waker_ref())).is_ready()
}

#[tokio::test]
async fn batch_leaves_head_room_and_waits_while_anybody_else_does() {
    let (gate, engines) = gate(1);
    let mut running: Vec<At> = Vec::new();
    for _ in 0..BEARS - 1 {
        running.push(at(&engines[0], now(&gate, &batch(1))));
    }
    let waits = line(&gate, &batch(1));
    assert_eq!((gate.waiting(), gate.demand("m").waiting), (1, 0), "batch is no demand");
    assert_eq!((gate.demand("m").batch_waiting, gate.demand("m").batch_running), (1, 3));
    assert_eq!((gate.demand("m").in_flight, gate.demand("m").arrived), (0, 0));
    // Somebody else passes it, and has the place that was kept.
    let other = at(&engines[0], now(&gate, &ask(2, 100)));
    running.pop();
    gate.stir();
    assert_eq!(gate.waiting(), 1, "its head-room is in use");
    drop(other);
    let turn = waits.turn().await.unwrap();
    assert!(turn.is_batch() && turn.allows(&engines[0], Instant::now()));
    drop((turn, running));
    assert_eq!((gate.demand("m").batch_running, gate.demand("m").in_flight), (0, 0));
}

#[tokio::test]
async fn who_comes_to_a_full_engine_has_the_place_of_the_batch_that_loses_least() {
    let (gate, engines) = gate(1);
    let mut running: Vec<At> = (0..3).map(|_| at(&engines[0], now(&gate, &batch(1)))).collect();
    running[0].turn.wrote(900);
    running[2].turn.wrote(500);
    let fourth = at(&engines[0], now(&gate, &ask(2, 100)));
    assert!(!running.iter().any(signalled), "there was room for it");
    let fifth = at(&engines[0], now(&gate, &ask(2, 100)));
    assert_eq!(running.iter().map(signalled).collect::<Vec<_>>(), [false, true, false]);
    let At { turn, flight } = running.remove(1);
    drop(flight);
    let waits = turn.again();
    assert_eq!((gate.demand("m").batch_waiting, gate.demand("m").batch_running), (1, 2));
    // Before what its caller has in line; and where that is all that waits, nobody is told to go.
    let later = line(&gate, &batch(1));
    assert!(!running.iter().any(signalled));
    drop((fourth, fifth, running));
    let again = waits.turn().await.unwrap();
    assert_eq!(again.made_room(), 1);
    drop(again);
    drop(later.turn().await.unwrap());
    assert_eq!(gate.waiting(), 0);
}

#[tokio::test]
async fn who_finds_no_place_is_let_in_by_as_many_batch_requests() {
    let (gate, engines) = gate(1);
    let running: Vec<At> = (0..2).map(|_| at(&engines[0], now(&gate, &batch(1)))).collect();
    let window = engines[0].window() as usize;
    let _others: Vec<Flight> = (0..window - 2)
        .map(|_| {
            let mut flight = Flight::begin(Arc::clone(&engines[0]), 1, 1, true, Instant::now());
            flight.has_read();
            flight
        })
        .collect();
    let first = line(&gate, &ask(2, 100));
    assert_eq!(running.iter().filter(|one| signalled(one)).count(), 1);
    gate.pulse(None, false);
    assert_eq!(running.iter().filter(|one| signalled(one)).count(), 1, "one for one");
    let second = line(&gate, &ask(2, 100));
    assert_eq!(running.iter().filter(|one| signalled(one)).count(), 2);
    let waits: Vec<InLine> = running
        .into_iter()
        .map(|At { turn, flight }| {
            drop(flight);
            turn.again()
        })
        .collect();
    for line in [first, second] {
        drop(line.turn().await.unwrap());
    }
    drop(waits);
    assert_eq!(gate.waiting(), 0);
}

#[tokio::test]
async fn a_long_prompt_of_batch_is_not_read_while_others_come() {
    let (gate, engines) = gate(1);
    let long = Ask { prompt: Prompt { tokens: 50_000, ..Prompt::default() }, ..batch(1) };
    let (turn, engine) = (now(&gate, &long), &engines[0]);
    let flight = Flight::begin(Arc::clone(engine), 50_000, 1, true, Instant::now());
    turn.begun(engine, 50_000);
    let reads = At { flight, turn };
    let second = line(&gate, &batch(1));
    assert!(!signalled(&reads), "batch does not make room for batch");
    let _other = at(engine, now(&gate, &ask(2, 100)));
    assert!(signalled(&reads));
    drop((reads, second));
    assert_eq!(gate.waiting(), 0);
}

#[tokio::test]
async fn batch_is_bounded_in_number_and_in_time_and_keeps_nobody_else_out() {
    let (gate, engines) = gate(1);
    let _running: Vec<At> = (0..3).map(|_| at(&engines[0], now(&gate, &batch(1)))).collect();
    let few = Ask { most_waiting: 1, wait: Duration::ZERO, ..batch(1) };
    let waits = line(&gate, &few);
    assert!(matches!(gate.enter(&few), Err(Problem::QueueFull { .. })));
    drop(now(&gate, &Ask { most_waiting: 0, ..ask(2, 100) }));
    gate.pulse(None, false);
    assert!(matches!(waits.turn().await, Err(Problem::NoIdleCapacity { .. })));
    assert_eq!(gate.demand("m").shed, 0);
    // A model without engines is not woken for it, and is for others.
    gate.list(Vec::new());
    let held = Some(Duration::from_mins(5));
    let asleep = line(&gate, &Ask { hold: held, ..batch(1) });
    assert!(!asleep.held && !gate.pulse(Some(Duration::ZERO), false));
    let (entered, call) = gate.enter(&Ask { hold: held, ..ask(2, 100) }).unwrap();
    assert!(call && matches!(entered, Entered::Waits(line) if line.held));
}
