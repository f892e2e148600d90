//! Series over time as panels below each other, in one SVG.
//!
//! Colour is never the only carrier: lines differ in their dashes too, and each is named.

use std::fmt::Write as _;

/// One panel.
pub(super) struct Panel {
    pub(super) title: String,
    /// What is on the upright axis.
    pub(super) unit: String,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) lines: Vec<Line>,
}

/// One line: it keeps its value until the next point.
pub(super) struct Line {
    pub(super) name: String,
    /// Seconds and values, by time.
    pub(super) points: Vec<(f64, f64)>,
}

/// Colours that people with any kind of sight tell apart (Okabe and Ito 2008), with their dashes.
const PENS: [(&str, &str); 4] =
    [("#0072b2", ""), ("#d55e00", "6 3"), ("#009e73", "2 3"), ("#666666", "8 3 2 3")];

const WIDTH: f64 = 860.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 24.0;
const PANEL: f64 = 150.0;
const GAP: f64 = 54.0;
const TOP: f64 = 34.0;

/// Draws them over the same time.
pub(super) fn draw(panels: &[Panel], seconds: f64) -> String {
    let height = TOP + panels.len() as f64 * (PANEL + GAP) + 10.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for (place, panel) in panels.iter().enumerate() {
        let top = TOP + place as f64 * (PANEL + GAP);
        let last = place + 1 == panels.len();
        panel.draw(&mut svg, top, seconds, last);
    }
    svg + "</svg>\n"
}

impl Panel {
    fn draw(&self, svg: &mut String, top: f64, seconds: f64, last: bool) {
        let _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{}</text>",
            top - 8.0,
            escaped(&self.title)
        );
        self.names(svg, top);
        self.levels(svg, top);
        minutes(svg, top, seconds, last);
        for (line, (colour, dashes)) in self.lines.iter().zip(PENS.iter().cycle()) {
            let _ = writeln!(
                svg,
                "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" \
                 stroke-dasharray=\"{dashes}\"/>",
                self.path(line, top, seconds)
            );
        }
    }

    /// What each line is, on the right of the title.
    fn names(&self, svg: &mut String, top: f64) {
        let mut x = WIDTH - RIGHT;
        let drawn: Vec<_> = self.lines.iter().zip(PENS.iter().cycle()).collect();
        for (line, (colour, dashes)) in drawn.into_iter().rev() {
            // About as wide as the letters are.
            x -= line.name.chars().count() as f64 * 6.6;
            let y = top - 8.0;
            let _ = writeln!(
                svg,
                "<text x=\"{x:.0}\" y=\"{y}\" fill=\"{colour}\">{}</text>\
                 <path d=\"M{:.0} {:.0}h26\" stroke=\"{colour}\" stroke-width=\"1.8\" \
                 stroke-dasharray=\"{dashes}\"/>",
                escaped(&line.name),
                x - 32.0,
                y - 4.0
            );
            x -= 48.0;
        }
    }

    fn levels(&self, svg: &mut String, top: f64) {
        let steps = 4;
        for step in 0..=steps {
            let value = self.least + (self.most - self.least) * f64::from(step) / f64::from(steps);
            let y = self.y(value, top);
            let shown = if value.fract().abs() < 1e-9 {
                format!("{value:.0}")
            } else {
                format!("{value:.1}")
            };
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{}\" stroke=\"#dddddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#444444\">{shown}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0
            );
        }
        let middle = top + PANEL / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"14\" y=\"{middle}\" transform=\"rotate(-90 14 {middle})\" \
             text-anchor=\"middle\" fill=\"#444444\">{}</text>",
            escaped(&self.unit)
        );
    }

    fn path(&self, line: &Line, top: f64, seconds: f64) -> String {
        let mut path = String::new();
        for (at, value) in line.points.iter().filter(|(at, _)| *at <= seconds) {
            let (x, y) = (x(at.max(0.0), seconds), self.y(*value, top));
            let _ = match path.is_empty() {
                true => write!(path, "M{x:.1} {y:.1}"),
                false => write!(path, "H{x:.1}V{y:.1}"),
            };
        }
        path
    }

    fn y(&self, value: f64, top: f64) -> f64 {
        let share = (value - self.least) / (self.most - self.least);
        top + PANEL * (1.0 - share.clamp(0.0, 1.0))
    }
}

/// Minutes below a panel; the words only below the last.
fn minutes(svg: &mut String, top: f64, seconds: f64, words: bool) {
    let every = if seconds > 1_800.0 { 5 } else { 2 };
    let y = top + PANEL;
    for minute in (0..=(seconds / 60.0) as u32).step_by(every) {
        let x = x(f64::from(minute) * 60.0, seconds);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {y}v4\" stroke=\"#444444\"/><text x=\"{x:.1}\" y=\"{}\" \
             text-anchor=\"middle\" fill=\"#444444\">{minute}</text>",
            y + 17.0
        );
    }
    if words {
        let (x, y) = (WIDTH / 2.0, y + 34.0);
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#444444\">minutes</text>"
        );
    }
}

fn x(at: f64, seconds: f64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * at / seconds
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_its_lines_names_and_minutes() {
        let lines = vec![
            Line { name: "live".into(), points: vec![(0.0, 3.0), (60.0, 8.0), (700.0, 3.0)] },
            Line { name: "simulated".into(), points: vec![(0.0, 3.0)] },
        ];
        let title = "a < b".to_owned();
        let panel = Panel { title, unit: "replicas".into(), least: 0.0, most: 8.0, lines };
        let svg = draw(&[panel], 600.0);
        assert!(svg.contains("a &lt; b") && svg.contains(">simulated<") && svg.contains(">10<"));
        // At the top of the panel after a minute; what is after the end is left out.
        assert!(svg.contains("M56.0 127.8H134.0V34.0\""), "{svg}");
    }
}
