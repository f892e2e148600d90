//! What a command shows to people, described once.
//!
//! A command builds a [`Document`] from its answer; the terminal, Markdown and a page of HTML
//! (`html`) are renderings of it. Nothing here knows a command, a width in characters or a
//! colour: a [`Tone`] says what a cell means, and the rendering decides how that looks. Colour is
//! never the only carrier, so a tone always goes with a word and a chosen row with a mark.
//!
//! Start reading at [`Block`].

pub(crate) mod html;
mod markdown;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tree;

use crate::chart::Chart;
pub(crate) use tree::Node;

/// Blocks, from top to bottom.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Document {
    pub(crate) blocks: Vec<Block>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Block {
    Heading(String),
    /// The answer in one sentence, before everything that it rests on. The tone goes with its first word.
    Verdict(String, Tone),
    /// Names and what they are: `Model   Qwen3-32B`.
    Facts(Vec<(String, String)>),
    Table(Table),
    /// Reasons that rest on other reasons.
    Tree(Vec<Node>),
    /// Sentences; each may wrap.
    Notes(Vec<String>),
    /// One line that is never wrapped: a verdict, or a command that somebody may paste. Three
    /// blanks or more set its parts apart; Markdown and HTML break the line there.
    Line(String),
    /// A page that is written in Markdown already.
    Page(String),
    Picture(Chart),
    /// An empty line on the terminal. Markdown and HTML set their blocks apart by themselves.
    Gap,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// Whether the terminal shows the titles. Markdown and HTML always do.
    pub(crate) titled: bool,
    /// How far the terminal sets the rows to the right.
    pub(crate) indent: usize,
    pub(crate) overflow: Overflow,
}

/// What the terminal does with a row that is too wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// The widest text columns wrap.
    Wrap,
    /// The last cell moves below its row.
    Below,
    /// All of it is left out, and a line says so: it is a picture.
    Hide,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) align: Align,
    /// Never narrower than this on the terminal, so that several tables line up.
    pub(crate) at_least: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// Stands before the row, such as `*` before the chosen one.
    pub(crate) mark: Option<char>,
    /// Shown weaker: it is there for completeness. A cell must say why.
    pub(crate) muted: bool,
    /// What belongs to this row and fits in no column.
    pub(crate) below: Vec<Below>,
}

/// A line that stands under a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// May wrap.
    Words(String),
    /// Never wraps: it is aligned by hand, or is a command.
    Exact(String),
}

/// The content of a cell; an empty one is shown as `-`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// What a cell means, beside its word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    Caution,
    Bad,
}

impl Document {
    pub(crate) fn new() -> Document {
        Document::default()
    }

    pub(crate) fn push(&mut self, block: Block) {
        self.blocks.push(block);
    }
}

impl Table {
    /// Titled, not indented, and text wraps.
    pub(crate) fn new(columns: Vec<Column>) -> Table {
        Table { columns, rows: Vec::new(), titled: true, indent: 0, overflow: Overflow::Wrap }
    }

    fn has_marks(&self) -> bool {
        self.rows.iter().any(|row| row.mark.is_some())
    }
}

impl Column {
    pub(crate) fn left(title: impl Into<String>) -> Column {
        Column { title: title.into(), align: Align::Left, at_least: 0 }
    }

    /// For numbers.
    pub(crate) fn right(title: impl Into<String>) -> Column {
        Column { align: Align::Right, ..Column::left(title) }
    }

    pub(crate) fn at_least(mut self, width: usize) -> Column {
        self.at_least = width;
        self
    }
}

impl Row {
    pub(crate) fn new(cells: impl IntoIterator<Item = impl Into<Cell>>) -> Row {
        Row { cells: cells.into_iter().map(Into::into).collect(), ..Row::default() }
    }
}

impl Cell {
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone }
    }

    /// Unknown is shown as unknown: nothing is a dash, never a blank or a zero.
    pub(crate) fn shown(&self) -> &str {
        shown(&self.text)
    }
}

/// The parts of a line that blanks set apart.
pub(crate) fn parts(line: &str) -> impl Iterator<Item = &str> {
    line.split("   ").map(str::trim).filter(|part| !part.is_empty())
}

pub(crate) fn shown(text: &str) -> &str {
    if text.trim().is_empty() { "-" } else { text }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, tone: Tone::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::from(text.to_owned())
    }
}
