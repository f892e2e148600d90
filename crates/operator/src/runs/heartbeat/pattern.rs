//! A heartbeat out of lines that a run writes for people, by regular expressions of its owner.
//!
//! Both are somebody's text. An expression is bounded in its length by the API and in its program here, it takes time in
//! proportion to the line (there is no backtracking), and knows bytes only. Of a log, the last lines are looked at, and the
//! beginning of each. What a line says is bounded like any heartbeat.

use flyball_core::units::{Micros, Timestamp};
use flyball_resources::heartbeat::{Heartbeat, MAX_COUNT, MAX_DURATION};
use flyball_resources::training_run::LogPatternsSpec;
use regex::bytes::{Captures, Regex, RegexBuilder};

/// Bytes of a compiled expression: one of 512 characters may say "this, a thousand times".
const PROGRAM: usize = 32 << 10;

/// Bytes of a line that are looked at.
const LINE: usize = 512;

/// Lines that are looked at, the newest of a log.
const LINES: usize = 100;

/// Compiled expressions.
#[derive(Clone, Debug)]
pub(super) struct LogPatterns {
    step: Regex,
    saved: Option<Regex>,
}

/// What is known of a run besides its log.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownOfRun<'a> {
    /// Which start the log is of.
    pub(super) attempt: &'a str,
    /// The last saved step that it has reported before.
    pub(super) saved_step: Option<u64>,
}

/// A line with what it says.
struct StepLine {
    at: Timestamp,
    step: u64,
    total: Option<u64>,
    seconds: Option<Micros>,
    tokens: Option<u64>,
    saved: Option<u64>,
}

impl LogPatterns {
    /// Compiles what an owner wrote.
    pub(super) fn new(spec: &LogPatternsSpec) -> Result<Self, String> {
        let step = compiled("step", &spec.step)?;
        if !step.capture_names().flatten().any(|name| name == "step") {
            return Err("`checkpoint.logPatterns.step` has no group `step`".to_owned());
        }
        let saved = spec.saved.as_ref().map(|saved| compiled("saved", saved)).transpose()?;
        Ok(Self { step, saved })
    }

    /// The newest heartbeat of a log whose lines begin with their time.
    pub(super) fn newest(&self, text: &str, known: KnownOfRun<'_>) -> Option<Heartbeat> {
        let mut steps: Vec<StepLine> = Vec::new();
        let mut save: Option<(Timestamp, u64, Option<Micros>)> = None;
        let lines: Vec<&str> = text.lines().rev().take(LINES).collect();
        for line in lines.into_iter().rev() {
            let Some((at, line)) = dated(line) else { continue };
            let line = &line.as_bytes()[..line.len().min(LINE)];
            if let Some(found) = self.step.captures(line)
                && let Some(one) = step_line(at, &found)
            {
                // A smaller step is of a start that began anew.
                steps.retain(|before| before.step < one.step);
                steps.push(one);
            }
            if let Some(found) = self.saved.as_ref().and_then(|saved| saved.captures(line)) {
                let step = match found.name("saved") {
                    Some(_) => count(&found, "saved"),
                    None => steps.last().map(|last| last.step),
                };
                save = step.map(|step| (at, step, seconds(&found))).or(save);
            }
        }
        let (first, last) = (steps.first()?, steps.last()?);
        let reported = save.as_ref().map(|(_, step, _)| *step);
        let own = reported.max(last.saved).filter(|saved| *saved <= last.step);
        let before = known.saved_step.filter(|saved| *saved <= last.step);
        let elapsed = last.at.since(first.at).unwrap_or(Micros::ZERO);
        let apart = (last.step - first.step).max(1);
        let measured = Some(Micros::new(elapsed.get() / apart)).filter(|time| !time.is_zero());
        Some(Heartbeat {
            step: last.step,
            total_steps: last.total.filter(|total| *total >= last.step),
            saved_step: own.max(before),
            restored_step: before.unwrap_or(0),
            step_time: last.seconds.or(measured).filter(|time| *time <= MAX_DURATION),
            save_time: save.as_ref().and_then(|(_, _, time)| *time),
            restore_time: None,
            tokens: last.tokens,
            started_at: None,
            at: save.map_or(last.at, |(at, ..)| at.max(last.at)),
            attempt: Some(known.attempt.to_owned()),
            save_every: None,
            instructions_number: None,
            attempt_count: None,
            repeated_steps: None,
        })
    }
}

fn compiled(field: &str, text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text)
        .unicode(false)
        .size_limit(PROGRAM)
        .dfa_size_limit(PROGRAM)
        .nest_limit(32)
        .build();
    built.map_err(|error| {
        let what = match error {
            regex::Error::CompiledTooBig(_) => "too large",
            _ => "not a regular expression",
        };
        format!("`checkpoint.logPatterns.{field}` is {what}")
    })
}

/// The time and the rest of a line.
pub(super) fn dated(line: &str) -> Option<(Timestamp, &str)> {
    let (at, rest) = line.split_once(' ')?;
    let at = at.get(..64.min(at.len()))?.parse::<jiff::Timestamp>().ok()?;
    Some((crate::time::of_date(at), rest))
}

fn step_line(at: Timestamp, found: &Captures<'_>) -> Option<StepLine> {
    Some(StepLine {
        at,
        step: count(found, "step")?,
        total: count(found, "total"),
        seconds: seconds(found),
        tokens: count(found, "tokens"),
        saved: count(found, "saved"),
    })
}

/// A number, with commas or without.
fn count(found: &Captures<'_>, group: &str) -> Option<u64> {
    let text = std::str::from_utf8(found.name(group)?.as_bytes()).ok()?;
    let digits: String = text.chars().filter(|one| *one != ',').take(32).collect();
    digits.parse().ok().filter(|count| *count <= MAX_COUNT)
}

fn seconds(found: &Captures<'_>) -> Option<Micros> {
    let text = std::str::from_utf8(found.name("seconds")?.as_bytes()).ok()?;
    let seconds: f64 = text.parse().ok()?;
    let known = seconds.is_finite() && seconds >= 0.0;
    let time = Micros::new((known.then_some(seconds)? * 1e6).round() as u64);
    (time <= MAX_DURATION).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(step: &str, saved: Option<&str>) -> Result<LogPatterns, String> {
        LogPatterns::new(&LogPatternsSpec {
            step: step.to_owned(),
            saved: saved.map(str::to_owned),
        })
    }

    const KNOWN: KnownOfRun<'_> = KnownOfRun { attempt: "pod-1", saved_step: None };

    /// Lines of a log, ten seconds apart.
    fn log(lines: &[&str]) -> String {
        let line = |(place, line): (usize, &&str)| {
            format!("2026-11-15T14:{:02}:{:02}.5Z {line}\n", place / 6, place % 6 * 10)
        };
        lines.iter().enumerate().map(line).collect()
    }

    #[test]
    fn what_people_read_says_how_far_a_run_is() {
        let read = patterns(
            r"step (?P<step>[0-9,]+)/(?P<total>[0-9,]+) loss",
            Some(r"saved checkpoint .*step-(?P<saved>\d+) in (?P<seconds>[0-9.]+) s"),
        );
        let text = log(&[
            "loading",
            "step 1,100/20,000 loss=2.1",
            "step 1,105/20,000 loss=2.0",
            "saved checkpoint to /c/step-1105 in 4.5 s",
            "step 1,110/20,000 loss=1.9",
        ]);
        let beat = read.unwrap().newest(&text, KNOWN).unwrap();
        assert_eq!((beat.step, beat.total_steps), (1_110, Some(20_000)));
        assert_eq!(
            (beat.saved_step, beat.save_time),
            (Some(1_105), Some(Micros::from_millis(4_500)))
        );
        assert_eq!(beat.step_time, Some(Micros::from_seconds(3)), "ten steps in thirty seconds");
        assert_eq!(beat.attempt.as_deref(), Some("pod-1"));
        assert_eq!(beat.steps_at_risk(), 5);
    }

    #[test]
    fn a_save_without_a_number_is_of_the_step_before_it() {
        let read =
            patterns(r"step (?P<step>\d+), (?P<seconds>[0-9.]+) s", Some("^checkpoint written$"));
        let read = read.unwrap();
        let text = log(&["step 7, 0.25 s", "checkpoint written", "step 9, 0.5 s"]);
        let beat = read.newest(&text, KNOWN).unwrap();
        assert_eq!((beat.step, beat.saved_step), (9, Some(7)));
        assert_eq!(beat.step_time, Some(Micros::from_millis(500)));
    }

    #[test]
    fn what_was_saved_before_the_last_lines_is_still_known() {
        let read = patterns(r"step (?P<step>\d+)", None).unwrap();
        let known = KnownOfRun { saved_step: Some(40), ..KNOWN };
        let beat = read.newest(&log(&["step 50"]), known).unwrap();
        assert_eq!((beat.saved_step, beat.steps_at_risk(), beat.step_time), (Some(40), 10, None));
        // One that is behind its save began anew.
        let beat = read.newest(&log(&["step 3"]), known).unwrap();
        assert_eq!((beat.saved_step, beat.resumes_at()), (None, 0));
    }

    #[test]
    fn a_start_in_the_middle_of_a_log_begins_anew() {
        let read = patterns(r"step (?P<step>\d+)", None).unwrap();
        let beat = read.newest(&log(&["step 90", "step 91", "step 5", "step 6"]), KNOWN).unwrap();
        assert_eq!((beat.step, beat.step_time), (6, Some(Micros::from_seconds(10))));
    }

    #[test]
    fn hostile_lines_say_nothing() {
        let read =
            patterns(r"step (?P<step>\S+)( of (?P<total>\d+))?( in (?P<seconds>\S+))?", None);
        let read = read.unwrap();
        for line in [
            "step 99999999999999999999999999999999999",
            "step -4",
            "step ,,,",
            "step 9007199254740992",
            "step nan",
            "step \u{0661}\u{0662}",
            "",
        ] {
            assert_eq!(read.newest(&log(&[line]), KNOWN), None, "{line}");
        }
        let beat = read.newest(&log(&["step 9 of 3 in inf", "no time at all"]), KNOWN).unwrap();
        assert_eq!((beat.step, beat.total_steps, beat.step_time), (9, None, None));
        for seconds in ["-1", "1e300", "604801"] {
            let beat = read.newest(&log(&[&format!("step 9 of 30 in {seconds}")]), KNOWN).unwrap();
            assert_eq!(beat.step_time, None, "{seconds}");
        }
        // A line without a time, one whose text is beyond its beginning, and bytes that are cut in the middle of a letter.
        assert_eq!(read.newest("step 9\n", KNOWN), None);
        assert_eq!(read.newest(&log(&[&format!("{}step 9", "x".repeat(LINE))]), KNOWN), None);
        assert!(
            read.newest(&log(&[&format!("step 9 {}", "\u{1f600}".repeat(LINE))]), KNOWN).is_some()
        );
        assert_eq!(
            read.newest(&log(&["step 9"]), KnownOfRun { saved_step: Some(u64::MAX), ..KNOWN })
                .unwrap()
                .saved_step,
            None
        );
    }

    #[test]
    fn hostile_patterns_are_refused_without_their_text() {
        for (step, why) in [
            (r"(?P<step>\w{1000}{1000})", "too large"),
            (r"(?P<step>(((((\d{50}){50}){50}){50}){50}))", "too large"),
            (r"(?P<step>[0-9]+", "not a regular expression"),
            (r"(?P<step>\d+)(?=secret)", "not a regular expression"),
            (r"(?P<step>\d+) \1", "not a regular expression"),
            (r"\d+ (?P<steps>\d+)", "has no group `step`"),
        ] {
            let refused = patterns(step, None).unwrap_err();
            assert!(refused.contains(why) && !refused.contains("secret"), "{step}: {refused}");
        }
        assert!(patterns(r"(?P<step>\d+)", Some("(")).unwrap_err().contains("logPatterns.saved"));
        // What takes ages where expressions go back takes no time here.
        let read = patterns(r"^(a+)+(b+)+(a|b|ab)*c(?P<step>\d+)$", None).unwrap();
        let lines = vec!["ab".repeat(250); 200];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(read.newest(&log(&lines), KNOWN), None);
    }
}
