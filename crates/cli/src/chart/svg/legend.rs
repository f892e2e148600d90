//! What the marks mean. Only what occurs is explained.

use std::fmt::Write;

use super::labels::text_width;
use super::{finite, marks};
use crate::chart::escape::escape;
use crate::chart::{Chart, Point};

/// From one line to the next.
pub(super) const LINE: f64 = 22.0;

/// One mark and its words, and where they stand.
pub(super) struct Entry {
    class: String,
    mark: Box<dyn Fn(f64, f64) -> String>,
    words: String,
    x: f64,
    line: f64,
}

/// What needs explaining in this chart, laid out in lines that end before `right`.
pub(super) fn entries(chart: &Chart, right: f64) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut add = |class: String, mark: Box<dyn Fn(f64, f64) -> String>, words: String| {
        let after = entries.last().map_or((20.0, 0.0), |last: &Entry| {
            // Text that is not bold is narrower than the guess.
            (last.x + 22.0 + 0.86 * text_width(&last.words) + 18.0, last.line)
        });
        let fits = after.0 + 22.0 + text_width(&words) <= right;
        let (x, line) = if fits { after } else { (20.0, after.1 + 1.0) };
        entries.push(Entry { class, mark, words, x, line });
    };
    for (number, name) in chart.series().into_iter().enumerate() {
        let mark = move |x, y| marks::shape(number, x, y);
        add(marks::colour(number), Box::new(mark), name.to_owned());
    }
    let beaten = |(index, point): (usize, &Point)| {
        !point.rejected && !point.chosen && !chart.frontier.contains(&index)
    };
    if chart.drawn().any(beaten) {
        let mark = |x, y| marks::shape(0, x, y);
        add("fb-none fb-beaten".to_owned(), Box::new(mark), "another is better".to_owned());
    }
    if chart.drawn().any(|(_, point)| point.rejected) {
        add("fb-none".to_owned(), Box::new(marks::cross), "rejected".to_owned());
    }
    if chart.frontier.len() > 1 {
        let line = |x: f64, y: f64| format!("<path class=\"fb-steps\" d=\"M{} {y}h14\"/>", x - 7.0);
        add(String::new(), Box::new(line), "frontier".to_owned());
    }
    let interval = |point: &Point| finite(point.x_low_high.or(point.y_low_high)).is_some();
    if chart.drawn().any(|(_, point)| interval(point)) {
        let bar = |x: f64, y: f64| {
            format!("<path class=\"fb-bar\" d=\"M{x} {}v14m-3 0h6m-6 -14h6\"/>", y - 7.0)
        };
        add("fb-none".to_owned(), Box::new(bar), "interval".to_owned());
    }
    entries
}

pub(super) fn lines(entries: &[Entry]) -> f64 {
    entries.last().map_or(0.0, |entry| entry.line + 1.0)
}

pub(super) fn draw(out: &mut String, entries: &[Entry]) {
    for entry in entries {
        let (x, y) = (entry.x, 54.0 + entry.line * LINE);
        let _ = writeln!(
            out,
            "<g class=\"{}\">{}<text x=\"{:.1}\" y=\"{}\">{}</text></g>",
            entry.class,
            (entry.mark)(x + 8.0, y),
            x + 22.0,
            y + 4.0,
            escape(&entry.words)
        );
    }
}
