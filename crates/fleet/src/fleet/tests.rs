use super::*;
use flyball_engines::Engine;
use proptest::prelude::*;
use std::time::Instant;

fn found(name: &str, uid: u8) -> FoundEngines {
    FoundEngines {
        name: format!("team/{name}"),
        address: ([10, 0, 0, 1], 8_000).into(),
        uid: Some(uid.to_string()),
        draining: false,
        engine: Engine::Vllm,
    }
}

fn listing(model: &str, found: Vec<FoundEngines>) -> Listing {
    Listing { models: [(model.to_owned(), found)].into() }
}

fn begin(endpoint: &Arc<FleetEndpoint>) -> Flight {
    Flight::begin(Arc::clone(endpoint), 10, 10, true, Instant::now())
}

#[test]
fn an_engine_that_leaves_and_comes_back_keeps_what_is_under_way() {
    let fleet = Fleet::default().after(&listing("m", vec![found("a", 1), found("b", 1)]));
    let before = Arc::clone(fleet.model("m").unwrap());
    let a = Arc::clone(&before.endpoints[0]);
    let flight = begin(&a);
    a.lose(true);
    a.quarantine(true);
    let without = fleet.after(&listing("m", vec![found("b", 1)]));
    let gone: Vec<_> = without.gone().map(|(model, gone)| (model, gone.in_flight())).collect();
    assert_eq!(gone, [("m", 1)]);
    assert_eq!(a.state(Millis(0)), EngineState::Gone);
    assert!(!a.is_open(), "also for those who still look at the fleet before");
    let again = without.after(&listing("m", vec![found("a", 1), found("b", 1)]));
    let returned = &again.model("m").unwrap().endpoints[0];
    assert!(Arc::ptr_eq(returned, &a));
    assert_eq!((returned.in_flight(), returned.is_open()), (1, true));
    assert_eq!(again.gone().count(), 0);
    drop(flight);
    assert_eq!(returned.in_flight(), 0);
}

#[test]
fn an_engine_is_gone_for_good_when_nobody_has_a_request_there() {
    let fleet = Fleet::default().after(&listing("m", vec![found("a", 1)]));
    let a = Arc::clone(fleet.endpoints().next().unwrap());
    let none = fleet.after(&Listing::default());
    // Somebody had chosen it and sends only now.
    assert_eq!(none.gone().count(), 0);
    let flight = begin(&a);
    assert_eq!(none.gone().count(), 1);
    drop((fleet, flight, a));
    assert_eq!(
        none.after(&Listing::default()).gone.iter().filter_map(|g| g.endpoint.upgrade()).count(),
        0
    );
    assert_eq!(none.after(&Listing::default()).gone.len(), 0);
}

proptest! {
    /// `GW-07`: whatever is listed in whatever order, every request is reported at its own pod, and no
    /// other.
    #[test]
    fn requests_are_reported_where_they_are_until_they_end(
        steps in prop::collection::vec((0_u8..3, 0_u8..8, 0_usize..8), 1..60),
    ) {
        let mut fleet = Fleet::default();
        let mut flights: Vec<(String, Flight)> = Vec::new();
        for (step, pods, which) in steps {
            match step {
                // Two names at one address, each with two lives.
                0 => {
                    let pod = |place: u8| found(["a", "b"][usize::from(place % 2)], place / 2);
                    let mut listed: Vec<_> =
                        (0..3).filter(|place| pods >> place & 1 == 1).map(pod).collect();
                    // One life at a time.
                    listed.dedup_by_key(|found| found.name.clone());
                    fleet = fleet.after(&listing("m", listed));
                }
                1 => {
                    let all: Vec<_> = fleet.endpoints().cloned().collect();
                    if let Some(one) = all.get(which) {
                        let pod = format!("{} {:?}", one.name, one.uid);
                        flights.push((pod, begin(one)));
                    }
                }
                _ if flights.is_empty() => {}
                _ => drop(flights.swap_remove(which % flights.len())),
            }
            let mut expected: BTreeMap<String, u32> = BTreeMap::new();
            flights.iter().for_each(|(pod, _)| *expected.entry(pod.clone()).or_default() += 1);
            let listed = fleet.endpoints().cloned();
            let all = listed.chain(fleet.gone().map(|(_, gone)| gone));
            let mut reported: BTreeMap<String, u32> = BTreeMap::new();
            for one in all.filter(|one| one.in_flight() > 0) {
                *reported.entry(format!("{} {:?}", one.name, one.uid)).or_default() += one.in_flight();
            }
            prop_assert_eq!(reported, expected);
            prop_assert!(fleet.gone().all(|(_, gone)| !gone.is_open()));
        }
    }
}
