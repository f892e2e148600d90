//! An issuer of a few lines for the tests of other crates: it has key sets and signs whatever it is told to.
//!
//! Its keys are Ed25519 and follow from a name, so that each test has its own. Not for production: other crates ask for the
//! feature `testing` in their `dev-dependencies`. What a test needs and cannot have panics.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

/// A key of an issuer, by its `kid`.
#[derive(Debug)]
pub struct TestKey {
    id: String,
    pair: Ed25519KeyPair,
}

impl TestKey {
    /// The key of this name.
    ///
    /// # Panics
    ///
    /// Never: 32 bytes are a seed.
    pub fn new(id: &str) -> Self {
        let seed = digest::digest(&digest::SHA256, id.as_bytes());
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_ref()).expect("32 bytes are a seed");
        Self { id: id.to_owned(), pair }
    }

    /// A set that has this key and these others.
    pub fn set(&self, others: &[&Self]) -> String {
        let keys = [self].into_iter().chain(others.iter().copied());
        let keys: Vec<Value> = keys.map(Self::public).collect();
        json!({ "keys": keys }).to_string()
    }

    /// A token with these claims that is signed by it.
    pub fn token(&self, claims: &Value) -> String {
        self.signed(&json!({ "alg": "EdDSA", "kid": self.id, "typ": "JWT" }), claims)
    }

    /// The same with whatever header.
    pub fn signed(&self, header: &Value, claims: &Value) -> String {
        let [header, claims] = [header, claims].map(|part| b64(part.to_string().as_bytes()));
        let message = format!("{header}.{claims}");
        let signature = b64(self.pair.sign(message.as_bytes()).as_ref());
        format!("{message}.{signature}")
    }

    fn public(&self) -> Value {
        let x = b64(self.pair.public_key().as_ref());
        json!({ "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": self.id, "x": x })
    }
}

fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
