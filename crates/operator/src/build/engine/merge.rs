//! Lays an overlay over the pod that Flyball makes.
//!
//! Objects are merged. Of lists, those whose items have a key are merged by it, as `kubectl patch` does;
//! others are taken as they are. Nothing is removed: what would remove was refused (`validate::overlay`).

use serde_json::{Value, json};

/// Merges, and the later wins.
pub(super) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in patch {
        match (key_of(name), &mut into[name]) {
            (Some(key), Value::Array(list)) => merge_by(key, list, value),
            (_, place) => merge(place, value),
        }
    }
}

/// What tells the items of a list apart.
fn key_of(list: &str) -> Option<&'static str> {
    match list {
        "containers" | "env" | "initContainers" | "volumes" => Some("name"),
        "volumeMounts" => Some("mountPath"),
        _ => None,
    }
}

fn merge_by(key: &str, list: &mut Vec<Value>, patch: &Value) {
    for item in patch.as_array().into_iter().flatten() {
        match list.iter_mut().find(|one| one[key] == item[key]) {
            Some(one) => merge(one, item),
            None => list.push(item.clone()),
        }
    }
}
