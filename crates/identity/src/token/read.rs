//! Takes a token apart.

use super::claims::{Claims, VerifiedToken};
use super::{MAX_TOKEN_BYTES, TokenRefusal, TrustedIssuer};
use crate::json::{self, JsonProblem, Members};
use crate::jwks::{MAX_KEY_ID, TokenAlgorithm, VerifyingKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flyball_core::units::Timestamp;
use std::fmt;

/// Members of a header that change what a token means, or name keys of its own.
const REFUSED: [&str; 9] = ["crit", "zip", "enc", "b64", "cty", "jku", "jwk", "x5u", "x5c"];

/// What a token says of itself. Anybody may have written it.
pub struct UnverifiedToken<'a> {
    algorithm: TokenAlgorithm,
    key_id: String,
    claims: Claims,
    signed: &'a [u8],
    signature: Vec<u8>,
}

impl<'a> UnverifiedToken<'a> {
    /// Reads a token in its compact form.
    pub fn read(shown: &'a [u8]) -> Result<Self, TokenRefusal> {
        if shown.len() > MAX_TOKEN_BYTES {
            return Err(TokenRefusal::TooLong);
        }
        let mut parts = shown.split(|byte| *byte == b'.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenRefusal::Parts);
        };
        let signed = &shown[..header.len() + 1 + claims.len()];
        let header = object(header)?;
        let (algorithm, key_id) = check(&header)?;
        let claims = Claims::read(object(claims)?)?;
        Ok(Self { algorithm, key_id, claims, signed, signature: decoded(signature)? })
    }

    /// Who says that it has issued the token.
    pub fn issuer(&self) -> &str {
        self.claims.issuer()
    }

    /// The key that it says it was signed with.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// Who it is about, if the key of this issuer has signed it, for us and for now.
    pub fn verify(
        self,
        issuer: &TrustedIssuer,
        key: &VerifyingKey,
        now: Timestamp,
    ) -> Result<VerifiedToken, TokenRefusal> {
        if self.issuer() != issuer.iss {
            return Err(TokenRefusal::IssuerUnknown);
        }
        if self.algorithm != key.algorithm() {
            return Err(TokenRefusal::KeyAlgorithm);
        }
        if !key.verifies(self.signed, &self.signature) {
            return Err(TokenRefusal::Signature);
        }
        self.claims.verified(issuer, now)
    }
}

impl fmt::Debug for UnverifiedToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither claims nor signature: whoever has both has the token.
        write!(f, "UnverifiedToken({:?})", self.algorithm)
    }
}

/// The algorithm and the key of a header.
fn check(header: &Members) -> Result<(TokenAlgorithm, String), TokenRefusal> {
    if let Some(name) = REFUSED.into_iter().find(|name| header.contains_key(*name)) {
        return Err(TokenRefusal::HeaderMember(name));
    }
    let text = |name: &str| header.get(name).map(|value| value.text().unwrap_or_default());
    if let Some(kind) = text("typ") {
        // A media type may be written in capitals, and without `application/`.
        let kind = kind.to_ascii_lowercase();
        let kind = kind.strip_prefix("application/").unwrap_or(&kind);
        if !matches!(kind, "jwt" | "at+jwt") {
            return Err(TokenRefusal::Type);
        }
    }
    let algorithm = text("alg").and_then(TokenAlgorithm::of).ok_or(TokenRefusal::Algorithm)?;
    let id = text("kid").filter(|id| !id.is_empty() && id.len() <= MAX_KEY_ID);
    Ok((algorithm, id.ok_or(TokenRefusal::KeyId)?.to_owned()))
}

fn object(part: &[u8]) -> Result<Members, TokenRefusal> {
    json::object(&decoded(part)?).map_err(|problem| match problem {
        JsonProblem::NotAnObject => TokenRefusal::NotJson,
        JsonProblem::Twice => TokenRefusal::DuplicateMember,
    })
}

/// One spelling for each content: padding, line ends and bits behind the last byte are refused.
fn decoded(part: &[u8]) -> Result<Vec<u8>, TokenRefusal> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenRefusal::Encoding)
}
