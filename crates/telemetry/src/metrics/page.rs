//! Writes numbers that live elsewhere onto the page of metrics.
//!
//! A hot path keeps its own atomics: families that look a label up by its text under a lock cost
//! more than the rest of counting. Such a part is a `Source` and is asked when the page is made.

use super::names::{Metric, MetricKind};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel as _, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use std::fmt;
use std::sync::Arc;

/// Something that has numbers for the page.
pub trait MetricsSource: fmt::Debug + Send + Sync + 'static {
    /// Writes all of them, each metric once.
    fn write(&self, page: &mut Page<'_>) -> fmt::Result;
}

impl<S: MetricsSource> MetricsSource for Arc<S> {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        self.as_ref().write(page)
    }
}

/// The page while it is written.
#[derive(Debug)]
pub struct Page<'a>(DescriptorEncoder<'a>);

/// A histogram as the page shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Everything added up.
    pub sum: f64,
    /// How many there are up to each bound and above the one before; the last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
}

impl Page<'_> {
    /// Writes a counter: for each series the values of its labels, in the order of
    /// [`Metric::labels`], and the count.
    pub fn counter<L: AsRef<[S]>, S: AsRef<str>>(
        &mut self,
        metric: Metric,
        series: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        debug_assert_eq!(metric.kind(), MetricKind::Counter);
        self.each(metric, MetricType::Counter, series, |encoder, value| {
            encoder.encode_counter::<NoLabelSet, _, f64>(value, None)
        })
    }

    /// Writes a gauge.
    pub fn gauge<L: AsRef<[S]>, S: AsRef<str>>(
        &mut self,
        metric: Metric,
        series: impl IntoIterator<Item = (L, f64)>,
    ) -> fmt::Result {
        debug_assert_eq!(metric.kind(), MetricKind::Gauge);
        self.each(metric, MetricType::Gauge, series, |encoder, value| encoder.encode_gauge(value))
    }

    /// Writes a histogram.
    pub fn histogram<L: AsRef<[S]>, S: AsRef<str>>(
        &mut self,
        metric: Metric,
        series: impl IntoIterator<Item = (L, Sizes)>,
    ) -> fmt::Result {
        debug_assert_eq!(metric.kind(), MetricKind::Histogram);
        self.each(metric, MetricType::Histogram, series, |encoder, sizes| {
            let count = sizes.buckets.iter().map(|(_, count)| count).sum();
            encoder.encode_histogram::<NoLabelSet>(sizes.sum, count, &sizes.buckets, None)
        })
    }

    fn each<L: AsRef<[S]>, S: AsRef<str>, V>(
        &mut self,
        metric: Metric,
        kind: MetricType,
        series: impl IntoIterator<Item = (L, V)>,
        encode: impl Fn(&mut MetricEncoder<'_>, &V) -> fmt::Result,
    ) -> fmt::Result {
        let mut family =
            self.0.encode_descriptor(metric.family_name(), metric.help(), None, kind)?;
        for (values, value) in series {
            let values = values.as_ref();
            debug_assert_eq!(metric.labels().len(), values.len(), "{}", metric.name());
            if values.is_empty() {
                encode(&mut family, &value)?;
            } else {
                let labels = Labels { names: metric.labels(), values };
                encode(&mut family.encode_family(&labels)?, &value)?;
            }
        }
        Ok(())
    }
}

/// Makes a source known to the registry.
#[derive(Debug)]
pub(super) struct Collected<S>(pub(super) S);

impl<S: MetricsSource> Collector for Collected<S> {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.write(&mut Page(encoder))
    }
}

struct Labels<'a, S> {
    names: &'static [&'static str],
    values: &'a [S],
}

impl<S: AsRef<str>> EncodeLabelSet for Labels<'_, S> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        for (name, value) in self.names.iter().zip(self.values) {
            (*name, value.as_ref()).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}
