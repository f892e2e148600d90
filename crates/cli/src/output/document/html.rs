//! A document and its pictures as one page that can be mailed: no script, no other file.

use std::fmt::Write;

use super::{Align, Below, Block, Cell, Column, Document, Node, Row, Table, Tone, parts, shown};
use crate::chart::{Chart, escape, svg, words};

/// The look of every page.
pub(crate) const STYLE: &str = include_str!("page.css");

/// The page. Pictures of the document stand where the document has them; further ones follow at
/// the end.
pub(crate) fn page(title: &str, document: &Document, charts: &[Chart]) -> String {
    let mut page = Page { out: String::new(), pictures: 0 };
    let title = escape(title);
    // The policy holds the page to its promise: nothing is loaded, nothing runs.
    let _ = write!(
        page.out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n"
    );
    for block in &document.blocks {
        page.block(block);
    }
    for chart in charts {
        page.picture(chart);
    }
    page.out.push_str("</main>\n</body>\n</html>\n");
    page.out
}

/// One block alone, for pages that are more than a document.
pub(crate) fn block(block: &Block) -> String {
    let mut page = Page { out: String::new(), pictures: 0 };
    page.block(block);
    page.out
}

struct Page {
    out: String,
    pictures: usize,
}

impl Page {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{line}");
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(words) => self.line(format_args!("<h2>{}</h2>", escape(words))),
            Block::Verdict(words, tone) => {
                let class = class(*tone).unwrap_or("plain");
                self.line(format_args!("<p class=\"verdict {class}\">{}</p>", escape(words)));
            }
            Block::Facts(facts) => {
                self.line(format_args!("<dl>"));
                for (name, value) in facts {
                    let (name, value) = (escape(name), escape(shown(value)));
                    self.line(format_args!("<dt>{name}</dt><dd>{value}</dd>"));
                }
                self.line(format_args!("</dl>"));
            }
            Block::Table(table) => self.table(table),
            Block::Tree(nodes) => self.tree(nodes),
            Block::Notes(notes) => {
                self.line(format_args!("<ul>"));
                for note in notes {
                    self.line(format_args!("<li>{}</li>", escape(note)));
                }
                self.line(format_args!("</ul>"));
            }
            Block::Line(line) => {
                let parts: Vec<_> = parts(line).map(escape).collect();
                self.line(format_args!("<p>{}</p>", parts.join("<br>")));
            }
            Block::Page(page) => {
                // Line by line, because a control character is no text, and a line end is.
                let lines: Vec<_> = page.lines().map(escape).collect();
                self.line(format_args!("<pre>{}</pre>", lines.join("\n")));
            }
            Block::Picture(chart) => self.picture(chart),
            Block::Gap => {}
        }
    }

    fn tree(&mut self, nodes: &[Node]) {
        self.line(format_args!("<ul>"));
        for node in nodes {
            let (name, words) = (escape(&node.name), escape(&node.words()).into_owned());
            self.line(format_args!("<li><strong>{name}</strong> {words}"));
            if !node.children.is_empty() {
                self.tree(&node.children);
            }
            self.line(format_args!("</li>"));
        }
        self.line(format_args!("</ul>"));
    }

    fn table(&mut self, table: &Table) {
        let marked = table.rows.iter().any(|row| row.mark.is_some());
        self.line(format_args!("<div class=\"wide\"><table>"));
        let mut head = String::new();
        if marked {
            head.push_str("<th></th>");
        }
        for column in &table.columns {
            let class = side(column.align);
            let _ = write!(head, "<th{class} scope=\"col\">{}</th>", escape(&column.title));
        }
        self.line(format_args!("<thead><tr>{head}</tr></thead>\n<tbody>"));
        for row in &table.rows {
            let class = match row {
                row if row.muted => " class=\"muted\"",
                row if row.mark.is_some() => " class=\"marked\"",
                _ => "",
            };
            let mut cells = String::new();
            if marked {
                let mark = row.mark.map(String::from).unwrap_or_default();
                let _ = write!(cells, "<td>{}</td>", escape(&mark));
            }
            for (index, column) in table.columns.iter().enumerate() {
                let last = index + 1 == table.columns.len();
                let _ = write!(cells, "<td{}>{}</td>", side(column.align), cell(row, index, last));
            }
            self.line(format_args!("<tr{class}>{cells}</tr>"));
        }
        self.line(format_args!("</tbody></table></div>"));
    }

    fn picture(&mut self, chart: &Chart) {
        self.pictures += 1;
        let picture = svg::draw(chart, &format!("picture-{}", self.pictures));
        let summary = words::summary(chart);
        self.line(format_args!("<figure>\n{picture}<figcaption>{}</figcaption>", escape(&summary)));
        self.line(format_args!("<details><summary>The picture as a table</summary>"));
        self.table(&numbers(chart));
        self.line(format_args!("</details>\n</figure>"));
    }
}

/// What the picture shows, for readers who want the numbers or cannot see it.
fn numbers(chart: &Chart) -> Table {
    let rows = words::numbers(chart).map(|(point, [x, y, state])| Row {
        mark: point.chosen.then_some('*'),
        muted: point.rejected,
        ..Row::new([point.label.clone(), point.series.clone(), x, y, state])
    });
    let columns = vec![
        Column::left("Choice"),
        Column::left("Of"),
        Column::right(chart.x.label.as_str()),
        Column::right(chart.y.label.as_str()),
        Column::left("State"),
    ];
    Table { rows: rows.collect(), ..Table::new(columns) }
}

fn side(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => " class=\"right\"",
    }
}

fn class(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Good => Some("good"),
        Tone::Caution => Some("caution"),
        Tone::Bad => Some("bad"),
    }
}

fn cell(row: &Row, index: usize, last: bool) -> String {
    let nothing = Cell::default();
    let cell = row.cells.get(index).unwrap_or(&nothing);
    let words = escape(cell.shown());
    let mut text = match class(cell.tone) {
        Some(class) => format!("<span class=\"{class}\">{words}</span>"),
        None => words.into_owned(),
    };
    for below in row.below.iter().filter(|_| last) {
        let (Below::Words(line) | Below::Exact(line)) = below;
        let _ = write!(text, "<div class=\"below\">{}</div>", escape(line));
    }
    text
}
