//! Says who asks: a key's hash is looked up, and nothing else is ever done with a key.
//!
//! Here are the keys of the settings; those of Tenants are in `tenants`, and tokens in `tokens`.

mod refused;

pub use refused::{RefusedKey, UnauthorizedReason};

use crate::access::KeyAccess;
use crate::room::Share;
use crate::salt::Salt;
use crate::settings::{Key, Priority};
use flyball_identity::{Credential, KeyHash, MAX_TOKEN_BYTES};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The longest key that is looked at.
const KEY_BYTES: usize = 512;

/// All keys of the settings.
#[derive(Debug)]
pub(crate) struct Keys {
    /// By SHA-256. Looking up a hash tells nothing about other keys by its time.
    callers: BTreeMap<[u8; 32], Arc<Caller>>,
    anyone: Arc<Caller>,
    /// Whether a key is needed though there is none here.
    closed: bool,
}

/// Who asks.
#[derive(Debug)]
pub(crate) struct Caller {
    /// As logs and metrics say it; empty if nobody is asked for a key.
    pub(crate) name: Arc<str>,
    /// A number of its own, the same on every gateway.
    pub(crate) number: u64,
    /// Its part when there is not enough for all.
    pub(crate) weight: u32,
    /// Who waits for whom, if a request does not say it.
    pub(crate) priority: Priority,
    /// The highest that a request may ask for.
    pub(crate) ceiling: Priority,
    /// What its rate leaves.
    pub(crate) rate: Option<Rate>,
    /// What it holds of the room inside; none where there is no other caller.
    pub(crate) share: Option<Arc<Share>>,
    /// What keeps its caches from others; none if nobody is asked for a key: there is one tenant.
    pub(crate) salt: Option<Salt>,
    /// What may be shown of its key, if a Tenant has it.
    pub(crate) key: Option<Arc<str>>,
    /// What it may do; `None` for keys of the settings and for anyone, who may do everything.
    pub(crate) access: Option<KeyAccess>,
}

/// Requests per minute at this gateway, as a bucket that fills evenly (GCRA): one number, no timer. Other
/// gateways count by themselves: no request waits for them (invariant 9 of the architecture).
#[derive(Debug)]
pub(crate) struct Rate {
    pub(crate) per_minute: u32,
    /// The moment at which the bucket is full again, in nanoseconds since `epoch`.
    full_at: AtomicU64,
    epoch: Instant,
}

/// What a request found in the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    pub(crate) reset: Duration,
    /// How long to wait, if there was nothing left.
    pub(crate) wait: Option<Duration>,
}

impl Keys {
    /// Those of the settings. Callers that stay keep what their rate leaves. Where a key is needed whatever the
    /// settings have, it is so until the process ends: a file that says less must not open the door.
    pub(crate) fn new(keys: &[Key], closed: bool, before: Option<&Self>) -> Self {
        let closed = closed || before.is_some_and(|before| before.closed);
        let alone = keys.len() < 2 && !closed;
        let callers = keys.iter().filter_map(|key| {
            let digest = digest_of(&key.sha256)?;
            let old = before.and_then(|before| before.callers.get(&digest));
            if let Some(same) = old.filter(|old| old.is(key) && old.share.is_none() == alone) {
                return Some((digest, Arc::clone(same)));
            }
            // What it has inside goes on counting.
            let held = old.and_then(|old| old.share.clone()).unwrap_or_default();
            let share = (!alone).then_some(held);
            Some((digest, Arc::new(Caller { share, ..Caller::new(key) })))
        });
        Self { callers: callers.collect(), anyone: Arc::new(Caller::anyone()), closed }
    }

    /// Whether nobody is asked for a key.
    pub(crate) fn is_open(&self) -> bool {
        self.callers.is_empty() && !self.closed
    }

    /// Who has the key with this hash.
    pub(crate) fn get(&self, digest: &[u8; 32]) -> Option<&Arc<Caller>> {
        self.callers.get(digest)
    }

    /// Whoever nobody asks for a key.
    pub(crate) const fn anyone(&self) -> &Arc<Caller> {
        &self.anyone
    }
}

impl Caller {
    fn new(key: &Key) -> Self {
        Self {
            name: key.name.as_str().into(),
            number: xxhash_rust::xxh3::xxh3_64(key.name.as_bytes()),
            weight: key.weight,
            priority: key.priority,
            ceiling: key.priority,
            rate: key.requests_per_minute.map(Rate::new),
            share: None,
            salt: Some(Salt::of(key)),
            key: None,
            access: None,
        }
    }

    /// Whether it may ask for a model of this name.
    pub(crate) fn may_use(&self, model: &str) -> bool {
        self.access.as_ref().is_none_or(|own| own.access.allows(model))
    }

    fn anyone() -> Self {
        Self { salt: None, ..Self::new(&Key::default()) }
    }

    fn is(&self, key: &Key) -> bool {
        *self.name == *key.name
            && (self.weight, self.priority) == (key.weight, key.priority)
            && self.rate.as_ref().map(|rate| rate.per_minute) == key.requests_per_minute
            && self.salt == Some(Salt::of(key))
    }
}

impl Rate {
    fn new(per_minute: u32) -> Self {
        Self { per_minute: per_minute.max(1), full_at: AtomicU64::new(0), epoch: Instant::now() }
    }

    /// Takes one request out of the bucket.
    pub(crate) fn take(&self, now: Instant) -> Left {
        const MINUTE: u64 = 60_000_000_000;
        let now = now.saturating_duration_since(self.epoch).as_nanos() as u64;
        let each = MINUTE / u64::from(self.per_minute);
        let mut before = self.full_at.load(Ordering::Relaxed);
        loop {
            let full_at = before.max(now) + each;
            let limit = self.per_minute;
            if full_at > now + MINUTE {
                let wait = Some(Duration::from_nanos(full_at - MINUTE - now));
                let reset = Duration::from_nanos(before - now);
                return Left { limit, remaining: 0, reset, wait };
            }
            let swap = Ordering::Relaxed;
            match self.full_at.compare_exchange_weak(before, full_at, swap, swap) {
                Ok(_) => {
                    let remaining = ((now + MINUTE - full_at) / each) as u32;
                    let reset = Duration::from_nanos(full_at - now);
                    return Left { limit, remaining, reset, wait: None };
                }
                Err(newer) => before = newer,
            }
        }
    }
}

/// What is shown in these headers to say who asks; `None` if there is nothing, or more than is read. Tokens are longer than
/// keys: they are read where somebody takes them.
pub(crate) fn shown_in(headers: &HeaderMap, takes_tokens: bool) -> Option<&[u8]> {
    let shown = key_of(headers)?;
    let is_token = takes_tokens && Credential::of(shown) == Credential::Token;
    let most = if is_token { MAX_TOKEN_BYTES } else { KEY_BYTES };
    (1..=most).contains(&shown.len()).then_some(shown)
}

/// The hash by which it is found.
pub(crate) fn digest(shown: &[u8]) -> [u8; 32] {
    KeyHash::of(shown).0
}

/// The key as it was sent: `Authorization: Bearer KEY`, or one of the two headers that other
/// clients use.
fn key_of(headers: &HeaderMap) -> Option<&[u8]> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let (scheme, key) = value.as_bytes().split_at_checked(7)?;
        return scheme.eq_ignore_ascii_case(b"bearer ").then_some(key);
    }
    let value = headers.get("x-api-key").or_else(|| headers.get("api-key"))?;
    Some(value.as_bytes())
}

/// A hash as settings and Tenants write it.
pub(crate) fn digest_of(hex: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use sha2::{Digest as _, Sha256};

    fn digest_in(headers: &HeaderMap) -> Option<[u8; 32]> {
        shown_in(headers, false).map(digest)
    }

    fn keys(secret: &str) -> Keys {
        let digest: [u8; 32] = Sha256::digest(secret).into();
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Keys::new(
            &[Key { name: "team".into(), sha256, requests_per_minute: Some(60), ..Key::default() }],
            false,
            None,
        )
    }

    fn with(name: &'static str, value: &str) -> HeaderMap {
        let value = HeaderValue::from_str(value).expect("a header value");
        HeaderMap::from_iter([(http::HeaderName::from_static(name), value)])
    }

    #[test]
    fn a_key_is_found_in_each_place_and_nowhere_else() {
        let keys = keys("secret");
        let name = |headers: &HeaderMap| {
            let caller = keys.get(&digest_in(headers)?);
            caller.map(|caller| caller.name.clone())
        };
        for (header, value) in
            [("authorization", "Bearer secret"), ("authorization", "bearer secret")]
        {
            assert_eq!(name(&with(header, value)).as_deref(), Some("team"));
        }
        assert_eq!(name(&with("x-api-key", "secret")).as_deref(), Some("team"));
        let wrong = ["Bearer secreT", "Bearer  secret", "Basic secret", "secret", "Bearer ", ""];
        for value in wrong {
            assert_eq!(name(&with("authorization", value)), None, "{value:?}");
        }
        assert_eq!(name(&HeaderMap::new()), None);
    }

    #[test]
    fn a_caller_that_changes_is_another_and_one_that_stays_keeps_its_rate() {
        let before = keys("secret");
        let (digest, caller) = before.callers.first_key_value().expect("one");
        let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let key =
            Key { name: "team".into(), sha256, requests_per_minute: Some(60), ..Key::default() };
        let stays = |key: &Key| {
            let after = Keys::new(std::slice::from_ref(key), false, Some(&before));
            Arc::ptr_eq(&after.callers[digest], caller)
        };
        assert!(stays(&key));
        assert!(!stays(&Key { weight: 2, ..key.clone() }));
        assert!(!stays(&Key { priority: Priority::Low, ..key.clone() }));
        assert!(!stays(&Key { cache_group: Some("g".into()), ..key.clone() }));
        assert!(!stays(&Key { requests_per_minute: None, ..key }));
    }

    #[test]
    fn a_stored_hash_is_no_key() {
        let keys = keys("secret");
        let (digest, _) = keys.callers.first_key_value().expect("one");
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = digest_in(&with("x-api-key", &hex)).expect("a key");
        assert!(keys.get(&digest).is_none());
    }

    #[test]
    fn what_is_longer_than_a_key_is_read_only_if_it_is_a_token_and_somebody_takes_those() {
        let token = format!("eyJh.{}.c", "a".repeat(2 * KEY_BYTES));
        let shown = |text: &str, takes| shown_in(&with("x-api-key", text), takes).is_some();
        assert!(shown(&token, true) && !shown(&token, false));
        assert!(!shown(&"a".repeat(KEY_BYTES + 1), true) && shown(&"a".repeat(KEY_BYTES), true));
        assert!(!shown(&format!("eyJh.{}.c", "a".repeat(MAX_TOKEN_BYTES)), true));
    }

    #[test]
    fn a_door_that_was_closed_stays_closed() {
        let open = Keys::new(&[], false, None);
        assert!(open.is_open());
        let closed = Keys::new(&[], true, Some(&open));
        assert!(!closed.is_open());
        let key = Key { sha256: "0f".repeat(32), ..Key::default() };
        let with_a_key = Keys::new(&[key], false, Some(&closed));
        assert!(with_a_key.callers.values().all(|caller| caller.share.is_some()), "not alone");
        assert!(!Keys::new(&[], false, Some(&with_a_key)).is_open());
    }

    #[test]
    fn a_minute_holds_as_many_as_it_says_and_one_comes_back_each_second() {
        let rate = Rate::new(60);
        let start = Instant::now();
        let taken = (0..100).filter(|_| rate.take(start).wait.is_none()).count();
        assert_eq!(taken, 60);
        let second = start + Duration::from_millis(1_001);
        assert_eq!(rate.take(second).wait, None);
        let refused = rate.take(second);
        assert_eq!(refused.remaining, 0);
        let wait = refused.wait.expect("nothing is left");
        assert!(wait.as_millis() <= 1_000, "{wait:?}");
    }
}
