use super::files::{moment, now};
use super::instructions::{self, Written, beside};
use super::log::LogPattern;
use super::source::Source;
use flyball_core::units::Micros;
use flyball_resources::heartbeat::{Heartbeat, HeartbeatInstructions, MAX_BYTES};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

const AGE: Micros = Micros::from_minutes(15);

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heartbeat.json");
    (folder, file)
}

fn beat(step: u64) -> String {
    format!(r#"{{"version":1,"step":{step},"savedStep":3,"at":"{}","more":true}}"#, now())
}

fn read(file: &Path) -> Result<Heartbeat, String> {
    Source::File(file.to_owned()).read(now(), AGE)
}

fn refused(file: &Path, why: &str) {
    let problem = read(file).unwrap_err();
    assert!(problem.contains(why), "{problem}");
}

#[test]
fn a_file_is_read_checked_and_written_anew() {
    let (_folder, file) = folder();
    fs::write(&file, beat(7)).unwrap();
    let heartbeat = read(&file).unwrap();
    assert_eq!((heartbeat.step, heartbeat.saved_step), (7, Some(3)));
    assert!(!heartbeat.write().contains("more"), "only what is known goes on");
}

#[test]
fn what_cannot_be_believed_is_refused_with_a_reason() {
    let (folder, file) = folder();
    refused(&file, "heartbeat.json does not exist yet");
    for (text, why) in [
        (String::new(), "not the expected JSON: EOF"),
        (beat(7)[..30].to_owned(), "not the expected JSON: EOF"),
        (
            beat(7).replace("\"version\":1", "\"version\":9"),
            "version 9; this program reads version 1",
        ),
        (beat(2), "`savedStep` is 3, after step 2, which ended last"),
        (beat(7) + &" ".repeat(MAX_BYTES), "bytes, more than 16384"),
        ("\u{0}\u{1}\u{2}".repeat(100), "not the expected JSON"),
    ] {
        fs::write(&file, text).unwrap();
        refused(&file, why);
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    refused(&file, "is not a regular file");
    let link = folder.path().join("link");
    fs::write(folder.path().join("secret"), beat(7)).unwrap();
    symlink(folder.path().join("secret"), &link).unwrap();
    refused(&link, "is a symbolic link");
}

#[test]
fn an_old_heartbeat_and_one_from_the_future_are_refused() {
    let (_folder, file) = folder();
    fs::write(&file, beat(7)).unwrap();
    let later = now().saturating_add(Micros::from_minutes(20));
    let old = Source::File(file.clone()).read(later, AGE).unwrap_err();
    assert!(
        old.starts_with("the last heartbeat is 20 min") && old.ends_with("old, of step 7"),
        "{old}"
    );
    let earlier = now().saturating_sub(Micros::from_minutes(20));
    let ahead = Source::File(file).read(earlier, AGE).unwrap_err();
    assert!(ahead.contains("ahead of this machine's"), "{ahead}");
}

fn from_log(text: &str, pattern: Option<&str>) -> Result<Heartbeat, String> {
    let (_folder, file) = folder();
    fs::write(&file, text).unwrap();
    let pattern = pattern.map(|text| LogPattern::new(text).unwrap());
    Source::Log(file, pattern).read(now(), AGE)
}

#[test]
fn the_last_whole_line_of_a_log_counts() {
    let line = |step| format!("[rank0]: flyball-heartbeat {}\n", beat(step));
    let noise = "loss 2.5\n".repeat(100_000);
    let log = format!("{noise}{}loss 2.4\n{}flyball-heartbeat {{", line(5), line(6));
    assert_eq!(from_log(&log, None).unwrap().step, 6);
    let torn = format!("{}flyball-heartbeat {{\"version\":1,loss 2.5\n", line(5));
    assert_eq!(from_log(&torn, None).unwrap().step, 5);
    let none = from_log(&(line(5) + &noise), None).unwrap_err();
    assert!(none.starts_with("no heartbeat in the last 256 KiB of "), "{none}");
    assert!(
        from_log("flyball-heartbeat x\n", None)
            .unwrap_err()
            .starts_with("the last line is refused")
    );
}

#[test]
fn a_pattern_finds_steps_and_saves_on_lines_of_their_own() {
    let pattern = r"step (?<step>\d+)/(?<total>\d+)|saved (?P<saved>\d+)";
    let log = "step 4/90\nsaved 4\nstep 5/90\nstep 6/90\nloss 2\n";
    let heartbeat = from_log(log, Some(pattern)).unwrap();
    assert_eq!(
        (heartbeat.step, heartbeat.saved_step, heartbeat.total_steps),
        (6, Some(4), Some(90))
    );
    assert_eq!(from_log("saved 4\n", Some(pattern)).unwrap().step, 4);
    assert!(from_log("epoch 4\n", Some(pattern)).is_err());
    let large = from_log("step 99999999999999999999/90\n", Some(pattern));
    assert!(large.is_err(), "no number that fits");
}

#[test]
fn the_time_of_a_pattern_is_that_of_its_log() {
    let (_folder, file) = folder();
    fs::write(&file, "step 4\n").unwrap();
    let old = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    fs::File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
    let source = Source::Log(file, Some(LogPattern::new(r"step (?<step>\d+)").unwrap()));
    assert_eq!(source.read(moment(old), AGE).unwrap().at, moment(old));
    assert!(source.read(now(), AGE).unwrap_err().contains("old, of step 4"));
}

#[test]
fn a_pattern_without_the_groups_is_refused() {
    for (text, why) in [
        (r"step (\d+)", "neither a group `step` nor a group `saved`"),
        (r"(?<step>\d+) (?<loss>\d+)", "unknown group `loss`"),
        ("(?<step>", "error: "),
        (r"(?<step>(\w{1000}){1000})", "size limit"),
    ] {
        let problem = LogPattern::new(text).unwrap_err();
        assert!(problem.contains(why), "{text}: {problem}");
    }
}

fn asked(number: u64) -> HeartbeatInstructions {
    HeartbeatInstructions { number, save_every: Some(Micros::from_minutes(10)), save_now: true }
}

#[test]
fn instructions_are_replaced_by_newer_ones_only() {
    let (_folder, file) = folder();
    let path = beside(&file);
    for (number, expected) in
        [(5, Written::Yes), (5, Written::Yes), (4, Written::Older(5)), (6, Written::Yes)]
    {
        assert_eq!(instructions::write(&path, &asked(number)), expected, "{number}");
    }
    assert_eq!(HeartbeatInstructions::read(&fs::read(&path).unwrap()), Ok(asked(6)));
    fs::write(&path, "garbage").unwrap();
    assert_eq!(instructions::write(&path, &asked(1)), Written::Yes, "garbage has no number");
}

#[test]
fn a_link_in_the_place_of_instructions_is_replaced_and_not_followed() {
    let (folder, file) = folder();
    let victim = folder.path().join("victim");
    fs::write(&victim, "as it was").unwrap();
    symlink(&victim, beside(&file)).unwrap();
    symlink(&victim, folder.path().join("heartbeat.json.instructions.tmp")).unwrap();
    assert_eq!(instructions::write(&beside(&file), &asked(1)), Written::Yes);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "as it was");
    assert!(!beside(&file).is_symlink());
}

#[test]
fn a_folder_that_cannot_be_written_to_is_said_so() {
    let (folder, file) = folder();
    fs::create_dir(folder.path().join("heartbeat.json.instructions.tmp")).unwrap();
    assert!(matches!(instructions::write(&beside(&file), &asked(1)), Written::No(_)));
}
