//! A document in GitHub's Markdown, to paste into a pull request or a wiki.

use std::fmt::Write;

use super::{Align, Below, Block, Cell, Document, Node, Row, Table, parts, shown};
use crate::chart;
use crate::output::Charset;

impl Document {
    pub(crate) fn markdown(&self) -> String {
        let blocks: Vec<String> = self.blocks.iter().filter_map(block).collect();
        let mut text = blocks.join("\n");
        if text.is_empty() {
            text.push('\n');
        }
        text
    }
}

/// One block with its last line ended; nothing for what only a terminal needs.
fn block(block: &Block) -> Option<String> {
    Some(match block {
        Block::Heading(words) => format!("### {}\n", escaped(words)),
        Block::Verdict(words, _) => format!("**{}**\n", escaped(words)),
        Block::Facts(facts) => {
            let lines = facts.iter().map(|(name, value)| {
                format!("- **{}**: {}\n", escaped(name), escaped(shown(value)))
            });
            lines.collect()
        }
        Block::Table(table) => rows(table),
        Block::Tree(nodes) => branches(nodes, 0),
        Block::Notes(notes) => notes.iter().map(|note| format!("- {}\n", escaped(note))).collect(),
        Block::Line(line) => {
            let parts: Vec<String> = parts(line).map(escaped).collect();
            format!("{}\n", parts.join("<br>"))
        }
        Block::Page(page) => format!("{}\n", page.trim_end()),
        Block::Picture(chart) => {
            let drawing = chart::terminal::draw(chart, Charset::Utf8).into_string();
            fenced(&anstream::adapter::strip_str(&drawing).to_string())
        }
        Block::Gap => return None,
    })
}

fn branches(nodes: &[Node], depth: usize) -> String {
    let one = |node: &Node| {
        let words = node.words();
        let words = if words.is_empty() { words } else { format!(": {}", escaped(&words)) };
        let line = format!("{}- **{}**{words}\n", "  ".repeat(depth), escaped(&node.name));
        line + &branches(&node.children, depth + 1)
    };
    nodes.iter().map(one).collect()
}

fn rows(table: &Table) -> String {
    let marked = table.has_marks();
    let mut text = String::from(if marked { "| |" } else { "|" });
    for column in &table.columns {
        let _ = write!(text, " {} |", escaped(&column.title));
    }
    text.push_str(if marked { "\n|---|" } else { "\n|" });
    for column in &table.columns {
        text.push_str(match column.align {
            Align::Left => "---|",
            Align::Right => "---:|",
        });
    }
    text.push('\n');
    for row in &table.rows {
        if marked {
            let mark = row.mark.map(|mark| escaped(&mark.to_string())).unwrap_or_default();
            let _ = write!(text, "| {mark} ");
        }
        for index in 0..table.columns.len() {
            let last = index + 1 == table.columns.len();
            let _ = write!(text, "| {} ", cell(row, index, last));
        }
        text.push_str("|\n");
    }
    text
}

/// A cell is one line. What stands below a row on a terminal follows in its last cell.
fn cell(row: &Row, index: usize, last: bool) -> String {
    let mut text = escaped(row.cells.get(index).map_or("-", Cell::shown));
    for below in row.below.iter().filter(|_| last) {
        let (Below::Words(line) | Below::Exact(line)) = below;
        let _ = write!(text, "<br>{}", escaped(line));
    }
    text
}

/// A fence that is longer than any inside.
fn fenced(text: &str) -> String {
    let fence = "`".repeat(text.split(|c| c != '`').map(str::len).max().unwrap_or(0).max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

/// Words as words: nothing in them is taken for markup, a tag, an entity or the end of a cell.
/// Runs of blanks become one, as they would on the page.
fn escaped(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut result = String::with_capacity(text.len());
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let after = text[at + c.len_utf8()..].chars().next().unwrap_or(' ');
        match c {
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '&' if after.is_alphanumeric() || after == '#' => result.push_str("&amp;"),
            // Inside a word an underscore is only an underscore, and `gpu_count` stays readable.
            '_' if before.is_alphanumeric() && after.is_alphanumeric() => result.push('_'),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '~' => {
                result.push('\\');
                result.push(c);
            }
            // These would begin a heading or a list.
            '#' | '+' if at == 0 => {
                result.push('\\');
                result.push(c);
            }
            c if c.is_control() => result.push(' '),
            c => result.push(c),
        }
        before = c;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_cell_is_taken_for_markup() {
        assert_eq!(escaped("a|b <none> *x* _y_ `z`"), r"a\|b &lt;none&gt; \*x\* \_y\_ \`z\`");
        assert_eq!(escaped("gpu_count & 3 &lt; 4\n5"), "gpu_count & 3 &amp;lt; 4 5");
        assert_eq!(escaped("# 1"), r"\# 1");
    }

    #[test]
    fn a_fence_is_longer_than_any_inside() {
        assert_eq!(fenced("a\n```\nb\n"), "````text\na\n```\nb\n````\n");
    }
}
