//! The stream of acts as an answer.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::act::{AuditAct, AuditChange, Source};
use super::stream::Stream;
use crate::moment::clock_of;
use crate::output::document::{Below, Block, Cell, Column, Row, Table, Tone};
use crate::output::{Answer, Detail, Document, Exit, plural};

/// Who did what.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditList {
    /// Time of the query, RFC 3339.
    asked_at: String,
    /// Oldest first.
    acts: Vec<AuditAct>,
    lines: AuditLines,
    /// What could not be read, as `FILE:LINE: why`; the first twenty.
    problems: Vec<String>,
}

/// Of which lines there were how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AuditLines {
    /// All.
    read: u64,
    /// About other things, or of no audit log.
    other: u64,
    /// That were there before, letter by letter.
    doubled: u64,
    /// That could not be read.
    broken: u64,
}

/// Which acts are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct AuditFilter {
    /// From this moment on.
    pub(super) since: Option<Timestamp>,
    /// Namespace and name.
    pub(super) tenant: Option<(String, String)>,
}

impl AuditList {
    pub(super) fn of(mut stream: Stream, filter: &AuditFilter, now: Timestamp) -> Self {
        let counts = stream.counts;
        let mut problems = std::mem::take(&mut stream.problems);
        if counts.lines > 0 && counts.known == 0 && counts.broken == 0 {
            problems.push("no line is one of an audit log".to_owned());
        }
        let mut acts = stream.acts();
        acts.retain(|act| filter.has(act));
        let lines = AuditLines {
            read: counts.lines,
            other: counts.others,
            doubled: counts.doubled,
            broken: counts.broken,
        };
        Self { asked_at: now.to_string(), acts, lines, problems }
    }

    fn table(&self, detail: Detail) -> Option<Block> {
        let now = self.asked_at.parse().unwrap_or(Timestamp::MAX);
        let shown = |act: &&AuditAct| detail == Detail::Full || act.was_refused();
        let rows: Vec<Row> = self.acts.iter().filter(shown).map(|act| act.row(now)).collect();
        let columns = ["TIME", "LOG", "WHO", "DID", "ON", "OUTCOME"].map(Column::left);
        let columns = columns.map(|one| if one.title == "WHO" { one.at_least(20) } else { one });
        let columns = columns.into();
        (!rows.is_empty()).then(|| Block::Table(Table { rows, ..Table::new(columns) }))
    }
}

impl AuditFilter {
    fn has(&self, act: &AuditAct) -> bool {
        let recent = self
            .since
            .is_none_or(|since| act.time.parse::<Timestamp>().is_ok_and(|time| time >= since));
        recent && self.tenant.as_ref().is_none_or(|tenant| act.is_about(tenant))
    }
}

impl AuditAct {
    fn is_about(&self, (namespace, name): &(String, String)) -> bool {
        let named = |text: &str| {
            let mut parts = text.split('/');
            // A path has the Tenants above it in between.
            parts.next() == Some(namespace.as_str()) && parts.next_back() == Some(name.as_str())
        };
        if let Some(tenant) = &self.tenant {
            return named(tenant);
        }
        // In a gateway's words, with the sign of a change before it.
        self.source == Source::Gateway
            && self.object.split(' ').any(|word| named(word.trim_start_matches(['+', '~', '-'])))
    }

    fn was_refused(&self) -> bool {
        self.outcome.starts_with("refused") || self.outcome.starts_with("failed")
    }

    fn row(&self, now: Timestamp) -> Row {
        let who = match &self.acting_as {
            Some(other) => format!("{} as {other}", self.who),
            None => self.who.clone(),
        };
        let outcome = match self.outcome.as_str() {
            "accepted" => Cell::toned("accepted", Tone::Good),
            text if self.was_refused() => Cell::toned(text, Tone::Bad),
            text => Cell::from(text),
        };
        let log = match self.source {
            Source::ApiServer => "api",
            Source::Gateway => "gateway",
        };
        let row = Row::new([
            clock_of(&self.time, now).into(),
            log.into(),
            who.into(),
            self.did().into(),
            self.object.as_str().into(),
            outcome,
        ]);
        Row { below: self.details().into_iter().map(Below::Words).collect(), ..row }
    }

    fn did(&self) -> String {
        let tried = self.was_refused() && self.source == Source::ApiServer;
        if tried { format!("tried: {}", self.act) } else { self.act.clone() }
    }

    /// What it changed, in words.
    fn details(&self) -> Vec<String> {
        let words = self.changes.iter().map(AuditChange::words);
        let is_change = self.source == Source::ApiServer && self.act == "changed";
        let mut details: Vec<String> = match self.all_changes {
            Some(true) if is_change && self.changes.is_empty() => {
                vec!["nothing of the spec".into()]
            }
            Some(true) => words.collect(),
            // What was there before is not known.
            _ if self.changes.is_empty() => Vec::new(),
            _ => vec![format!("wrote {}", words.collect::<Vec<_>>().join(", "))],
        };
        if let Some(count) = self.missing_before {
            let count = usize::try_from(count).unwrap_or_default();
            details.push(format!("{} before it not in the log", plural(count, "change")));
        }
        details
    }
}

impl Answer for AuditList {
    const KIND: &'static str = "AuditList";

    fn view(&self, detail: Detail) -> Document {
        let mut document = Document::new();
        if let Some(table) = self.table(detail) {
            document.push(table);
            document.push(Block::Gap);
        }
        if !self.problems.is_empty() {
            document.push(Block::Notes(self.problems.clone()));
            document.push(Block::Gap);
        }
        let refused = self.acts.iter().filter(|act| act.was_refused()).count();
        let AuditLines { read, other, doubled, broken } = self.lines;
        document.push(Block::Line(format!(
            "{}, {refused} refused   {read} lines: {other} other, {doubled} doubled, {broken} unreadable",
            plural(self.acts.len(), "act"),
        )));
        document
    }

    /// With lines that could not be read, who did what is not known.
    fn exit(&self) -> Exit {
        if self.problems.is_empty() { Exit::Yes } else { Exit::Unknown }
    }
}
