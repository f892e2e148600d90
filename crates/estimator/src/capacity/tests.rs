//! An engine whose steps take `t0` and longer by the work in them, told right, wrong, or not at all.

use super::*;
use flyball_core::interval::Origin;

/// Prompt and output tokens per second that the engine really carries.
const TRULY: (f64, f64) = (3_000.0, 900.0);
const PACES: Paces = Paces { idle: 0.02, full: 0.08, carried: 0.08 };

fn stated(factor: f64) -> Capacity {
    let rate = |tokens: f64| {
        let rate = TokensPerSecond::from_sample(tokens * factor).expect("a rate");
        Interval::exact(rate, Origin::Stated).ok()
    };
    Capacity {
        prefill: rate(TRULY.0),
        decode: rate(TRULY.1),
        reading_per_million: Some(400_000),
        ..Capacity::UNKNOWN
    }
}

/// The engine at this share of what it carries, at the so manieth look.
fn at_load(share: f64, tick: u64) -> Moment {
    let shown = share * (1.0 - PACES.idle / PACES.full);
    Moment {
        at: Timestamp::from_millis(1_000 * (1_000 + 15 * tick)),
        each: (TRULY.0 * share, TRULY.1 * share),
        replicas: 1.0,
        pace: Some(PACES.idle / (1.0 - shown)),
        expected: Some(PACES),
        reads_per_written: Some(3.3),
        running: Some(20.0),
        waiting: 0.0,
        missed: Some(false),
        allowed: Some(0.1),
        settled: true,
    }
}

/// After ten minutes of looks at these moments.
fn ten_minutes(prior: &Capacity, moment: impl Fn(u64) -> Moment) -> Learned {
    let mut learned = Learned::default();
    (0..40).for_each(|tick| learned.learn(prior, &moment(tick)));
    learned
}

fn decode(capacity: &Capacity) -> f64 {
    capacity.decode.expect("known").point().get() as f64
}

#[test]
fn an_engine_that_counts_no_requests_is_measured_all_the_same() {
    let of_llama = |tick| Moment { reads_per_written: None, expected: None, ..at_load(0.2, tick) };
    let learned = ten_minutes(&Capacity::UNKNOWN, of_llama);
    assert!(learned.capacity(&Capacity::UNKNOWN).decode.is_some(), "{learned:?}");
    let unsettled = |tick| Moment { settled: false, ..of_llama(tick) };
    let learned = ten_minutes(&Capacity::UNKNOWN, unsettled);
    assert_eq!(learned.capacity(&Capacity::UNKNOWN).decode, None, "its first seconds do not count");
}

#[test]
fn where_caches_have_all_prompts_writing_is_what_capacity_is_counted_by() {
    // Of 1,000 prompt tokens one is read, which at a request in two seconds is less than a token per second.
    let cached = |tick| {
        let load = at_load(0.2, tick);
        Moment { each: (0.5, load.each.1), reads_per_written: Some(0.01), expected: None, ..load }
    };
    let learned = ten_minutes(&Capacity::UNKNOWN, cached);
    assert!(learned.capacity(&Capacity::UNKNOWN).decode.is_some(), "{learned:?}");
}

#[test]
fn a_capacity_stated_wrong_by_three_is_found_at_a_fifth_of_the_load() {
    for wrong in [1.0 / 3.0, 0.5, 2.0, 3.0] {
        let prior = stated(wrong);
        let learned = ten_minutes(&prior, |tick| at_load(0.2, tick));
        let found = decode(&learned.capacity(&prior)) / TRULY.1;
        assert!((found - 1.0).abs() < 0.1, "stated x {wrong}: found x {found}");
    }
}

#[test]
fn one_that_is_right_stands() {
    let prior = stated(1.1);
    let learned = ten_minutes(&prior, |tick| at_load(0.4, tick));
    assert_eq!(learned.capacity(&prior).decode, prior.decode);
    assert_eq!(learned.capacity(&prior).measured_per_million, Some(1_000_000));
}

#[test]
fn what_is_done_while_work_waits_is_all_that_can_be_done() {
    let prior = stated(2.0);
    let queued = |tick| Moment { waiting: 30_000.0, pace: None, ..at_load(1.0, tick) };
    let found = decode(&ten_minutes(&prior, queued).capacity(&prior)) / TRULY.1;
    assert!((found - 1.0).abs() < 0.05, "{found}");
}

#[test]
fn what_is_done_while_nobody_waits_can_be_done_at_least() {
    let prior = stated(1.0 / 3.0);
    let idle = |tick| Moment { pace: None, ..at_load(0.8, tick) };
    let found = decode(&ten_minutes(&prior, idle).capacity(&prior)) / TRULY.1;
    assert!((found - 0.8).abs() < 0.01, "{found}");
    let missing = |tick| Moment { missed: Some(true), ..idle(tick) };
    assert_eq!(ten_minutes(&prior, missing).capacity(&prior), prior, "they missed: no floor");
}

#[test]
fn what_many_do_together_is_no_proof_that_one_alone_can() {
    let prior = Capacity { pooled_per_million: Some(3_000_000), ..stated(1.0) };
    // Of nine that pool three-fold each carries 2.33 times what one does alone.
    let many = |tick| Moment { pace: None, replicas: 9.0, ..at_load(2.0, tick) };
    assert_eq!(ten_minutes(&prior, many).capacity(&prior).decode, prior.decode);
    let more = |tick| Moment { pace: None, replicas: 9.0, ..at_load(7.0, tick) };
    let found = decode(&ten_minutes(&prior, more).capacity(&prior)) / TRULY.1;
    assert!((found - 3.0).abs() < 0.01, "{found}");
}

#[test]
fn nothing_stated_is_found_from_pace_and_objective() {
    let unknown = Capacity::UNKNOWN;
    let moment = |tick| {
        let running = if tick < 8 { 1.0 } else { 20.0 };
        let share = if tick < 8 { 0.01 } else { 0.4 };
        Moment { expected: None, running: Some(running), ..at_load(share, tick) }
    };
    let found = decode(&ten_minutes(&unknown, moment).capacity(&unknown)) / TRULY.1;
    assert!((0.6..=1.1).contains(&found), "{found}");
}

#[test]
fn tokens_of_a_load_that_has_just_ended_are_not_those_of_an_idle_engine() {
    let unknown = Capacity::UNKNOWN;
    let ends =
        |tick| Moment { running: Some(if tick < 36 { 20.0 } else { 0.0 }), ..at_load(0.9, tick) };
    assert_eq!(ten_minutes(&unknown, ends).idle_pace(), None);
    let idle = |tick| Moment { running: Some(1.0), ..at_load(0.01, tick) };
    let found = ten_minutes(&unknown, idle).idle_pace().expect("measured");
    assert!((found / PACES.idle - 1.0).abs() < 0.05, "{found}");
}

#[test]
fn what_was_merely_done_is_told_as_at_least_until_more_shows() {
    let unknown = Capacity::UNKNOWN;
    let done = |tick| Moment { expected: None, pace: None, ..at_load(0.3, tick) };
    let learned = ten_minutes(&unknown, done);
    assert!(learned.capacity(&unknown).is_at_least());
    assert!((decode(&learned.capacity(&unknown)) / TRULY.1 - 0.3).abs() < 0.01);
    let queued = |tick| Moment { waiting: 30_000.0, ..done(tick) };
    assert!(!ten_minutes(&unknown, queued).capacity(&unknown).is_at_least(), "work waited");
    let paced = |tick| {
        let (running, share) = if tick < 8 { (1.0, 0.01) } else { (20.0, 0.3) };
        Moment { expected: None, running: Some(running), ..at_load(share, tick) }
    };
    assert!(!ten_minutes(&unknown, paced).capacity(&unknown).is_at_least(), "pace shows it");
    let prior = stated(0.1);
    assert!(!ten_minutes(&prior, done).capacity(&prior).is_at_least(), "somebody stated it");
}

#[test]
fn an_engine_that_slows_to_half_is_seen_in_ten_minutes() {
    let prior = stated(1.0);
    let mut learned = ten_minutes(&prior, |tick| at_load(0.4, tick));
    for tick in 40..80 {
        // The same work fills twice the share of what it carries now.
        let slow = Moment { each: at_load(0.4, tick).each, ..at_load(0.8, tick) };
        learned.learn(&prior, &slow);
    }
    let found = decode(&learned.capacity(&prior)) / TRULY.1;
    assert!((found - 0.5).abs() < 0.1, "{found}");
}

#[test]
fn replicas_that_warm_up_and_readings_that_are_none_teach_nothing() {
    let prior = stated(3.0);
    let warming = |tick| Moment { settled: false, ..at_load(0.4, tick) };
    assert_eq!(ten_minutes(&prior, warming).capacity(&prior), prior);
    let none = |tick| Moment { pace: Some(f64::NAN), ..at_load(0.01, tick) };
    assert_eq!(ten_minutes(&prior, none).capacity(&prior), prior);
}

#[test]
fn where_nearly_all_work_is_reading_pace_says_nothing() {
    let prior = stated(3.0);
    let code = |tick| Moment { reads_per_written: Some(73.0), ..at_load(0.2, tick) };
    assert_eq!(ten_minutes(&prior, code).capacity(&prior), prior);
}

#[test]
fn what_was_learnt_outlives_the_process() {
    let prior = stated(3.0);
    let learned = ten_minutes(&prior, |tick| at_load(0.4, tick));
    let numbers = learned.numbers().expect("numbers");
    let restored = Learned::restored(&numbers).expect("the same");
    assert_eq!(restored.capacity(&prior), learned.capacity(&prior));
    for at in 0..NUMBERS {
        let mut broken = numbers;
        broken[at] = f64::NAN;
        assert_eq!(Learned::restored(&broken).filter(|_| at != 3), None, "number {at}");
    }
}
