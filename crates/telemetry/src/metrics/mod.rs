//! Every metric name, and the registry that writes them.
//!
//! [`Metric`] is the closed list: dashboards, alerts and the reference are checked against it.
//! Label values come from closed enums, because a label made from free text grows without end.
//! The exceptions are the version, which is one value per process, and names that stand in the
//! settings of a gateway (models, callers), of which it keeps a stated number.
//!
//! This module counts what it is told and decides nothing. Start at `names.rs`; a part that keeps
//! its own numbers is a `Source`. `docs/reference/metrics.md` is written from the list.

mod names;
mod page;
#[cfg(test)]
mod tests;

pub use names::{Metric, MetricKind, MetricPart, Unit};
pub use page::{MetricsSource, Page, Sizes};

use flyball_core::invariants::Invariant;
use prometheus_client::encoding::text;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::fmt::{self, Write as _};

/// What `Content-Type` the text of [`Metrics::encode`] has.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    invariant_violations: Family<InvariantLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InvariantLabels {
    invariant: InvariantId,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InvariantId(Invariant);

impl EncodeLabelValue for InvariantId {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.write_str(self.0.id())
    }
}

impl Metrics {
    /// The metrics of a process of this version, all at their start.
    pub fn new(version: &'static str) -> Self {
        let mut registry = Registry::default();

        let build = Info::new([("version", version)]);
        register(&mut registry, Metric::BuildInfo, build);

        let invariant_violations = Family::<InvariantLabels, Counter>::default();
        // A series must exist before its first count, or the step from nothing to one is not
        // seen as an increase.
        for invariant in Invariant::ALL {
            drop(invariant_violations.get_or_create(&labels(*invariant)));
        }
        register(&mut registry, Metric::InvariantViolations, invariant_violations.clone());

        Self { registry, invariant_violations }
    }

    /// The same, and what this source has.
    pub fn with(mut self, source: impl MetricsSource) -> Self {
        self.registry.register_collector(Box::new(page::Collected(source)));
        self
    }

    /// Counts one violation.
    pub fn count_violation(&self, invariant: Invariant) {
        self.invariant_violations.get_or_create(&labels(invariant)).inc();
    }

    /// All metrics as OpenMetrics text; see [`CONTENT_TYPE`].
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

const fn labels(invariant: Invariant) -> InvariantLabels {
    InvariantLabels { invariant: InvariantId(invariant) }
}

fn register(
    registry: &mut Registry,
    metric: Metric,
    measured: impl prometheus_client::registry::Metric,
) {
    registry.register(metric.family_name(), metric.help(), measured);
}
