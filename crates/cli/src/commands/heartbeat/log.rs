//! Heartbeats in a log: lines of the package, or of the run's own with a pattern.

use std::path::Path;

use flyball_resources::heartbeat::{Heartbeat, HeartbeatForm, VERSION};
use regex::{Captures, Regex, RegexBuilder};

use super::files::{moment, tail};

/// Bytes at the end of a log that are searched. A thousand lines of most runs.
const TAIL: usize = 256 << 10;

/// Bytes of a compiled pattern, so that one cannot take all memory.
const COMPILED: usize = 1 << 20;

/// A user's regular expression with the groups that it has.
#[derive(Clone, Debug)]
pub(super) struct LogPattern(Regex);

impl LogPattern {
    /// Compiles one, and holds it to the names of the groups.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let regex = RegexBuilder::new(text)
            .size_limit(COMPILED)
            .build()
            .map_err(|error| error.to_string().lines().last().unwrap_or_default().to_owned())?;
        let names: Vec<&str> = regex.capture_names().flatten().collect();
        if let Some(other) = names.iter().find(|name| !["step", "saved", "total"].contains(name)) {
            return Err(format!("unknown group `{other}`; the groups are step, saved and total"));
        }
        if !names.iter().any(|name| ["step", "saved"].contains(name)) {
            return Err("it has neither a group `step` nor a group `saved`".to_owned());
        }
        Ok(Self(regex))
    }

    /// From the newest line of each group: a step and a save are seldom on one line.
    fn last<'a>(&self, lines: impl DoubleEndedIterator<Item = &'a str>) -> Option<HeartbeatForm> {
        let (mut step, mut saved, mut total) = (None, None, None);
        for found in lines.rev().filter_map(|line| self.0.captures(line)) {
            step = step.or_else(|| number(&found, "step"));
            saved = saved.or_else(|| number(&found, "saved"));
            total = total.or_else(|| number(&found, "total"));
        }
        let form = HeartbeatForm {
            version: VERSION,
            // A save that is announced before its step was.
            step: step.max(saved)?,
            total_steps: total,
            saved_step: saved,
            ..HeartbeatForm::default()
        };
        Some(form)
    }
}

fn number(found: &Captures<'_>, group: &str) -> Option<u64> {
    found.name(group)?.as_str().parse().ok()
}

/// The last heartbeat of a log.
pub(super) fn last(path: &Path, pattern: Option<&LogPattern>) -> Result<Heartbeat, String> {
    let (bytes, written) = tail(path, TAIL)?;
    let text = String::from_utf8_lossy(&bytes);
    // What has no end yet is not a line yet.
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let Some(pattern) = pattern else {
        let mut found = lines.rev().filter_map(Heartbeat::in_line);
        let newest = found.next().ok_or_else(|| nothing(path))?;
        // The run's other output may have come in between; the line before it is nearly as new.
        return newest.or_else(|problem| {
            let sound = found.find_map(Result::ok);
            sound.ok_or_else(|| format!("the last line is refused: {problem}"))
        });
    };
    let mut form = pattern.last(lines).ok_or_else(|| nothing(path))?;
    // A pattern has no time: the log was written when its last line was.
    form.at = moment(written).to_string();
    Heartbeat::try_from(form).map_err(|problem| format!("the log is refused: {problem}"))
}

fn nothing(path: &Path) -> String {
    format!("no heartbeat in the last {} KiB of {}", TAIL >> 10, path.display())
}
