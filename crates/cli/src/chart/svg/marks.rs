//! The shapes that stand for a point. A series is a colour and a shape, so either is enough.

use std::fmt::Write;

/// Colours in chart.css. Computed when they were chosen: any two of them are at least 14 apart (CIE
/// Lab) for readers who do not see red or green, and each has a contrast of at least 4.5 to the
/// paper, light or dark.
const COLOURS: usize = 6;

/// The class that sets the colour of a series.
pub(super) fn colour(series: usize) -> String {
    format!("fb-c{}", series % COLOURS)
}

/// The mark of a series. Shapes and colours begin again at different numbers, so that a pair is
/// seen again only after 30 series.
pub(super) fn shape(series: usize, x: f64, y: f64) -> String {
    match series % 5 {
        0 => format!("<circle class=\"fb-mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5.5\"/>"),
        1 => polygon(x, y, &[(-5.0, -5.0), (5.0, -5.0), (5.0, 5.0), (-5.0, 5.0)]),
        2 => polygon(x, y, &[(0.0, -6.5), (6.2, 4.8), (-6.2, 4.8)]),
        3 => polygon(x, y, &[(0.0, -7.0), (7.0, 0.0), (0.0, 7.0), (-7.0, 0.0)]),
        _ => polygon(x, y, &[(0.0, 6.5), (6.2, -4.8), (-6.2, -4.8)]),
    }
}

pub(super) fn cross(x: f64, y: f64) -> String {
    let (left, right, top, bottom) = (x - 4.5, x + 4.5, y - 4.5, y + 4.5);
    format!(
        "<path class=\"fb-cross\" d=\"M{left:.1} {top:.1}L{right:.1} {bottom:.1}\
         M{right:.1} {top:.1}L{left:.1} {bottom:.1}\"/>"
    )
}

fn polygon(x: f64, y: f64, corners: &[(f64, f64)]) -> String {
    let mut points = String::new();
    for (dx, dy) in corners {
        let _ = write!(points, "{:.1},{:.1} ", x + dx, y + dy);
    }
    format!("<polygon class=\"fb-mark\" points=\"{}\"/>", points.trim_end())
}
