//! Why a key set is not taken.

use super::standing::KeySetOutcome;
use flyball_identity::{IssuerProblem, JwksRefusal, MAX_JWKS_BYTES};

/// Why a key set is not taken. What was known before stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchProblem {
    /// Nobody is there, or not whoever the certificate should name.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// Nobody can be verified.
    #[error("no root certificates; hint: set `ca` of the issuer, or SSL_CERT_FILE")]
    NoRoots,
    /// The file cannot be read.
    #[error("cannot read the file: {0}")]
    File(String),
    /// An answer that is no key set. A redirect is one: who is redirected to was trusted by nobody.
    #[error("HTTP status {0}")]
    Status(u16),
    /// No whole answer in time.
    #[error("no answer in time")]
    Late,
    /// More than is read.
    #[error("the answer is longer than {MAX_JWKS_BYTES} bytes")]
    Long,
    /// It is no key set, or has no key that verifies tokens.
    #[error(transparent)]
    Useless(#[from] JwksRefusal),
    /// The API server does not say who issues its tokens.
    #[error("the API server does not name its issuer; hint: set `issuer`")]
    Unnamed,
    /// The API server's issuer is another one's too.
    #[error(transparent)]
    Issuer(#[from] IssuerProblem),
}

impl FetchProblem {
    /// What goes wrong with connections and files, in their own words.
    pub(super) fn unreachable(error: impl std::fmt::Display) -> Self {
        Self::Unreachable(error.to_string())
    }

    /// As it is counted.
    pub(crate) const fn outcome(&self) -> KeySetOutcome {
        match self {
            Self::Unreachable(_) | Self::NoRoots | Self::File(_) => KeySetOutcome::Unreachable,
            Self::Status(_) => KeySetOutcome::Status,
            Self::Late => KeySetOutcome::Late,
            Self::Long | Self::Useless(_) | Self::Unnamed | Self::Issuer(_) => {
                KeySetOutcome::Refused
            }
        }
    }
}
