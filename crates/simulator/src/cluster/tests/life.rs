//! Replicas and requests from birth to end, where nothing goes wrong.

use super::*;

#[test]
fn a_quiet_replica_serves_everything_in_time() {
    let run = play(&small(vec![TrafficStage::level(1.0, 500.0)]), &mut Script::new(&[]));
    let model = &run.outcome.models[0];
    assert_eq!((model.requests, model.missed, model.killed), (500.0, 0.0, 0.0));
    // One replica for 600 s on a node of two accelerators.
    assert_eq!((model.replica_seconds, run.outcome.gpu_seconds), (600.0, 1_200.0));
    // A prompt takes 20 ms; scheduling ahead costs at most one step more.
    assert!(model.first_token_p99 < Seconds(0.05), "{:?}", model.first_token_p99);
    assert_eq!(model.timeline.len(), 10);
    assert_eq!(model.timeline.iter().map(|moment| moment.requests).sum::<f64>(), 500.0);
}

#[test]
fn more_than_one_replica_can_do_is_missed_and_more_replicas_mend_it() {
    // A step of 32 answers takes 10 ms, an answer 100 steps: 32 requests per second at most.
    let stages = || vec![TrafficStage::level(40.0, 300.0)];
    let alone = play(&small(stages()), &mut Script::new(&[]));
    assert!(alone.outcome.missed_share() > 0.5, "{}", alone.outcome.missed_share());
    let mended = play(&small(stages()), &mut Script::new(&[(10.0, 2)]));
    // The second serves from 50 s on; the first has its backlog by then.
    let model = &mended.outcome.models[0];
    let late = model.timeline[3..5].iter().map(|moment| moment.missed).sum::<f64>();
    assert_eq!(late, 0.0);
}

#[test]
fn a_start_takes_its_cold_start_and_waits_for_a_node_before() {
    let script = &mut Script::new(&[(10.0, 3)]);
    let run = play(&small(vec![TrafficStage::level(1.0, 500.0)]), script);
    // The second fits on the node: 40 s. The third needs a node: 100 s more.
    assert_eq!(counts(&run, 15.0), [1, 1, 1, 0]);
    assert_eq!(counts(&run, 51.0), [1, 0, 2, 0]);
    assert_eq!(counts(&run, 149.0), [0, 1, 2, 0]);
    assert_eq!(counts(&run, 151.0), [0, 0, 3, 0]);
    assert_eq!(run.outcome.models[0].starts, 2);
    assert_eq!(run.histories[0].cold_starts, [Seconds(40.0), Seconds(140.0)]);
}

#[test]
fn replicas_without_a_node_go_first_then_those_that_start_then_the_youngest() {
    let steps = [(10.0, 2), (60.0, 4), (80.0, 3), (100.0, 1)];
    let run = play(&small(vec![TrafficStage::level(1.0, 500.0)]), &mut Script::new(&steps));
    // At 60 s two serve and two wait for nodes: of these one goes at 80 s, the other at 100 s with
    // the younger of those that serve.
    assert_eq!(counts(&run, 61.0), [2, 0, 2, 0]);
    assert_eq!(counts(&run, 81.0), [1, 0, 2, 0]);
    assert_eq!(counts(&run, 135.0), [0, 0, 1, 0]);
    assert_eq!(run.outcome.models[0].killed, 0.0);
    // Gone at 80 s and 100 s within 40 s of the start at 60 s: one, and two at once but the second
    // of those came at 60 s too.
    assert_eq!(run.outcome.models[0].reversals, 1);
}

#[test]
fn what_is_not_finished_in_the_grace_period_is_killed() {
    // Answers of 100 tokens at 0.5 s each take 50 s; the grace is 30 s.
    let mut setup = small(vec![TrafficStage::level(0.2, 100.0)]);
    let slow =
        LinearEngine { base: 0.5, per_prompt_token: 0.0, per_decode: 0.0, per_cached_token: 0.0 };
    setup.models[0].variants[0].speed.step = StepSpeed::Linear(slow);
    let run = play(&setup, &mut Script::new(&[(60.0, 0)]));
    let model = &run.outcome.models[0];
    // Arrivals at 2.5 + 5 n; those from 42.5 s to 57.5 s would end after 90 s, and those that began
    // at 37.5 s do so by 88.5 s. Later ones are held, and refused after 120 s.
    assert_eq!((model.requests, model.killed), (20.0, 4.0));
    assert_eq!(counts(&run, 95.0), [0; 4]);
}

#[test]
fn while_nobody_serves_requests_are_held_and_refused_only_when_they_waited_too_long() {
    let mut setup = small(vec![TrafficStage::level(0.0, 100.0), TrafficStage::level(1.0, 100.0)]);
    setup.models[0].variants[0].initial = 0;
    setup.models[0].hold = Seconds(60.0);
    setup.models[0].objectives.first_token = Some(Micros::from_seconds(50));
    // It wakes at 130 s and serves at 170 s: who came before 110 s is refused, who came before
    // 120 s is late.
    let run = play(&setup, &mut Script::new(&[(0.0, 0), (130.0, 1)]));
    let model = &run.outcome.models[0];
    assert_eq!((model.requests, model.missed, model.killed), (100.0, 20.0, 0.0));
    let refused = run.histories[0].answers.iter().filter(|(at, _)| *at < Seconds(110.0));
    assert!(refused.clone().count() == 10 && refused.clone().all(|(_, missed)| *missed));
}

#[test]
fn clients_that_hang_up_are_counted_once_and_missed_only_if_they_waited_too_long() {
    let mut setup = small(vec![TrafficStage::level(1.0, 300.0)]);
    let mut trace = (*setup.models[0].trace).clone();
    // Each third hangs up in the middle of its answer.
    for request in trace.requests.iter_mut().step_by(3) {
        request.patience = Some(Seconds(0.5));
    }
    setup.models[0].trace = Arc::new(trace);
    let run = play(&setup, &mut Script::new(&[]));
    assert_eq!((run.outcome.models[0].requests, run.outcome.models[0].missed), (300.0, 0.0));

    // Nobody serves: they leave after 0.5 s, just when the first token was due, so none is late;
    // a little more patience, and all of them are.
    setup.models[0].variants[0].initial = 0;
    for (patience, missed) in [(0.5, 0.0), (0.6, 300.0)] {
        let mut trace = (*setup.models[0].trace).clone();
        trace.requests.iter_mut().for_each(|request| request.patience = Some(Seconds(patience)));
        setup.models[0].trace = Arc::new(trace);
        let run = play(&setup, &mut Script::new(&[(0.0, 0)]));
        assert_eq!(run.outcome.models[0].missed, missed);
    }
}

#[test]
fn one_queue_before_all_replicas_lets_new_ones_help_with_the_backlog() {
    let stages = || vec![TrafficStage::level(100.0, 20.0)];
    let missed = |admit| {
        let mut setup = small(stages());
        setup.models[0].admit = admit;
        setup.models[0].hold = Seconds(500.0);
        let run = play(&setup, &mut Script::new(&[(10.0, 4)]));
        run.outcome.models[0].first_token_p99
    };
    // 2,000 requests at 32 per second take a minute alone; a second replica comes at 50 s and can
    // only take what was not handed on already.
    assert!(missed(Some(32)) < missed(None), "{:?} {:?}", missed(Some(32)), missed(None));
}

#[test]
fn a_node_that_was_delivered_goes_when_nothing_runs_on_it() {
    let run = play(&small(vec![]), &mut Script::new(&[(10.0, 3), (200.0, 1)]));
    // Two accelerators all the time, and two more from 110 s until 60 s after 200 s.
    assert_eq!(run.outcome.gpu_seconds, 2.0 * 600.0 + 2.0 * 150.0);
}

#[test]
fn a_replica_larger_than_a_node_takes_whole_nodes() {
    let mut setup = small(vec![]);
    setup.models[0].variants[0].gpus_per_replica = 4;
    setup.models[0].variants[0].initial = 0;
    // One node is there and one comes after 100 s.
    let run = play(&setup, &mut Script::new(&[(0.0, 1)]));
    assert_eq!(counts(&run, 100.0), [1, 0, 0, 0]);
    assert_eq!(counts(&run, 151.0), [0, 0, 1, 0]);
}
