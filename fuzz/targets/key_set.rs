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
    // Beside a key that is taken, one of its name may stand that cannot be used, and is left aside.
    let usable = |key: &&Value| {
        let named = key["kid"].as_str().is_some_and(|id| set.key(id).is_some());
        named && key.get("d").is_none() && key["kty"] != "oct"
    };
    assert!(keys.iter().filter(usable).count() >= set.len(), "a secret key is taken");
});
