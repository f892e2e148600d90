//! What breaks in which minute.

use std::fmt::Write;
use std::ops::Range;

/// From the start of its minute to when it is mended, in seconds.
pub(super) const DURING: Range<u64> = 5..25;

/// One thing that breaks for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// An engine's process is killed, and started again when it is mended.
    Kill,
    /// An engine is told by POST to misbehave.
    Engine(&'static str),
    /// The fault proxies do it by their script, which has a rule for that minute.
    Network(&'static str),
}

/// One after the other, minute by minute.
const FAULTS: [Fault; 10] = [
    Fault::Kill,
    Fault::Network("action = \"reset\"\nafter_bytes = 2000\nshare = 0.5"),
    Fault::Engine(r#"{"stall_after_tokens":6,"share":0.3}"#),
    Fault::Engine(r#"{"truncate_after_tokens":5,"share":0.4}"#),
    Fault::Network("action = \"delay\"\nmilliseconds = 50\njitter_milliseconds = 300"),
    Fault::Engine(r#"{"hang":true,"share":0.5}"#),
    Fault::Engine(r#"{"error_chance":0.5}"#),
    Fault::Network("action = \"refuse\"\nshare = 0.7"),
    Fault::Engine(r#"{"ignore_aborts":true}"#),
    Fault::Engine(r#"{"draining":true}"#),
];

impl Fault {
    /// Of this minute.
    pub(super) fn of(minute: u64) -> Self {
        FAULTS[minute as usize % FAULTS.len()]
    }
}

/// The proxies' script for a run of so many seconds.
pub(super) fn script(seed: u64, seconds: f64) -> String {
    let mut text = format!("seed = {seed}\n");
    for minute in 0..(seconds / 60.0).ceil() as u64 {
        if let Fault::Network(rule) = Fault::of(minute) {
            let (from, to) = (60 * minute + DURING.start, 60 * minute + DURING.end);
            let _ = writeln!(text, "[[rules]]\nduring = \"{from}s..{to}s\"\n{rule}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_simulator::network::Script;

    #[test]
    fn an_hour_has_a_script_that_can_be_played() {
        let script = Script::from_toml(&script(1, 3_600.0)).unwrap();
        assert_eq!(script.rules.len(), 18);
    }
}
