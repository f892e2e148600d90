//! Which metrics exist, with which labels.

use super::query::Query;
use flyball_telemetry::metrics::{Metric, MetricKind};
use std::collections::BTreeSet;

/// Labels that a scrape adds.
const OF_THE_SCRAPE: [&str; 5] = ["instance", "job", "pod", "namespace", "cluster"];

/// The closed list of metrics, and names that rules record.
pub(super) struct Registry {
    pub(super) recorded: BTreeSet<String>,
}

impl Registry {
    /// Whether all that a query speaks of exists.
    pub(super) fn hold(&self, query: &Query) -> Result<(), String> {
        let mut known: BTreeSet<&str> = OF_THE_SCRAPE.into();
        let mut knows_all = true;
        for (name, matched) in &query.series {
            if self.recorded.contains(name) {
                // What a rule leaves of labels is for promtool's tests to show.
                knows_all = false;
                continue;
            }
            let labels = labels(name)?;
            for label in matched {
                if !labels.contains(label.as_str()) && !OF_THE_SCRAPE.contains(&label.as_str()) {
                    return Err(format!("`{name}` has no label `{label}`"));
                }
            }
            known.extend(labels);
        }
        match query.labels.iter().find(|label| !known.contains(label.as_str())) {
            Some(label) if knows_all => Err(format!("none of its series has a label `{label}`")),
            _ => Ok(()),
        }
    }
}

fn labels(name: &str) -> Result<BTreeSet<&'static str>, String> {
    let of = |name: &str| Metric::ALL.iter().find(|metric| metric.name() == name);
    let is_histogram = |metric: &&Metric| metric.kind() == MetricKind::Histogram;
    if let Some(metric) = of(name) {
        return match is_histogram(&metric) {
            true => Err(format!("`{name}` is a histogram: queries add _bucket, _sum or _count")),
            false => Ok(metric.labels().iter().copied().collect()),
        };
    }
    for (suffix, more) in [("_bucket", Some("le")), ("_sum", None), ("_count", None)] {
        if let Some(metric) = name.strip_suffix(suffix).and_then(of).filter(is_histogram) {
            return Ok(metric.labels().iter().copied().chain(more).collect());
        }
    }
    Err(format!("there is no metric `{name}`"))
}

#[test]
fn what_exists_holds_and_what_does_not_is_named() {
    let registry = Registry { recorded: ["r:a".to_owned()].into() };
    let hold = |text: &str| registry.hold(&super::query::parse(text).unwrap());
    for fine in [
        r#"sum by (model) (rate(flyball_gateway_retries_total{model="x", instance="i"}[5m]))"#,
        "histogram_quantile(0.9, sum by (le) (rate(gen_ai_server_request_duration_seconds_bucket[5m])))",
        "r:a > on (whatever) flyball_gateway_in_flight",
        "rate(gen_ai_server_request_duration_seconds_sum[5m])",
    ] {
        assert_eq!(hold(fine), Ok(()), "{fine}");
    }
    for (wrong, why) in [
        ("rate(flyball_gateway_retires_total[5m])", "no metric `flyball_gateway_retires_total`"),
        (r#"flyball_gateway_retries_total{modle="x"}"#, "no label `modle`"),
        ("sum by (le) (flyball_gateway_retries_total)", "label `le`"),
        ("gen_ai_server_request_duration_seconds", "is a histogram"),
        ("flyball_gateway_retries_total_bucket", "no metric"),
    ] {
        let problem = hold(wrong).unwrap_err();
        assert!(problem.contains(why), "{wrong}: {problem}");
    }
}
