//! The keys by which an issuer signs tokens (RFC 7517).
//!
//! Of a set only keys are taken that can verify what tokens are signed with; the rest is left aside, because issuers publish
//! keys for other purposes beside them. What a key is for follows from the key and never from a token: an RSA key verifies
//! RS256, or PS256 if it says so, P-256 ES256, and Ed25519 EdDSA. [`cache`] knows when to fetch a set.

mod cache;
mod key;

pub use cache::{BETWEEN_FETCHES, FetchAdvice, JwksCache, MAX_AGE, REFRESH};
pub use key::{TokenAlgorithm, VerifyingKey};

use crate::json::{self, Json, JsonProblem, Members};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest set that is read.
pub const MAX_JWKS_BYTES: usize = 64 << 10;
/// Keys of a set.
pub const MAX_JWKS_KEYS: usize = 32;
/// Bytes of a `kid`.
pub(crate) const MAX_KEY_ID: usize = 256;

/// The keys of one issuer, by `kid`.
#[derive(Clone, Debug, Default)]
pub struct Jwks {
    keys: BTreeMap<String, Arc<VerifyingKey>>,
    left_aside: usize,
}

/// Why a set of keys is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwksRefusal {
    /// It is too long to be read.
    #[error("the key set is longer than {MAX_JWKS_BYTES} bytes")]
    TooLong,
    /// It has too many keys.
    #[error("the key set has more than {MAX_JWKS_KEYS} keys")]
    TooManyKeys,
    /// It is not JSON, or has no list `keys` of objects.
    #[error("the key set is not an object with a list `keys`")]
    NotAKeySet,
    /// A member stands twice.
    #[error("a member of the key set stands twice")]
    DuplicateMember,
    /// None of its keys can verify a token.
    #[error(
        "no key of the set can verify tokens; RSA keys of 2048 to 8192 bits, P-256 and Ed25519 with a `kid` can"
    )]
    NoUsableKey,
}

impl Jwks {
    /// Reads a set as an issuer publishes it.
    pub fn read(body: &[u8]) -> Result<Self, JwksRefusal> {
        if body.len() > MAX_JWKS_BYTES {
            return Err(JwksRefusal::TooLong);
        }
        let set = json::object(body).map_err(|problem| match problem {
            JsonProblem::NotAnObject => JwksRefusal::NotAKeySet,
            JsonProblem::Twice => JwksRefusal::DuplicateMember,
        })?;
        let keys = set.get("keys").and_then(Json::list).ok_or(JwksRefusal::NotAKeySet)?;
        if keys.len() > MAX_JWKS_KEYS {
            return Err(JwksRefusal::TooManyKeys);
        }
        let mut found: BTreeMap<String, Vec<VerifyingKey>> = BTreeMap::new();
        for key in keys {
            let Json::Object(key) = key else { return Err(JwksRefusal::NotAKeySet) };
            let Some(id) = key_id(key) else { continue };
            found.entry(id.to_owned()).or_default().extend(VerifyingKey::read(key));
        }
        let named = keys.len();
        let keys: BTreeMap<String, Arc<VerifyingKey>> = found
            .into_iter()
            // Which of two keys is meant by one name is anybody's guess.
            .filter_map(|(id, mut keys)| match (keys.pop(), keys.is_empty()) {
                (Some(key), true) => Some((id, Arc::new(key))),
                _ => None,
            })
            .collect();
        if keys.is_empty() {
            return Err(JwksRefusal::NoUsableKey);
        }
        let left_aside = named - keys.len();
        Ok(Self { keys, left_aside })
    }

    /// The key of this `kid`.
    pub fn key(&self, id: &str) -> Option<&Arc<VerifyingKey>> {
        self.keys.get(id)
    }

    /// Keys that can verify tokens.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Keys of the set that cannot, or whose name another one has.
    pub const fn left_aside(&self) -> usize {
        self.left_aside
    }
}

fn key_id(key: &Members) -> Option<&str> {
    let id = key.get("kid")?.text()?;
    (!id.is_empty() && id.len() <= MAX_KEY_ID).then_some(id)
}
