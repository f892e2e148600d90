//! The scanner against a strict JSON parser, and pieces against the whole.

#![no_main]

#[path = "../../crates/gateway/src/scan/guarded.rs"]
mod guarded;

use flyball_fuzz::scan::{ScanError, ScanLimits, Scanned, Scanner};
use flyball_fuzz::{Input, Surface};
use guarded::GUARDED;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else { return };
    let whole = scan(input.surface, std::iter::once(input.bytes));
    let pieces = scan(input.surface, input.pieces());
    // Two faults of one value may be met in either order.
    assert_eq!(pieces.as_ref().ok(), whole.as_ref().ok());
    let Ok(Members(members)) = serde_json::from_slice(input.bytes) else { return };
    match whole {
        Ok(scanned) => agree(input.surface, &scanned, &members),
        Err(ScanError::NotJson { what, at }) => panic!("refused JSON: {what} at {at}"),
        Err(_) => {}
    }
});

fn scan<'a>(surface: Surface, pieces: impl Iterator<Item = &'a [u8]>) -> Result<Scanned, ScanError> {
    let mut scanner = Scanner::new(surface, ScanLimits::DEFAULT);
    for piece in pieces {
        scanner.feed(piece)?;
    }
    scanner.finish()
}

fn agree(surface: Surface, scanned: &Scanned, members: &[(String, Value)]) {
    let find = |key: &str| {
        let mut found = members.iter().filter(|(name, _)| name == key);
        let first = found.next();
        assert!(found.next().is_none(), "`{key}` stands twice");
        first.map(|(_, value)| value).filter(|value| !value.is_null())
    };
    for key in GUARDED.iter().chain(surface.prompt_keys()) {
        find(key);
    }
    let number = |key: &str| find(key).map(|value| value.as_u64().expect("a number"));
    let text = |key: &str| find(key).map(|value| value.as_str().expect("a text").to_owned());
    assert_eq!(Some(scanned.model.clone()), text("model"));
    assert_eq!(scanned.cache_salt, text("cache_salt"));
    let stream = find("stream").map(|value| value.as_bool().expect("true or false"));
    assert_eq!(scanned.stream, stream.unwrap_or(false));
    let usage = find("stream_options").and_then(|options| options.get("include_usage"));
    assert_eq!(scanned.include_usage, usage.and_then(Value::as_bool).unwrap_or(false));
    let most = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    assert_eq!(scanned.max_tokens, most.into_iter().filter_map(number).min());
    assert_eq!(scanned.answers, number("n").max(number("best_of")));
    assert!(scanned.prefixes.len() as u64 <= scanned.prompt_bytes / 1024);
}

/// The members of an object, all of those with equal keys too.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(All)
    }
}
