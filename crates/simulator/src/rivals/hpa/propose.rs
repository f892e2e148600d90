//! How many replicas one metric asks for.

use super::super::{RivalMetric, ceil};
use crate::policy::Reading;

/// One metric of an HPA and its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HpaSource {
    /// What is read.
    pub metric: RivalMetric,
    /// How it is gathered and what the target means.
    pub kind: HpaMetricKind,
    /// How the values of replicas become one, for kinds other than `Kind::PerPod`.
    pub over: Over,
    /// The target, in the unit of the metric.
    pub target: f64,
    /// What the reading is multiplied by first: arithmetic of a query.
    pub factor: f64,
    /// What an unreadable metric counts as, where the query says so (`or vector(0)`).
    pub missing: Option<f64>,
}

/// How a metric is gathered and what its target means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpaMetricKind {
    /// A `Pods` metric: its mean over pods is held at the target.
    PerPod,
    /// An `Object` or `External` metric with `averageValue`: what is read, divided by the target.
    AverageValue,
    /// An `Object` or `External` metric with `value`: what is read against the target, times the
    /// pods that are ready.
    Value,
}

/// How the values of replicas become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// `sum()`.
    Sum,
    /// `avg()`.
    Mean,
}

/// How replicas that start are counted by a `Pods` metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starting {
    /// As pods of phase Running without a metric: at the target on the way down, at zero on the
    /// way up. An engine that loads weights is in this phase.
    Running,
    /// As pods of phase Pending: left out on the way down, at zero on the way up. A pod that waits
    /// for a node or an image is in this phase.
    Pending,
}

impl HpaSource {
    /// A `Pods` metric.
    pub const fn per_pod(metric: RivalMetric, target: f64) -> Self {
        Self {
            kind: HpaMetricKind::PerPod,
            over: Over::Mean,
            ..Self::average_value(metric, target)
        }
    }

    /// An `External` metric with `averageValue`.
    pub const fn average_value(metric: RivalMetric, target: f64) -> Self {
        let (kind, over) = (HpaMetricKind::AverageValue, Over::Sum);
        Self { metric, kind, over, target, factor: 1.0, missing: None }
    }

    /// What is read, as the query would show it.
    pub fn value(&self, reading: &Reading) -> Option<f64> {
        let shown = match (self.kind, self.over) {
            (HpaMetricKind::PerPod, _) | (_, Over::Mean) => self.metric.mean(reading),
            (_, Over::Sum) => self.metric.sum(reading),
        };
        shown.map(|value| value * self.factor).or(self.missing)
    }

    /// How many replicas it asks for; `None` where it cannot be read. `tolerance` is that of the
    /// way up and that of the way down.
    pub(in super::super) fn propose(
        &self,
        reading: &Reading,
        current: u32,
        tolerance: (f64, f64),
        starting: Starting,
    ) -> Option<u32> {
        let value = self.value(reading)?;
        match self.kind {
            HpaMetricKind::PerPod => (reading.ready > 0)
                .then(|| self.per_pod_replicas(value, reading, current, tolerance, starting)),
            HpaMetricKind::AverageValue => {
                // Terminating pods are not in the `scale` status, those that start are.
                let exist = reading.ready + reading.starting;
                let ratio = value / (self.target * f64::from(exist));
                let keep = exist > 0 && tolerates(ratio, tolerance);
                Some(if keep { exist } else { ceil(value / self.target) })
            }
            HpaMetricKind::Value => {
                let ratio = value / self.target;
                Some(match current {
                    0 => ceil(ratio),
                    _ if tolerates(ratio, tolerance) => current,
                    _ => ceil(ratio * f64::from(reading.ready)),
                })
            }
        }
    }

    fn per_pod_replicas(
        &self,
        mean: f64,
        reading: &Reading,
        current: u32,
        tolerance: (f64, f64),
        starting: Starting,
    ) -> u32 {
        let ratio = mean / self.target;
        let ready = f64::from(reading.ready);
        let waiting_for = f64::from(reading.starting);
        let counted_at = match (starting, ratio > 1.0) {
            (_, true) => 0.0,
            (Starting::Running, false) => 1.0,
            (Starting::Pending, false) => {
                return if tolerates(ratio, tolerance) { current } else { ceil(ratio * ready) };
            }
        };
        let all = ready + waiting_for;
        let corrected = (ratio * ready + counted_at * waiting_for) / all;
        let turned = (ratio > 1.0 && corrected < 1.0) || (ratio < 1.0 && corrected > 1.0);
        if turned || tolerates(corrected, tolerance) {
            return current;
        }
        let replicas = ceil(corrected * all);
        // Pods that come or go between the count and the metric must not turn the direction.
        let turned =
            (corrected < 1.0 && replicas > current) || (corrected > 1.0 && replicas < current);
        if turned { current } else { replicas }
    }
}

/// Whether a ratio is too near to one to act on.
fn tolerates(ratio: f64, (up, down): (f64, f64)) -> bool {
    // The comparison allows for the rounding of floats: 1.1 / 1.0 - 1 is a little above 0.1.
    1.0 - down - 1e-9 <= ratio && ratio <= 1.0 + up + 1e-9
}
