//! Columns that line up, for tables that fit the width.

use super::text::{BOLD, Text, WIDTH};

/// On which side a column is flush: words left, numbers right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Rows under a heading, each cell one line.
#[derive(Debug)]
pub(crate) struct Grid<const N: usize> {
    columns: [(&'static str, Side); N],
    /// The column that gives way when the rows are too wide.
    elastic: Option<usize>,
    rows: Vec<[String; N]>,
}

const GAP: usize = 2;

impl<const N: usize> Grid<N> {
    pub(crate) fn new(columns: [(&'static str, Side); N]) -> Self {
        Self { columns, elastic: None, rows: Vec::new() }
    }

    /// Shortens this column, with an ellipsis, if the rows would be too wide.
    pub(crate) fn elastic(mut self, title: &str) -> Self {
        self.elastic = self.columns.iter().position(|(name, _)| *name == title);
        self
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Writes heading and rows, if there are any, each after the indent.
    pub(crate) fn write(&self, text: &mut Text, indent: &str) {
        if self.rows.is_empty() {
            return;
        }
        let widths = self.widths(indent.len());
        let titles = self.columns.map(|(title, _)| title.to_owned());
        let heading = self.line(&titles, &widths);
        text.line(format_args!("{indent}{BOLD}{heading}{BOLD:#}"));
        for row in &self.rows {
            text.line(format_args!("{indent}{}", self.line(row, &widths)));
        }
    }

    fn widths(&self, indent: usize) -> [usize; N] {
        let mut widths = self.columns.map(|(title, _)| title.chars().count());
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let whole = indent + widths.iter().sum::<usize>() + GAP * N.saturating_sub(1);
        if let Some(column) = self.elastic {
            let least = self.columns[column].0.len();
            widths[column] = widths[column].saturating_sub(whole.saturating_sub(WIDTH)).max(least);
        }
        widths
    }

    fn line(&self, cells: &[String; N], widths: &[usize; N]) -> String {
        let padded: Vec<String> = cells
            .iter()
            .zip(widths)
            .zip(self.columns)
            .map(|((cell, &width), (_, side))| {
                let cell = shortened(cell, width);
                match side {
                    Side::Left => format!("{cell:<width$}"),
                    Side::Right => format!("{cell:>width$}"),
                }
            })
            .collect();
        padded.join(&" ".repeat(GAP)).trim_end().to_owned()
    }
}

fn shortened(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    let kept: String = cell.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_elastic_one_gives_way() {
        let mut grid = Grid::new([("NAME", Side::Left), ("N", Side::Right)]).elastic("NAME");
        grid.row(["a".into(), "1000".into()]);
        grid.row(["x".repeat(120), "5".into()]);
        let mut text = Text::new();
        grid.write(&mut text, "  ");
        let text = anstream::adapter::strip_str(&text.into_string()).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() == WIDTH), "{text}");
        assert!(lines[0].starts_with("  NAME ") && lines[0].ends_with("     N"), "{text}");
        assert!(lines[2].contains("x…  "), "{text}");
    }

    #[test]
    fn a_grid_without_rows_is_silent() {
        let mut text = Text::new();
        Grid::new([("NAME", Side::Left)]).write(&mut text, "");
        assert_eq!(text.into_string(), "");
    }
}
