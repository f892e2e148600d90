//! Which metrics exist, with which labels: as the reference lists them.

use super::query::Query;
use anyhow::{Context as _, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Labels that a scrape adds.
const OF_THE_SCRAPE: [&str; 5] = ["instance", "job", "pod", "namespace", "cluster"];

/// Metrics by name.
#[derive(Debug, Default)]
pub(super) struct Registry {
    /// Kind and labels.
    metrics: BTreeMap<String, (String, BTreeSet<String>)>,
    recorded: BTreeSet<String>,
}

impl Registry {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        let registry = Self::parse(&text);
        if registry.metrics.is_empty() {
            bail!("{} lists no metrics: did its form change?", path.display());
        }
        Ok(registry)
    }

    /// Reads rows such as: | `name` | kind | `label`, `label` | what it says |.
    fn parse(text: &str) -> Self {
        let mut metrics = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, name, kind, labels, ..] = cells[..] else { continue };
            let labels = labels.split(',').map(bare).filter(|label| !label.is_empty());
            metrics.insert(bare(name), (kind.to_owned(), labels.collect()));
        }
        Self { metrics, recorded: BTreeSet::new() }
    }

    /// The same, and these names that rules record.
    pub(super) fn with(mut self, recorded: impl Iterator<Item = String>) -> Self {
        self.recorded.extend(recorded);
        self
    }

    /// Whether all that a query speaks of exists.
    pub(super) fn hold(&self, query: &Query) -> Result<()> {
        let mut known: BTreeSet<&str> = OF_THE_SCRAPE.into();
        let mut knows_all = true;
        for (name, matched) in &query.series {
            if self.recorded.contains(name) {
                // What a rule leaves of labels is for promtool's tests to show.
                knows_all = false;
                continue;
            }
            let labels = self.labels(name)?;
            for label in matched {
                if !labels.contains(label.as_str()) && !OF_THE_SCRAPE.contains(&label.as_str()) {
                    bail!("`{name}` has no label `{label}`");
                }
            }
            known.extend(labels);
        }
        match query.labels.iter().find(|label| !known.contains(label.as_str())) {
            Some(label) if knows_all => bail!("none of its series has a label `{label}`"),
            _ => Ok(()),
        }
    }

    fn labels(&self, name: &str) -> Result<BTreeSet<&str>> {
        let of = |metric: &str| self.metrics.get(metric);
        if let Some((kind, labels)) = of(name) {
            if kind == "histogram" {
                bail!("`{name}` is a histogram: queries add _bucket, _sum or _count");
            }
            return Ok(labels.iter().map(String::as_str).collect());
        }
        for (suffix, more) in [("_bucket", Some("le")), ("_sum", None), ("_count", None)] {
            let Some(("histogram", labels)) = name
                .strip_suffix(suffix)
                .and_then(of)
                .map(|(kind, labels)| (kind.as_str(), labels))
            else {
                continue;
            };
            return Ok(labels.iter().map(String::as_str).chain(more).collect());
        }
        bail!("there is no metric `{name}`");
    }
}

fn bare(cell: &str) -> String {
    cell.trim().trim_matches('`').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::query::parse;
    use super::*;

    const REFERENCE: &str = "\
        | Name | Kind | Labels | What it says |\n|---|---|---|---|\n\
        | `a_total` | counter | `model`, `outcome` | A |\n\
        | `b_seconds` | histogram |  | B |\n";

    #[test]
    fn what_exists_holds_and_what_does_not_is_named() {
        let registry = Registry::parse(REFERENCE).with(["r:a".to_owned()].into_iter());
        let hold = |text: &str| registry.hold(&parse(text).unwrap());
        for fine in [
            r#"sum by (model) (rate(a_total{outcome="x", instance="i"}[5m]))"#,
            "histogram_quantile(0.9, sum by (le) (rate(b_seconds_bucket[5m])))",
            "r:a > on (whatever) a_total",
            "rate(b_seconds_sum[5m]) / rate(b_seconds_count[5m])",
        ] {
            hold(fine).unwrap();
        }
        for (wrong, why) in [
            ("rate(a_totl[5m])", "no metric `a_totl`"),
            (r#"a_total{modle="x"}"#, "no label `modle`"),
            ("sum by (le) (a_total)", "label `le`"),
            ("b_seconds", "is a histogram"),
            ("a_total_bucket", "no metric"),
        ] {
            let said = hold(wrong).unwrap_err().to_string();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }
}
