//! Tokens: whatever is taken, a library that many use takes too, with the same subject.
//!
//! The bytes are read as they are; and a line of header and a line of claims are signed first, so that what stands in them
//! is reached, and not only that the signature is wrong.

#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flyball_core::units::Timestamp;
use flyball_identity::{TokenVerifier, TrustedIssuer, VerifiedToken};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::Value;
use std::sync::LazyLock;

const ISS: &str = "https://login.example.test";
const NOW: Timestamp = Timestamp::from_millis(1_799_990_000_000);

static PAIR: LazyLock<Ed25519KeyPair> =
    LazyLock::new(|| Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("32 bytes"));

static VERIFIER: LazyLock<TokenVerifier> = LazyLock::new(|| {
    let issuer = TrustedIssuer { iss: ISS.into(), audience: "flyball".into(), kubernetes: true };
    let mut verifier = TokenVerifier::new([issuer]).expect("one issuer");
    let public = URL_SAFE_NO_PAD.encode(PAIR.public_key());
    let set = format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"{public}"}}]}}"#);
    verifier.keys.fetched(ISS, set.as_bytes(), NOW).expect("a set");
    verifier
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(token) = VERIFIER.verify(data, NOW) {
        agree(data, &token);
    }
    let Some(at) = data.iter().position(|byte| *byte == b'\n') else { return };
    let parts = [&data[..at], &data[at + 1..]].map(|part| URL_SAFE_NO_PAD.encode(part));
    let message = parts.join(".");
    let signature = URL_SAFE_NO_PAD.encode(PAIR.sign(message.as_bytes()));
    let signed = format!("{message}.{signature}");
    if let Ok(token) = VERIFIER.verify(signed.as_bytes(), NOW) {
        agree(signed.as_bytes(), &token);
        let claims: Value = serde_json::from_slice(&data[at + 1..]).expect("JSON");
        assert!(claims["exp"].as_f64().is_some_and(|end| end > NOW.as_seconds()));
    }
});

fn agree(token: &[u8], taken: &VerifiedToken) {
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.set_issuer(&[ISS]);
    validation.set_audience(&["flyball"]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    // It asks a clock of its own.
    validation.validate_exp = false;
    let key = DecodingKey::from_ed_der(PAIR.public_key().as_ref());
    let theirs = jsonwebtoken::decode::<Value>(token, &key, &validation);
    let theirs = theirs.unwrap_or_else(|error| panic!("only we take it: {error}"));
    assert_eq!(theirs.claims["sub"], taken.subject.as_str());
    assert_eq!(theirs.header.kid.as_deref(), Some("ed"));
}
