//! Cost against latency.

use super::answer::ServeAnswer;
use crate::chart::{Axis, Chart, Limit, Point, Which};

/// The choices as points: dollars per hour and the latency that has a target.
pub(super) fn frontier(answer: &ServeAnswer) -> Chart {
    let by_ttft = answer.targets.itl_p95_ms.is_none() || answer.targets.ttft_p95_ms.is_some();
    let (label, target) = match by_ttft {
        true => ("TTFT p95", answer.targets.ttft_p95_ms),
        false => ("ITL p95", answer.targets.itl_p95_ms),
    };
    let points = answer
        .choices
        .iter()
        .enumerate()
        .filter_map(|(index, choice)| {
            let latency = if by_ttft { choice.ttft_p95_ms } else { choice.itl_p95_ms };
            Some(Point {
                x: choice.usd_per_hour?,
                y: latency.point,
                y_low_high: Some((latency.low, latency.high)),
                series: choice.accelerator.clone(),
                label: format!("{} {} x{}", choice.accelerator, choice.layout, choice.replicas),
                chosen: index == 0,
                ..Point::default()
            })
        })
        .collect();
    let limits = target
        .map(|value| Limit { axis: Which::Y, value, label: format!("{label} target") })
        .into_iter()
        .collect();
    let title = format!("{}: cost and {label}", answer.model.name());
    Chart::new(title, Axis::new("cost", "$/h"), Axis::new(label, "ms"), points, limits)
}
