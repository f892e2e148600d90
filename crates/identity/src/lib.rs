//! Who asks: keys of Flyball's own form, and tokens of other issuers.
//!
//! [`Credential`] tells the two apart. `key` makes keys, reads them and finds their owner by hash. `token` verifies
//! JSON Web Tokens, `jwks` knows the keys of issuers and when to fetch them, `member` says which tenants a token belongs
//! to. Start at [`PresentedKey::read`] and [`TokenVerifier::verify`].
//!
//! Pure: the time, random bytes and what was fetched are arguments. Nothing here shows a secret: neither `Debug` nor an
//! error has a part of a key or of a token.

mod credential;
mod json;
mod jwks;
mod key;
mod member;
#[cfg(feature = "testing")]
pub mod testing;
mod token;

pub use credential::Credential;
pub use jwks::{
    BETWEEN_FETCHES, FetchAdvice, Jwks, JwksCache, JwksRefusal, MAX_AGE, MAX_JWKS_BYTES,
    MAX_JWKS_KEYS, REFRESH, TokenAlgorithm, VerifyingKey,
};
pub use key::{KeyHash, KeyRefusal, KeyTable, NewKey, PresentedKey};
pub use member::{MAX_CHOICES, MemberRule, MemberRules, Membership};
pub use token::{
    IssuerProblem, LEEWAY, MAX_TOKEN_BYTES, TokenRefusal, TokenVerifier, TrustedIssuer,
    UnverifiedToken, VerifiedToken,
};
