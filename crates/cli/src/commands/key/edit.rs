//! What becomes of the keys of a Tenant. Pure: lists of JSON in and out, so that fields which a newer release has stay.

use flyball_identity::NewKey;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::output::{Exit, Failure, FailureCode};

/// As the schema has it.
const MOST_KEYS: usize = 64;

/// Which keys are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Name(String),
    Id(String),
    All,
}

/// What a Tenant stores of a new key.
#[derive(Clone, Debug)]
pub(super) struct Fresh<'a> {
    pub(super) key: &'a NewKey,
    pub(super) expires: Option<Timestamp>,
}

/// Adds a key and says its name.
pub(super) fn add(
    keys: &mut Vec<Value>,
    name: Option<&str>,
    fresh: &Fresh<'_>,
) -> Result<String, Failure> {
    if keys.len() >= MOST_KEYS {
        return Err(refused(format!("the Tenant has {MOST_KEYS} keys, which is the most"))
            .hint("remove those that have expired with kubectl edit tenant"));
    }
    let name = match name {
        Some(name) if has(keys, name) => {
            return Err(refused(format!("the Tenant has a key {name} already"))
                .hint("take another --name, or flyball key rotate"));
        }
        Some(name) => name.to_owned(),
        None => free(keys, "key", 1),
    };
    keys.push(entry(&name, fresh));
    Ok(name)
}

/// Adds a key in place of another, which ends at `end` at the latest. Says the new name, and when the old one ends.
pub(super) fn rotate(
    keys: &mut Vec<Value>,
    old: &str,
    end: Timestamp,
    fresh: &Fresh<'_>,
) -> Result<(String, Timestamp), Failure> {
    let Some(before) = keys.iter_mut().find(|key| key["name"] == old) else {
        return Err(absent(&format!("has no key {old}")));
    };
    if before["disabled"] == true {
        return Err(refused(format!("the key {old} is disabled"))
            .hint("flyball key create makes another one"));
    }
    let moment = |field: &str| before[field].as_str().and_then(|text| text.parse().ok());
    if moment("notBefore").is_some_and(|begin: Timestamp| begin >= end) {
        return Err(refused(format!("the key {old} is not valid before the overlap ends"))
            .hint("revoke it, and create another one"));
    }
    let end = moment("expires").map_or(end, |expires: Timestamp| expires.min(end));
    before["expires"] = json!(end.to_string());
    let (stem, number) = match old.rsplit_once('-') {
        Some((stem, digits)) => match digits.parse::<u32>() {
            Ok(number) => (stem, number.saturating_add(1)),
            Err(_) => (old, 2),
        },
        None => (old, 2),
    };
    let name = free(keys, stem, number);
    add(keys, Some(&name), fresh).map(|name| (name, end))
}

/// Disables keys and says which. Those that are disabled already are none of them.
pub(super) fn disable(keys: &mut [Value], which: &Which) -> Result<Vec<String>, Failure> {
    let meant = |key: &Value| match which {
        Which::Name(name) => key["name"] == name.as_str(),
        Which::Id(id) => key["id"] == id.as_str(),
        Which::All => true,
    };
    let mut found = false;
    let mut names = Vec::new();
    for key in keys.iter_mut().filter(|key| meant(key)) {
        found = true;
        if key["disabled"] != true {
            key["disabled"] = json!(true);
            names.push(key["name"].as_str().unwrap_or_default().to_owned());
        }
    }
    match which {
        Which::Name(name) if !found => Err(absent(&format!("has no key {name}"))),
        Which::Id(id) if !found => Err(absent(&format!("has no key with the id {id}"))),
        _ => Ok(names),
    }
}

fn entry(name: &str, fresh: &Fresh<'_>) -> Value {
    let mut entry =
        json!({ "name": name, "id": fresh.key.id(), "sha256": fresh.key.hash().to_hex() });
    if let Some(expires) = fresh.expires {
        entry["expires"] = json!(expires.to_string());
    }
    entry
}

/// The first name `STEM-NUMBER` that is free. A name has at most 63 characters.
fn free(keys: &[Value], stem: &str, from: u32) -> String {
    let name = |number: u32| {
        let end = format!("-{number}");
        let room = stem.len().min(63 - end.len());
        format!("{}{end}", stem[..room].trim_end_matches('-'))
    };
    let mut number = from;
    while has(keys, &name(number)) {
        number = number.wrapping_add(1);
    }
    name(number)
}

fn has(keys: &[Value], name: &str) -> bool {
    keys.iter().any(|key| key["name"] == name)
}

fn refused(what: String) -> Failure {
    Failure::new(Exit::Usage, what).code(FailureCode::NoSuchKey)
}

fn absent(what: &str) -> Failure {
    refused(format!("the Tenant {what}")).hint("flyball key list TENANT shows its keys")
}
