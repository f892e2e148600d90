//! Money against days.

use super::answer::TrainAnswer;
use crate::chart::{Axis, Chart, Limit, Point, Which};

pub(super) fn frontier(answer: &TrainAnswer) -> Chart {
    let points = answer
        .choices
        .iter()
        .enumerate()
        .filter_map(|(index, choice)| {
            let usd = choice.usd?;
            Some(Point {
                x: usd.point / 1e3,
                x_low_high: Some((usd.low / 1e3, usd.high / 1e3)),
                y: choice.days.point,
                y_low_high: Some((choice.days.low, choice.days.high)),
                series: choice.accelerator.clone(),
                label: format!("{} x {}", choice.gpus, choice.accelerator),
                chosen: index == 0,
                ..Point::default()
            })
        })
        .collect();
    let limit = |axis, value, label: &str| vec![Limit { axis, value, label: label.to_owned() }];
    let limits = match answer.fixed {
        "deadline" => limit(Which::Y, answer.fixed_value / 86_400.0, "deadline"),
        "budget" => limit(Which::X, answer.fixed_value / 1e3, "budget"),
        _ => Vec::new(),
    };
    let title = format!("{}: cost and time", answer.model.name());
    Chart::new(title, Axis::new("cost", "k$"), Axis::new("time", "days"), points, limits)
}
