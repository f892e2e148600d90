//! Who may ask.

use crate::{AccessVerdict, AdminClients, Reviews, TOKEN_HEADER};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use sha2::{Digest as _, Sha256};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of a token. Those of service accounts have about 1,200.
const TOKEN_BYTES: usize = 16 << 10;

/// Says who may ask.
#[derive(Debug, Default)]
pub struct Guard {
    admin_clients: AdminClients,
    reviews: Option<Reviews>,
}

/// Why somebody may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No token was shown.
    NoToken,
    /// The token does not do.
    Denied(String),
    /// Nobody could tell, so that nobody is let in.
    Unknown(String),
}

impl Guard {
    /// By settings, with the API server to judge tokens where those name a Service.
    pub const fn new(admin_clients: AdminClients, reviews: Option<Reviews>) -> Self {
        Self { admin_clients, reviews }
    }

    pub(crate) async fn admit(
        &self,
        peer: IpAddr,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        if self.admin_clients.open || (self.admin_clients.loopback && is_this_machine(peer)) {
            return Ok(());
        }
        let Some(token) = token(headers) else { return Err(Refusal::NoToken) };
        if self.admin_clients.token_sha256.as_deref().is_some_and(|hash| is_hash_of(hash, token)) {
            return Ok(());
        }
        let verdict = match (&self.reviews, &self.admin_clients.service) {
            (Some(reviews), _) => reviews.judge(token, method).await,
            (None, Some(_)) => {
                AccessVerdict::Unknown("there is no API server to review tokens".to_owned())
            }
            (None, None) => AccessVerdict::Denied("unknown token".to_owned()),
        };
        match verdict {
            AccessVerdict::Allowed(_) => Ok(()),
            AccessVerdict::Denied(why) => Err(Refusal::Denied(why)),
            AccessVerdict::Unknown(why) => Err(Refusal::Unknown(why)),
        }
    }
}

/// The token of an `authorization: Bearer` header.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let sound = scheme.eq_ignore_ascii_case("bearer") && (1..=TOKEN_BYTES).contains(&token.len());
    sound.then_some(token)
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let through_a_proxy = || headers.get(TOKEN_HEADER)?.to_str().ok();
    bearer(headers)
        .or_else(through_a_proxy)
        .filter(|token| (1..=TOKEN_BYTES).contains(&token.len()))
}

/// The two addresses and not all of 127.0.0.0/8: sidecars pass on what came from elsewhere from others
/// (Istio's from 127.0.0.6).
fn is_this_machine(peer: IpAddr) -> bool {
    let peer = peer.to_canonical();
    peer == Ipv4Addr::LOCALHOST || peer == Ipv6Addr::LOCALHOST
}

/// Hashes are compared, not tokens: their time tells nothing.
fn is_hash_of(hash: &str, token: &str) -> bool {
    let digest: [u8; 32] = Sha256::digest(token).into();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.eq_ignore_ascii_case(hash)
}
