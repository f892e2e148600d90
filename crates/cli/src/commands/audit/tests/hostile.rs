//! Logs that are not as they should be, and lines that somebody made up.

use super::*;
use crate::output::{Answer as _, Detail, Exit, answer_json, answer_table, conforms};

fn shown(lines: &[String]) -> String {
    let list = list(lines, &AuditFilter::default());
    let json = answer_json(&list);
    conforms("audit", &json);
    json + &answer_table(&list, Detail::Full)
}

#[test]
fn a_key_or_a_hash_is_shown_from_no_place_of_an_event() {
    let place = |text: &str| {
        json!({
            "name": text, "id": text, "sha256": text, "expires": text, "notBefore": text, text: text,
        })
    };
    for secret in [CANARY, HASH] {
        let mut spec = json!({ "models": [secret], "keys": [place(secret)], "parent": secret });
        spec[secret] = json!(secret);
        let mut whole = tenant(1, spec.clone());
        whole["metadata"]["annotations"] = json!({
            secret: secret, format!("flyball.dev/{secret}"): secret, "flyball.dev/tenant": secret,
        });
        let mut ends = whole.clone();
        ends["spec"]["keys"] = json!([key(secret, 1)]);
        let mut events = vec![
            call(1, "create", whole.clone()).event(),
            call(2, "patch", ends).event(),
            LoggedCall { request: whole.clone(), ..call(3, "patch", tenant(9, spec)) }.event(),
            LoggedCall { code: 422, request: whole.clone(), ..call(4, "patch", json!(secret)) }
                .event(),
        ];
        events[3]["responseStatus"]["message"] = json!(format!("Invalid value: {secret}"));
        let mut odd = call(5, "patch", Value::Null).event();
        for field in ["resource", "namespace", "name", "subresource"] {
            odd["objectRef"][field] = json!(secret);
        }
        odd["requestURI"] = json!(format!("/x?fieldManager={secret}"));
        events.push(odd);
        let mut stored = call(6, "create", whole.clone()).event();
        stored["objectRef"] = json!({ "resource": "secrets", "namespace": "shop", "name": "a" });
        stored["requestObject"] = json!({
            "metadata": { "annotations": { "flyball.dev/tenant": "ml/search" } },
            "stringData": { "api-key": secret },
        });
        events.push(stored);
        events.push(json!({
            "time": "2026-11-15T14:02:10Z", "act": secret, "what": format!("key {secret} of a/b"),
            "outcome": format!("refused: {secret}"),
        }));
        let mut lines = lines(&events);
        lines.push(secret.to_owned());
        lines.push(format!("{{\"kind\":\"{secret}\""));
        let printed = shown(&lines);
        assert!(!printed.contains(secret) && !printed.contains(&secret[20..40]), "{printed}");
        assert!(printed.contains("[hidden]"), "{printed}");
    }
    // Whoever is known by a key is not shown by it either.
    let mut named = call(1, "patch", Value::Null).event();
    named["user"]["username"] = json!(CANARY);
    named["impersonatedUser"] = json!({ "username": CANARY });
    assert!(!shown(&lines(&[named])).contains(&CANARY[20..40]));
}

#[test]
fn a_name_gives_a_terminal_no_order_and_makes_no_line() {
    let mut event = call(1, "patch", Value::Null).event();
    event["user"]["username"] = json!("eve\u{1b}[2J\n2026-11-15 root created tenant/ml/x accepted");
    let list = list(&lines(&[event]), &AuditFilter::default());
    let printed = answer_json(&list) + &answer_table(&list, Detail::Full);
    assert!(!printed.contains('\u{1b}') && !printed.contains("u001b"), "{printed}");
}

#[test]
fn lines_twice_are_one_act_and_ids_that_were_chosen_hide_nothing() {
    let first = call(1, "patch", Value::Null).event();
    // Clients may send a header with the id of their request.
    let mut other = call(2, "delete", Value::Null).event();
    other["auditID"] = first["auditID"].clone();
    let all = lines(&[first.clone(), first, other]);
    let stream = stream(&all);
    assert_eq!(stream.counts.doubled, 1);
    assert_eq!(stream.acts().len(), 2);
}

#[test]
fn lines_out_of_order_tell_the_same() {
    let spec = |keys: Value| json!({ "models": ["m"], "keys": keys });
    let events = [
        call(1, "create", tenant(1, spec(json!([])))).event(),
        call(2, "patch", tenant(2, spec(json!([key("a", 1)])))).event(),
        call(3, "patch", tenant(3, spec(json!([key("a", 1), key("b", 2)])))).event(),
    ];
    let right = outcomes(&events);
    let mut turned = events.to_vec();
    turned.reverse();
    assert_eq!(outcomes(&turned), right);
    assert_eq!(right[2].0, "key created b (0000000002)");
    assert_eq!(acts(&turned)[0].time, "2026-11-15T14:02:01.000000Z");
    // A server whose clock is behind: what is older than what is known says nothing new.
    let mut late = events.to_vec();
    late[1]["stageTimestamp"] = json!("2026-11-15T14:02:04Z");
    assert_eq!(outcomes(&late)[2], (String::new(), Some(false)));
}

#[test]
fn what_cannot_be_read_is_counted_and_named_and_the_answer_is_not_yes() {
    let mut no_stage = call(1, "patch", Value::Null).event();
    no_stage["stage"] = Value::Null;
    let mut no_time = call(2, "patch", Value::Null).event();
    no_time["stageTimestamp"] = json!("soon");
    no_time["requestReceivedTimestamp"] = Value::Null;
    let mut old = call(3, "patch", Value::Null).event();
    old["apiVersion"] = json!("audit.k8s.io/v1beta1");
    let mut all = lines(&[no_stage, no_time, old, call(4, "patch", Value::Null).event()]);
    all.push("{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s".to_owned());
    all.push(String::new());
    let mut stream = stream(&all);
    stream.too_long(&|| "log:7".to_owned(), 8 << 20);
    let list = AuditList::of(stream, &AuditFilter::default(), jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(list.exit(), Exit::Unknown);
    let printed = answer_table(&list, Detail::Full);
    for problem in [
        "log:1: it is an event that has no stage",
        "log:2: it is an event that has no time",
        "log:3: it is an event of another version than audit.k8s.io/v1",
        "log:5: it is no whole JSON",
        "log:7: it is longer than 8 MiB",
        "1 act, 0 refused   7 lines: 1 other, 0 doubled, 5 unreadable",
    ] {
        assert!(printed.contains(problem), "{problem}\n{printed}");
    }
}

#[test]
fn a_file_of_another_kind_is_no_empty_answer() {
    let list = list(&["INFO started".to_owned()], &AuditFilter::default());
    assert_eq!(list.exit(), Exit::Unknown);
    let printed = answer_table(&list, Detail::Full);
    assert!(printed.contains("no line is one of an audit log"), "{printed}");
}

#[test]
fn fields_that_are_missing_or_odd_break_nothing() {
    let whole = call(1, "patch", tenant(1, json!({ "keys": 7 }))).event();
    let odd = [json!(null), json!(7), json!("x"), json!([1]), json!({ "a": {} })];
    for name in whole.as_object().unwrap().keys() {
        let mut without = whole.clone();
        without.as_object_mut().unwrap().remove(name);
        shown(&lines(&[whole.clone(), without]));
        for value in &odd {
            let mut other = whole.clone();
            other[name] = value.clone();
            shown(&lines(&[whole.clone(), other]));
        }
    }
    for path in ["/metadata", "/spec", "/spec/keys", "/metadata/generation", "/apiVersion"] {
        for value in &odd {
            let mut other = whole.clone();
            *other["responseObject"].pointer_mut(path).unwrap() = value.clone();
            shown(&lines(&[whole.clone(), other]));
        }
    }
}
