//! What is known of objects from the writes so far, and what one more write changed.
//!
//! Nothing is guessed: that a write changed what differs from the state before is said only if the log has that state. The
//! generation of an object counts the changes of its spec, so that a change which no line tells of is noticed, and is
//! not put down to whoever came next.

use std::collections::BTreeMap;

use flyball_resources::GROUP;
use serde_json::{Map, Value};

use super::act::{AuditChange, ChangeKind};
use super::write::{Target, Verb, Write};
use super::{clean, keys};

/// Last states.
#[derive(Debug, Default)]
pub(super) struct States(BTreeMap<Target, State>);

/// What an object was after a write.
#[derive(Clone, Debug, PartialEq)]
struct State {
    uid: Option<String>,
    generation: Option<i64>,
    spec: Value,
    annotations: Value,
    /// Whether it is as a person wrote it, without what the API server adds.
    is_request: bool,
}

/// What a write changed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Known {
    pub(super) changes: Vec<AuditChange>,
    /// Whether that is all.
    pub(super) all: bool,
    /// Changes before it that no line tells of.
    pub(super) missing: Option<i64>,
}

impl States {
    /// What this write changed. Writes are handed over in order of time.
    pub(super) fn after(&mut self, write: &Write) -> Known {
        if !write.was_accepted() {
            return written(write);
        }
        match write.verb {
            Verb::DeleteMany => {
                if !write.dry_run {
                    let of = &write.target;
                    self.0.retain(|target, _| {
                        (&target.resource, &target.namespace) != (&of.resource, &of.namespace)
                    });
                }
                Known { all: true, ..Known::default() }
            }
            Verb::Delete => {
                if !write.dry_run {
                    self.0.remove(&write.target);
                }
                Known { all: true, ..Known::default() }
            }
            // The object behind a subresource is not in the log.
            _ if !write.subresource.is_empty() => {
                if !write.dry_run {
                    self.0.remove(&write.target);
                }
                written(write)
            }
            _ => self.stored(write),
        }
    }

    fn stored(&mut self, write: &Write) -> Known {
        let before = self.0.get(&write.target);
        let is_new = write.verb == Verb::Create || write.code == Some(201);
        let after = State::of(&write.response).or_else(|| State::requested(write, before, is_new));
        let known = match (&after, before) {
            (Some(after), _) if is_new => {
                let keys = keys::compare(&Value::Null, &after.spec["keys"]);
                Known { all: keys.is_some(), changes: keys.unwrap_or_default(), missing: None }
            }
            (Some(after), Some(before)) => after.since(before, write),
            _ => written(write),
        };
        if write.took_effect() {
            match after {
                Some(after) if before.is_none_or(|before| !after.is_older(before)) => {
                    self.0.insert(write.target.clone(), after);
                }
                Some(_) => {}
                // Whatever was known is not so any more.
                None => drop(self.0.remove(&write.target)),
            }
        }
        known
    }
}

impl State {
    /// An object as the API server has stored it.
    fn of(response: &Value) -> Option<Self> {
        let metadata = response["metadata"].as_object()?;
        let ours = response["apiVersion"].as_str()?.split_once('/')?.0 == GROUP;
        (ours && response["spec"].is_object()).then(|| Self {
            uid: metadata.get("uid").and_then(Value::as_str).map(str::to_owned),
            generation: metadata.get("generation").and_then(Value::as_i64),
            spec: response["spec"].clone(),
            annotations: own(&response["metadata"]["annotations"]),
            is_request: false,
        })
    }

    /// What an object must be now, by the request alone.
    fn requested(write: &Write, before: Option<&Self>, is_new: bool) -> Option<Self> {
        let whole = write.request["spec"].is_object() && write.request["kind"].is_string();
        let sent = |before: Option<&Self>| Self {
            uid: before.and_then(|before| before.uid.clone()),
            generation: None,
            spec: write.request["spec"].clone(),
            annotations: own(&write.request["metadata"]["annotations"]),
            is_request: true,
        };
        match write.verb {
            Verb::Create | Verb::Patch if is_new && whole => Some(sent(None)),
            Verb::Update if whole => Some(sent(before)),
            // An object with a kind is applied, and the rest of it depends on who manages which field.
            Verb::Patch if write.request.is_object() && !whole => {
                let mut after = before?.clone();
                let mut both = Map::new();
                both.insert("spec".to_owned(), after.spec.take());
                let annotations = Value::from_iter([("annotations", after.annotations.take())]);
                both.insert("metadata".to_owned(), annotations);
                let mut both = Value::Object(both);
                merge(&mut both, &write.request);
                after.spec = both["spec"].take();
                after.annotations = own(&both["metadata"]["annotations"]);
                Some(Self { generation: None, ..after })
            }
            _ => None,
        }
    }

    /// What became other than it was.
    fn since(&self, before: &Self, write: &Write) -> Known {
        let missing = match (self.generation, before.generation) {
            (Some(now), Some(then)) if self.uid == before.uid => now - then,
            (Some(_), Some(_)) => return written(write),
            _ => 0,
        };
        match missing {
            0 | 1 => {}
            more if more > 1 => return Known { missing: Some(more - 1), ..written(write) },
            _ => return written(write),
        }
        // What was sent and what is stored differ by what the API server adds, which nobody has changed.
        if self.is_request != before.is_request || write.verb == Verb::Update && self.is_request {
            return written(write);
        }
        let mut changes = Vec::new();
        let mut all = true;
        for (name, (then, now)) in differing(&before.spec, &self.spec) {
            let keys = (name == "keys" && write.target.resource == "tenants")
                .then(|| keys::compare(then, now));
            match keys {
                Some(Some(keys)) => changes.extend(keys),
                Some(None) => all = false,
                None => changes.push(AuditChange::field(ChangeKind::Field, clean::field(name))),
            }
        }
        let marks = differing(&before.annotations, &self.annotations);
        changes.extend(marks.filter_map(|(name, _)| annotation(name)));
        Known { changes, all, missing: None }
    }

    /// Whether it is an earlier state of the same object: lines of several API servers are not quite in order.
    fn is_older(&self, than: &Self) -> bool {
        self.uid == than.uid && self.generation.zip(than.generation).is_some_and(|(a, b)| a < b)
    }
}

/// The fields that a request names. What was there before is not known.
fn written(write: &Write) -> Known {
    let names = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let is_deletion = matches!(write.verb, Verb::Delete | Verb::DeleteMany);
    let spec = if is_deletion { Vec::new() } else { names(&write.request["spec"]) };
    let fields = spec.iter().map(|name| AuditChange::field(ChangeKind::Field, clean::field(name)));
    let marks = names(&write.request["metadata"]["annotations"]);
    let marks = marks.iter().filter_map(|name| annotation(name));
    Known { changes: fields.chain(marks).collect(), all: false, missing: None }
}

/// An annotation of ours; those of others are nobody's business here.
fn annotation(name: &str) -> Option<AuditChange> {
    let own = name.strip_prefix(GROUP)?.strip_prefix('/')?;
    let plain =
        own.len() < 64 && own.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain.then(|| AuditChange::field(ChangeKind::Annotation, clean::text(name)))
}

/// Annotations of ours. `kubectl apply` keeps the whole object in another one.
fn own(annotations: &Value) -> Value {
    let all = annotations.as_object().into_iter().flatten();
    all.filter(|(name, _)| annotation(name).is_some())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The names under which two objects differ, and what they have there.
fn differing<'a>(
    before: &'a Value,
    after: &'a Value,
) -> impl Iterator<Item = (&'a str, (&'a Value, &'a Value))> {
    let mut both: BTreeMap<&str, (&Value, &Value)> = BTreeMap::new();
    for (name, value) in before.as_object().into_iter().flatten() {
        both.entry(name).or_insert((&Value::Null, &Value::Null)).0 = value;
    }
    for (name, value) in after.as_object().into_iter().flatten() {
        both.entry(name).or_insert((&Value::Null, &Value::Null)).1 = value;
    }
    both.into_iter().filter(|(_, (before, after))| before != after)
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (name, value) in patch {
        match (value, target.as_object_mut()) {
            (Value::Null, Some(target)) => drop(target.remove(name)),
            (value, Some(target)) => merge(target.entry(name).or_insert(Value::Null), value),
            (_, None) => {}
        }
    }
}
