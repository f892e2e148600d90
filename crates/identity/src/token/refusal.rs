//! Why a token is not taken.

use super::MAX_TOKEN_BYTES;

/// Why a token is not taken. It has nothing of the token, but for the name of an issuer that is trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// It is too long to be read.
    #[error("the token is longer than {MAX_TOKEN_BYTES} bytes")]
    TooLong,
    /// It does not have three parts with dots between them.
    #[error("the token does not have three parts; encrypted tokens are not supported")]
    Parts,
    /// A part is not base64url, or has padding, or bits behind its last byte.
    #[error("a part of the token is not base64url without padding")]
    Encoding,
    /// The header or the claims are not a JSON object.
    #[error("the header or the claims of the token are not a JSON object")]
    NotJson,
    /// A member of the header or of the claims stands twice.
    #[error("a member of the token stands twice")]
    DuplicateMember,
    /// The header has something that must not be ignored and is not supported.
    #[error("the header of the token has `{0}`, which is not supported")]
    HeaderMember(&'static str),
    /// The header says that it is something else.
    #[error("`typ` of the token is not JWT or at+jwt")]
    Type,
    /// No algorithm, `none`, one with a shared secret, or an unknown one.
    #[error("`alg` of the token is not RS256, PS256, ES256 or EdDSA")]
    Algorithm,
    /// The header names no key.
    #[error("the token names no key (`kid`)")]
    KeyId,
    /// A claim is missing.
    #[error("the token has no claim `{0}`")]
    Missing(&'static str),
    /// A claim has a wrong type, or a value that makes no sense.
    #[error("the claim `{0}` of the token has a wrong type or value")]
    Claim(&'static str),
    /// Nobody trusts whoever says that it has issued the token.
    #[error("the issuer of the token is not trusted here")]
    IssuerUnknown,
    /// The issuer is trusted, and the key is not known.
    #[error("the key of the token is unknown for the issuer {issuer}")]
    KeyUnknown {
        /// Its `iss`, from the settings.
        issuer: String,
    },
    /// The key is for another algorithm than the token says.
    #[error("`alg` of the token is not that of its key")]
    KeyAlgorithm,
    /// Somebody else has signed it, or it was changed.
    #[error("the signature of the token is wrong")]
    Signature,
    /// It is for another service.
    #[error("the token is not for this audience")]
    Audience,
    /// Its time has passed.
    #[error("the token has expired")]
    Expired,
    /// Its time has not begun, or it was issued in the future.
    #[error("the token is not valid yet")]
    NotYetValid,
}
