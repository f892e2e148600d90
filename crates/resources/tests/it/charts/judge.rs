//! What must be true of everything that the charts render.

use serde_json::Value;

/// Rights that nothing of ours may have: each is a way to all others.
const NEVER: [&str; 9] = [
    "*",
    "bind",
    "escalate",
    "impersonate",
    "secrets",
    "serviceaccounts/token",
    "nodes/proxy",
    "pods/exec",
    "pods/ephemeralcontainers",
];

/// All that is wrong with these manifests.
pub(super) fn judge(text: &str) -> Vec<String> {
    let mut problems = reasons(text);
    for document in documents(text) {
        let name = format!(
            "{} {}",
            document["kind"].as_str().unwrap_or_default(),
            document["metadata"]["name"].as_str().unwrap_or_default()
        );
        let mut wrong = |what: String| problems.push(format!("{name}: {what}"));
        for right in rights(&document) {
            if NEVER.contains(&right.as_str()) {
                wrong(format!("gives `{right}`"));
            }
        }
        for what in settings(&document) {
            wrong(what);
        }
        let pod = match document["kind"].as_str() {
            Some("Pod") => &document["spec"],
            Some("Deployment") => &document["spec"]["template"]["spec"],
            _ => continue,
        };
        restricted(pod).into_iter().for_each(wrong);
    }
    problems
}

fn documents(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for part in format!("\n{text}").split("\n---\n") {
        // A template that renders to nothing but a comment.
        if part.lines().all(|line| line.trim().is_empty() || line.starts_with('#')) {
            continue;
        }
        found
            .push(serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{error} in {part}")));
    }
    found
}

/// Every verb in a role stands, with a colon and why, in the comment above its rule.
fn reasons(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut comment = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("# ") {
            comment.push(' ');
            comment.push_str(words);
        } else if let Some(verbs) = line.strip_prefix("verbs:") {
            let verbs = verbs.trim().trim_matches(['[', ']']);
            for verb in verbs.split(", ") {
                if !has_reason(&comment, verb) {
                    problems
                        .push(format!("the verb `{verb}` has no reason in `{}`", comment.trim()));
                }
            }
            comment.clear();
        } else if !is_in_a_rule(line) {
            comment.clear();
        }
    }
    problems
}

fn is_in_a_rule(line: &str) -> bool {
    ["- apiGroups:", "- nonResourceURLs:", "resources:", "resourceNames:"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// `get: why`, or `get, list: why`.
fn has_reason(comment: &str, verb: &str) -> bool {
    comment.split([';', '.']).any(|clause| {
        let verbs = clause.split_once(": ").map_or("", |(verbs, _)| verbs);
        verbs.split(',').any(|listed| listed.trim() == verb)
    })
}

/// Verbs and resources of a role. A token of an account that may do nothing but ask is no way to anything.
fn rights(document: &Value) -> Vec<String> {
    let rules = document["rules"].as_array().into_iter().flatten();
    rules
        .filter(|rule| !is_token_to_ask(rule))
        .flat_map(|rule| {
            [&rule["apiGroups"], &rule["nonResourceURLs"], &rule["resources"], &rule["verbs"]]
        })
        .flat_map(|list| list.as_array().into_iter().flatten())
        .filter_map(|right| Some(right.as_str()?.to_owned()))
        .collect()
}

fn is_token_to_ask(rule: &Value) -> bool {
    let names = rule["resourceNames"].as_array().map_or(&[][..], Vec::as_slice);
    let asks = |name: &Value| name.as_str().is_some_and(|name| name.ends_with("-admin-client"));
    rule["resources"] == serde_json::json!(["serviceaccounts/token"])
        && rule["verbs"] == serde_json::json!(["create"])
        && !names.is_empty()
        && names.iter().all(asks)
}

/// Settings are TOML, and their numbers are whole.
fn settings(document: &Value) -> Vec<String> {
    let files = document["data"].as_object().into_iter().flatten();
    files
        .filter(|(name, _)| name.ends_with(".toml"))
        .filter_map(|(name, text)| match text.as_str()?.parse::<toml::Table>() {
            Ok(table) => has_float(&toml::Value::Table(table))
                .then(|| format!("{name} has a number that is not whole")),
            Err(error) => Some(format!("{name} is not TOML: {error}")),
        })
        .collect()
}

fn has_float(value: &toml::Value) -> bool {
    match value {
        toml::Value::Float(_) => true,
        toml::Value::Array(items) => items.iter().any(has_float),
        toml::Value::Table(table) => table.values().any(has_float),
        _ => false,
    }
}

/// What a pod lacks of Pod Security's restricted profile, and of ours beyond it.
fn restricted(pod: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut must = |is: bool, what: &str| {
        if !is {
            wrong.push(format!("must have {what}"));
        }
    };
    let own = &pod["securityContext"];
    must(own["runAsNonRoot"] == true, "runAsNonRoot");
    must(own["seccompProfile"]["type"] == "RuntimeDefault", "seccompProfile RuntimeDefault");
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        must(pod[host].is_null(), &format!("no {host}"));
    }
    let volumes = pod["volumes"].as_array().into_iter().flatten();
    must(volumes.into_iter().all(|volume| volume["hostPath"].is_null()), "no hostPath");
    must(pod["automountServiceAccountToken"].is_boolean(), "automountServiceAccountToken, said");
    for container in pod["containers"].as_array().into_iter().flatten() {
        let own = &container["securityContext"];
        must(own["allowPrivilegeEscalation"] == false, "allowPrivilegeEscalation: false");
        must(own["readOnlyRootFilesystem"] == true, "readOnlyRootFilesystem");
        must(own["capabilities"]["drop"][0] == "ALL", "capabilities: drop ALL");
        must(container["resources"]["requests"].is_object(), "requests");
    }
    wrong
}

const ROLE: &str = "---\n# Source: a.yaml\nkind: Role\nmetadata: {name: a}\nrules:\n  \
    # get: one; list, watch: all.\n  - apiGroups: [\"\"]\n    resources: [pods]\n    \
    verbs: [get, list, watch]\n";

#[test]
fn a_verb_without_a_reason_is_found() {
    assert_eq!(judge(ROLE), [""; 0]);
    let silent = ROLE.replace("list, watch:", "watch:");
    assert!(judge(&silent)[0].contains("`list`"));
    // What is said about one rule does not count for the next.
    let second = format!("{ROLE}  - apiGroups: [apps]\n    resources: [a]\n    verbs: [get]\n");
    assert!(judge(&second)[0].contains("`get`"));
}

#[test]
fn a_right_that_opens_all_others_is_found() {
    for (from, to) in [("pods", "secrets"), ("[\"\"]", "[\"*\"]")] {
        let problems = judge(&ROLE.replace(from, to));
        assert!(problems[0].contains("gives"), "{problems:?}");
    }
}

#[test]
fn tokens_may_be_made_only_of_accounts_that_ask() {
    let role = |names: &str| {
        format!(
            "kind: Role\nmetadata: {{name: a}}\nrules:\n  # create: why.\n  - apiGroups: [\"\"]\n    \
             resources: [serviceaccounts/token]\n{names}    verbs: [create]\n"
        )
    };
    assert_eq!(judge(&role("    resourceNames: [a-admin-client]\n")), [""; 0]);
    for names in ["", "    resourceNames: []\n", "    resourceNames: [a-admin-client, b]\n"] {
        assert!(judge(&role(names))[0].contains("gives"), "{names}");
    }
}

#[test]
fn a_pod_that_is_not_restricted_is_found() {
    let bare =
        "kind: Pod\nmetadata: {name: a}\nspec: {hostNetwork: true, containers: [{name: a}]}\n";
    let problems = judge(bare).join("\n");
    for part in ["runAsNonRoot", "seccomp", "hostNetwork", "drop ALL", "Escalation"] {
        assert!(problems.contains(part), "{part} not in {problems}");
    }
}

#[test]
fn settings_that_are_not_toml_are_found() {
    let map = |text: &str| {
        format!("kind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a.toml: |\n    {text}\n")
    };
    assert_eq!(judge(&map("a = 1")), [""; 0]);
    assert!(judge(&map("a = 1.0"))[0].contains("whole"));
    assert!(judge(&map("a = "))[0].contains("TOML"));
}
