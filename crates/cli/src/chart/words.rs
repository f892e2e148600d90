//! A chart in sentences, for those who do not see it and for those who point at it.

use super::scale::Scale;
use super::{Chart, Point, Which};
use crate::text::plural;

/// The whole picture in one line.
pub(crate) fn summary(chart: &Chart) -> String {
    let drawn = chart.drawn().count();
    if drawn == 0 {
        return "Nothing to draw.".to_owned();
    }
    let rejected = chart.drawn().filter(|(_, point)| point.rejected).count();
    let mut text =
        format!("{}, {} of them on the frontier", plural(drawn, "choice"), chart.frontier.len());
    if rejected > 0 {
        text.push_str(&format!(", {rejected} rejected"));
    }
    if let Some((_, point)) = chart.drawn().find(|(_, point)| point.chosen) {
        let (x, y) = (chart.scale(Which::X, 5), chart.scale(Which::Y, 5));
        text.push_str(&format!(
            "; chosen: {} at {} and {}",
            point.label,
            x.label(point.x),
            y.label(point.y)
        ));
    }
    text.push('.');
    text
}

/// What one point is.
pub(super) fn point(chart: &Chart, index: usize, x: &Scale, y: &Scale) -> String {
    let point = &chart.points[index];
    let mut parts = vec![point.label.clone()];
    if !point.label.contains(&point.series) {
        parts.push(point.series.clone());
    }
    parts.push(format!("{}: {}", chart.x.label, value(point, Which::X, x)));
    parts.push(format!("{}: {}", chart.y.label, value(point, Which::Y, y)));
    parts.push(state(chart, index).to_owned());
    parts.join("; ")
}

/// Each point that is drawn, with its values on both axes and its state.
pub(crate) fn numbers(chart: &Chart) -> impl Iterator<Item = (&Point, [String; 3])> {
    let (x, y) = (chart.scale(Which::X, 5), chart.scale(Which::Y, 5));
    chart.drawn().map(move |(index, point)| {
        let (x, y) = (value(point, Which::X, &x), value(point, Which::Y, &y));
        (point, [x, y, state(chart, index).to_owned()])
    })
}

/// The value with its interval, if it has one.
fn value(point: &Point, which: Which, scale: &Scale) -> String {
    let (value, interval) = point.on(which);
    match interval.filter(|(low, high)| low.is_finite() && high.is_finite()) {
        Some((low, high)) => {
            format!("{} ({} to {})", scale.label(value), scale.label(low), scale.label(high))
        }
        None => scale.label(value),
    }
}

/// What became of a point.
fn state(chart: &Chart, index: usize) -> &'static str {
    let point = &chart.points[index];
    if point.chosen {
        "chosen"
    } else if point.rejected {
        "rejected"
    } else if chart.frontier.contains(&index) {
        "on the frontier"
    } else {
        "another is better in both"
    }
}
