//! Who shows a token.

use super::seen::{Epoch, Place, Seen, SeenTokens};
use crate::identify::{Caller, RefusedKey, UnauthorizedReason};
use crate::settings::TenantsSettings;
use crate::tenants::TenantTable;
use arc_swap::ArcSwap;
use flyball_core::units::Timestamp;
use flyball_identity::{Credential, KeyHash, MAX_AGE, TokenRefusal, TokenVerifier, VerifiedToken};
use flyball_resources::resolve::TenantId;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Whoever belongs to several Tenants says here for which one it asks: `namespace/name`.
static TENANT: HeaderName = HeaderName::from_static("x-flyball-tenant");

/// What requests with tokens are held against. One for all threads.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// Whether there are issuers. Without them a token is a key that nobody has.
    on: bool,
    known: ArcSwap<KnownKeys>,
    seen: SeenTokens,
    /// Issuers of tokens whose key is not known, until they were asked again. No more than the settings name.
    unknown_issuers: Mutex<BTreeSet<String>>,
    bell: Notify,
}

/// The key sets of all issuers.
#[derive(Debug, Default)]
struct KnownKeys {
    verifier: TokenVerifier,
    /// How many there were before that differ.
    generation: u64,
}

/// A token as a request shows it. Nothing prints it.
pub(crate) struct ShownToken<'a> {
    shown: &'a [u8],
    place: Place,
    named: Option<TenantId>,
}

/// Why a token lets nobody in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedToken {
    why: UnauthorizedReason,
    /// Its issuer or its service account, as far as that was found out.
    of: String,
}

impl Tokens {
    /// For these issuers, of whom no key is known yet.
    pub(crate) fn new(settings: &TenantsSettings) -> Self {
        Self {
            on: settings.watch && !settings.issuers.is_empty(),
            known: ArcSwap::default(),
            seen: SeenTokens::default(),
            unknown_issuers: Mutex::default(),
            bell: Notify::new(),
        }
    }

    /// Whether any token is taken.
    pub(crate) const fn is_on(&self) -> bool {
        self.on
    }

    /// Whether this is read as a token.
    pub(crate) fn takes(&self, shown: &[u8]) -> bool {
        self.on && Credential::of(shown) == Credential::Token
    }

    /// Who shows this token at this moment, among the members of these Tenants.
    pub(crate) fn caller(
        &self,
        token: &ShownToken<'_>,
        tenants: &TenantTable,
        now: Timestamp,
    ) -> Result<Arc<Caller>, RefusedToken> {
        let known = self.known.load();
        let under = Epoch { tenants: tenants.generation(), keys: known.generation };
        if let Some(caller) = self.seen.find(&token.place, under, now) {
            return Ok(caller);
        }
        let verified = known.verifier.verify(token.shown, now).map_err(|why| self.refused(why))?;
        let caller = tenants.member(&verified, token.named.as_ref());
        let caller = caller.map_err(|why| RefusedToken::of(why, &verified))?;
        let until = verified.expires.min(known.until(&verified.issuer, now));
        let seen = Seen { caller: Arc::clone(caller), under, since: now, until };
        self.seen.put(token.place, seen);
        Ok(Arc::clone(caller))
    }

    /// Goes by these key sets from now on. `differs` if they are others than before, and not only younger.
    pub(crate) fn know(&self, verifier: TokenVerifier, differs: bool) {
        let generation = self.known.load().generation + u64::from(differs);
        self.known.store(Arc::new(KnownKeys { verifier, generation }));
    }

    /// Issuers of tokens whose key is not known.
    pub(crate) fn unknown_issuers(&self) -> Vec<String> {
        self.asking().iter().cloned().collect()
    }

    /// This one was asked again.
    pub(crate) fn answered(&self, issuer: &str) {
        self.asking().remove(issuer);
    }

    /// Waits until a token has a key that is not known, of an issuer of which none had.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }

    fn refused(&self, why: TokenRefusal) -> RefusedToken {
        let mut of = String::new();
        let why = match why {
            TokenRefusal::KeyUnknown { issuer } => {
                self.ask(&issuer);
                of = issuer;
                UnauthorizedReason::TokenKey
            }
            TokenRefusal::IssuerUnknown => UnauthorizedReason::TokenIssuer,
            TokenRefusal::Audience => UnauthorizedReason::TokenAudience,
            TokenRefusal::Expired => UnauthorizedReason::Expired,
            TokenRefusal::NotYetValid => UnauthorizedReason::Pending,
            _ => UnauthorizedReason::TokenInvalid,
        };
        RefusedToken { why, of }
    }

    /// Whoever makes up names of keys rings once, until the issuer was asked.
    fn ask(&self, issuer: &str) {
        let mut issuers = self.asking();
        if !issuers.contains(issuer) {
            issuers.insert(issuer.to_owned());
            self.bell.notify_one();
        }
    }

    fn asking(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.unknown_issuers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownKeys {
    /// Until when the keys of an issuer are good.
    fn until(&self, issuer: &str, now: Timestamp) -> Timestamp {
        let fetched_at = self.verifier.keys.fetched_at(issuer);
        fetched_at.map_or(now, |at| at.saturating_add(MAX_AGE))
    }
}

impl<'a> ShownToken<'a> {
    /// The one that a request with these headers shows, and its hash.
    pub(crate) fn new(shown: &'a [u8], digest: [u8; 32], headers: &HeaderMap) -> Self {
        let Some(named) = headers.get(&TENANT) else {
            return Self { shown, place: digest, named: None };
        };
        // No token begins so, and what follows has one length: no two requests have one place.
        let place = [b"named\0", &digest[..], named.as_bytes()].concat();
        Self { shown, place: KeyHash::of(&place).0, named: Some(tenant(named)) }
    }
}

impl RefusedToken {
    fn of(why: UnauthorizedReason, token: &VerifiedToken) -> Self {
        // The subject of another issuer may be a person.
        let of = match token.service_account() {
            Some((namespace, name)) => format!("service account {namespace}/{name}"),
            None => token.issuer.clone(),
        };
        Self { why, of }
    }

    /// As it is told of.
    pub(crate) fn refused_key(&self) -> RefusedKey<'_> {
        RefusedKey { token: &self.of, ..RefusedKey::of_nobody(self.why) }
    }
}

/// What cannot be read is a Tenant that nobody has.
fn tenant(named: &HeaderValue) -> TenantId {
    let text = named.to_str().unwrap_or_default();
    let (namespace, name) = text.split_once('/').unwrap_or_default();
    TenantId { namespace: namespace.to_owned(), name: name.to_owned() }
}
