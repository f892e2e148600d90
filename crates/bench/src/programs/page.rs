//! Reading pages of metrics.

use super::running::get_plainly;
use anyhow::{Context, Result};
use std::net::SocketAddr;

/// The sum over all labels of a metric.
pub(crate) fn total(page: &str, name: &str) -> Option<f64> {
    of(page, name, &[])
}

/// The sum over those samples of a metric that have all of these labels, each as `name="value"`.
pub(crate) fn of(page: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let values = page.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let named = rest.starts_with(['{', ' ']);
        let fits = named && labels.iter().all(|label| rest.contains(label));
        fits.then(|| rest.rsplit(' ').next()?.parse::<f64>().ok())?
    });
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

/// The JSON behind a path.
pub(crate) fn json(address: SocketAddr, path: &str) -> Result<serde_json::Value> {
    let answer = get_plainly(address, path)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
    serde_json::from_str(body).with_context(|| format!("reading {path} of {address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_summed_over_its_labels() {
        let page = "# TYPE a_total counter\na_total{x=\"1\"} 2\na_total{x=\"2\"} 3.5\n\
                    a_total_more 9\nb 4\n";
        assert_eq!(total(page, "a_total"), Some(5.5));
        assert_eq!(total(page, "b"), Some(4.0));
        assert_eq!(total(page, "c"), None);
        assert_eq!(of(page, "a_total", &["x=\"2\""]), Some(3.5));
        assert_eq!(of(page, "a_total", &["x=\"3\""]), None);
    }
}
