//! What goes wrong shows as it should, and nowhere else.

use super::*;
use flyball_core::snapshot::Freshness;

fn with(fault: Fault) -> Setup {
    let mut setup = small(vec![TrafficStage::level(1.0, 600.0)]);
    setup.faults = vec![fault];
    setup
}

fn readings(fault: Fault) -> Script {
    let mut script = Script::new(&[]);
    play(&with(fault), &mut script);
    script
}

#[test]
fn no_node_comes_in_a_stock_out_and_one_comes_after_it() {
    let fault = Fault::StockOut { pool: 0, during: Seconds(50.0)..Seconds(300.0) };
    let run = play(&with(fault), &mut Script::new(&[(10.0, 3)]));
    assert_eq!(counts(&run, 299.0), [1, 0, 2, 0]);
    assert_eq!(counts(&run, 341.0), [0, 0, 3, 0]);
}

#[test]
fn stock_limits_the_nodes_there_can_be() {
    let mut setup = small(vec![]);
    setup.pools[0].stock = vec![(Seconds(0.0), 2), (Seconds(400.0), 9)];
    let run = play(&setup, &mut Script::new(&[(0.0, 6)]));
    assert_eq!(counts(&run, 399.0), [2, 0, 4, 0]);
    assert_eq!(counts(&run, 441.0), [0, 0, 6, 0]);
}

#[test]
fn with_notice_requests_end_and_the_replica_is_replaced() {
    let fault = Fault::Reclaim { pool: 0, at: Seconds(100.0), nodes: 1, notice: Seconds(120.0) };
    let run = play(&with(fault), &mut Script::new(&[]));
    assert_eq!(run.outcome.models[0].killed, 0.0);
    // It ends its requests within seconds; a new node takes 100 s and the start 40 s.
    assert_eq!(counts(&run, 110.0), [1, 0, 0, 0]);
    assert_eq!(counts(&run, 241.0), [0, 0, 1, 0]);
    // From 100 s to 240 s nobody serves, and the first 20 s wait longer than they are held. Then
    // 120 requests come at once, of which 32 run at a time for about a second.
    let late = |from: f64, to: f64| {
        let all = run.histories[0].answers.iter();
        all.filter(|(at, missed)| *missed && (from..to).contains(&at.get())).count()
    };
    assert_eq!((late(0.0, 100.0), late(100.0, 239.0), late(245.0, 600.0)), (0, 139, 0));
}

#[test]
fn without_notice_what_runs_is_killed() {
    // A request is inside whenever one comes each second and takes a second and a little.
    let fault = Fault::NodeLoss { pool: 0, at: Seconds(100.0), nodes: 1 };
    let run = play(&with(fault), &mut Script::new(&[]));
    assert_eq!(run.outcome.models[0].killed, 1.0);
    assert_eq!(counts(&run, 241.0), [0, 0, 1, 0]);
}

#[test]
fn what_gets_its_node_in_bad_starts_never_serves_and_what_comes_later_does() {
    let fault = Fault::BadStarts { pool: 0, during: Seconds(50.0)..Seconds(300.0) };
    let run = play(&with(fault), &mut Script::new(&[(10.0, 3), (400.0, 4)]));
    assert_eq!(counts(&run, 399.0), [0, 1, 2, 0], "a node came at 110 s with room for one");
    assert_eq!(counts(&run, 599.0), [0, 1, 3, 0]);
}

#[test]
fn stale_metrics_keep_their_old_time_and_come_back() {
    let script = readings(Fault::StaleMetrics { during: Seconds(100.0)..Seconds(300.0) });
    let at = |now: f64| script.readings.iter().position(|(at, _)| at.get() == now).unwrap();
    assert_eq!(script.readings[at(290.0)].1.at, Seconds(95.0));
    assert!(script.readings[at(310.0)].1.at >= Seconds(300.0));
    let freshness =
        |now| script.snapshots[at(now)].models.values().next().unwrap().demand.freshness();
    // Stale a minute after 95 s.
    assert_eq!(freshness(150.0), Freshness::Fresh);
    assert_eq!(freshness(160.0), Freshness::Stale);
    assert_eq!(freshness(310.0), Freshness::Fresh);
}

#[test]
fn missing_metrics_have_no_value_and_nan_is_one_that_decides_nothing() {
    let during = Seconds(100.0)..Seconds(300.0);
    let missing = readings(Fault::MissingMetrics { during: during.clone() });
    let nan = readings(Fault::NotANumber { during });
    let at = |script: &Script, now: f64| {
        let place = script.readings.iter().position(|(at, _)| at.get() == now).unwrap();
        let demand = script.snapshots[place].models.values().next().unwrap().demand;
        (script.readings[place].1.waiting, demand.freshness())
    };
    assert_eq!(at(&missing, 200.0), (None, Freshness::Missing));
    let (waiting, freshness) = at(&nan, 200.0);
    assert!(waiting.unwrap().is_nan());
    assert_eq!(freshness, Freshness::Missing);
    for script in [&missing, &nan] {
        assert_eq!(at(script, 90.0), (Some(0.0), Freshness::Fresh));
        assert_eq!(at(script, 310.0), (Some(0.0), Freshness::Fresh));
    }
}

#[test]
fn a_clock_that_jumps_makes_fresh_signals_look_old_and_the_world_goes_on() {
    for by in [3_600.0, -3_600.0] {
        let mut script = Script::new(&[]);
        let run = play(&with(Fault::ClockJump { at: Seconds(100.0), by }), &mut script);
        assert_eq!(run.outcome.models[0].missed, 0.0);
        let (before, after) = (&script.snapshots[8], &script.snapshots[11]);
        let jumped = Seconds::between(before.taken_at, after.taken_at);
        assert_eq!(jumped, Seconds(30.0 + by));
        let model = after.models.values().next().unwrap();
        assert_eq!(model.demand.freshness(), Freshness::Stale);
    }
}

#[test]
fn rates_are_means_over_the_window() {
    let mut script = Script::new(&[]);
    play(&small(vec![TrafficStage::level(2.0, 600.0)]), &mut script);
    let reading = script.readings[20].1;
    assert_eq!(reading.arrivals_per_second, Some(2.0));
    assert_eq!(reading.prompt_tokens_per_second, Some(200.0));
    // Answers of 100 tokens: 200 per second, give or take those under way at both ends.
    let generated = reading.output_tokens_per_second.unwrap();
    assert!((generated - 200.0).abs() < 10.0, "{generated}");
    // Two per second that take about a second each.
    let running = reading.running.unwrap();
    assert!((1.0..=3.0).contains(&running), "{running}");
}

/// Prompt tokens per second that a replica is said to read, at each look.
fn capacities_under(fault: Fault) -> Vec<(Seconds, Option<u64>)> {
    let script = readings(fault);
    let variants = script.snapshots.iter().map(|seen| {
        let model = seen.models.values().next().unwrap();
        model.variants.values().next().unwrap().capacity
    });
    let rates = variants.map(|capacity| capacity.prefill.map(|rate| rate.point().get()));
    script.readings.iter().map(|(at, _)| *at).zip(rates).collect()
}

#[test]
fn a_capacity_that_is_told_wrong_is_what_policies_begin_with() {
    let right = capacities_under(Fault::OperatorRestart { at: Seconds(0.0) })[0].1.unwrap();
    let during = Seconds(0.0)..Seconds(f64::INFINITY);
    let wrong =
        Fault::StatedCapacity { during: during.clone(), stated: StatedCapacity::Times(0.5) };
    // Rates are whole numbers.
    assert!(capacities_under(wrong)[0].1.unwrap().abs_diff(right / 2) <= 1);
    let nothing =
        capacities_under(Fault::StatedCapacity { during, stated: StatedCapacity::Nothing });
    assert_eq!(nothing[0].1, None);
    // From then on the estimator has nothing but what it measures, here as it does on a cluster.
    assert!(nothing.last().unwrap().1.is_some_and(|measured| measured < right));
}

/// Mean seconds between tokens of the requests that came between two moments.
fn pace(run: &ClusterRun, from: f64, to: f64) -> Vec<f64> {
    let history = &run.histories[0];
    let both = history.answers.iter().zip(&history.ends);
    let came = both.filter(|((at, _), _)| (from..to).contains(&at.get()));
    let paces = came.filter_map(|(_, end)| match end {
        AnsweredBy::Finished { between, .. } => Some((between.get() * 1e4).round() / 1e4),
        _ => None,
    });
    paces.collect()
}

#[test]
fn engines_that_slow_down_take_longer_until_they_recover_and_so_do_new_ones() {
    let during = Seconds(100.0)..Seconds(300.0);
    let fault = Fault::EngineSlows { during, factor: 0.5, replicas: None };
    let run = play(&with(fault), &mut Script::new(&[(120.0, 2)]));
    let near = |paces: Vec<f64>, least: f64, most: f64| {
        assert!(!paces.is_empty());
        assert!(paces.iter().all(|pace| (least..most).contains(pace)), "{paces:?}");
    };
    near(pace(&run, 0.0, 98.0), 0.0099, 0.0121);
    // The second replica serves from 160 s on.
    near(pace(&run, 101.0, 296.0), 0.0199, 0.0241);
    near(pace(&run, 301.0, 600.0), 0.0099, 0.0121);
}

#[test]
fn one_engine_of_two_slows_down() {
    let during = Seconds(0.0)..Seconds(f64::INFINITY);
    let mut setup = with(Fault::EngineSlows { during, factor: 0.5, replicas: Some(1) });
    setup.models[0].variants[0].initial = 2;
    let run = play(&setup, &mut Script::new(&[(0.0, 2)]));
    let all = pace(&run, 0.0, 600.0);
    let slow = all.iter().filter(|pace| **pace > 0.015).count();
    assert!(slow > 50 && all.len() - slow > 50, "{slow} of {}", all.len());
}

#[test]
fn without_a_gateway_work_is_seen_by_what_engines_count() {
    let during = Seconds(200.0)..Seconds(400.0);
    let script = readings(Fault::NoGateway { during });
    for ((at, _), snapshot) in script.readings.iter().zip(&script.snapshots) {
        let model = snapshot.models.values().next().unwrap();
        let alone = (200.0..400.0).contains(&at.get());
        // Nobody but a gateway judges requests.
        let judged = model.misses.freshness() != Freshness::Missing;
        assert_eq!(judged, !alone, "at {at:?}");
        if alone || at.get() > 100.0 {
            // One request with a prompt of 100 tokens comes each second.
            let rate = model.demand.prefill.fresh().unwrap().get();
            assert!((90..=110).contains(&rate), "{rate} at {at:?}");
        }
    }
}

#[test]
fn a_process_that_hands_nothing_on_has_learnt_nothing() {
    let restart = Fault::OperatorRestart { at: Seconds(295.0) };
    let never = Fault::OperatorRestart { at: Seconds(9_999.0) };
    let during = Seconds(0.0)..Seconds(f64::INFINITY);
    let known = |fault: Fault| {
        let mut setup = with(fault);
        let stated = StatedCapacity::Nothing;
        setup.faults.push(Fault::StatedCapacity { during: during.clone(), stated });
        let mut script = Script::new(&[]);
        play(&setup, &mut script);
        let seen = |at: f64| script.readings.iter().position(|(when, _)| when.get() >= at).unwrap();
        let snapshot = &script.snapshots[seen(300.0)];
        let model = snapshot.models.values().next().unwrap();
        model.variants.values().next().unwrap().capacity.prefill.is_some()
    };
    assert!(known(never) && !known(restart));
}
