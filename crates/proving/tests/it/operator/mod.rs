//! A real gateway talks to a real operator's link over real sockets, in front of bare upstreams.

mod held;
mod quotas;
mod rig;
mod secured;
mod skew;
mod versions;

use flyball_operator::link::stream::{DrainMark, EndpointState, ModelOrders, Orders};
use flyball_operator::link::{Auth, GatewayReport};
use rig::{Gateway, Office, upstream};
use std::net::SocketAddr;
use std::time::Duration;

fn drain(address: SocketAddr) -> Orders {
    let mark = DrainMark { address: address.to_string(), ..DrainMark::default() };
    Orders { drains: vec![mark], ..Orders::default() }
}

fn for_model(model: ModelOrders) -> Orders {
    let model = ModelOrders { model: "mock".to_owned(), ..model };
    Orders { models: vec![model], ..Orders::default() }
}

/// Whether the gateway has nothing under way at a draining endpoint.
fn is_empty(report: &GatewayReport, address: SocketAddr) -> bool {
    report.endpoints.iter().any(|endpoint| {
        endpoint.address == address.to_string()
            && endpoint.state() == EndpointState::Draining
            && endpoint.in_flight == 0
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn demand_comes_up_and_a_drain_mark_lets_what_is_under_way_finish_and_nothing_new_come() {
    // Streams of eight seconds, so that they are under way for all that is done meanwhile.
    let pace = Duration::from_millis(100);
    let engines = [upstream(80, pace).await, upstream(80, pace).await];
    let office = Office::open(Auth::default()).await;
    let gateway = Gateway::start(&engines, office.address);
    let report = office.report(|report| report.reported_at.is_some()).await;
    assert_eq!((report.gateway.as_str(), report.version.as_str()), ("gateway-0", "1.2.3"));
    assert_eq!((report.models[0].model.as_str(), report.models[0].engines), ("mock", 2));
    assert_eq!((report.endpoints.len(), report.gone, report.orders), (2, false, 0));
    // Until one is under way at each.
    let mut under_way = Vec::new();
    let at = |endpoint: usize| gateway.in_flight(engines[endpoint]);
    while at(0) == 0 || at(1) == 0 {
        under_way.push(gateway.asks(true));
        assert!(under_way.len() < 100, "one engine gets nothing");
        while at(0) + at(1) < under_way.len() as u32 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let number = office.link.publish(drain(engines[0])).unwrap();
    office.report(|report| report.orders == number).await;
    let busy = at(0);
    assert!(busy > 0, "the streams are longer than this took");
    let new: Vec<_> = (0..20).map(|_| gateway.asks(false)).collect();
    for answer in new {
        assert_eq!(answer.await.unwrap(), 200);
    }
    // A listing does not undo it.
    gateway.list(&engines);
    assert_eq!(gateway.asks(false).await.unwrap(), 200);
    assert!(gateway.answered_by(engines[0], false) == 0, "nothing new comes");
    for answer in under_way {
        assert_eq!(answer.await.unwrap(), 200, "what was under way finishes");
    }
    // A client has its answer a moment before it is counted.
    while gateway.answered_by(engines[0], true) < busy as usize {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let report = office.report(|report| is_empty(report, engines[0])).await;
    assert!(report.models[0].arrived >= 21 && report.models[0].output_tokens > 0);
    let number = office.link.publish(Orders::default()).unwrap();
    office.report(|report| report.orders == number).await;
    while gateway.answered_by(engines[0], false) == 0 {
        assert_eq!(gateway.asks(false).await.unwrap(), 200);
    }
    gateway.has_no_errors();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operators_death_loses_nothing_and_its_return_is_noticed() {
    let engines = [upstream(4, Duration::ZERO).await, upstream(4, Duration::ZERO).await];
    let office = Office::open(Auth::default()).await;
    let address = office.address;
    let gateway = Gateway::start(&engines, address);
    let number = office.link.publish(drain(engines[0])).unwrap();
    office.report(|report| report.orders == number).await;
    assert!(!gateway.link.now().away);
    let asking = gateway.asks_on();
    office.dies().await;
    gateway.until(|now| now.away).await;
    assert_eq!(gateway.link.now().drained, 1, "what it said last holds");
    let office = Office::open_at(address, Auth::default()).await;
    let report = office.report(|report| report.reported_at.is_some()).await;
    assert_eq!(report.orders, 0);
    gateway.until(|now| !now.away).await;
    assert_eq!(gateway.link.now().drained, 1, "it has not said anything else yet");
    let before = office.report(|report| report.reported_at.is_some()).await.models[0].arrived;
    let number = office.link.publish(Orders::default()).unwrap();
    let report = office.report(|report| report.orders == number).await;
    assert_eq!((gateway.link.now().drained, report.gone), (0, false));
    let more = office.report(|report| report.models[0].arrived > before).await;
    assert_eq!(more.started, report.started, "sums go on");
    let answered = asking.stop().await;
    assert!(answered > 0, "{answered}");
    gateway.has_no_errors();
    let tries = gateway.link.now().tries;
    assert!(tries[0] >= 2, "{tries:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_arrives_once_and_its_promise_is_passed_on() {
    let office = Office::open(Auth::default()).await;
    let mut wakes = office.link.wakes();
    let gateway = Gateway::start(&[], office.address);
    office.report(|report| report.reported_at.is_some()).await;
    let held: Vec<_> = (0..5).map(|_| gateway.asks(true)).collect();
    wakes.changed().await.unwrap();
    assert!(wakes.borrow_and_update().iter().any(|public| public.name == "mock"));
    let eta = ModelOrders { wake_eta_ms: Some(77_000), ..ModelOrders::default() };
    let promised = std::time::Instant::now();
    office.link.publish(for_model(eta)).unwrap();
    let report = office.report(|report| report.orders == 1 && report.models[0].held == 5).await;
    assert!(report.models[0].waking && report.models[0].wake_calls == 1);
    // The promise counts down from when it came, and it cannot have come before it was sent. Three whole milliseconds
    // are cut off a fraction on the way: when it is sent, when it is read, and in the time measured here.
    let eta = gateway.running.demand()[0].eta_ms.unwrap();
    let since_ms = u64::try_from(promised.elapsed().as_millis()).unwrap();
    assert!((77_000u64.saturating_sub(since_ms + 3)..=77_000).contains(&eta), "{eta}, {since_ms}");
    // Reports that follow say the same, and nobody is called again.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(!wakes.has_changed().unwrap());
    gateway.list(&[upstream(4, Duration::ZERO).await]);
    for answer in held {
        assert_eq!(answer.await.unwrap(), 200);
    }
    wakes.wait_for(|waited_for| waited_for.is_empty()).await.unwrap();
    gateway.has_no_errors();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_judged_by_the_objectives_that_came() {
    let engine = upstream(5, Duration::from_millis(40)).await;
    let office = Office::open(Auth::default()).await;
    let gateway = Gateway::start(&[engine], office.address);
    assert_eq!(gateway.asks(true).await.unwrap(), 200);
    // By the first token: the engine waits 40 ms before it however late anybody is, while a slow machine
    // may hand on all tokens at once, with no time between them.
    for (first_token_ms, judged, missed) in [(Some(60_000), 1, 0), (Some(5), 2, 1)] {
        let between_tokens_ms = Some(60_000);
        let objectives =
            ModelOrders { first_token_ms, between_tokens_ms, ..ModelOrders::default() };
        let number = office.link.publish(for_model(objectives)).unwrap();
        office.report(|report| report.orders == number).await;
        assert_eq!(gateway.asks(true).await.unwrap(), 200);
        let report = office.report(|report| report.models[0].judged == judged).await;
        let model = &report.models[0];
        assert_eq!((model.missed, model.missed_first_token), (missed, missed));
        assert_eq!(model.missed_between_tokens, 0);
    }
    // Between tokens: asked until an answer comes as slowly as the engine sends it.
    let (first_token_ms, between_tokens_ms) = (Some(60_000), Some(5));
    let objectives = ModelOrders { first_token_ms, between_tokens_ms, ..ModelOrders::default() };
    let number = office.link.publish(for_model(objectives)).unwrap();
    office.report(|report| report.orders == number).await;
    for judged in 3.. {
        assert_eq!(gateway.asks(true).await.unwrap(), 200);
        let report = office.report(|report| report.models[0].judged == judged).await;
        let model = &report.models[0];
        assert_eq!(model.missed, 1 + model.missed_between_tokens);
        assert_eq!(model.missed_first_token, 1);
        if model.missed_between_tokens > 0 {
            break;
        }
    }
}
