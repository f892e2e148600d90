//! `behavior` of an HPA, which KEDA passes on.

use super::super::hpa::{Behaviour, HpaRules, Rate, Select};
use super::{Findings, quantity};
use crate::seconds::Seconds;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Both directions as written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Written {
    scale_up: Option<Direction>,
    scale_down: Option<Direction>,
    #[serde(flatten)]
    unused: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Direction {
    stabilization_window_seconds: Option<f64>,
    select_policy: Option<String>,
    policies: Option<Vec<Policy>>,
    tolerance: Option<Value>,
    #[serde(flatten)]
    unused: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    r#type: String,
    value: u32,
    period_seconds: f64,
}

impl Written {
    /// What it comes to: what is not written keeps its default.
    pub(super) fn read(self, findings: &mut Findings) -> Behaviour {
        let default = Behaviour::default();
        findings.unused("behavior.", &self.unused);
        Behaviour {
            up: direction(self.scale_up, default.up, "behavior.scaleUp.", findings),
            down: direction(self.scale_down, default.down, "behavior.scaleDown.", findings),
        }
    }
}

fn direction(
    written: Option<Direction>,
    mut rules: HpaRules,
    path: &str,
    findings: &mut Findings,
) -> HpaRules {
    let Some(written) = written else { return rules };
    findings.unused(path, &written.unused);
    if let Some(seconds) = written.stabilization_window_seconds {
        rules.stabilisation = Seconds(seconds);
    }
    match written.select_policy.as_deref() {
        None | Some("Max") => {}
        Some("Min") => rules.select = Select::Min,
        Some("Disabled") => rules.select = Select::Disabled,
        Some(other) => {
            findings.problem(format_args!(
                "{path}selectPolicy `{other}` is none of Max, Min, Disabled"
            ));
        }
    }
    if let Some(tolerance) = &written.tolerance {
        match quantity(tolerance).filter(|tolerance| *tolerance >= 0.0) {
            Some(tolerance) => rules.tolerance = tolerance,
            None => findings.problem(format_args!("{path}tolerance {tolerance} is not a quantity")),
        }
    }
    if let Some(policies) = written.policies {
        rules.rates.clear();
        for Policy { r#type, value, period_seconds } in policies {
            let period = Seconds(period_seconds);
            match r#type.as_str() {
                "Pods" => rules.rates.push(Rate::Pods { value, period }),
                "Percent" => rules.rates.push(Rate::Percent { value, period }),
                other => findings.problem(format_args!(
                    "{path}policies type `{other}` is neither Pods nor Percent"
                )),
            }
        }
    }
    rules
}
