//! A user's own autoscaler, read from its manifest.
//!
//! `HorizontalPodAutoscaler` (`autoscaling/v2`) and KEDA's `ScaledObject` become the settings of a
//! rival. What cannot be followed is a problem, because the replay would be of something else; what
//! changes nothing in a replay is a note. Nothing is dropped in silence.
//!
//! It knows no cluster: a name is matched against the metrics that a replay can show. Start at
//! [`read`]; `promql.rs` finds the metric inside a query.

mod behaviour;
#[cfg(test)]
mod guide;
mod hpa;
mod keda;
mod promql;
#[cfg(test)]
mod tests;

use super::{RivalMetric, RivalSettings};
use crate::seconds::Seconds;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt;

/// One manifest, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Its name.
    pub name: String,
    /// What it scales.
    pub target: String,
    /// Its settings as a rival.
    pub settings: RivalSettings,
    /// What it says that changes nothing in a replay.
    pub notes: Vec<String>,
}

impl Read {
    /// For a replay that starts so far into its week, from Monday midnight.
    #[must_use]
    pub fn starting_at(mut self, starts_at: Seconds) -> Self {
        if let RivalSettings::Keda(settings) = &mut self.settings {
            settings.starts_at = starts_at;
        }
        self
    }
}

/// Why manifests cannot be replayed; all that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct PolicyFileProblems(pub Vec<String>);

impl fmt::Display for PolicyFileProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

/// Reads every autoscaler in a file of one or more documents. Documents of other kinds are passed
/// over, since people keep a Deployment and its autoscaler together; a file without any is a
/// problem.
pub fn read(text: &str) -> Result<Vec<Read>, PolicyFileProblems> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| PolicyFileProblems(vec![format!("not YAML: {error}")]))?;
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let mut others = Vec::new();
    for document in documents.into_iter().flat_map(items) {
        let word = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
        let (kind, version) = (word("kind"), word("apiVersion"));
        let one = match kind.as_str() {
            "HorizontalPodAutoscaler" => hpa::read(document, &version),
            "ScaledObject" => keda::read(document),
            _ => {
                others.push(if kind.is_empty() {
                    "a document without a kind".to_owned()
                } else {
                    kind
                });
                continue;
            }
        };
        match one {
            Ok(one) => found.push(one),
            Err(PolicyFileProblems(more)) => problems.extend(more),
        }
    }
    if found.is_empty() && problems.is_empty() {
        let seen = if others.is_empty() { "nothing".to_owned() } else { others.join(", ") };
        problems.push(format!(
            "no HorizontalPodAutoscaler or ScaledObject here, but {seen}; hint: \
             kubectl get hpa,scaledobject -o yaml"
        ));
    }
    let note = |kind: &String| format!("{kind} is passed over");
    for one in &mut found {
        one.notes.extend(others.iter().map(note));
    }
    if problems.is_empty() { Ok(found) } else { Err(PolicyFileProblems(problems)) }
}

/// The documents of a list, as `kubectl get -o yaml` prints them, or the document itself.
fn items(mut document: Value) -> Vec<Value> {
    let is_list =
        document.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => items,
        _ => vec![document],
    }
}

/// What is said of an object as a whole.
#[derive(Debug, Deserialize)]
struct Metadata {
    #[serde(default)]
    annotations: Map<String, Value>,
}

/// What is scaled.
#[derive(Debug, Deserialize)]
struct TargetRef {
    name: String,
    #[serde(default)]
    kind: Option<String>,
}

impl TargetRef {
    fn text(&self) -> String {
        format!("{}/{}", self.kind.as_deref().unwrap_or("Deployment"), self.name)
    }
}

/// What goes wrong and what goes unused while one manifest is read.
#[derive(Debug, Default)]
struct Findings {
    name: String,
    problems: Vec<String>,
    notes: Vec<String>,
}

impl Findings {
    fn problem(&mut self, text: impl fmt::Display) {
        self.problems.push(format!("{}: {text}", self.name));
    }

    /// Notes fields that nothing here reads.
    fn unused(&mut self, path: &str, fields: &Map<String, Value>) {
        self.notes.extend(fields.keys().map(|field| format!("{path}{field} is not simulated")));
    }

    /// Notes annotations, but for the copy of the object that kubectl keeps in one.
    fn annotations(&mut self, metadata: &Metadata) {
        let keys =
            metadata.annotations.keys().filter(|key| !key.starts_with("kubectl.kubernetes.io/"));
        self.notes.extend(keys.map(|key| format!("annotation {key} is not simulated")));
    }

    fn unknown_metric(&mut self, name: &str) {
        let known: Vec<&str> =
            RivalMetric::NAMED.iter().map(|metric| metric.prometheus()[0]).collect();
        self.problem(format_args!(
            "no replay shows the metric `{name}`; those known, under these and related names, are {}",
            known.join(", ")
        ));
    }

    fn finish(
        self,
        target: String,
        settings: Option<RivalSettings>,
    ) -> Result<Read, PolicyFileProblems> {
        match settings {
            Some(settings) if self.problems.is_empty() => {
                Ok(Read { name: self.name, target, settings, notes: self.notes })
            }
            _ => Err(PolicyFileProblems(self.problems)),
        }
    }
}

/// A Kubernetes quantity: a number or a text such as `500m` or `2k`.
fn quantity(value: &Value) -> Option<f64> {
    let text = match value {
        Value::Number(number) => return number.as_f64(),
        Value::String(text) => text.trim(),
        _ => return None,
    };
    let endings = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
    ];
    let ending = endings.iter().find_map(|(end, scale)| Some((text.strip_suffix(end)?, *scale)));
    let (digits, scale) = ending.unwrap_or((text, 1.0));
    digits.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * scale)
}
