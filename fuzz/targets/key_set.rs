//! Key sets of issuers: taken within their bounds or refused, and never half.

#![no_main]

use flyball_identity::{Jwks, MAX_JWKS_BYTES, MAX_JWKS_KEYS};
use serde_json::Value;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(set) = Jwks::read(data) else { return };
    assert!(data.len() <= MAX_JWKS_BYTES);
    assert!((1..=MAX_JWKS_KEYS).contains(&set.len()));
    let all: Value = serde_json::from_slice(data).expect("JSON");
    let keys = all["keys"].as_array().expect("a list");
    assert_eq!(set.len() + set.left_aside(), keys.len());
    let usable = |key: &&Value| key["kid"].as_str().is_some_and(|id| set.key(id).is_some());
    let mut names = Vec::new();
    for key in keys.iter().filter(usable) {
        assert!(key.get("d").is_none() && key["kty"] != "oct");
        names.push(key["kid"].as_str());
    }
    assert_eq!(names.len(), set.len(), "a name stands for one key");
});
