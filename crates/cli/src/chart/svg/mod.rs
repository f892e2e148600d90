//! The picture as SVG that needs nothing else: no script, no font, no other file.
//!
//! Colours are set by chart.css, for light and dark pages and for print. Every point has a
//! tooltip, and the whole has a title and a sentence for readers who hear it. `labels` finds room
//! for names, `marks` draws shapes.

mod labels;
mod marks;

use std::fmt::Write;

use labels::{LINE, Names, Rect, text_width};

use super::escape::escape;
use super::scale::Scale;
use super::{Chart, Which, words};

pub(crate) const WIDTH: f64 = 900.0;
const STYLE: &str = include_str!("chart.css");
/// The field inside the axes, without the legend, which takes as many lines as it needs.
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 28.0;
const FIELD: f64 = 400.0;
const BELOW: f64 = 52.0;

struct Drawing<'a> {
    chart: &'a Chart,
    x: Scale,
    y: Scale,
    top: f64,
    out: String,
}

/// The chart as one `<svg>` element. The id must be unique on its page.
pub(crate) fn draw(chart: &Chart, id: &str) -> String {
    let entries = legend(chart);
    let lines = entries.last().map_or(0.0, |entry| entry.line + 1.0);
    let top = 44.0 + lines * 22.0 + 26.0;
    let height = top + FIELD + BELOW;
    let id = escape(id);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg class=\"fb-chart\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         aria-labelledby=\"{id}-title {id}-desc\">\n\
         <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n\
         <style>\n{STYLE}</style>\n\
         <rect class=\"fb-paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
         <text class=\"fb-title\" x=\"20\" y=\"30\">{}</text>\n",
        escape(&chart.title),
        escape(&words::summary(chart)),
        escape(&chart.title),
    );
    for entry in &entries {
        let (x, y) = (entry.x, 54.0 + entry.line * 22.0);
        let _ = writeln!(
            out,
            "<g class=\"{}\">{}<text x=\"{}\" y=\"{}\">{}</text></g>",
            entry.class,
            (entry.mark)(x + 8.0, y),
            x + 22.0,
            y + 4.0,
            escape(&entry.words)
        );
    }
    let (x, y) = (chart.scale(Which::X, 8), chart.scale(Which::Y, 6));
    let mut drawing = Drawing { chart, x, y, top, out };
    drawing.axes();
    if chart.drawn().next().is_some() {
        let names = drawing.limits();
        drawing.steps();
        drawing.points();
        drawing.names(names);
    }
    drawing.out.push_str("</svg>\n");
    drawing.out
}

struct Entry {
    class: String,
    mark: Box<dyn Fn(f64, f64) -> String>,
    words: String,
    x: f64,
    line: f64,
}

fn legend(chart: &Chart) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut add = |class: String, mark: Box<dyn Fn(f64, f64) -> String>, words: String| {
        let after = entries.last().map_or((20.0, 0.0), |last: &Entry| {
            (last.x + 22.0 + text_width(&last.words) + 18.0, last.line)
        });
        let fits = after.0 + 22.0 + text_width(&words) <= RIGHT;
        let (x, line) = if fits { after } else { (20.0, after.1 + 1.0) };
        entries.push(Entry { class, mark, words, x, line });
    };
    for (number, name) in chart.series().into_iter().enumerate() {
        let mark = move |x, y| marks::shape(number, x, y);
        add(marks::colour(number), Box::new(mark), name.to_owned());
    }
    let beaten = |(index, point): (usize, &super::Point)| {
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
    entries
}

/// Moves a limit's name along its line, by lines or by its own width, until it covers nothing.
fn free_line(names: &Names, left: f64, top: f64, words: &str, down: f64) -> Rect {
    let along = if down > 0.0 { 0.0 } else { -20.0 };
    let tries = (0..12).map(|step| {
        Rect::of_text(left + along * f64::from(step), top + down * f64::from(step), words)
    });
    let mut free = tries.filter(|rect| names.is_free(rect));
    free.next().unwrap_or_else(|| Rect::of_text(left, top, words))
}

impl Drawing<'_> {
    fn at_x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (RIGHT - LEFT)
    }

    fn at_y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.y.place(value)) * FIELD
    }

    fn axes(&mut self) {
        let bottom = self.top + FIELD;
        let mut out = std::mem::take(&mut self.out);
        for tick in &self.x.ticks {
            let x = self.at_x(tick.value);
            let _ = writeln!(
                out,
                "<path class=\"fb-grid\" d=\"M{x:.1} {}V{bottom}\"/>\
                 <text class=\"fb-soft\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                self.top,
                bottom + 19.0,
                escape(&tick.label)
            );
        }
        for tick in &self.y.ticks {
            let y = self.at_y(tick.value);
            let _ = writeln!(
                out,
                "<path class=\"fb-grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>\
                 <text class=\"fb-soft\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 9.0,
                y + 4.0,
                escape(&tick.label)
            );
        }
        let _ = writeln!(
            out,
            "<path class=\"fb-axis\" d=\"M{LEFT} {}V{bottom}H{RIGHT}\"/>\n\
             <text x=\"20\" y=\"{}\">{}</text>\n\
             <text x=\"{RIGHT}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
             <text class=\"fb-soft\" x=\"{LEFT}\" y=\"{}\">lower left is better</text>",
            self.top,
            self.top - 14.0,
            escape(&self.y.title),
            bottom + 42.0,
            escape(&self.x.title),
            bottom + 42.0,
        );
        self.out = out;
    }

    /// Draws the limits and names them. Gives back where names may still go.
    fn limits(&mut self) -> Names {
        let frame = Rect {
            left: LEFT + 4.0,
            top: self.top + 2.0,
            right: RIGHT - 2.0,
            bottom: self.top + FIELD - 3.0,
        };
        let mut names = Names { frame, taken: Vec::new() };
        for (_, point) in self.chart.drawn() {
            names.taken.push(Rect::around(self.at_x(point.x), self.at_y(point.y), 8.0));
        }
        for limit in self.chart.limits.iter().filter(|limit| limit.value.is_finite()) {
            let (path, rect, words) = match limit.axis {
                Which::X => {
                    let x = self.at_x(limit.value);
                    let words = format!("{}: {}", limit.label, self.x.say(limit.value));
                    // Left of the line if there is no room on the right.
                    let wide = text_width(&words);
                    let left = if x + 6.0 + wide < RIGHT { x + 6.0 } else { x - 6.0 - wide };
                    let rect = free_line(&names, left, self.top + 4.0, &words, LINE);
                    (format!("M{x:.1} {}V{}", self.top, self.top + FIELD), rect, words)
                }
                Which::Y => {
                    let y = self.at_y(limit.value);
                    let words = format!("{}: {}", limit.label, self.y.say(limit.value));
                    let left = RIGHT - 6.0 - text_width(&words);
                    // Below the line if there is no room above.
                    let top = if y - LINE - 3.0 > self.top { y - LINE - 3.0 } else { y + 4.0 };
                    let rect = free_line(&names, left, top, &words, 0.0);
                    (format!("M{LEFT} {y:.1}H{RIGHT}"), rect, words)
                }
            };
            names.taken.push(rect);
            let _ = writeln!(
                self.out,
                "<path class=\"fb-limit\" d=\"{path}\"/>\
                 <text class=\"fb-limit-name fb-name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                rect.left,
                rect.top + 12.0,
                escape(&words)
            );
        }
        names
    }

    /// Along the frontier, and on to the frame: what is above and right of it is beaten.
    fn steps(&mut self) {
        let (Some(&first), true) = (self.chart.frontier.first(), self.chart.frontier.len() > 1)
        else {
            return;
        };
        let mut path = format!("M{:.1} {}", self.at_x(self.chart.points[first].x), self.top);
        for &index in &self.chart.frontier {
            let point = &self.chart.points[index];
            let _ = write!(path, "H{:.1}V{:.1}", self.at_x(point.x), self.at_y(point.y));
        }
        let _ = writeln!(self.out, "<path class=\"fb-steps\" d=\"{path}H{RIGHT}\"/>");
    }

    /// Those that matter most last, so that they lie on top.
    fn points(&mut self) {
        let series = self.chart.series();
        let mut order: Vec<usize> = self.chart.drawn().map(|(index, _)| index).collect();
        order.sort_by_key(|&index| {
            let point = &self.chart.points[index];
            (point.chosen, self.chart.frontier.contains(&index), !point.rejected)
        });
        for index in order {
            let point = &self.chart.points[index];
            let number = series.iter().position(|name| *name == point.series).unwrap_or(0);
            let (x, y) = (self.at_x(point.x), self.at_y(point.y));
            let state = match point {
                point if point.rejected => "fb-rejected",
                point if point.chosen || self.chart.frontier.contains(&index) => "fb-front",
                _ => "fb-beaten",
            };
            let mark = if point.rejected { marks::cross(x, y) } else { marks::shape(number, x, y) };
            let ring = if point.chosen {
                format!("<circle class=\"fb-ring\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"11\"/>")
            } else {
                String::new()
            };
            let _ = writeln!(
                self.out,
                "<g class=\"{} {state}\"><title>{}</title>{}{mark}{ring}</g>",
                marks::colour(number),
                escape(&words::point(self.chart, index, &self.x, &self.y)),
                self.bars(index),
            );
        }
    }

    /// Intervals, with a stroke across at each end that lies inside the frame.
    fn bars(&self, index: usize) -> String {
        let point = &self.chart.points[index];
        let (x, y) = (self.at_x(point.x), self.at_y(point.y));
        let finite = |interval: Option<(f64, f64)>| {
            interval.filter(|(low, high)| low.is_finite() && high.is_finite())
        };
        let mut path = String::new();
        if let Some((low, high)) = finite(point.x_low_high) {
            let (low, high) = (self.at_x(low), self.at_x(high));
            let _ = write!(path, "M{low:.1} {y:.1}H{high:.1}");
            for end in [low, high].into_iter().filter(|end| (LEFT + 1.0..RIGHT).contains(end)) {
                let _ = write!(path, "M{end:.1} {:.1}v6", y - 3.0);
            }
        }
        if let Some((low, high)) = finite(point.y_low_high) {
            let (low, high) = (self.at_y(low), self.at_y(high));
            let inside = self.top + 1.0..self.top + FIELD;
            let _ = write!(path, "M{x:.1} {low:.1}V{high:.1}");
            for end in [low, high].into_iter().filter(|end| inside.contains(end)) {
                let _ = write!(path, "M{:.1} {end:.1}h6", x - 3.0);
            }
        }
        if path.is_empty() { path } else { format!("<path class=\"fb-bar\" d=\"{path}\"/>") }
    }

    /// The chosen one is always named, the others of the frontier where there is room.
    fn names(&mut self, mut names: Names) {
        let chosen = self.chart.drawn().filter(|(_, point)| point.chosen).map(|(index, _)| index);
        for index in chosen {
            let point = &self.chart.points[index];
            let words = format!("chosen: {}", point.label);
            let (x, y) = (self.at_x(point.x), self.at_y(point.y));
            names.taken.push(Rect::around(x, y, 12.0));
            let rect = names.place_anyhow(x, y, &words);
            self.name(rect, &words, "fb-name fb-strong");
        }
        for &index in self.chart.frontier.iter().filter(|index| !self.chart.points[**index].chosen)
        {
            let point = &self.chart.points[index];
            if let Some(rect) = names.place(self.at_x(point.x), self.at_y(point.y), &point.label) {
                self.name(rect, &point.label, "fb-name");
            }
        }
    }

    fn name(&mut self, rect: Rect, words: &str, class: &str) {
        let _ = writeln!(
            self.out,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            rect.left,
            rect.top + 12.0,
            escape(words)
        );
    }
}
