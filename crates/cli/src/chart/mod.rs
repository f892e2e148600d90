//! A picture of choices that are weighed by two numbers, both better when smaller.
//!
//! A command makes a [`Chart`] from its answer; `terminal` and `svg` draw it, and a page of HTML
//! (`output::document::html`) has it with its numbers. They all take ticks and units from `scale` and
//! sentences from `words`, so that the three agree. Nothing here knows what the numbers mean: cost and
//! latency are only two axes.
//!
//! Colour is never the only carrier: a series is also a letter or a shape, a rejected point is a
//! cross, and the chosen one is a star or ringed and named. Start reading at [`Chart::new`].

mod escape;
mod frontier;
mod scale;
pub(crate) mod svg;
pub(crate) mod terminal;
#[cfg(test)]
mod tests;
pub(crate) mod words;

pub(crate) use escape::escape;
pub(crate) use frontier::frontier;

/// Points on two axes, with the best of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) points: Vec<Point>,
    /// Points that no other one beats, by index, from left to right.
    pub(crate) frontier: Vec<usize>,
    pub(crate) limits: Vec<Limit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// What is measured: `TTFT p99`.
    pub(crate) label: String,
    /// The unit of the points' values: `s`, `ms`, `$/h`, `tok/s`. Times are shown in whichever
    /// unit reads best.
    pub(crate) unit: String,
    pub(crate) log: bool,
}

/// One choice. Values that are not numbers are left out of the picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) x_low_high: Option<(f64, f64)>,
    pub(crate) y_low_high: Option<(f64, f64)>,
    /// What it is one of, such as the accelerator.
    pub(crate) series: String,
    /// Names this one: `H200 TP1 x4`.
    pub(crate) label: String,
    pub(crate) chosen: bool,
    /// Shown for completeness, and beats nothing.
    pub(crate) rejected: bool,
}

/// A line that must not be crossed, such as a target.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) axis: Which,
    pub(crate) value: f64,
    pub(crate) label: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    X,
    Y,
}

impl Axis {
    pub(crate) fn new(label: impl Into<String>, unit: impl Into<String>) -> Axis {
        Axis { label: label.into(), unit: unit.into(), log: false }
    }
}

impl Chart {
    /// Finds the frontier, and makes an axis logarithmic if it spans more than two decades: on a
    /// linear one the small values, which are the good ones, would fall together.
    pub(crate) fn new(
        title: impl Into<String>,
        x: Axis,
        y: Axis,
        points: Vec<Point>,
        limits: Vec<Limit>,
    ) -> Chart {
        let frontier = frontier(&points);
        let mut chart = Chart { title: title.into(), x, y, points, frontier, limits };
        chart.x.log |= scale::spans_two_decades(&chart.values(Which::X));
        chart.y.log |= scale::spans_two_decades(&chart.values(Which::Y));
        chart
    }

    /// The names of the series, in order of appearance.
    fn series(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for point in self.points.iter().filter(|point| point.is_drawn()) {
            if !names.contains(&point.series.as_str()) {
                names.push(&point.series);
            }
        }
        names
    }

    fn drawn(&self) -> impl Iterator<Item = (usize, &Point)> {
        self.points.iter().enumerate().filter(|(_, point)| point.is_drawn())
    }

    /// Everything that an axis must reach. The interval of a rejected point is not waited for: it
    /// may be as wide as it is wrong.
    fn values(&self, which: Which) -> Vec<f64> {
        let of_points = self.points.iter().filter(|point| point.is_drawn()).flat_map(|point| {
            let (value, interval) = point.on(which);
            let interval = interval.filter(|_| !point.rejected);
            let (low, high) = interval.unwrap_or((value, value));
            [value, low, high]
        });
        let limits = self.limits.iter().filter(|limit| limit.axis == which);
        let all = of_points.chain(limits.map(|limit| limit.value));
        all.filter(|value| value.is_finite()).collect()
    }

    fn scale(&self, which: Which, ticks: usize) -> scale::Scale {
        let axis = match which {
            Which::X => &self.x,
            Which::Y => &self.y,
        };
        scale::Scale::new(axis, &self.values(which), ticks)
    }
}

impl Point {
    fn is_drawn(&self) -> bool {
        self.x.is_finite() && self.y.is_finite()
    }

    fn on(&self, which: Which) -> (f64, Option<(f64, f64)>) {
        match which {
            Which::X => (self.x, self.x_low_high),
            Which::Y => (self.y, self.y_low_high),
        }
    }
}
