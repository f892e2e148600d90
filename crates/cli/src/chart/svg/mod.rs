//! The picture as SVG that needs nothing else: no script, no font, no other file.
//!
//! Colours are set by chart.css, for light and dark pages and for print. Every point has a
//! tooltip, and the whole has a title and a sentence for readers who hear it. `labels` finds room
//! for names, `legend` says what the shapes of `marks` mean.

mod labels;
mod legend;
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
    let entries = legend::entries(chart, RIGHT);
    let lines = legend::lines(&entries);
    let top = 44.0 + lines * legend::LINE + 38.0;
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
    legend::draw(&mut out, &entries);
    let (x, y) = (chart.scale(Which::X, 8), chart.scale(Which::Y, 6));
    let mut drawing = Drawing { chart, x, y, top, out };
    drawing.axes();
    if chart.drawn().next().is_some() {
        let mut names = drawing.taken();
        drawing.limits(&mut names);
        drawing.steps();
        drawing.points();
        drawing.names(names);
    }
    drawing.out.push_str("</svg>\n");
    drawing.out
}

fn finite(interval: Option<(f64, f64)>) -> Option<(f64, f64)> {
    interval.filter(|(low, high)| low.is_finite() && high.is_finite())
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

    /// Everything that a name must not cover: marks, intervals, steps and limits.
    fn taken(&self) -> Names {
        let (left, top, bottom) = (LEFT, self.top, self.top + FIELD);
        let frame =
            Rect { left: left + 4.0, top: top + 2.0, right: RIGHT - 2.0, bottom: bottom - 3.0 };
        let mut taken = Vec::new();
        for (_, point) in self.chart.drawn() {
            let (x, y) = (self.at_x(point.x), self.at_y(point.y));
            taken.push(Rect::around(x, y, if point.chosen { 12.0 } else { 8.0 }));
            if let Some((low, high)) = finite(point.x_low_high) {
                taken.push(Rect::of_line((self.at_x(low), y), (self.at_x(high), y)));
            }
            if let Some((low, high)) = finite(point.y_low_high) {
                taken.push(Rect::of_line((x, self.at_y(low)), (x, self.at_y(high))));
            }
        }
        let mut last: Option<(f64, f64)> = None;
        for &index in &self.chart.frontier {
            let here =
                (self.at_x(self.chart.points[index].x), self.at_y(self.chart.points[index].y));
            let before = last.replace(here).unwrap_or((here.0, top));
            taken.push(Rect::of_line(before, (here.0, before.1)));
            taken.push(Rect::of_line((here.0, before.1), here));
        }
        if let Some(end) = last {
            taken.push(Rect::of_line(end, (RIGHT, end.1)));
        }
        for limit in self.chart.limits.iter().filter(|limit| limit.value.is_finite()) {
            let (x, y) = (self.at_x(limit.value), self.at_y(limit.value));
            taken.push(match limit.axis {
                Which::X => Rect::of_line((x, top), (x, bottom)),
                Which::Y => Rect::of_line((left, y), (RIGHT, y)),
            });
        }
        Names { frame, taken }
    }

    fn limits(&mut self, names: &mut Names) {
        for limit in self.chart.limits.iter().filter(|limit| limit.value.is_finite()) {
            let (path, rect, words) = match limit.axis {
                Which::X => {
                    let x = self.at_x(limit.value);
                    let words = format!("{}: {}", limit.label, self.x.label(limit.value));
                    // Left of the line if there is no room on the right.
                    let wide = text_width(&words);
                    let left = if x + 6.0 + wide < RIGHT { x + 6.0 } else { x - 6.0 - wide };
                    let rect = free_line(names, left, self.top + 4.0, &words, LINE);
                    (format!("M{x:.1} {}V{}", self.top, self.top + FIELD), rect, words)
                }
                Which::Y => {
                    let y = self.at_y(limit.value);
                    let words = format!("{}: {}", limit.label, self.y.label(limit.value));
                    let left = RIGHT - 6.0 - text_width(&words);
                    // Below the line if there is no room above.
                    let top = if y - LINE - 3.0 > self.top { y - LINE - 3.0 } else { y + 4.0 };
                    let rect = free_line(names, left, top, &words, 0.0);
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
    }

    /// Along the frontier, and on to the frame: what is above and right of it is beaten.
    fn steps(&mut self) {
        let (Some(&first), true) = (self.chart.frontier.first(), self.chart.frontier.len() > 1)
        else {
            return;
        };
        let place = |index: usize| {
            let point = &self.chart.points[index];
            (self.at_x(point.x), self.at_y(point.y))
        };
        let (x, mut y) = place(first);
        let mut on = format!("M{x:.1} {}V{y:.1}", self.top);
        let mut path = format!("M{x:.1} {y:.1}");
        let mut x = x;
        for &index in &self.chart.frontier {
            (x, y) = place(index);
            let _ = write!(path, "H{x:.1}V{y:.1}");
        }
        let _ = write!(on, "M{x:.1} {y:.1}H{RIGHT}");
        let _ = writeln!(
            self.out,
            "<path class=\"fb-steps fb-on\" d=\"{on}\"/><path class=\"fb-steps\" d=\"{path}\"/>"
        );
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
