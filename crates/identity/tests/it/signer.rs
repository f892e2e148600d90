//! An issuer: key sets, and tokens with whatever is wrong with them.
//!
//! The private keys are for these tests only and stand in `keys.json`, with tokens that OpenSSL has signed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flyball_core::units::Timestamp;
use flyball_identity::{TokenVerifier, TrustedIssuer};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair};
use serde_json::{Value, json};

/// The issuer that tokens are of, unless they say otherwise.
pub(crate) const ISS: &str = "https://login.example.test";
/// Another one that is trusted too, with a key of its own.
pub(crate) const OTHER_ISS: &str = "https://other.example.test";
/// That of the cluster.
pub(crate) const CLUSTER: &str = "https://kubernetes.default.svc.cluster.local";
/// Seconds since 1970 at which all tests take place.
pub(crate) const NOW: u64 = 1_799_990_000;

pub(crate) fn keys() -> Value {
    serde_json::from_str(include_str!("keys.json")).expect("JSON")
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(NOW * 1_000)
}

pub(crate) fn after(seconds: u64) -> Timestamp {
    Timestamp::from_millis((NOW + seconds) * 1_000)
}

pub(crate) fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn raw(text: &Value) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text.as_str().expect("a text")).expect("base64url")
}

/// The set of [`ISS`]: the same RSA key under two names, for two algorithms.
pub(crate) fn key_set() -> Value {
    let keys = keys();
    let rsa = |kid: &str, alg: &str| json!({ "kty": "RSA", "use": "sig", "kid": kid, "alg": alg, "n": keys["rsa"]["n"], "e": "AQAB" });
    json!({ "keys": [
        rsa("rsa", "RS256"),
        rsa("pss", "PS256"),
        { "kty": "EC", "crv": "P-256", "kid": "ec", "x": keys["ec"]["x"], "y": keys["ec"]["y"] },
        { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": keys["ed"]["x"] },
    ] })
}

/// With three issuers and their keys.
pub(crate) fn verifier() -> TokenVerifier {
    let issuer = |iss: &str, kubernetes| TrustedIssuer {
        iss: iss.to_owned(),
        audience: "flyball".to_owned(),
        kubernetes,
    };
    let all = [issuer(ISS, false), issuer(OTHER_ISS, false), issuer(CLUSTER, true)];
    let mut verifier = TokenVerifier::new(all).expect("issuers");
    let stranger = json!({ "keys": [
        { "kty": "RSA", "kid": "theirs", "n": keys()["stranger"]["n"], "e": "AQAB" },
    ] });
    for (iss, set) in [(ISS, key_set()), (OTHER_ISS, stranger), (CLUSTER, key_set())] {
        verifier.keys.fetched(iss, set.to_string().as_bytes(), now()).expect("a key set");
    }
    verifier
}

pub(crate) fn claims() -> Value {
    json!({ "iss": ISS, "sub": "u-1", "aud": "flyball", "exp": NOW + 600, "nbf": NOW, "iat": NOW })
}

/// The claims with one changed, or gone if it is null.
pub(crate) fn with(name: &str, value: impl Into<Value>) -> Value {
    let mut claims = claims();
    claims[name] = value.into();
    claims
}

pub(crate) fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().expect("an object").remove(name);
    claims
}

pub(crate) fn header(alg: &str, kid: &str) -> Value {
    json!({ "alg": alg, "kid": kid, "typ": "JWT" })
}

/// A token that is right, unless the header or the claims are not.
pub(crate) fn token(header: impl ToString, claims: impl ToString) -> String {
    signed("EdDSA", "ed", header.to_string(), claims.to_string())
}

/// Signed by an algorithm and a key, whatever the header says.
pub(crate) fn signed(
    alg: &str,
    key: &str,
    header: impl AsRef<[u8]>,
    claims: impl AsRef<[u8]>,
) -> String {
    let message = format!("{}.{}", b64(header), b64(claims));
    let signature = sign(alg, key, message.as_bytes());
    format!("{message}.{}", b64(signature))
}

pub(crate) fn sign(alg: &str, key: &str, message: &[u8]) -> Vec<u8> {
    let (keys, random) = (keys(), SystemRandom::new());
    match alg {
        "RS256" | "PS256" => {
            let pair = RsaKeyPair::from_pkcs8(&raw(&keys[key]["pkcs8"])).expect("an RSA key");
            let padding: &dyn signature::RsaEncoding = match alg {
                "RS256" => &signature::RSA_PKCS1_SHA256,
                _ => &signature::RSA_PSS_SHA256,
            };
            let mut signature = vec![0; pair.public().modulus_len()];
            pair.sign(padding, &random, message, &mut signature).expect("a signature");
            signature
        }
        "ES256" => {
            let pkcs8 = raw(&keys[key]["pkcs8"]);
            let of = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
            let pair = EcdsaKeyPair::from_pkcs8(of, &pkcs8, &random).expect("a P-256 key");
            pair.sign(&random, message).expect("a signature").as_ref().to_vec()
        }
        "EdDSA" => {
            let seed = raw(&keys[key]["seed"]);
            let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("an Ed25519 key");
            pair.sign(message).as_ref().to_vec()
        }
        "HS256" => {
            let secret = hmac::Key::new(hmac::HMAC_SHA256, &raw(&keys[key]["n"]));
            hmac::sign(&secret, message).as_ref().to_vec()
        }
        other => unreachable!("nobody signs with {other} here"),
    }
}
