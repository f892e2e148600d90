//! Key sets as issuers and strangers publish them, and when they are fetched.

use super::signer::{ISS, after, b64, claims, header, key_set, keys, now, raw, token, verifier};
use flyball_core::units::{Micros, Timestamp};
use flyball_identity::{
    BETWEEN_FETCHES, FetchAdvice, Jwks, JwksCache, JwksRefusal, MAX_AGE, MAX_JWKS_BYTES,
    MAX_JWKS_KEYS, REFRESH, TokenAlgorithm, TokenRefusal, TrustedIssuer, UnverifiedToken,
};
use serde_json::{Value, json};

fn read(set: &Value) -> Result<Jwks, JwksRefusal> {
    Jwks::read(set.to_string().as_bytes())
}

/// A right key for RSA, with some members changed.
fn rsa(changes: Value) -> Value {
    let mut key = json!({ "kty": "RSA", "kid": "k", "n": keys()["rsa"]["n"], "e": "AQAB" });
    for (name, value) in changes.as_object().expect("an object") {
        key[name] = value.clone();
    }
    key
}

fn ec(changes: Value) -> Value {
    let of = &keys()["ec"];
    let mut key = json!({ "kty": "EC", "crv": "P-256", "kid": "k", "x": of["x"], "y": of["y"] });
    for (name, value) in changes.as_object().expect("an object") {
        key[name] = value.clone();
    }
    key
}

/// Of these bits, with an odd end: it need not be a product of primes to be counted.
fn modulus(bits: usize) -> String {
    let mut bytes = vec![0xff; bits.div_ceil(8)];
    bytes[0] = (0xff_u32 >> (bytes.len() * 8 - bits)) as u8;
    b64(bytes)
}

#[test]
fn a_key_says_what_it_is_for() {
    let algorithm = |key: Value| {
        let set = read(&json!({ "keys": [key] })).expect("a key");
        set.key("k").expect("its name").algorithm()
    };
    use TokenAlgorithm::{EdDsa, Es256, Ps256, Rs256};
    assert_eq!(algorithm(rsa(json!({}))), Rs256);
    assert_eq!(algorithm(rsa(json!({ "alg": "RS256" }))), Rs256);
    assert_eq!(algorithm(rsa(json!({ "alg": "PS256", "use": "sig" }))), Ps256);
    assert_eq!(algorithm(rsa(json!({ "key_ops": ["verify"], "x5t": "x" }))), Rs256);
    assert_eq!(algorithm(ec(json!({ "alg": "ES256" }))), Es256);
    let ed = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "k", "x": keys()["ed"]["x"], "alg": "EdDSA" });
    assert_eq!(algorithm(ed), EdDsa);
    // Some issuers write a zero before the modulus.
    let zero = [&[0], &raw(&keys()["rsa"]["n"])[..]].concat();
    assert_eq!(algorithm(rsa(json!({ "n": b64(zero) }))), Rs256);
    for bits in [2_048, 4_096, 8_192] {
        assert_eq!(algorithm(rsa(json!({ "n": modulus(bits) }))), Rs256, "{bits} bits");
    }
}

#[test]
fn keys_that_must_not_verify_are_left_aside() {
    let of = keys();
    let ed = |x: Value| json!({ "kty": "OKP", "crv": "Ed25519", "kid": "k", "x": x });
    let rows = [
        ("a shared secret", json!({ "kty": "oct", "kid": "k", "k": "c2VjcmV0", "alg": "HS256" })),
        ("an RSA key of 1024 bits", rsa(json!({ "n": of["weak"]["n"] }))),
        ("an RSA key of 2047 bits", rsa(json!({ "n": modulus(2_047) }))),
        ("an RSA key of 8193 bits", rsa(json!({ "n": modulus(8_193) }))),
        (
            "zeros that make it look longer",
            rsa(json!({ "n": b64([&[0; 200][..], &[0xff; 128]].concat()) })),
        ),
        ("an exponent of 1", rsa(json!({ "e": "AQ" }))),
        ("an exponent of 3", rsa(json!({ "e": "Aw" }))),
        ("an exponent of 2^33", rsa(json!({ "e": "AgAAAAA" }))),
        ("an exponent of 20 bytes", rsa(json!({ "e": b64([1; 20]) }))),
        ("an empty modulus", rsa(json!({ "n": "" }))),
        (
            "a modulus with padding",
            rsa(json!({ "n": format!("{}=", of["rsa"]["n"].as_str().expect("n")) })),
        ),
        ("a modulus that is a number", rsa(json!({ "n": 5 }))),
        ("a key with its private part", rsa(json!({ "d": "AQAB" }))),
        ("a key for encryption", rsa(json!({ "use": "enc" }))),
        ("a key to sign with", rsa(json!({ "key_ops": ["sign"] }))),
        ("operations in no list", rsa(json!({ "key_ops": "verify" }))),
        ("an RSA key for a shared secret", rsa(json!({ "alg": "HS256" }))),
        ("an RSA key for no signature", rsa(json!({ "alg": "none" }))),
        ("an RSA key for encryption by `alg`", rsa(json!({ "alg": "RSA-OAEP" }))),
        ("an RSA key for another hash", rsa(json!({ "alg": "RS512" }))),
        ("an RSA key for a curve", rsa(json!({ "alg": "ES256" }))),
        ("an algorithm that is null", rsa(json!({ "alg": null }))),
        ("a P-256 key for RSA", ec(json!({ "alg": "RS256" }))),
        ("another curve", ec(json!({ "crv": "secp256k1" }))),
        ("a coordinate of 33 bytes", ec(json!({ "x": b64([0; 33]) }))),
        ("a coordinate of 31 bytes", ec(json!({ "y": b64([0; 31]) }))),
        ("an Ed25519 key of 31 bytes", ed(b64([1; 31]).into())),
        (
            "a key to agree on secrets",
            json!({ "kty": "OKP", "crv": "X25519", "kid": "k", "x": b64([9; 32]) }),
        ),
        ("a key without a kind", json!({ "kid": "k" })),
        ("a key without a name", rsa(json!({ "kid": null }))),
        ("a key with an empty name", rsa(json!({ "kid": "" }))),
        ("a key with a very long name", rsa(json!({ "kid": "k".repeat(257) }))),
    ];
    for (what, key) in rows {
        assert_eq!(
            read(&json!({ "keys": [key.clone()] })).err(),
            Some(JwksRefusal::NoUsableKey),
            "{what}"
        );
        // Beside one that can be used it is left aside.
        let mut beside = key_set();
        beside["keys"].as_array_mut().expect("a list").push(key);
        let set = read(&beside).unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
        assert_eq!((set.len(), set.left_aside()), (4, 1), "{what}");
    }
}

#[test]
fn a_name_that_two_keys_have_stands_for_neither() {
    let twins = json!({ "keys": [rsa(json!({})), ec(json!({}))] });
    assert_eq!(read(&twins).err(), Some(JwksRefusal::NoUsableKey));
    let mut beside = key_set();
    beside["keys"].as_array_mut().expect("a list").extend([rsa(json!({})), rsa(json!({}))]);
    let set = read(&beside).expect("the others");
    assert!(set.key("k").is_none() && set.key("rsa").is_some());
}

#[test]
fn sets_that_are_too_large_or_none_are_refused() {
    let many = |count: usize| {
        let keys = (0..count).map(|number| rsa(json!({ "kid": number.to_string() })));
        json!({ "keys": keys.collect::<Vec<_>>() })
    };
    assert_eq!(read(&many(MAX_JWKS_KEYS)).expect("as many as may be").len(), MAX_JWKS_KEYS);
    assert_eq!(read(&many(MAX_JWKS_KEYS + 1)).err(), Some(JwksRefusal::TooManyKeys));
    let padded = |length: usize| {
        let text = key_set().to_string();
        format!("{text}{}", " ".repeat(length - text.len()))
    };
    assert!(Jwks::read(padded(MAX_JWKS_BYTES).as_bytes()).is_ok());
    let long = Jwks::read(padded(MAX_JWKS_BYTES + 1).as_bytes());
    assert_eq!(long.err(), Some(JwksRefusal::TooLong));
    for none in ["", "null", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[1]}"#, "<html></html>"] {
        assert_eq!(Jwks::read(none.as_bytes()).err(), Some(JwksRefusal::NotAKeySet), "{none}");
    }
    assert_eq!(read(&json!({ "keys": [] })).err(), Some(JwksRefusal::NoUsableKey));
    let twice = r#"{"keys":[{"kty":"RSA","kid":"a","kid":"b"}]}"#;
    assert_eq!(Jwks::read(twice.as_bytes()).err(), Some(JwksRefusal::DuplicateMember));
}

#[test]
fn unknown_keys_cause_one_fetch_in_thirty_seconds_however_many_are_made_up() {
    let mut cache = JwksCache::new([ISS]);
    let mut fetches = 0;
    for millis in (0..300_000).step_by(10) {
        let now = now().saturating_add(Micros::from_millis(millis));
        match cache.unknown(ISS, now) {
            FetchAdvice::Fetch => fetches += 1,
            FetchAdvice::NotBefore(at) => {
                assert!(at > now && at <= now.saturating_add(BETWEEN_FETCHES));
            }
            FetchAdvice::Never => panic!("it is trusted"),
        }
    }
    assert_eq!(fetches, 10);
    assert_eq!(cache.unknown("https://evil.test", now()), FetchAdvice::Never);
}

#[test]
fn a_fetch_for_one_issuer_is_none_for_another() {
    let mut cache = JwksCache::new([ISS, "https://b.test"]);
    assert_eq!(cache.unknown(ISS, now()), FetchAdvice::Fetch);
    assert_eq!(cache.unknown("https://b.test", now()), FetchAdvice::Fetch);
}

fn filled(at: Timestamp) -> JwksCache {
    let mut cache = JwksCache::new([ISS]);
    assert_eq!(cache.fetched(ISS, key_set().to_string().as_bytes(), at), Ok(4));
    cache
}

#[test]
fn keys_hold_for_a_day_while_their_issuer_is_away() {
    let day = MAX_AGE.whole_seconds();
    let mut cache = filled(now());
    // It is asked again and again, and answers nonsense.
    for minute in 0..day / 60 {
        let at = after(minute * 60);
        let due = cache.due(at);
        assert_eq!(due.is_empty(), minute * 60 < REFRESH.whole_seconds(), "minute {minute}");
        assert!(cache.fetched(ISS, b"<html>502</html>", at).is_err());
        assert!(cache.key(ISS, "rsa", at).is_some(), "minute {minute}");
    }
    assert!(cache.key(ISS, "rsa", after(day)).is_some());
    assert!(cache.key(ISS, "rsa", after(day + 1)).is_none());
    assert_eq!(cache.fetched_at(ISS), Some(now()));
}

#[test]
fn a_key_that_is_withdrawn_is_gone_with_the_next_fetch_and_a_new_one_is_there() {
    let mut cache = filled(now());
    let set = json!({ "keys": [rsa(json!({ "kid": "new" }))] });
    assert_eq!(cache.fetched(ISS, set.to_string().as_bytes(), after(60)), Ok(1));
    assert!(cache.key(ISS, "rsa", after(60)).is_none());
    assert!(cache.key(ISS, "new", after(60)).is_some());
}

#[test]
fn a_set_without_a_usable_key_takes_nobody_away() {
    let mut cache = filled(now());
    assert_eq!(cache.fetched(ISS, br#"{"keys":[]}"#, after(60)), Err(JwksRefusal::NoUsableKey));
    assert!(cache.key(ISS, "rsa", after(60)).is_some());
}

#[test]
fn what_an_issuer_answers_that_nobody_trusts_is_not_stored() {
    let mut cache = filled(now());
    let set = key_set().to_string();
    assert_eq!(cache.fetched("https://evil.test", set.as_bytes(), now()), Ok(4));
    assert!(cache.key("https://evil.test", "rsa", now()).is_none());
    assert_eq!(cache.fetched_at("https://evil.test"), None);
}

#[test]
fn a_clock_that_is_set_back_stops_no_fetch() {
    let mut cache = filled(after(86_400));
    assert!(cache.key(ISS, "rsa", now()).is_some());
    assert_eq!(cache.due(now()), [ISS]);
    // A moment ago, by a clock that was ahead.
    let mut cache = JwksCache::new([ISS]);
    assert_eq!(cache.unknown(ISS, after(86_400)), FetchAdvice::Fetch);
    assert_eq!(cache.unknown(ISS, now()), FetchAdvice::Fetch);
}

#[test]
fn a_new_key_is_taken_once_it_was_fetched() {
    let mut verifier = verifier();
    let token = token(header("EdDSA", "tomorrow"), claims());
    let unknown = TokenRefusal::KeyUnknown { issuer: ISS.into() };
    assert_eq!(verifier.verify(token.as_bytes(), now()), Err(unknown));
    assert_eq!(verifier.keys.unknown(ISS, now()), FetchAdvice::Fetch);
    let mut set = key_set();
    set["keys"][3]["kid"] = "tomorrow".into();
    verifier.keys.fetched(ISS, set.to_string().as_bytes(), now()).expect("a set");
    assert!(verifier.verify(token.as_bytes(), now()).is_ok());
}

#[test]
fn a_key_of_one_issuer_verifies_nothing_of_another() {
    let set = read(&key_set()).expect("a set");
    let token = token(header("EdDSA", "ed"), claims());
    let verify = |iss: &str| {
        let issuer =
            TrustedIssuer { iss: iss.into(), audience: "flyball".into(), kubernetes: false };
        let token = UnverifiedToken::read(token.as_bytes()).expect("a token");
        token.verify(&issuer, set.key("ed").expect("a key"), now())
    };
    assert!(verify(ISS).is_ok());
    assert_eq!(verify("https://other.example.test"), Err(TokenRefusal::IssuerUnknown));
}

#[test]
fn before_the_first_fetch_all_issuers_are_due_once() {
    let mut cache = JwksCache::new(["https://a.test", "https://b.test"]);
    assert_eq!(cache.due(now()), ["https://a.test", "https://b.test"]);
    assert!(cache.due(after(29)).is_empty());
    assert_eq!(cache.due(after(30)).len(), 2);
}
