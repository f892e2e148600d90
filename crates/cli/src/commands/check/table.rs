//! The answer as people see it.

use std::time::Duration;

use anstyle::Style;

use super::answer::{CheckAnswer, Counts, Outcome, Status, Verdict};
use crate::output::{Answer, BOLD, Detail, Exit, GREEN, RED, Text, YELLOW, duration, plural};

/// Where the right-hand column starts: after two spaces, the state, and the longest title.
const TITLE_WIDTH: usize = 42;
/// `unknown` is the longest state.
const STATUS_WIDTH: usize = 7;
const RIGHT_WIDTH: usize = 100 - (2 + STATUS_WIDTH + 2 + TITLE_WIDTH);
/// Lines that belong to a check stand under its title, a little to the right.
const INDENT: &str = "             ";

impl Answer for CheckAnswer {
    const KIND: &'static str = "Check";

    fn table(&self, detail: Detail) -> Text {
        let mut text = Text::new();
        for section in &self.sections {
            let shown: Vec<&Outcome> = section
                .checks
                .iter()
                .filter(|outcome| {
                    detail == Detail::Full || !matches!(outcome.status, Status::Ok | Status::Skip)
                })
                .collect();
            if !shown.is_empty() {
                text.line(format_args!("{BOLD}{}{BOLD:#}", section.category.name()));
            }
            for outcome in shown {
                row(&mut text, outcome);
            }
        }
        if detail == Detail::Full || self.verdict != Verdict::Passed || self.counts.warn > 0 {
            text.blank();
        }
        last_line(&mut text, self);
        text
    }

    fn exit(&self) -> Exit {
        self.verdict.exit()
    }
}

fn row(text: &mut Text, outcome: &Outcome) {
    let (word, style) = word(outcome.status);
    let title = outcome.title;
    // A calm check is one line, and so is one that only follows another: that one has the story.
    // One that needs attention has its code in the line and its story below.
    let (right, story) = match outcome.explain {
        None => (outcome.detail.clone(), false),
        Some(code) if code != outcome.code => (format!("see {code}"), false),
        Some(code) => (code.to_owned(), true),
    };
    let fits = right.chars().count() <= RIGHT_WIDTH;
    let right = if fits { right.as_str() } else { "" };
    let line = format!("  {style}{word:STATUS_WIDTH$}{style:#}  {title:TITLE_WIDTH$}{right}");
    text.line(format_args!("{}", line.trim_end()));
    if story || !fits {
        text.wrapped(INDENT, &outcome.detail);
    }
    for note in &outcome.notes {
        text.line(format_args!("{INDENT}{note}"));
    }
    if let Some(effect) = &outcome.effect {
        text.wrapped(INDENT, &format!("effect: {effect}"));
    }
    if let Some(hint) = &outcome.hint {
        // Never wrapped: a command that is cut in two cannot be pasted.
        text.line(format_args!("{INDENT}hint: {hint}"));
    }
}

fn word(status: Status) -> (&'static str, Style) {
    match status {
        Status::Ok => ("ok", GREEN),
        Status::Warn => ("warn", YELLOW),
        Status::Fail => ("FAIL", RED),
        Status::Skip => ("skip", Style::new()),
        Status::Unknown => ("unknown", YELLOW),
    }
}

fn last_line(text: &mut Text, answer: &CheckAnswer) {
    let verdict = match answer.verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Incomplete => "incomplete",
        Verdict::TimedOut => "timed out",
    };
    let when = if answer.before_install { "pre-install check" } else { "check" };
    let Counts { ok, warn, fail, skip, unknown } = answer.counts;
    let mut counts = vec![format!("{ok} ok")];
    if warn > 0 {
        counts.push(plural(warn as usize, "warning"));
    }
    for (count, word) in [(fail, "failed"), (unknown, "unknown"), (skip, "skipped")] {
        if count > 0 {
            counts.push(format!("{count} {word}"));
        }
    }
    let took = duration(Duration::from_millis(answer.took_millis));
    let line = format!("{when} {verdict}: {} in {took}", counts.join(", "));
    match worst(answer) {
        Some(code) => text.line(format_args!("{line}     more: flyball explain {code}")),
        None => text.line(format_args!("{line}")),
    }
}

/// The first of the gravest: what to look at first.
fn worst(answer: &CheckAnswer) -> Option<&'static str> {
    [Status::Fail, Status::Unknown, Status::Warn].into_iter().find_map(|status| {
        let mut outcomes = answer.sections.iter().flat_map(|section| &section.checks);
        outcomes.find(|outcome| outcome.status == status)?.explain
    })
}
