use serde_json::{Value, json};

use super::edit::{Fresh, Which, add, disable, rotate};
use super::*;
use crate::output::{Answer, Detail, Exit, answer_json, answer_table, conforms};

fn now() -> Timestamp {
    "2026-11-18T10:00:00Z".parse().unwrap()
}

fn fresh() -> NewKey {
    NewKey::make(&[7; NewKey::RANDOM_BYTES])
}

fn key(name: &str) -> Value {
    json!({ "name": name, "id": "aaaaaaaaaa", "sha256": "" })
}

fn names(keys: &[Value]) -> Vec<&str> {
    keys.iter().map(|key| key["name"].as_str().unwrap()).collect()
}

#[test]
fn times_may_be_in_days_and_weeks() {
    assert_eq!(length("90d"), Ok(Duration::from_secs(90 * 86_400)));
    assert_eq!(length("2w"), Ok(Duration::from_secs(14 * 86_400)));
    assert_eq!(length("24h"), Ok(Duration::from_secs(86_400)));
    assert_eq!(length("0"), Ok(Duration::ZERO));
    assert_eq!(validity("never"), Ok(Validity::Always));
    for wrong in ["", "d", "-1d", "1.5d", "90", "soon", "99999999999999999999d", "999999999999999d"]
    {
        assert!(length(wrong).is_err(), "{wrong}");
    }
    assert!(validity("0").is_err());
    assert!(
        Validity::For(Duration::from_secs(1 << 50)).end(now()).is_err(),
        "no date has that name"
    );
}

#[test]
fn a_new_key_takes_the_first_free_name_and_nobody_elses() {
    let fresh = Fresh { key: &fresh(), expires: None };
    let mut keys = vec![key("key-1"), key("key-3")];
    assert_eq!(add(&mut keys, None, &fresh).unwrap(), "key-2");
    assert_eq!(add(&mut keys, None, &fresh).unwrap(), "key-4");
    assert_eq!(add(&mut keys, Some("key-3"), &fresh).unwrap_err().exit, Exit::Usage);
    assert_eq!(names(&keys), ["key-1", "key-3", "key-2", "key-4"]);
    let mut full: Vec<Value> = (0..64).map(|number| key(&format!("k{number}"))).collect();
    assert!(add(&mut full, None, &fresh).is_err());
    assert_eq!(full.len(), 64);
}

#[test]
fn what_is_replaced_never_ends_later_than_it_would_have() {
    let fresh = Fresh { key: &fresh(), expires: None };
    let end: Timestamp = "2026-11-19T10:00:00Z".parse().unwrap();
    let replaced = |old: Value| {
        let mut keys = vec![old];
        rotate(&mut keys, "app", end, &fresh).map(|(name, end)| (name, end.to_string(), keys))
    };
    let (name, at, keys) = replaced(key("app")).unwrap();
    assert_eq!((name.as_str(), at.as_str()), ("app-2", "2026-11-19T10:00:00Z"));
    assert_eq!(keys[0]["expires"], "2026-11-19T10:00:00Z");
    let mut soon = key("app");
    soon["expires"] = "2026-11-18T11:00:00Z".into();
    assert_eq!(replaced(soon).unwrap().1, "2026-11-18T11:00:00Z");
    let mut disabled = key("app");
    disabled["disabled"] = true.into();
    assert!(replaced(disabled).is_err());
    let mut pending = key("app");
    pending["notBefore"] = "2026-12-01T00:00:00Z".into();
    assert!(replaced(pending).is_err(), "it would end before it begins");
}

#[test]
fn names_count_on_and_stay_as_short_as_the_schema_wants() {
    let fresh = Fresh { key: &fresh(), expires: None };
    let next = |old: &str| {
        let mut keys = vec![key(old)];
        rotate(&mut keys, old, now(), &fresh).unwrap().0
    };
    assert_eq!(next("nightly-job"), "nightly-job-2");
    assert_eq!(next("nightly-9"), "nightly-10");
    assert_eq!(next("4294967295"), "4294967295-2");
    let long = "a".repeat(63);
    assert_eq!(next(&long).len(), 63);
    assert_eq!(next(&format!("{}-x", "a".repeat(61))), format!("{}-2", "a".repeat(61)));
}

#[test]
fn only_keys_that_were_not_disabled_are_named() {
    let mut keys = vec![key("a"), key("b")];
    keys[0]["disabled"] = true.into();
    assert_eq!(disable(&mut keys, &Which::All).unwrap(), ["b"]);
    assert_eq!(disable(&mut keys, &Which::Name("a".into())).unwrap(), Vec::<String>::new());
    assert!(disable(&mut keys, &Which::Id("zzzzzzzzzz".into())).is_err());
    assert_eq!(disable(&mut [], &Which::All).unwrap(), Vec::<String>::new());
}

#[test]
fn what_is_said_conforms_and_names_no_key() {
    let (new, end) = (fresh(), "2027-02-16T10:00:00Z".parse().unwrap());
    let created = KeyChange::created("ml/search", "app", &new, Some(end), now());
    let planned = KeyChange::planned_creation("ml/search", "app-2", None, now());
    let all = [
        created.clone(),
        planned.replacing("app", end),
        KeyChange::revoked("ml/search", vec!["a".into(), "b".into()], now()),
        KeyChange::planned_revocation("ml/search", vec![], now()),
    ];
    all.iter().for_each(|one| conforms("key-change", &answer_json(one)));
    let lines: Vec<String> = all.iter().flat_map(KeyChange::lines).collect();
    assert!(!lines.join("\n").contains("sk-fly-"), "{lines:?}");
    insta::assert_snapshot!(lines.join("\n"));
    assert_eq!(created.exit(), Exit::Yes);
}

#[test]
fn a_key_is_listed_by_what_its_fields_say() {
    let of = |more: Value| {
        let mut whole = json!({ "name": "k", "id": "aaaaaaaaaa", "sha256": "" });
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    };
    let keys = [
        of(json!({})),
        of(json!({ "expires": "2026-11-19T10:00:00Z" })),
        of(json!({ "expires": "2026-11-18T10:00:00Z" })),
        of(json!({ "notBefore": "2026-11-18T10:00:01Z" })),
        of(json!({ "disabled": true, "expires": "2020-01-01T00:00:00Z" })),
        of(json!({ "expires": "soon" })),
    ];
    let list = KeyList::of("ml/search", &keys, now());
    conforms("keys", &answer_json(&list));
    insta::assert_snapshot!(answer_table(&list, Detail::Full));
    insta::assert_snapshot!(answer_table(&list, Detail::Problems));
}
