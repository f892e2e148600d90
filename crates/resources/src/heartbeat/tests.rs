use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn full() -> Value {
    json!({
        "version": 1, "step": 120, "totalSteps": 1000, "savedStep": 100, "restoredStep": 50,
        "stepSeconds": 0.25, "saveSeconds": 12.5, "restoreSeconds": 61, "tokens": 4_000_000,
        "startedAt": "2026-11-19T18:00:00Z", "at": "2026-11-19T18:30:00.25Z",
        "attempt": "a-1", "saveEverySeconds": 600, "instructionsNumber": 3,
        "attemptCount": 4, "repeatedSteps": 60, "later": {"x": []},
    })
}

fn with(field: &str, value: Value) -> Result<Heartbeat, HeartbeatProblem> {
    let mut form = full();
    form[field] = value;
    Heartbeat::read(form.to_string().as_bytes())
}

#[test]
fn a_full_heartbeat_is_read_and_written() {
    let heartbeat = Heartbeat::read(full().to_string().as_bytes()).unwrap();
    assert_eq!((heartbeat.step, heartbeat.saved_step), (120, Some(100)));
    assert_eq!(heartbeat.step_time, Some(Micros::from_millis(250)));
    assert_eq!(heartbeat.save_every, Some(Micros::from_minutes(10)));
    assert_eq!((heartbeat.attempt_count, heartbeat.repeated_steps), (Some(4), Some(60)));
    assert_eq!(heartbeat.at.to_string(), "2026-11-19T18:30:00.250000Z");
    assert_eq!(Heartbeat::read(heartbeat.write().as_bytes()), Ok(heartbeat));
}

#[test]
fn what_is_absent_is_unknown() {
    let least = br#"{"version":1,"step":0,"at":"2026-11-19T18:30:00Z"}"#;
    let heartbeat = Heartbeat::read(least).unwrap();
    assert_eq!((heartbeat.saved_step, heartbeat.step_time, heartbeat.attempt), (None, None, None));
    assert_eq!((heartbeat.restored_step, heartbeat.attempt_count), (0, None));
}

#[test]
fn a_restart_loses_what_was_done_since_the_last_checkpoint() {
    let heartbeat = with("savedStep", json!(100)).unwrap();
    assert_eq!((heartbeat.resumes_at(), heartbeat.steps_at_risk()), (100, 20));
    let restored = with("savedStep", Value::Null).unwrap();
    assert_eq!((restored.resumes_at(), restored.steps_at_risk()), (50, 70));
}

#[test]
fn nonsense_is_refused_with_its_field() {
    for (field, value, what) in [
        ("savedStep", json!(121), "`savedStep` is 121, after step 120, which ended last"),
        ("restoredStep", json!(500), "`restoredStep` is 500, after step 120, which ended last"),
        ("totalSteps", json!(119), "`totalSteps` is 119, and step 120 has ended"),
        ("step", json!(1u64 << 53), "`step` is 9007199254740992, more than 9007199254740991"),
        (
            "stepSeconds",
            json!(-0.1),
            "`stepSeconds` is -0.1; it must be between 0 and 604800 seconds",
        ),
        ("saveSeconds", json!(1e300), "must be between 0 and 604800 seconds"),
        ("at", json!("yesterday"), "`at` is not a time in RFC 3339, such as 2026-11-15T14:02:10Z"),
        ("at", json!("1969-12-31T23:59:59Z"), "`at` is not a time in RFC 3339"),
        ("startedAt", json!("2026-11-19T19:00:00Z"), "`startedAt` is after `at`"),
        ("attempt", json!("\u{1b}[31m"), "`attempt` must have 1 to 128 letters, digits or `-_.:/`"),
        ("attempt", json!(""), "`attempt` must have 1 to 128"),
        ("version", json!(2), "version 2; this program reads version 1"),
        ("step", json!(-1), "not the expected JSON: "),
        ("step", json!(1.5), "not the expected JSON: "),
        ("stepSeconds", json!("NaN"), "not the expected JSON: "),
    ] {
        let problem = with(field, value.clone()).unwrap_err().to_string();
        assert!(problem.contains(what), "{field} {value}: {problem}");
    }
}

#[test]
fn what_is_not_json_is_refused() {
    for text in ["", "{", "[]", "null", r#"{"version":1,"step":1e999,"at":""}"#, r#"{"step":NaN}"#]
    {
        let problem = Heartbeat::read(text.as_bytes()).unwrap_err();
        assert!(matches!(problem, HeartbeatProblem::Json(_)), "{text}: {problem}");
    }
    let deep = "[".repeat(10_000);
    assert!(matches!(Heartbeat::read(deep.as_bytes()), Err(HeartbeatProblem::Json(_))));
    let large = full().to_string() + &" ".repeat(MAX_BYTES);
    assert!(matches!(Heartbeat::read(large.as_bytes()), Err(HeartbeatProblem::Large(_))));
}

#[test]
fn a_duration_that_is_not_a_number_is_refused() {
    let form = HeartbeatForm {
        version: 1,
        at: "2026-11-19T18:30:00Z".into(),
        step_seconds: Some(f64::NAN),
        ..HeartbeatForm::default()
    };
    let problem = Heartbeat::try_from(form).unwrap_err();
    assert!(matches!(problem, HeartbeatProblem::Field { field: "stepSeconds", .. }));
}

#[test]
fn a_line_of_a_log_may_begin_with_what_a_launcher_says() {
    let line = format!("[rank0]: {LOG_PREFIX}{}\n", full());
    assert_eq!(Heartbeat::in_line(&line).unwrap().unwrap().step, 120);
    assert_eq!(Heartbeat::in_line("step 120 loss 2.5"), None);
    assert!(Heartbeat::in_line("flyball-heartbeat soon").unwrap().is_err());
}

#[test]
fn instructions_are_read_checked_and_written() {
    let read = |text: &str| HeartbeatInstructions::read(text.as_bytes());
    let asked = read(r#"{"version":1,"number":7,"saveEverySeconds":600,"saveNow":true}"#).unwrap();
    assert_eq!(asked.save_every, Some(Micros::from_minutes(10)));
    assert!(asked.save_now);
    assert_eq!(read(&asked.write()), Ok(asked));
    let least = read(r#"{"version":1,"number":0}"#).unwrap();
    assert_eq!((least.save_every, least.save_now), (None, false));
    for (text, what) in [
        (r#"{"version":1,"number":1,"saveEverySeconds":0.5}"#, "`saveEverySeconds` is below 1"),
        (r#"{"version":1,"number":1,"saveEverySeconds":1e9}"#, "between 0 and 604800 seconds"),
        (r#"{"version":1}"#, "missing field `number`"),
        (r#"{"version":2,"number":1}"#, "version 2"),
    ] {
        let problem = read(text).unwrap_err().to_string();
        assert!(problem.contains(what), "{text}: {problem}");
    }
}

proptest! {
    #[test]
    fn whatever_is_read_makes_sense_and_is_written_as_it_was(
        step in 0..200u64, saved in proptest::option::of(0..200u64), total in 0..300u64,
        seconds in proptest::num::f64::ANY,
    ) {
        let form = HeartbeatForm {
            version: 1, step, saved_step: saved, total_steps: Some(total), save_seconds: Some(seconds),
            at: "2026-11-19T18:30:00Z".into(), ..HeartbeatForm::default()
        };
        if let Ok(heartbeat) = Heartbeat::try_from(form) {
            prop_assert!(heartbeat.resumes_at() <= heartbeat.step);
            prop_assert!(heartbeat.step <= heartbeat.total_steps.unwrap());
            prop_assert!(heartbeat.save_time.unwrap() <= MAX_DURATION);
            prop_assert_eq!(Heartbeat::read(heartbeat.write().as_bytes()), Ok(heartbeat));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Heartbeat::read(&bytes);
        let _ = HeartbeatInstructions::read(&bytes);
        let _ = Heartbeat::in_line(&String::from_utf8_lossy(&bytes));
    }
}
