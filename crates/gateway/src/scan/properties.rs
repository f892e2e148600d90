//! What holds for every body.

use super::keys::Guarded;
use super::{STEERING, ScanError, ScanLimits, Scanned, Scanner};
use crate::surface::Surface;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value};
use std::ops::Range;

fn scan_pieces(surface: Surface, body: &[u8], cuts: &[usize]) -> Result<Scanned, ScanError> {
    let mut scanner = Scanner::new(surface, ScanLimits::DEFAULT);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
    cuts.sort_unstable();
    let mut from = 0;
    for cut in cuts {
        scanner.feed(&body[from..cut])?;
        from = cut;
    }
    scanner.feed(&body[from..])?;
    scanner.finish()
}

fn scan(surface: Surface, body: &[u8]) -> Result<Scanned, ScanError> {
    scan_pieces(surface, body, &[])
}

fn surface() -> impl Strategy<Value = Surface> {
    proptest::sample::select(Surface::ALL.to_vec())
}

/// Text with what lexers stumble over.
fn text() -> impl Strategy<Value = String> {
    let bits = proptest::sample::select(vec![
        "\"", "\\", "\\\"", "{", "}", "[", "]", ",", ":", "\n", "\u{0}", "é", "𝄞", "word ", "model",
    ]);
    prop_oneof![
        vec(bits, 0..40).prop_map(|bits| bits.concat()),
        (1_usize..5000).prop_map(|n| "lorem \"ipsum\\\n".chars().cycle().take(n).collect()),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((text(), inner), 0..6)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    let known = vec![
        "model",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "n",
        "best_of",
        "cache_salt",
        "user",
        "prompt_cache_key",
        "temperature",
        "seed",
        "tools",
        "messages",
        "system",
        "prompt",
        "input",
        "instructions",
        "priority",
        "kv_transfer_params",
        "id_slot",
    ];
    prop_oneof![4 => proptest::sample::select(known).prop_map(str::to_owned), 1 => "[a-z_é]{0,70}"]
}

/// A value that often fits the key.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => any_json(),
        2 => (0_u64..1000).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => "[a-z/]{1,20}".prop_map(Value::from),
        1 => any::<bool>().prop_map(|stated| serde_json::json!({ "include_usage": stated })),
    ]
}

/// Members in some order, one key perhaps several times, written with more or less white space.
fn body() -> impl Strategy<Value = (Vec<(String, Value)>, String)> {
    let space = proptest::sample::select(vec!["", " ", "\n\t", "\r\n  "]);
    let model = "[a-z/]{1,20}".prop_map(|model| ("model".to_owned(), Value::from(model)));
    (model, vec((name(), value()), 0..8), any::<usize>(), space, any::<bool>()).prop_map(
        |(model, mut members, place, space, pretty)| {
            members.insert(place % (members.len() + 1), model);
            let written: Vec<String> = members
                .iter()
                .map(|(key, value)| {
                    let value = match pretty {
                        true => serde_json::to_string_pretty(value).unwrap(),
                        false => value.to_string(),
                    };
                    format!("{space}{}{space}:{space}{value}{space}", Value::from(key.as_str()))
                })
                .collect();
            (members, format!("{space}{{{}}}{space}", written.join(",")))
        },
    )
}

/// The keys that stand twice or more.
fn repeated(members: &[(String, Value)]) -> Vec<&str> {
    let count = |key: &str| members.iter().filter(|(other, _)| other == key).count();
    members.iter().map(|(key, _)| key.as_str()).filter(|key| count(key) > 1).collect()
}

fn agrees(scanned: &Scanned, json: &Value) -> Result<(), TestCaseError> {
    let number = |key: &str| json.get(key).and_then(Value::as_u64);
    let text = |key: &str| json.get(key).and_then(Value::as_str).map(str::to_owned);
    prop_assert_eq!(Some(scanned.model.clone()), text("model"));
    prop_assert_eq!(&scanned.cache_salt, &text("cache_salt"));
    prop_assert_eq!(scanned.stream, json.get("stream").and_then(Value::as_bool) == Some(true));
    let include_usage = json.pointer("/stream_options/include_usage").and_then(Value::as_bool);
    prop_assert_eq!(scanned.include_usage, include_usage == Some(true));
    let most = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    prop_assert_eq!(scanned.max_tokens, most.into_iter().filter_map(number).min());
    prop_assert_eq!(scanned.answers, number("n").max(number("best_of")));
    let temperature = json.get("temperature").and_then(Value::as_f64);
    prop_assert_eq!(scanned.greedy, temperature == Some(0.0));
    let steering =
        STEERING.into_iter().find(|key| json.get(*key).is_some_and(|steering| !steering.is_null()));
    prop_assert_eq!(scanned.steers.beyond(&[]), steering);
    Ok(())
}

proptest! {
    #[test]
    fn pieces_say_what_the_whole_says(
        surface in surface(),
        (_, body) in body(),
        cuts in vec(any::<usize>(), 0..12),
    ) {
        let whole = scan(surface, body.as_bytes());
        prop_assert_eq!(scan_pieces(surface, body.as_bytes(), &cuts), whole.clone());
        // Byte by byte takes long without optimisation, and short bodies have all there is.
        if body.len() < 2000 {
            let every: Vec<usize> = (0..body.len()).collect();
            prop_assert_eq!(scan_pieces(surface, body.as_bytes(), &every), whole);
        }
    }

    #[test]
    fn what_is_taken_is_what_a_json_parser_reads(surface in surface(), (members, body) in body()) {
        let json: Value = serde_json::from_str(&body).unwrap();
        match scan(surface, body.as_bytes()) {
            Ok(scanned) => {
                agrees(&scanned, &json)?;
                let marks = &scanned.marks;
                prop_assert_eq!(body.find('{').map(|place| place + 1), Some(marks.open));
                let at = |place: &Range<usize>| serde_json::from_str::<Value>(&body[place.clone()]);
                prop_assert_eq!(&at(&marks.model).unwrap(), &json["model"]);
                let salt = marks.cache_salt.as_ref().map(|place| at(place).unwrap());
                prop_assert_eq!(salt.as_ref(), json.get("cache_salt"));
                for key in repeated(&members) {
                    let guarded = Guarded::named(key.as_bytes()).is_some()
                        || STEERING.contains(&key)
                        || surface.prompt_keys().contains(&key);
                    prop_assert!(!guarded, "{} stands twice", key);
                }
            }
            Err(ScanError::Twice { key }) => prop_assert!(repeated(&members).contains(&key)),
            Err(ScanError::Wrong { key, .. }) => prop_assert!(json.get(key).is_some()),
            Err(other) => prop_assert!(false, "{}: {}", other, body),
        }
    }

    #[test]
    fn cut_anywhere_a_body_is_refused((_, body) in body(), cut in any::<usize>()) {
        let body = body.trim_end();
        prop_assert!(scan(Surface::Chat, &body.as_bytes()[..cut % body.len()]).is_err());
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..300), cuts in vec(any::<usize>(), 0..4)) {
        let _ = scan_pieces(Surface::Messages, &bytes, &cuts);
    }

    #[test]
    fn the_order_of_keys_does_not_change_prefixes(
        surface in surface(),
        texts in vec(2000_usize..5000, 3),
        turn in 0_usize..4,
    ) {
        let mut members = vec![r#""model":"m""#.to_owned()];
        members.extend(surface.prompt_keys().iter().zip(texts).map(|(key, bytes)| {
            format!(r#""{key}":["{}"]"#, key.repeat(bytes / key.len()))
        }));
        let one = scan(surface, format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
        let turn = turn % members.len();
        members.rotate_left(turn);
        let other = scan(surface, format!("{{ {} }}", members.join(" , ")).as_bytes()).unwrap();
        prop_assert!(!one.prefixes.is_empty());
        prop_assert_eq!(one.prefixes, other.prefixes);
    }

    #[test]
    fn a_longer_conversation_begins_with_the_shorter(
        messages in vec(text(), 1..30),
        count in any::<usize>(),
    ) {
        let body = |messages: &[String]| {
            serde_json::json!({ "model": "m", "tools": ["t"], "messages": messages }).to_string()
        };
        let long = scan(Surface::Chat, body(&messages).as_bytes()).unwrap();
        let short = scan(Surface::Chat, body(&messages[..count % messages.len()]).as_bytes());
        prop_assert!(long.prefixes.starts_with(&short.unwrap().prefixes));
    }
}
