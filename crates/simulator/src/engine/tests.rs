use super::compare::{self, ComparedMoment, ComparedScenario};
use super::{Arrival, EngineSettings, Event, Pace, SimulatedEngine, What};
use crate::seconds::Seconds;
use flyball_perf::serving::batch::{Batch, StepTime};
use std::collections::BTreeMap;

/// One second per step, a thousandth per prompt token, a millionth per cached one.
#[derive(Clone, Copy)]
struct Plain;

impl StepTime for Plain {
    fn seconds(&self, batch: &Batch) -> f64 {
        1.0 + batch.prefill / 1e3 + batch.cached / 1e6
    }

    fn straight_until(&self, _: &Batch) -> f64 {
        f64::INFINITY
    }
}

fn settings() -> EngineSettings {
    EngineSettings { ahead: false, ..EngineSettings::vllm(8, 1000, 1000) }
}

fn run(settings: EngineSettings, pace: Pace, arrivals: &[Arrival<'_>]) -> Vec<Event> {
    let mut engine = SimulatedEngine::new(settings, Plain, pace);
    let mut events = Vec::new();
    for (id, arrival) in arrivals.iter().enumerate() {
        engine.advance(arrival.at, &mut |event| events.push(event));
        engine.submit(id as u64, arrival).unwrap();
    }
    engine.advance(Seconds(f64::INFINITY), &mut |event| events.push(event));
    assert!(engine.is_empty());
    events
}

fn time_of(events: &[Event], id: u64, what: What) -> f64 {
    events.iter().find(|event| event.id == id && event.what == what).unwrap().at.get()
}

#[test]
fn one_request_in_chunks_by_hand() {
    // 1500 tokens in chunks of 1000 and 500 take 2 s and 1.5 s. Three more tokens, over 1500, 1501
    // and 1502 cached ones, take 3 s and 4503 millionths.
    for pace in [Pace::StepByStep, Pace::Skipping] {
        let events = run(settings(), pace, &[Arrival::plain(Seconds(5.0), 1500, 4)]);
        assert_eq!(time_of(&events, 0, What::Scheduled { cached: 0 }), 5.0);
        assert_eq!(time_of(&events, 0, What::FirstToken), 8.5);
        assert!((time_of(&events, 0, What::Finished) - 11.504_503).abs() < 1e-9);
    }
}

#[test]
fn tokens_come_out_one_by_one_and_a_preempted_request_keeps_its_own() {
    // Two requests of 16 + 16 tokens in three blocks of 16: the second gives way and comes back.
    let settings = EngineSettings { blocks: 3, ..settings() };
    let mut engine = SimulatedEngine::new(settings, Plain, Pace::StepByStep);
    for id in 0..2 {
        engine.submit(id, &Arrival::plain(Seconds::ZERO, 16, 16)).unwrap();
    }
    let (mut out, mut preempted) = ([0; 2], 0);
    while let Some(next) = engine.next_event() {
        let mut ended = [false; 2];
        engine.advance(next, &mut |event| match event.what {
            What::Finished => ended[event.id as usize] = true,
            What::Preempted => preempted += 1,
            _ => {}
        });
        for id in 0..2 {
            let now = if ended[id] { 16 } else { engine.emitted(id as u64).unwrap_or(out[id]) };
            assert!(now == out[id] || now == out[id] + 1, "{id}: {} to {now}", out[id]);
            out[id] = now;
        }
    }
    assert_eq!((out, preempted), ([16, 16], 1));
    assert_eq!(engine.emitted(0), None);
}

#[test]
fn who_comes_during_a_step_waits_for_its_end_and_one_step_more_if_scheduled_ahead() {
    // The first request's steps end at 1.1, 2.1001, 3.1003 (100 and 101 tokens cached).
    let arrivals = [Arrival::plain(Seconds(0.0), 100, 50), Arrival::plain(Seconds(1.5), 10, 1)];
    for pace in [Pace::StepByStep, Pace::Skipping] {
        let now = run(settings(), pace, &arrivals);
        assert!((time_of(&now, 1, What::Scheduled { cached: 0 }) - 2.1001).abs() < 1e-9);
        let ahead = run(EngineSettings { ahead: true, ..settings() }, pace, &arrivals);
        assert!((time_of(&ahead, 1, What::Scheduled { cached: 0 }) - 3.100_201).abs() < 1e-9);
    }
}

#[test]
fn a_shared_beginning_is_computed_once() {
    let names = [1, 2, 3, 4];
    let arrival = |at, names| Arrival { at, prompt: 100, output: 1, names, name_tokens: 32 };
    let other = [1, 2, 9, 9];
    let arrivals = [
        arrival(Seconds(0.0), &names[..]),
        arrival(Seconds(10.0), &names[..]),
        arrival(Seconds(20.0), &other[..]),
    ];
    let events = run(settings(), Pace::Skipping, &arrivals);
    // 100 tokens fill six blocks of 16, of which names share all; the third shares two names.
    time_of(&events, 0, What::Scheduled { cached: 0 });
    time_of(&events, 1, What::Scheduled { cached: 96 });
    time_of(&events, 2, What::Scheduled { cached: 64 });
    let off =
        run(EngineSettings { prefix_caching: false, ..settings() }, Pace::Skipping, &arrivals);
    time_of(&off, 1, What::Scheduled { cached: 0 });
}

#[test]
fn the_longest_unused_blocks_are_forgotten_first() {
    // Ten blocks. Two prompts have four full blocks each and one for the rest, of which the second
    // uses one that was never used before. A third needs four: the one empty block that has been
    // free for longest, and then three of the first prompt, from its end.
    let lists = [[1_u64], [2], [3]];
    let arrival = |at, prompt, list: usize| Arrival {
        at: Seconds(at),
        prompt,
        output: 1,
        names: &lists[list],
        name_tokens: 64,
    };
    for (again, cached) in [(0, 16), (1, 64)] {
        let arrivals = [
            arrival(0.0, 65, 0),
            arrival(10.0, 65, 1),
            arrival(20.0, 49, 2),
            arrival(30.0, 65, again),
        ];
        let events = run(EngineSettings { blocks: 10, ..settings() }, Pace::Skipping, &arrivals);
        time_of(&events, 3, What::Scheduled { cached });
    }
}

#[test]
fn the_last_one_gives_way_and_finds_its_blocks_again() {
    // Two requests of 16 tokens have a block each, and a third is free. Both need a second block for
    // their second token: the later one gives way. It keeps its full block, which nobody needs
    // before the first has ended, and computes one token.
    let tight = EngineSettings { blocks: 3, ..settings() };
    let arrivals = [Arrival::plain(Seconds(0.0), 16, 8), Arrival::plain(Seconds(0.0), 16, 8)];
    for pace in [Pace::StepByStep, Pace::Skipping] {
        let events = run(tight, pace, &arrivals);
        let lost = events.iter().filter(|event| event.what == What::Preempted).count();
        assert_eq!((lost, events.iter().find(|e| e.what == What::Preempted).unwrap().id), (1, 1));
        time_of(&events, 1, What::Scheduled { cached: 16 });
        assert!(time_of(&events, 0, What::Finished) < time_of(&events, 1, What::Finished));
    }
}

#[test]
fn what_can_never_fit_is_refused() {
    let mut engine = SimulatedEngine::new(settings(), Plain, Pace::Skipping);
    let error = engine.submit(1, &Arrival::plain(Seconds(0.0), 16_000, 1)).unwrap_err();
    assert_eq!((error.tokens, error.room), (16_001, 16_000));
    assert!(engine.is_empty());
}

#[test]
fn load_counts_blocks_of_steps_under_way() {
    let mut engine = SimulatedEngine::new(settings(), Plain, Pace::Skipping);
    engine.submit(0, &Arrival::plain(Seconds(0.0), 160, 100)).unwrap();
    assert_eq!(engine.load(Seconds(0.0)).waiting_tokens, 160);
    // First token at 1.16; the 11th block is needed at once, the 12th 16 steps later.
    let free = |engine: &SimulatedEngine<Plain>, at| engine.load(Seconds(at)).free_blocks;
    for (at, blocks) in [(1.0, 990), (2.0, 989), (17.0, 989), (18.0, 988)] {
        engine.advance(Seconds(at), &mut |_| ());
        assert_eq!(free(&engine, at), blocks, "at {at}");
    }
    assert_eq!(engine.load(Seconds(18.0)).running, 1);
}

#[test]
fn skipping_gives_the_same_times_as_step_by_step() {
    let models = compare::step_models();
    assert_eq!(models.len(), 6);
    for seed in 0..1000 {
        let apart = compare::largest_difference(seed, &models);
        assert!(apart <= 1e-9, "seed {seed}: {apart:e}");
    }
    // And it does skip: of 41 steps that only decode, it evaluates the first and the last.
    let lone = ComparedScenario {
        settings: EngineSettings::vllm(8, 1000, 1000),
        moments: vec![ComparedMoment::Arrives {
            at: Seconds(0.0),
            id: 0,
            prompt: 9,
            output: 42,
            list: None,
        }],
        names: Vec::new(),
        name_tokens: 0,
    };
    let tally = compare::play(&lone, Plain, Pace::Skipping, &mut |_| ()).1;
    assert_eq!((tally.steps, tally.evaluations), (42, 3));
}

#[test]
fn every_request_ends_once_and_nothing_is_lost() {
    let mut preempted = 0;
    let mut cached = 0;
    for seed in 0..300 {
        let scenario = compare::scenario(seed);
        let limits = scenario.settings;
        let mut inspect = |engine: &SimulatedEngine<Plain>| {
            let scheduler = engine.scheduler();
            assert!(scheduler.running() <= limits.max_running as usize, "seed {seed}");
            let (free, held, own) = scheduler.blocks_by_kind();
            // In the middle of a step its new blocks are taken and its tokens are not computed yet.
            let taken = free + held + own;
            let pending = limits.blocks.checked_sub(taken);
            assert!(pending.is_some_and(|more| more <= limits.max_running), "seed {seed}: {taken}");
            let load = engine.load(engine.next_event().unwrap_or_default());
            assert!(load.free_blocks <= limits.blocks);
        };
        let (events, tally) = compare::play(&scenario, Plain, Pace::Skipping, &mut inspect);
        preempted += tally.preemptions;
        cached += tally.cached_tokens;
        check_ends(&scenario, &events, seed);
    }
    // The scenarios do what they are for.
    assert!(preempted > 500 && cached > 100_000, "{preempted} {cached}");
}

fn check_ends(scenario: &ComparedScenario, events: &[Event], seed: u64) {
    let mut ends = BTreeMap::new();
    let mut admitted = Vec::new();
    let mut running = BTreeMap::new();
    for pair in events.windows(2) {
        assert!(pair[0].at <= pair[1].at, "seed {seed}: {pair:?}");
    }
    for event in events {
        match event.what {
            What::Scheduled { .. } => {
                assert!(running.insert(event.id, ()).is_none(), "seed {seed}: {event:?}");
                if !admitted.contains(&event.id) {
                    admitted.push(event.id);
                }
            }
            What::Preempted => assert!(running.remove(&event.id).is_some(), "seed {seed}"),
            What::Finished | What::Aborted => {
                running.remove(&event.id);
                assert!(ends.insert(event.id, event.what).is_none(), "seed {seed}: {event:?}");
            }
            What::FirstToken => assert!(running.contains_key(&event.id), "seed {seed}"),
        }
    }
    assert!(admitted.is_sorted(), "seed {seed}: first come, first served: {admitted:?}");
    let room = u64::from(scenario.settings.blocks) * u64::from(scenario.settings.block_tokens);
    let taken = scenario.moments.iter().filter(|moment| {
        matches!(moment, ComparedMoment::Arrives { prompt, output, .. } if u64::from(prompt + output) <= room)
    });
    assert_eq!(ends.len(), taken.count(), "seed {seed}");
}
