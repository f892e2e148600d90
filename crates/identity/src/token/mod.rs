//! JSON Web Tokens (RFC 7519) of issuers that are trusted by name.
//!
//! [`UnverifiedToken::read`] takes a token apart and trusts nothing; [`UnverifiedToken::verify`] holds it against a key and says
//! who it is about. The rules are those of RFC 8725, and where it leaves a choice the strict one: the algorithm follows from
//! the key, keys come from the issuer's address in the settings and never from the token, and what a header must have
//! been understood for (`crit`, `zip`, `b64`) is refused, because nothing of it is understood here.

mod claims;
mod read;
mod refusal;

pub use claims::VerifiedToken;
pub use read::UnverifiedToken;
pub use refusal::TokenRefusal;

use crate::jwks::JwksCache;
use flyball_core::units::{Micros, Timestamp};
use std::collections::BTreeMap;

/// The longest token that is read.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;
/// How far the clocks of an issuer and of this machine may differ.
pub const LEEWAY: Micros = Micros::from_seconds(60);

/// An issuer whose tokens are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedIssuer {
    /// Its claim `iss`, letter by letter.
    pub iss: String,
    /// What `aud` must contain: the name under which this gateway is known to the issuer.
    pub audience: String,
    /// Whether its tokens are those of service accounts of this cluster.
    pub kubernetes: bool,
}

/// Reads and verifies tokens of several issuers; by default of none.
#[derive(Clone, Debug, Default)]
pub struct TokenVerifier {
    issuers: BTreeMap<String, TrustedIssuer>,
    /// Their keys.
    pub keys: JwksCache,
}

/// What is wrong with the issuers of the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerProblem {
    /// Two have the same `iss`.
    #[error("the issuer {0} stands twice; whose keys and audience hold would be chance")]
    Twice(String),
    /// Two are this cluster.
    #[error("two issuers are for service accounts; a cluster has one")]
    TwoClusters,
    /// It has no name or no audience.
    #[error(
        "an issuer needs `iss` and an audience: without one, tokens for any other service would do"
    )]
    Empty,
}

impl TokenVerifier {
    /// For these issuers, without keys yet.
    pub fn new(issuers: impl IntoIterator<Item = TrustedIssuer>) -> Result<Self, IssuerProblem> {
        let mut known: BTreeMap<String, TrustedIssuer> = BTreeMap::new();
        for issuer in issuers {
            if issuer.iss.is_empty() || issuer.audience.is_empty() {
                return Err(IssuerProblem::Empty);
            }
            if issuer.kubernetes && known.values().any(|one| one.kubernetes) {
                return Err(IssuerProblem::TwoClusters);
            }
            if let Some(one) = known.insert(issuer.iss.clone(), issuer) {
                return Err(IssuerProblem::Twice(one.iss));
            }
        }
        let keys = JwksCache::new(known.keys().map(String::as_str));
        Ok(Self { issuers: known, keys })
    }

    /// Who shows this token. After [`TokenRefusal::KeyUnknown`], [`JwksCache::unknown`] says whether to fetch keys and ask
    /// again.
    pub fn verify(&self, shown: &[u8], now: Timestamp) -> Result<VerifiedToken, TokenRefusal> {
        let token = UnverifiedToken::read(shown)?;
        let issuer = self.issuers.get(token.issuer()).ok_or(TokenRefusal::IssuerUnknown)?;
        let key = self.keys.key(&issuer.iss, token.key_id(), now);
        let key = key.ok_or_else(|| TokenRefusal::KeyUnknown { issuer: issuer.iss.clone() })?;
        token.verify(issuer, key, now)
    }
}
