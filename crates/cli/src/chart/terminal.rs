//! The picture in characters, about 72 by 18.

use anstyle::Style;

use super::scale::Scale;
use super::{Chart, Which, words};
use crate::charset::Charset;
use crate::text::{BOLD, GREEN, Text, WIDTH, plural, width};

/// The field inside the axes has about this many characters: a whole number between two ticks, so
/// that equal steps look equal. With the numbers beside it a picture is about 72 columns wide.
const COLUMNS: usize = 60;
const ROWS: usize = 15;
pub(crate) const WHOLE: usize = 72;
const DIM: Style = Style::new().dimmed();

/// What a line or a corner is drawn with.
struct Pen {
    vertical: char,
    horizontal: char,
    corner: char,
    y_tick: char,
    x_tick: char,
    step: char,
    limit_across: char,
    limit_up: char,
}

const UTF8: Pen = Pen {
    vertical: '│',
    horizontal: '─',
    corner: '└',
    y_tick: '┤',
    x_tick: '┬',
    step: '·',
    limit_across: '╌',
    limit_up: '╎',
};

const ASCII: Pen = Pen {
    vertical: '|',
    horizontal: '-',
    corner: '+',
    y_tick: '+',
    x_tick: '+',
    step: '.',
    limit_across: '-',
    limit_up: ':',
};

/// What hides what, when two things fall on one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Empty,
    Step,
    Limit,
    Rejected,
    Beaten,
    Frontier,
    Chosen,
}

#[derive(Clone, Copy, Debug)]
struct Glyph {
    shape: char,
    rank: Rank,
}

struct Field<'a> {
    chart: &'a Chart,
    x: Scale,
    y: Scale,
    pen: &'static Pen,
    columns: usize,
    rows: usize,
    glyphs: Vec<Vec<Glyph>>,
    /// Points that cannot be seen because another one has their place.
    hidden: usize,
}

/// Draws with plain characters; styles only add.
pub(crate) fn draw(chart: &Chart, charset: Charset) -> Text {
    let mut text = Text::new(WIDTH);
    text.line(format_args!("{BOLD}{}{BOLD:#}", charset.fold(&chart.title)));
    if chart.drawn().next().is_none() {
        text.line(format_args!("{}", words::summary(chart)));
        return text;
    }
    let (x, y) = (chart.scale(Which::X, 6), chart.scale(Which::Y, 5));
    let (columns, rows) = (even(COLUMNS, x.ticks.len()), even(ROWS, y.ticks.len()));
    let mut field = Field {
        chart,
        x,
        y,
        columns,
        rows,
        pen: if charset == Charset::Utf8 { &UTF8 } else { &ASCII },
        glyphs: vec![vec![Glyph { shape: ' ', rank: Rank::Empty }; columns]; rows],
        hidden: 0,
    };
    field.steps();
    field.limits();
    field.points();
    field.write(&mut text, charset);
    field.legend(&mut text, charset);
    text
}

/// About this many characters, with the same number between any two ticks.
fn even(about: usize, ticks: usize) -> usize {
    let steps = ticks.saturating_sub(1).max(1);
    (about / steps).max(1) * steps + 1
}

impl Field<'_> {
    fn column(&self, x: f64) -> usize {
        (self.x.place(x) * (self.columns - 1) as f64).round() as usize
    }

    /// Counted from the top.
    fn row(&self, y: f64) -> usize {
        self.rows - 1 - (self.y.place(y) * (self.rows - 1) as f64).round() as usize
    }

    fn put(&mut self, column: usize, row: usize, shape: char, rank: Rank) {
        let glyph = &mut self.glyphs[row][column];
        if rank > glyph.rank {
            *glyph = Glyph { shape, rank };
        }
    }

    /// Along the frontier: everything above and right of the line is beaten.
    fn steps(&mut self) {
        let places: Vec<(usize, usize)> = self
            .chart
            .frontier
            .iter()
            .map(|&index| &self.chart.points[index])
            .map(|point| (self.column(point.x), self.row(point.y)))
            .collect();
        for pair in places.windows(2) {
            let ((left, above), (right, below)) = (pair[0], pair[1]);
            for column in left..=right {
                self.put(column, above, self.pen.step, Rank::Step);
            }
            for row in above..=below {
                self.put(right, row, self.pen.step, Rank::Step);
            }
        }
    }

    fn limits(&mut self) {
        let limits = self.chart.limits.iter().filter(|limit| limit.value.is_finite());
        for limit in limits {
            match limit.axis {
                Which::X => {
                    let column = self.column(limit.value);
                    for row in 0..self.rows {
                        self.put(column, row, self.pen.limit_up, Rank::Limit);
                    }
                }
                Which::Y => {
                    let row = self.row(limit.value);
                    // Every other column, so that it is not taken for an axis.
                    for column in (0..self.columns).step_by(2) {
                        self.put(column, row, self.pen.limit_across, Rank::Limit);
                    }
                }
            }
        }
    }

    fn points(&mut self) {
        let chart = self.chart;
        let series = chart.series();
        let mut order: Vec<(Rank, usize, char)> = chart
            .drawn()
            .map(|(index, point)| {
                let number = series.iter().position(|name| *name == point.series).unwrap_or(0);
                let letter = letter(number);
                if point.chosen {
                    (Rank::Chosen, index, '*')
                } else if point.rejected {
                    (Rank::Rejected, index, 'x')
                } else if chart.frontier.contains(&index) {
                    (Rank::Frontier, index, letter)
                } else {
                    (Rank::Beaten, index, letter.to_ascii_lowercase())
                }
            })
            .collect();
        order.sort_by_key(|(rank, index, _)| (std::cmp::Reverse(*rank), *index));
        for (rank, index, shape) in order {
            let point = &chart.points[index];
            let (column, row) = (self.column(point.x), self.row(point.y));
            if self.glyphs[row][column].rank >= Rank::Rejected {
                self.hidden += 1;
            }
            self.put(column, row, shape, rank);
        }
    }

    fn write(&self, text: &mut Text, charset: Charset) {
        let pen = self.pen;
        let room = self.y.ticks.iter().map(|tick| width(&tick.label)).max().unwrap_or(0);
        text.line(format_args!("{}", charset.fold(&self.y.title)));
        for row in 0..self.rows {
            let tick = self.y.ticks.iter().find(|tick| self.row(tick.value) == row);
            let label = tick.map_or("", |tick| tick.label.as_str());
            let axis = if tick.is_some() { pen.y_tick } else { pen.vertical };
            let field: String = self.glyphs[row].iter().map(styled).collect();
            text.line(format_args!("{label:>room$} {axis}{}", field.trim_end()));
        }
        let mut axis = vec![pen.horizontal; self.columns];
        let mut labels = String::new();
        for tick in &self.x.ticks {
            let column = self.column(tick.value);
            axis[column] = pen.x_tick;
            let begin = (room + 2 + column).saturating_sub(width(&tick.label) / 2);
            // A label that would touch the one before it is left out; its tick stays.
            if labels.is_empty() || begin > width(&labels) + 1 {
                labels.push_str(&" ".repeat(begin - width(&labels)));
                labels.push_str(&tick.label);
            }
        }
        let axis: String = axis.into_iter().collect();
        text.line(format_args!("{:room$} {}{axis}", "", pen.corner));
        text.line(format_args!("{labels}"));
        let title = charset.fold(&self.x.title);
        let begin = (room + 2 + self.columns).saturating_sub(width(&title));
        text.line(format_args!("{:begin$}{title}", ""));
    }

    fn legend(&self, text: &mut Text, charset: Charset) {
        let chart = self.chart;
        let series = chart.series();
        let mut parts: Vec<String> =
            series.iter().enumerate().map(|(i, name)| format!("{} {name}", letter(i))).collect();
        parts.push("capital: on the frontier".to_owned());
        if let Some((_, point)) = chart.drawn().find(|(_, point)| point.chosen) {
            parts.push(format!("* chosen: {}", point.label));
        }
        if chart.drawn().any(|(_, point)| point.rejected) {
            parts.push("x rejected".to_owned());
        }
        for limit in &chart.limits {
            let (line, scale) = match limit.axis {
                Which::X => (self.pen.limit_up, &self.x),
                Which::Y => (self.pen.limit_across, &self.y),
            };
            parts.push(format!("{line} {}: {}", limit.label, scale.label(limit.value)));
        }
        if self.hidden > 0 {
            parts.push(format!("{} hidden behind others", plural(self.hidden, "point")));
        }
        let mut line = String::new();
        for part in &parts {
            let part = charset.fold(part);
            // A part is kept together, even if it is longer than a line.
            if !line.is_empty() && width(&line) + 3 + width(&part) > WHOLE {
                text.line(format_args!("{line}"));
                line.clear();
            }
            if !line.is_empty() {
                line.push_str("   ");
            }
            line.push_str(&part);
        }
        text.line(format_args!("{line}"));
    }
}

fn letter(series: usize) -> char {
    // After 26 the letters begin again; a picture with so many series is not read by letter.
    (b'A'..=b'Z').cycle().nth(series).map_or('A', char::from)
}

fn styled(glyph: &Glyph) -> String {
    let style = match glyph.rank {
        Rank::Chosen => GREEN.bold(),
        Rank::Frontier => BOLD,
        Rank::Rejected | Rank::Step | Rank::Limit => DIM,
        Rank::Beaten | Rank::Empty => Style::new(),
    };
    format!("{style}{}{style:#}", glyph.shape)
}
