//! What accounts of the chart may do, and what they did by the API server's own log.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A verb, and a resource with its group.
type Right = (String, String);

/// Rights that roles give.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Granted(BTreeSet<Right>);

/// What an account asked for.
#[derive(Debug, Default)]
pub(super) struct Used {
    got: BTreeSet<Right>,
    /// What the API server forbade.
    pub(super) refused: BTreeSet<Right>,
}

impl Granted {
    /// What the roles of a list give, by the component that they are for.
    pub(super) fn of(roles: &Value) -> BTreeMap<String, Self> {
        let mut all: BTreeMap<String, Self> = BTreeMap::new();
        for role in array(&roles["items"]) {
            let component = text(&role["metadata"]["labels"]["app.kubernetes.io/component"]);
            if !["operator", "gateway"].contains(&component) {
                continue;
            }
            let rights = &mut all.entry(component.to_owned()).or_default().0;
            for rule in array(&role["rules"]) {
                for group in array(&rule["apiGroups"]) {
                    for resource in array(&rule["resources"]) {
                        for verb in array(&rule["verbs"]) {
                            rights.insert(right(text(verb), text(group), text(resource)));
                        }
                    }
                }
            }
        }
        all
    }

    /// In words, what was not used of it.
    pub(super) fn without(&self, used: &Used) -> String {
        let mut left: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (verb, resource) in self.0.difference(&used.got) {
            left.entry(resource).or_default().push(verb);
        }
        let each = left.iter().map(|(resource, verbs)| format!("{} {resource}", verbs.join(", ")));
        let each: Vec<String> = each.collect();
        if each.is_empty() { "nothing".to_owned() } else { each.join("; ") }
    }
}

/// The API server's log, from a moment on.
pub(super) struct Log {
    path: PathBuf,
    from: usize,
}

impl Log {
    /// The log from now on; none if nobody said where it is.
    pub(super) fn open() -> Result<Option<Self>> {
        let Some(path) = std::env::var_os("FLYBALL_E2E_AUDIT").map(PathBuf::from) else {
            return Ok(None);
        };
        let from = std::fs::read_to_string(&path).context("reading the audit log")?.lines().count();
        Ok(Some(Self { path, from }))
    }

    /// What the accounts of a namespace asked for until so many lines were there, by the last part of
    /// their names.
    pub(super) fn until(self, lines: usize, namespace: &str) -> Result<BTreeMap<String, Used>> {
        let text = std::fs::read_to_string(&self.path)?;
        let lines = text.lines().take(lines).skip(self.from);
        used(lines, namespace)
    }
}

fn used<'a>(
    lines: impl Iterator<Item = &'a str>,
    namespace: &str,
) -> Result<BTreeMap<String, Used>> {
    let before = format!("system:serviceaccount:{namespace}:flyball-");
    let mut all: BTreeMap<String, Used> = BTreeMap::new();
    for line in lines {
        let event: Value = serde_json::from_str(line).context("a line of the audit log")?;
        let Some(component) = text(&event["user"]["username"]).strip_prefix(&before) else {
            continue;
        };
        let of = &event["objectRef"];
        if of.is_null() {
            continue;
        }
        let resource = match text(&of["subresource"]) {
            "" => text(&of["resource"]).to_owned(),
            sub => format!("{}/{sub}", text(&of["resource"])),
        };
        let right = |verb: &str| right(verb, text(&of["apiGroup"]), &resource);
        let used = all.entry(component.to_owned()).or_default();
        let (verb, code) = (text(&event["verb"]), event["responseStatus"]["code"].as_i64());
        match code {
            Some(403) => drop(used.refused.insert(right(verb))),
            _ => drop(used.got.insert(right(verb))),
        }
        // Server-side apply of what is not there needs both.
        if (verb, code) == ("patch", Some(201)) {
            used.got.insert(right("create"));
        }
    }
    Ok(all)
}

fn right(verb: &str, group: &str, resource: &str) -> Right {
    let resource =
        if group.is_empty() { resource.into() } else { format!("{resource} of {group}") };
    (verb.to_owned(), resource)
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(verb: &str, resource: &str, code: u16) -> String {
        let user = json!({ "username": "system:serviceaccount:demo:flyball-operator" });
        let of = json!({ "resource": resource, "apiGroup": "apps", "subresource": "scale" });
        let status = json!({ "code": code });
        json!({ "verb": verb, "user": user, "objectRef": of, "responseStatus": status }).to_string()
    }

    #[test]
    fn what_was_forbidden_and_what_was_not_used_are_told_apart() -> Result<()> {
        let roles = json!({ "items": [{
            "metadata": { "labels": { "app.kubernetes.io/component": "operator" } },
            "rules": [{ "apiGroups": ["apps"], "resources": ["deployments/scale"],
                        "verbs": ["get", "patch", "create", "update"] }],
        }]});
        let log = [
            event("get", "deployments", 200),
            event("patch", "deployments", 201),
            event("delete", "deployments", 403),
        ];
        let used = used(log.iter().map(String::as_str), "demo")?;
        let operator = &used["operator"];
        assert_eq!(operator.refused.len(), 1, "{operator:?}");
        let left = Granted::of(&roles)["operator"].without(operator);
        assert_eq!(left, "update deployments/scale of apps");
        Ok(())
    }
}
