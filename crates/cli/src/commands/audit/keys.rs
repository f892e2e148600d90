//! What became of the keys of a Tenant between two of its states.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::act::{AuditChange, ChangeKind};
use super::clean;

/// Keys by their names.
type Keys<'a> = BTreeMap<&'a str, &'a Value>;

/// What differs; nothing if names stand twice, which the schema forbids.
pub(super) fn compare(before: &Value, after: &Value) -> Option<Vec<AuditChange>> {
    let (before, after) = (named(before)?, named(after)?);
    let new: Vec<&Value> = after
        .iter()
        .filter_map(|(name, key)| (!before.contains_key(name)).then_some(*key))
        .collect();
    let mut rest = Vec::new();
    for (name, old) in &before {
        match after.get(name) {
            Some(now) => rest.extend(differences(old, now)),
            None => rest.push(change(ChangeKind::KeyRemoved, old)),
        }
    }
    let ended: Vec<usize> = before
        .iter()
        .filter(|(name, old)| after.get(*name).is_some_and(|now| ends_earlier(old, now)))
        .filter_map(|(name, _)| {
            let name = clean::key_name(name);
            let is = |one: &AuditChange| {
                one.what == ChangeKind::KeyExpiryChanged && one.key.as_ref() == Some(&name)
            };
            rest.iter().position(is)
        })
        .collect();
    let mut all = Vec::new();
    match (new.as_slice(), ended.as_slice()) {
        // One new key and one end in one write.
        ([key], [end]) => {
            let end = rest.remove(*end);
            let (replaces, until) = (end.key, end.until);
            all.push(AuditChange { replaces, until, ..change(ChangeKind::KeyRotated, key) });
        }
        (new, _) => all.extend(new.iter().map(|key| change(ChangeKind::KeyCreated, key))),
    }
    all.extend(rest);
    Some(all)
}

/// What differs between two keys of one name.
fn differences(old: &Value, now: &Value) -> Vec<AuditChange> {
    if old["id"] != now["id"] || old["sha256"] != now["sha256"] {
        return vec![change(ChangeKind::KeyReplaced, now)];
    }
    let mut found = Vec::new();
    match (old["disabled"] == true, now["disabled"] == true) {
        (false, true) => found.push(change(ChangeKind::KeyRevoked, now)),
        (true, false) => found.push(change(ChangeKind::KeyEnabled, now)),
        _ => {}
    }
    if old["expires"] != now["expires"] {
        let until = now["expires"].as_str().map(clean::moment);
        found.push(AuditChange { until, ..change(ChangeKind::KeyExpiryChanged, now) });
    }
    if others(old) != others(now) {
        found.push(change(ChangeKind::KeyChanged, now));
    }
    found
}

/// Fields that were not looked at one by one.
fn others(key: &Value) -> Vec<(&String, &Value)> {
    let known = ["name", "id", "sha256", "disabled", "expires"];
    let all = key.as_object().into_iter().flatten();
    all.filter(|(name, value)| !known.contains(&name.as_str()) && !value.is_null()).collect()
}

fn ends_earlier(old: &Value, now: &Value) -> bool {
    let end = |key: &Value| key["expires"].as_str()?.parse::<Timestamp>().ok();
    match (end(old), end(now)) {
        (Some(old), Some(now)) => now < old,
        (None, Some(_)) => old["expires"].is_null(),
        _ => false,
    }
}

fn named(keys: &Value) -> Option<Keys<'_>> {
    let list = match keys {
        Value::Null => return Some(Keys::new()),
        Value::Array(list) => list,
        _ => return None,
    };
    let mut all = Keys::new();
    for key in list {
        if all.insert(key["name"].as_str()?, key).is_some() {
            return None;
        }
    }
    Some(all)
}

fn change(what: ChangeKind, key: &Value) -> AuditChange {
    let (replaces, until, field) = (None, None, None);
    let name = clean::key_name(key["name"].as_str().unwrap_or_default());
    let id = key["id"].as_str().and_then(clean::key_id);
    AuditChange { what, key: Some(name), id, replaces, until, field }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(name: &str, number: u8) -> Value {
        json!({ "name": name, "id": format!("{number:010}"), "sha256": format!("{number:064x}") })
    }

    fn with(mut key: Value, field: &str, value: Value) -> Value {
        key[field] = value;
        key
    }

    fn words(before: Value, after: Value) -> Vec<String> {
        compare(&before, &after).unwrap().iter().map(AuditChange::words).collect()
    }

    #[test]
    fn each_way_in_which_a_key_changes_has_its_word() {
        let end = "2027-02-16T20:00:00Z";
        let (a, b) = (key("a", 1), key("a-2", 2));
        let ending = with(a.clone(), "expires", json!(end));
        let disabled = with(a.clone(), "disabled", json!(true));
        for (before, after, expected) in [
            (json!(null), json!([a]), &["key created a (0000000001)"][..]),
            (json!([a]), json!(null), &["key removed a (0000000001)"]),
            (
                json!([a]),
                json!([ending, b]),
                &["key rotated a -> a-2 (0000000002), a ends 2027-02-16T20:00:00Z"],
            ),
            // An end that is moved away is none of a rotation.
            (
                json!([ending]),
                json!([a, b]),
                &["key created a-2 (0000000002)", "key a (0000000001) ends never"],
            ),
            (json!([a]), json!([disabled]), &["key revoked a (0000000001)"]),
            (json!([disabled]), json!([a]), &["key enabled again a (0000000001)"]),
            (json!([a]), json!([with(a.clone(), "disabled", json!(false))]), &[]),
            (json!([a, b]), json!([b, a]), &[]),
            (json!([a]), json!([key("a", 3)]), &["key a is another one (0000000003)"]),
            // The same id with another hash is another key.
            (
                json!([a]),
                json!([with(a.clone(), "sha256", json!("00"))]),
                &["key a is another one (0000000001)"],
            ),
            (
                json!([a]),
                json!([with(a.clone(), "notBefore", json!(end))]),
                &["key changed a (0000000001)"],
            ),
            (
                json!([a]),
                json!([with(disabled.clone(), "expires", json!(end))]),
                &["key revoked a (0000000001)", "key a (0000000001) ends 2027-02-16T20:00:00Z"],
            ),
        ] {
            assert_eq!(words(before.clone(), after.clone()), expected, "{before} {after}");
        }
    }

    #[test]
    fn what_is_no_list_of_keys_is_not_compared() {
        for odd in [json!("sk-fly-"), json!([1]), json!([{}]), json!([key("a", 1), key("a", 2)])] {
            assert_eq!(compare(&json!([]), &odd), None, "{odd}");
        }
        let canary = "sk-fly-k3J9xQ2mZa_0123456789012345678901234567890123456789012_abc123";
        let pasted = json!([{ "name": canary, "id": canary, "sha256": canary, "expires": canary }]);
        assert_eq!(words(json!([]), pasted), ["key created [hidden]"]);
    }
}
