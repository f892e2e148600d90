//! The answer as people see it.

use std::time::Duration;

use super::answer::{CheckAnswer, Counts, Outcome, Status, Verdict};
use crate::output::document::{Below, Block, Cell, Column, Overflow, Row, Table, Tone};
use crate::output::{Answer, Detail, Document, Exit, duration, plural};

/// The longest title, so that the categories line up.
const TITLE_WIDTH: usize = 40;
/// More checks than this that only follow another are counted and not listed: one cause is said once.
const FOLLOWERS: usize = 3;
/// `unknown` is the longest state.
const STATUS_WIDTH: usize = 7;

impl Answer for CheckAnswer {
    const KIND: &'static str = "Check";

    fn view(&self, detail: Detail) -> Document {
        let mut document = Document::new();
        let all = || self.sections.iter().flat_map(|section| &section.checks);
        let following = |code: &str| all().filter(|one| follows(one) == Some(code)).count();
        let counted = |one: &Outcome| follows(one).is_some_and(|code| following(code) > FOLLOWERS);
        for section in &self.sections {
            let shown: Vec<&Outcome> = section
                .checks
                .iter()
                .filter(|outcome| {
                    detail == Detail::Full || !matches!(outcome.status, Status::Ok | Status::Skip)
                })
                .filter(|outcome| !counted(outcome))
                .collect();
            if !shown.is_empty() {
                document.push(Block::Heading(section.category.name().to_owned()));
                document.push(Block::Table(table(&shown)));
            }
        }
        let mut causes: Vec<&str> = all().filter(|one| counted(one)).filter_map(follows).collect();
        causes.dedup();
        for code in causes {
            document.push(Block::Gap);
            document
                .push(Block::Line(format!("{} more checks need {code} first", following(code))));
        }
        if detail == Detail::Full || self.verdict != Verdict::Passed || self.counts.warn > 0 {
            document.push(Block::Gap);
        }
        document.push(Block::Line(last_line(self)));
        document
    }

    fn exit(&self) -> Exit {
        self.verdict.exit()
    }
}

/// The code of the check that this one only follows.
fn follows(outcome: &Outcome) -> Option<&'static str> {
    outcome.explain.filter(|code| *code != outcome.code)
}

fn table(outcomes: &[&Outcome]) -> Table {
    Table {
        rows: outcomes.iter().map(|outcome| row(outcome)).collect(),
        titled: false,
        indent: 2,
        overflow: Overflow::Below,
        ..Table::new(vec![
            Column::left("State").at_least(STATUS_WIDTH),
            Column::left("Check").at_least(TITLE_WIDTH),
            Column::left("Found"),
        ])
    }
}

fn row(outcome: &Outcome) -> Row {
    let mut below = Vec::new();
    // A calm check is one line, and so is one that only follows another: that one has the story.
    // One that needs attention has its code in the line and its story below.
    let right = match outcome.explain {
        None => outcome.detail.clone(),
        Some(code) if code != outcome.code => format!("see {code}"),
        Some(code) => {
            below.push(Below::Words(outcome.detail.clone()));
            code.to_owned()
        }
    };
    below.extend(outcome.notes.iter().map(|note| Below::Exact(note.clone())));
    if let Some(effect) = &outcome.effect {
        below.push(Below::Words(format!("effect: {effect}")));
    }
    if let Some(hint) = &outcome.hint {
        // Never wrapped: a command that is cut in two cannot be pasted.
        below.push(Below::Exact(format!("hint: {hint}")));
    }
    Row { below, ..Row::new([word(outcome.status), outcome.title.into(), right.into()]) }
}

fn word(status: Status) -> Cell {
    match status {
        Status::Ok => Cell::toned("ok", Tone::Good),
        Status::Warn => Cell::toned("warn", Tone::Caution),
        Status::Fail => Cell::toned("FAIL", Tone::Bad),
        Status::Skip => Cell::toned("skip", Tone::Plain),
        Status::Unknown => Cell::toned("unknown", Tone::Caution),
    }
}

fn last_line(answer: &CheckAnswer) -> String {
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
        Some(code) => format!("{line}     more: flyball explain {code}"),
        None => line,
    }
}

/// The first of the gravest: what to look at first.
fn worst(answer: &CheckAnswer) -> Option<&'static str> {
    [Status::Fail, Status::Unknown, Status::Warn].into_iter().find_map(|status| {
        let mut outcomes = answer.sections.iter().flat_map(|section| &section.checks);
        outcomes.find(|outcome| outcome.status == status)?.explain
    })
}
