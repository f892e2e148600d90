//! Tables of Tenants that change, contradict each other and cannot be read.

use super::reading::TenantReading;
use super::{TenantReadings, TenantReport, TenantTable};
use crate::identify::UnauthorizedReason;
use crate::settings::Priority;
use flyball_core::units::Timestamp;
use flyball_fleet::discover::objects::ObjectView as _;
use flyball_resources::Tenant;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::sync::Arc;

/// A Tenant of the namespace `ml` as the API server sends it.
fn object(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": { "namespace": "ml", "name": name }, "spec": spec,
    })
}

/// One that may ask for everything and has these keys.
fn with_keys(name: &str, keys: &[Value]) -> Value {
    object(name, &json!({ "models": ["*"], "keys": keys }))
}

fn key(name: &str, number: u32) -> Value {
    json!({ "name": name, "id": format!("{number:010}"), "sha256": format!("{number:064x}") })
}

fn digest(number: u32) -> [u8; 32] {
    let mut digest = [0; 32];
    digest[28..].copy_from_slice(&number.to_be_bytes());
    digest
}

pub(super) fn read(objects: &[Value]) -> TenantReadings {
    let reading = |object: &Value| {
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let name = object.metadata.name.clone().unwrap();
        (format!("ml/{name}"), TenantReading::read(&object))
    };
    objects.iter().map(reading).collect()
}

fn of(objects: &[Value]) -> (TenantTable, TenantReport) {
    TenantTable::of(&read(objects), &TenantTable::default())
}

fn at(text: &str) -> Timestamp {
    let at: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(u64::try_from(at.as_microsecond()).unwrap())
}

/// The path of whoever holds this key, or why nobody is let in by it.
fn who(table: &TenantTable, number: u32, now: Timestamp) -> Result<String, UnauthorizedReason> {
    let key = table.get(&digest(number)).ok_or(UnauthorizedReason::Unknown)?;
    key.caller(now).map(|caller| caller.name.to_string()).map_err(|refused| refused.why)
}

const NOW: &str = "2026-11-18T12:00:00Z";

#[test]
fn a_key_is_let_in_while_its_time_is_whichever_way_the_clock_jumps() {
    let mut bounded = key("a", 1);
    bounded["notBefore"] = json!("2026-11-18T10:00:00Z");
    bounded["expires"] = json!("2026-11-18T14:00:00Z");
    let mut disabled = key("b", 2);
    disabled["disabled"] = json!(true);
    let (table, report) = of(&[with_keys("search", &[bounded, disabled])]);
    assert_eq!((report.accepted, report.keys, report.refused), (1, 2, 0));
    for (clock, expected) in [
        ("2026-11-18T09:59:59Z", Err(UnauthorizedReason::Pending)),
        ("2026-11-18T10:00:00Z", Ok("ml/search".to_owned())),
        ("2026-11-18T14:00:00Z", Err(UnauthorizedReason::Expired)),
        ("2226-01-01T00:00:00Z", Err(UnauthorizedReason::Expired)),
        ("2026-11-18T12:00:00Z", Ok("ml/search".to_owned())),
        ("1970-01-01T00:00:00Z", Err(UnauthorizedReason::Pending)),
    ] {
        assert_eq!(who(&table, 1, at(clock)), expected, "{clock}");
        assert_eq!(who(&table, 2, at(clock)), Err(UnauthorizedReason::Disabled), "{clock}");
    }
    let refused = table.get(&digest(2)).unwrap().caller(at(NOW)).unwrap_err();
    assert_eq!((refused.tenant, refused.id), ("ml/search", "0000000002"));
    assert_eq!(who(&table, 3, at(NOW)), Err(UnauthorizedReason::Unknown));
}

#[test]
fn a_caller_is_what_its_tenant_is() {
    let spec = |ceiling: &str, group: Value| {
        json!({
            "models": ["llama-*"], "weight": 7, "priorityCeiling": ceiling, "cacheGroup": group,
            "keys": [key("app", 1)],
        })
    };
    let caller = |ceiling, group| {
        let (table, _) = of(&[object("search", &spec(ceiling, group))]);
        Arc::clone(table.get(&digest(1)).unwrap().caller(at(NOW)).unwrap())
    };
    let high = caller("High", json!("g"));
    assert_eq!((&*high.name, high.key.as_deref()), ("ml/search", Some("0000000001")));
    assert_eq!((high.weight, high.priority, high.ceiling), (7, Priority::Normal, Priority::High));
    assert!(high.may_use("llama-3") && !high.may_use("qwen") && high.rate.is_none());
    let access = high.access.as_ref().unwrap();
    assert_eq!(access.tenant.to_string(), "ml/search");
    assert_eq!(access.scope.as_str(), "ml/search/key:app");
    let low = caller("Batch", json!(null));
    assert_eq!((low.priority, low.ceiling), (Priority::Low, Priority::Low));
    assert_ne!(low.salt, high.salt);
    assert_eq!(low.number, high.number, "a Tenant is one in the queue");
}

#[test]
fn who_does_not_change_stays_the_same_and_who_changes_goes_on_counting() {
    let one = with_keys("one", &[key("a", 1), key("b", 2)]);
    let two = |weight: i32| {
        object("two", &json!({ "models": ["*"], "weight": weight, "keys": [key("a", 3)] }))
    };
    let before = read(&[one, two(1)]);
    let (table, _) = TenantTable::of(&before, &TenantTable::default());
    // A key is gone and one is new; another Tenant has another weight.
    let after = read(&[with_keys("one", &[key("a", 1), key("c", 4)]), two(2)]);
    let (next, _) = TenantTable::of(&after, &table);
    let caller = |table: &TenantTable, number| {
        Arc::clone(table.get(&digest(number)).unwrap().caller(at(NOW)).unwrap())
    };
    assert!(Arc::ptr_eq(&caller(&table, 1), &caller(&next, 1)));
    assert!(next.get(&digest(2)).is_none());
    let (old, new) = (caller(&table, 3), caller(&next, 3));
    assert_eq!((old.weight, new.weight), (1, 2));
    let share = |table: &TenantTable, number| caller(table, number).share.clone().unwrap();
    assert!(Arc::ptr_eq(&share(&table, 3), &share(&next, 3)));
    assert!(Arc::ptr_eq(&share(&next, 1), &share(&next, 4)), "one share for a Tenant");
    assert!(!Arc::ptr_eq(&share(&next, 1), &share(&next, 3)));
}

#[test]
fn of_two_tenants_with_one_hash_neither_lets_in_whatever_comes_first() {
    let mut other = key("x", 1);
    other["id"] = json!("zzzzzzzzzz");
    // Revoked in one place, it does not come back in another.
    let mut revoked = key("a", 1);
    revoked["disabled"] = json!(true);
    for first in [key("a", 1), revoked] {
        let (table, report) =
            of(&[with_keys("one", &[first, key("b", 2)]), with_keys("two", &[other.clone()])]);
        assert_eq!(who(&table, 1, at(NOW)), Err(UnauthorizedReason::Refused));
        assert_eq!(who(&table, 2, at(NOW)).as_deref(), Ok("ml/one"));
        assert_eq!((report.accepted, report.refused_keys), (2, 2));
        let reasons: Vec<&str> = report.troubles.iter().map(|one| one.reason.as_str()).collect();
        assert_eq!(reasons, ["TenantKeyDuplicate", "TenantKeyDuplicate"]);
    }
}

#[test]
fn one_that_cannot_be_read_lets_nobody_in_and_its_keys_nowhere_else() {
    let mut later = with_keys("later", &[key("a", 1)]);
    later["spec"]["priorityCeiling"] = json!("NotYetKnown");
    let child =
        object("child", &json!({ "parent": "later", "models": ["*"], "keys": [key("a", 2)] }));
    let mut twin = key("x", 1);
    twin["id"] = json!("zzzzzzzzzz");
    let good = with_keys("good", &[key("a", 3), twin]);
    let before = read(&[with_keys("later", &[key("a", 1)]), good.clone()]);
    let (before, _) = TenantTable::of(&before, &TenantTable::default());
    let (table, report) = TenantTable::of(&read(&[later, child, good]), &before);
    assert_eq!(who(&table, 1, at(NOW)), Err(UnauthorizedReason::Refused));
    assert_eq!(who(&table, 2, at(NOW)), Err(UnauthorizedReason::Refused));
    assert_eq!(who(&table, 3, at(NOW)).as_deref(), Ok("ml/good"));
    assert_eq!((report.accepted, report.refused), (1, 2));
    assert!(report.troubles[1].problems[0].contains("cannot read it"), "{report:?}");
}

#[test]
fn one_that_is_being_deleted_lets_nobody_in() {
    let mut leaving = with_keys("leaving", &[key("a", 1)]);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-18T11:00:00Z");
    let (table, report) = of(&[leaving]);
    assert_eq!(who(&table, 1, at(NOW)), Err(UnauthorizedReason::Refused));
    assert!(report.troubles[0].problems[0].contains("being deleted"), "{report:?}");
    assert_eq!(who(&of(&[]).0, 1, at(NOW)), Err(UnauthorizedReason::Unknown));
}

#[test]
fn whatever_is_in_an_object_it_is_read_and_no_key_is_shown() {
    let secret = "sk-fly-0123456789_canary";
    for spec in [
        json!(null),
        json!([]),
        json!({ "models": secret }),
        json!({ "models": [secret], "weight": secret }),
        json!({ "models": ["*"], "keys": [secret] }),
        json!({ "models": ["*"], "keys": [{ "name": "a", "id": secret, "sha256": secret }] }),
        json!({ "models": ["*"], "keys": [{ "name": "a", "id": secret, "sha256": "0f".repeat(32) }] }),
        json!({ "models": ["*"], "keys": [{ "name": "a", "id": 1, "sha256": {} }], "parent": 7 }),
    ] {
        let (table, report) = of(&[object("odd", &spec)]);
        assert_eq!((report.accepted, report.refused), (0, 1), "{spec}");
        assert!(!format!("{report:?}{table:?}").contains("canary"), "{spec}");
    }
}

#[test]
fn a_status_that_changes_changes_nothing() {
    let mut counted = with_keys("one", &[key("a", 1)]);
    let before = read(std::slice::from_ref(&counted));
    counted["status"] =
        json!({ "keys": { "valid": 1, "pending": 0, "expired": 0, "disabled": 0, "refused": 0 } });
    counted["metadata"]["resourceVersion"] = json!("7");
    assert_eq!(read(&[counted]), before);
}

#[test]
fn as_many_keys_as_a_cluster_has_are_all_found() {
    let tenant = |tenant: u32| {
        let keys: Vec<Value> = (0..64).map(|n| key(&format!("k{n}"), 64 * tenant + n)).collect();
        let object = with_keys(&format!("t{tenant}"), &keys);
        let tenant: Tenant = serde_json::from_value(object).unwrap();
        (format!("ml/{}", tenant.metadata.name.clone().unwrap()), TenantReading::of(&tenant))
    };
    let all: TenantReadings = (0..1_563).map(tenant).collect();
    let (table, report) = TenantTable::of(&all, &TenantTable::default());
    assert_eq!((report.accepted, report.keys), (1_563, 100_032));
    for number in 0..100_032 {
        assert_eq!(who(&table, number, at(NOW)), Ok(format!("ml/t{}", number / 64)));
    }
    assert_eq!(who(&table, 100_032, at(NOW)), Err(UnauthorizedReason::Unknown));
    // One key less is one caller less, and all others are those that they were.
    let mut fewer = all.clone();
    fewer.remove("ml/t7");
    let (next, _) = TenantTable::of(&fewer, &table);
    let same = |number: u32| {
        let of = |table: &TenantTable| table.get(&digest(number))?.caller(at(NOW)).ok().cloned();
        Some(Arc::ptr_eq(&of(&table)?, &of(&next)?))
    };
    assert!((0..100_032).all(|number| same(number) == (number / 64 != 7).then_some(true)));
}
