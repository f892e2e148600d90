//! Alert rules, their tests and their pages.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const SEVERITIES: [&str; 3] = ["critical", "warning", "info"];

/// What every page of an alert tells, in this order.
const PAGE: [&str; 4] = ["## Meaning", "## Impact", "## Diagnosis", "## Mitigation"];

#[derive(Deserialize)]
pub(super) struct Rules {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
pub(super) struct Rule {
    record: Option<String>,
    alert: Option<String>,
    expr: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
pub(super) struct Tests {
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    #[serde(default)]
    alert_rule_test: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    alertname: String,
    #[serde(default)]
    exp_alerts: Vec<serde_json::Value>,
}

impl Rules {
    pub(super) fn read(path: &Path) -> Self {
        read(path)
    }

    fn all(&self) -> impl Iterator<Item = &Rule> {
        self.groups.iter().flat_map(|group| &group.rules)
    }

    pub(super) fn alerts(&self) -> impl Iterator<Item = (&str, &Rule)> {
        self.all().filter_map(|rule| Some((rule.alert.as_deref()?, rule)))
    }

    /// Names that other queries may use.
    pub(super) fn recorded(&self) -> impl Iterator<Item = String> {
        self.all().filter_map(|rule| rule.record.clone())
    }

    pub(super) fn queries(&self) -> Vec<(String, String)> {
        let name = |rule: &Rule| rule.alert.clone().or_else(|| rule.record.clone());
        self.all().map(|rule| (name(rule).unwrap_or_default(), rule.expr.clone())).collect()
    }

    /// What alerts lack: words, a page, a case in which they fire and one in which they do not.
    pub(super) fn problems(&self, root: &Path, tests: &Tests) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, rule) in self.alerts() {
            let mut wrong = |what: String| problems.push(format!("{name}: {what}"));
            let severity = rule.labels.get("severity").map(String::as_str).unwrap_or_default();
            if !SEVERITIES.contains(&severity) {
                wrong(format!("severity is one of {SEVERITIES:?}"));
            }
            for annotation in ["summary", "description"] {
                if !rule.annotations.contains_key(annotation) {
                    wrong(format!("has no {annotation}"));
                }
            }
            let page = format!("docs/runbooks/{name}.md");
            if rule.annotations.get("runbook_url") != Some(&page) {
                wrong(format!("runbook_url must be {page}"));
            }
            let text = fs::read_to_string(root.join(&page)).unwrap_or_default();
            let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
            if headings != PAGE {
                wrong(format!("{page} must have {PAGE:?}, and has {headings:?}"));
            }
            let cases = || tests.cases().filter(|case| case.alertname == name);
            if !cases().any(|case| !case.exp_alerts.is_empty()) {
                wrong("no test in which it fires".to_owned());
            }
            if !cases().any(|case| case.exp_alerts.is_empty()) {
                wrong("no test in which it stays silent".to_owned());
            }
        }
        problems
    }
}

impl Tests {
    pub(super) fn read(path: &Path) -> Self {
        read(path)
    }

    fn cases(&self) -> impl Iterator<Item = &Case> {
        self.tests.iter().flat_map(|test| &test.alert_rule_test)
    }
}

/// Queries as a file of rules, so that promtool can read them. Variables become values.
pub(super) fn as_rules(queries: &[(String, String)]) -> String {
    let rules: Vec<_> = queries
        .iter()
        .map(|(_, query)| {
            let query = query.replace("$__rate_interval", "5m").replace("$__range", "1h");
            serde_json::json!({"record": "board:query", "expr": query})
        })
        .collect();
    // JSON is YAML. Two rules of one name and no labels would be refused, so each has its group.
    let groups: Vec<_> = rules
        .into_iter()
        .enumerate()
        .map(|(n, rule)| serde_json::json!({"name": format!("panel-{n}"), "rules": [rule]}))
        .collect();
    serde_json::json!({ "groups": groups }).to_string()
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn an_alert_without_page_words_and_cases_is_told_of() {
    let rules: Rules = serde_saphyr::from_str(
        "groups: [{name: g, rules: [{alert: A, expr: a}, {record: 'r:a', expr: a}]}]",
    )
    .unwrap();
    let tests: Tests = serde_saphyr::from_str(
        "tests: [{alert_rule_test: [{alertname: A, exp_alerts: [{exp_labels: {}}]}]}]",
    )
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let problems = rules.problems(folder.path(), &tests).join("\n");
    for part in ["severity", "no summary", "runbook_url", "## Meaning", "stays silent"] {
        assert!(problems.contains(part), "{part} not in {problems}");
    }
    assert!(!problems.contains("in which it fires"), "{problems}");
    assert_eq!(rules.recorded().collect::<Vec<_>>(), ["r:a"]);
}
