//! What a token says.

use super::{LEEWAY, TokenRefusal, TrustedIssuer};
use crate::json::{Json, Members};
use flyball_core::units::{Micros, Timestamp};
use std::fmt;

/// Bytes of `sub`, as OpenID Connect has it.
const MAX_SUBJECT: usize = 255;
/// The end of the year 9999. A later time is one in milliseconds, which would never come.
const LAST_SECOND: f64 = 253_402_300_799.0;
/// How the subject of a service account begins.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Claims with the types that they must have.
pub(super) struct Claims {
    issuer: String,
    subject: String,
    audience: Vec<String>,
    expires: Timestamp,
    not_before: Option<Timestamp>,
    issued_at: Option<Timestamp>,
    all: Members,
}

/// A token that its issuer has signed, for us and for now.
#[derive(Clone, PartialEq)]
pub struct VerifiedToken {
    /// Its `iss`, as the settings have it.
    pub issuer: String,
    /// Whom it is about, unique for the issuer.
    pub subject: String,
    /// Until when what was found out about it holds.
    pub expires: Timestamp,
    /// Whether the issuer is this cluster.
    pub(crate) kubernetes: bool,
    pub(crate) claims: Members,
}

impl Claims {
    pub(super) fn read(all: Members) -> Result<Self, TokenRefusal> {
        let issuer = text(&all, "iss")?;
        let subject = text(&all, "sub")?;
        if subject.len() > MAX_SUBJECT {
            return Err(TokenRefusal::Claim("sub"));
        }
        let audience = audience(&all)?;
        let expires = moment(&all, "exp")?.ok_or(TokenRefusal::Missing("exp"))?;
        let (not_before, issued_at) = (moment(&all, "nbf")?, moment(&all, "iat")?);
        Ok(Self { issuer, subject, audience, expires, not_before, issued_at, all })
    }

    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Who it is about; the signature was found right.
    pub(super) fn verified(
        self,
        issuer: &TrustedIssuer,
        now: Timestamp,
    ) -> Result<VerifiedToken, TokenRefusal> {
        if !self.audience.contains(&issuer.audience) {
            return Err(TokenRefusal::Audience);
        }
        if self.expires <= now {
            return Err(TokenRefusal::Expired);
        }
        let soon = now.saturating_add(LEEWAY);
        if [self.not_before, self.issued_at].into_iter().flatten().any(|begin| begin > soon) {
            return Err(TokenRefusal::NotYetValid);
        }
        Ok(VerifiedToken {
            issuer: self.issuer,
            subject: self.subject,
            expires: self.expires,
            kubernetes: issuer.kubernetes,
            claims: self.all,
        })
    }
}

impl VerifiedToken {
    /// The namespace and the name of the service account, if it is one of this cluster.
    pub fn service_account(&self) -> Option<(&str, &str)> {
        let rest = self.subject.strip_prefix(SERVICE_ACCOUNT).filter(|_| self.kubernetes)?;
        let (namespace, name) = rest.split_once(':')?;
        let whole = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
        whole.then_some((namespace, name))
    }

    /// Whether a claim is this text, or a list that has it.
    pub fn has(&self, claim: &str, value: &str) -> bool {
        self.values(claim).any(|one| one == value)
    }

    /// The texts of a claim.
    pub(crate) fn values(&self, claim: &str) -> impl Iterator<Item = &str> {
        let one = self.claims.get(claim);
        let list = one.and_then(Json::list).unwrap_or_default();
        one.into_iter().chain(list).filter_map(Json::text)
    }
}

impl fmt::Debug for VerifiedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Claims have names and addresses of people.
        write!(f, "VerifiedToken({} until {})", self.issuer, self.expires)
    }
}

fn text(all: &Members, name: &'static str) -> Result<String, TokenRefusal> {
    let value = all.get(name).ok_or(TokenRefusal::Missing(name))?;
    let text = value.text().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or(TokenRefusal::Claim(name))
}

fn audience(all: &Members) -> Result<Vec<String>, TokenRefusal> {
    let wrong = TokenRefusal::Claim("aud");
    match all.get("aud").ok_or(TokenRefusal::Missing("aud"))? {
        Json::Text(one) => Ok(vec![one.clone()]),
        Json::List(list) => {
            list.iter().map(|one| one.text().map(str::to_owned).ok_or(wrong.clone())).collect()
        }
        _ => Err(wrong),
    }
}

/// Seconds since 1970, which may have a fraction.
fn moment(all: &Members, name: &'static str) -> Result<Option<Timestamp>, TokenRefusal> {
    let Some(value) = all.get(name) else { return Ok(None) };
    let seconds = value.number().filter(|seconds| (0.0..=LAST_SECOND).contains(seconds));
    let seconds = seconds.ok_or(TokenRefusal::Claim(name))?;
    let micros = seconds * Micros::from_seconds(1).get() as f64;
    Ok(Some(Timestamp::from_micros(micros as u64)))
}
