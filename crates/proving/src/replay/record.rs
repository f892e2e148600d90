//! What each request got, one line each, in order of arrival.

use super::client::{Answer, Failed};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Seconds after the first.
    pub(super) at: f64,
    /// Tokens that it asked for.
    pub(super) output: u32,
    pub(super) answer: Result<Answer, Failed>,
}

/// Writes them all. A request without a whole answer has no times.
pub(super) fn write(path: &Path, mut records: Vec<Record>) -> Result<()> {
    records.sort_by(|one, other| one.at.total_cmp(&other.at));
    let lines: String = records.iter().map(line).collect();
    let text = format!("at_seconds,first_ms,between_ms,outcome\n{lines}");
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn line(record: &Record) -> String {
    let mut line = format!("{:.3},", record.at);
    let written = match record.answer {
        Ok(Answer { first, last, .. }) => {
            let tokens = f64::from(record.output.saturating_sub(1).max(1));
            let between = (last - first).as_secs_f64() * 1e3 / tokens;
            write!(line, "{:.1},{between:.2},answered", first.as_secs_f64() * 1e3)
        }
        Err(failed) => write!(line, ",,{failed}"),
    };
    debug_assert!(written.is_ok(), "writing to a String does not fail");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_line_has_times_or_says_why_not() {
        let (first, last) = (Duration::from_millis(250), Duration::from_millis(1_240));
        let whole = Ok(Answer { first, last, events: 100 });
        assert_eq!(
            line(&Record { at: 1.5, output: 100, answer: whole }),
            "1.500,250.0,10.00,answered\n"
        );
        let late = Record { at: 2.0, output: 100, answer: Err(Failed::Status(503)) };
        assert_eq!(line(&late), "2.000,,,status 503\n");
    }
}
