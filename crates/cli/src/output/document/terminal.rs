//! A document on a terminal: as wide as that is and at most 100 columns, aligned, with colour that only adds.

use anstyle::Style;

use super::{Align, Below, Block, Cell, Document, Overflow, Row, Table, Tone, parts, shown, tree};
use crate::chart;
use crate::output::Charset;
use crate::text::{BOLD, GREEN, RED, Text, WIDTH, YELLOW, width, wrap};

/// In place of what has no other form than a wide one.
const LEFT_OUT: &str = "(a picture is left out: the terminal is too narrow)";

/// Between two columns.
const GAP: usize = 2;
/// No column of text becomes narrower than this: narrower ones are a word per line.
const NARROWEST: usize = 14;

impl Document {
    pub(crate) fn terminal(&self, charset: Charset, columns: usize) -> Text {
        let mut text = Text::new(columns);
        for block in &self.blocks {
            match block {
                Block::Heading(words) => {
                    text.line(format_args!("{BOLD}{}{BOLD:#}", charset.fold(words)));
                }
                Block::Verdict(words, tone) => show_verdict(&mut text, &charset.fold(words), *tone),
                Block::Facts(facts) => show_facts(&mut text, facts, charset),
                Block::Table(table) => show_table(&mut text, table, charset),
                Block::Tree(nodes) => tree::show(&mut text, nodes, charset),
                Block::Notes(notes) => {
                    for note in notes {
                        text.wrapped("", &charset.fold(note));
                    }
                }
                Block::Line(line) => show_line(&mut text, &charset.fold(line)),
                Block::Page(page) => show_page(&mut text, page),
                Block::Picture(_) if columns < chart::terminal::WHOLE => {
                    text.line(format_args!("{LEFT_OUT}"))
                }
                Block::Picture(chart) => text.append(chart::terminal::draw(chart, charset)),
                Block::Gap => text.blank(),
            }
        }
        text
    }
}

fn show_verdict(text: &mut Text, words: &str, tone: Tone) {
    let style = style(tone).bold();
    for line in wrap(words, text.columns()) {
        text.line(format_args!("{style}{line}{style:#}"));
    }
}

fn show_facts(text: &mut Text, facts: &[(String, String)], charset: Charset) {
    let names = facts.iter().map(|(name, _)| width(&charset.fold(name))).max().unwrap_or(0);
    for (name, value) in facts {
        let (name, value) = (charset.fold(name), charset.fold(shown(value)));
        for (index, line) in
            wrap(&value, text.columns().saturating_sub(names + GAP)).iter().enumerate()
        {
            let name = if index == 0 { name.as_ref() } else { "" };
            text.line(format_args!("{}{line}", padded(name, names + GAP, Align::Left)));
        }
    }
}

/// A line as it is; where a narrow terminal ends before it, its parts below each other.
fn show_line(text: &mut Text, line: &str) {
    // Into a pipe nothing is narrow, and `grep` finds whole lines.
    if text.columns() >= WIDTH || width(line) <= text.columns() {
        return text.line(format_args!("{line}"));
    }
    for part in parts(line) {
        text.line(format_args!("{part}"));
    }
}

/// A table whose numbers do not fit beside each other: each row as a few lines of its own.
fn show_records(text: &mut Text, layout: &Layout<'_>) {
    let (table, charset) = (layout.table, layout.charset);
    let titles = table.columns.iter().skip(1).map(|column| width(&charset.fold(&column.title)));
    let titles = titles.max().unwrap_or(0);
    for row in &table.rows {
        let mark = row.mark.map(|mark| format!("{mark} ")).unwrap_or_default();
        text.line(format_args!("{BOLD}{mark}{}{BOLD:#}", layout.cell(row, 0)));
        for (index, column) in table.columns.iter().enumerate().skip(1) {
            let title = charset.fold(&column.title);
            let tone = style(row.cells.get(index).map_or(Tone::Plain, |cell| cell.tone));
            let room = text.columns().saturating_sub(titles + 2 * GAP);
            for (number, line) in wrap(&layout.cell(row, index), room).iter().enumerate() {
                let title = if number == 0 { title.as_ref() } else { "" };
                let title = padded(title, titles + GAP, Align::Left);
                text.line(format_args!("  {title}{tone}{line}{tone:#}"));
            }
        }
        for below in &row.below {
            let (Below::Words(words) | Below::Exact(words)) = below;
            text.wrapped("  ", &charset.fold(words));
        }
    }
}

fn show_page(text: &mut Text, page: &str) {
    for line in page.lines() {
        if line.starts_with('#') {
            text.line(format_args!("{BOLD}{line}{BOLD:#}"));
        } else {
            text.line(format_args!("{line}"));
        }
    }
}

/// A table whose cells may be shown as they are, with the room that each column gets.
struct Layout<'a> {
    table: &'a Table,
    widths: Vec<usize>,
    /// Before the first column: indent, and marks if there are any.
    margin: usize,
    charset: Charset,
}

fn show_table(text: &mut Text, table: &Table, charset: Charset) {
    let layout = Layout::new(table, charset, text.columns());
    if layout.total() > text.columns() {
        match table.overflow {
            Overflow::Hide => return text.line(format_args!("{LEFT_OUT}")),
            Overflow::Wrap => return show_records(text, &layout),
            Overflow::Below => {}
        }
    }
    if table.titled {
        let titles = table.columns.iter().map(|column| charset.fold(&column.title).into_owned());
        layout.line(text, ' ', &titles.collect::<Vec<_>>(), |_| Style::new(), BOLD);
    }
    for row in &table.rows {
        layout.row(text, row);
    }
}

impl<'a> Layout<'a> {
    fn new(table: &'a Table, charset: Charset, columns: usize) -> Layout<'a> {
        let marks = if table.has_marks() { 2 } else { 0 };
        let mut layout =
            Layout { table, widths: Vec::new(), margin: table.indent + marks, charset };
        for (index, column) in table.columns.iter().enumerate() {
            let title = if table.titled { width(&charset.fold(&column.title)) } else { 0 };
            let cells = table.rows.iter().map(|row| width(&layout.cell(row, index)));
            let widest = cells.max().unwrap_or(0);
            layout.widths.push(widest.max(title).max(column.at_least));
        }
        if table.overflow == Overflow::Wrap {
            layout.squeeze(columns);
        }
        layout
    }

    /// Takes what is too much from the widest columns of text. Numbers are never wrapped.
    fn squeeze(&mut self, room: usize) {
        while let Some(excess) = self.total().checked_sub(room).filter(|excess| *excess > 0) {
            let columns = self.table.columns.iter().zip(&self.widths).enumerate();
            let text = columns.filter(|(_, (column, width))| {
                column.align == Align::Left && **width > NARROWEST.max(column.at_least)
            });
            let Some((index, (_, width))) = text.max_by_key(|(_, (_, width))| **width) else {
                return;
            };
            let least = NARROWEST.max(self.table.columns[index].at_least);
            self.widths[index] = width.saturating_sub(excess).max(least);
        }
    }

    fn total(&self) -> usize {
        self.margin + self.widths.iter().sum::<usize>() + GAP * self.widths.len().saturating_sub(1)
    }

    fn cell(&self, row: &Row, index: usize) -> String {
        let text = row.cells.get(index).map_or("-", Cell::shown);
        self.charset.fold(text).into_owned()
    }

    fn row(&self, text: &mut Text, row: &Row) {
        let mut cells: Vec<String> =
            (0..self.widths.len()).map(|index| self.cell(row, index)).collect();
        let moved = self.moved_below(&mut cells, text.columns());
        let lines: Vec<Vec<String>> =
            cells.iter().zip(&self.widths).map(|(cell, room)| self.lines(cell, *room)).collect();
        let muted = if row.muted { Style::new().dimmed() } else { Style::new() };
        for number in 0..lines.iter().map(Vec::len).max().unwrap_or(0) {
            let mark = row.mark.filter(|_| number == 0).unwrap_or(' ');
            let parts: Vec<String> =
                lines.iter().map(|cell| cell.get(number).cloned().unwrap_or_default()).collect();
            let tone = |index: usize| style(row.cells.get(index).map_or(Tone::Plain, |c| c.tone));
            self.line(text, mark, &parts, tone, muted);
        }
        // Under the second column, a little to the right.
        let first = self.widths.first().copied().unwrap_or(0);
        let indent = " ".repeat(self.margin + first + 2 * GAP);
        for below in moved.iter().chain(&row.below) {
            match below {
                Below::Words(words) => text.wrapped(&indent, &self.charset.fold(words)),
                Below::Exact(line) => {
                    text.line(format_args!("{indent}{}", self.charset.fold(line)));
                }
            }
        }
    }

    /// Takes the last cell out of its row if the row is too wide with it.
    fn moved_below(&self, cells: &mut [String], room: usize) -> Option<Below> {
        let before: usize = self.widths.iter().rev().skip(1).map(|width| width + GAP).sum();
        let last = cells.last_mut()?;
        let fits = self.margin + before + width(last) <= room;
        (self.table.overflow == Overflow::Below && !fits)
            .then(|| Below::Words(std::mem::take(last)))
    }

    fn lines(&self, cell: &str, room: usize) -> Vec<String> {
        match self.table.overflow {
            Overflow::Wrap if width(cell) > room => wrap(cell, room),
            _ => vec![cell.to_owned()],
        }
    }

    fn line(
        &self,
        text: &mut Text,
        mark: char,
        cells: &[String],
        tone: impl Fn(usize) -> Style,
        whole: Style,
    ) {
        let mut line = " ".repeat(self.table.indent);
        if self.table.has_marks() {
            line.push(mark);
            line.push(' ');
        }
        let last = cells.iter().rposition(|cell| !cell.is_empty()).unwrap_or(0);
        for (index, cell) in cells.iter().enumerate().take(last + 1) {
            let align = self.table.columns[index].align;
            // Nothing follows the last cell, so blanks after it would only be pasted along.
            let room = if index == last && align == Align::Left { 0 } else { self.widths[index] };
            let tone = tone(index);
            line.push_str(&format!("{tone}{}{tone:#}", padded(cell, room, align)));
            if index < last {
                line.push_str(&" ".repeat(GAP));
            }
        }
        text.line(format_args!("{whole}{}{whole:#}", line.trim_end()));
    }
}

fn padded(cell: &str, room: usize, align: Align) -> String {
    let blanks = " ".repeat(room.saturating_sub(width(cell)));
    match align {
        Align::Left => format!("{cell}{blanks}"),
        Align::Right => format!("{blanks}{cell}"),
    }
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => GREEN,
        Tone::Caution => YELLOW,
        Tone::Bad => RED,
    }
}
