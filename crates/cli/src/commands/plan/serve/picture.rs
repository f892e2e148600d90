//! Cost against latency.

use super::answer::{PointView, ServeAnswer};
use crate::chart::{Axis, Chart, Limit, Point, Which, frontier};

/// More points than this hide each other; those on the frontier always stay.
const SHOWN: usize = 40;

/// Every possible layout as a point: dollars per hour, and the latency that has a target.
pub(super) fn picture(answer: &ServeAnswer) -> Chart {
    let by_ttft = answer.targets.itl_p95_ms.is_none() || answer.targets.ttft_p95_ms.is_some();
    let (label, target) = match by_ttft {
        true => ("TTFT p95", answer.targets.ttft_p95_ms),
        false => ("ITL p95", answer.targets.itl_p95_ms),
    };
    let all: Vec<Point> =
        answer.points.iter().enumerate().map(|(place, one)| point(one, place, by_ttft)).collect();
    let best = frontier(&all);
    // Nobody pays five times as much; farther points would only squeeze the others.
    let dearest = answer.points.first().map_or(f64::INFINITY, |first| first.usd_per_hour * 5.0);
    let shown = |(place, point): (usize, Point)| {
        let is_shown = place < SHOWN || best.contains(&place);
        (is_shown && point.x <= dearest).then_some(point)
    };
    let points = all.into_iter().enumerate().filter_map(shown).collect();
    let limits = target
        .map(|value| Limit { axis: Which::Y, value, label: format!("{label} target") })
        .into_iter()
        .collect();
    let title = format!("{}: cost and {label}", answer.model.name());
    Chart::new(title, Axis::new("cost", "$/h"), Axis::new(label, "ms"), points, limits)
}

fn point(one: &PointView, place: usize, by_ttft: bool) -> Point {
    let latency = if by_ttft { one.ttft_p95_ms } else { one.itl_p95_ms };
    Point {
        x: one.usd_per_hour,
        y: latency.point,
        y_low_high: Some((latency.low, latency.high)),
        series: one.accelerator.clone(),
        label: format!("{} {} x{}", one.accelerator, one.layout, one.replicas),
        chosen: place == 0,
        ..Point::default()
    }
}
