//! The keys of all issuers, and when to fetch them.
//!
//! It fetches nothing itself: [`JwksCache::unknown`] and [`JwksCache::due`] say when to, and [`JwksCache::fetched`] takes what
//! came. A fetch that fails changes nothing, so that an issuer which is away is noticed by nobody for a day.

use super::{Jwks, JwksRefusal, VerifyingKey};
use flyball_core::units::{Micros, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Between two fetches from one issuer: whoever makes up names of keys does not make us call its address.
pub const BETWEEN_FETCHES: Micros = Micros::from_seconds(30);
/// After which a set is fetched again, so that a key that was withdrawn is soon unknown here.
pub const REFRESH: Micros = Micros::from_minutes(10);
/// How long keys are good after they were fetched.
pub const MAX_AGE: Micros = Micros::from_minutes(24 * 60);

/// The keys of all issuers that are trusted.
#[derive(Clone, Debug, Default)]
pub struct JwksCache {
    /// By `iss`.
    issuers: BTreeMap<String, Known>,
}

/// Whether to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchAdvice {
    /// Fetch now. Whoever asks next is told to wait.
    Fetch,
    /// It was fetched a moment ago, or is being fetched.
    NotBefore(Timestamp),
    /// Nobody trusts this issuer.
    Never,
}

/// What is known of one issuer.
#[derive(Clone, Debug, Default)]
struct Known {
    keys: Arc<Jwks>,
    fetched_at: Option<Timestamp>,
    /// When somebody was last told to fetch.
    requested_at: Option<Timestamp>,
}

impl JwksCache {
    /// For these issuers and no others, by their `iss`. There are as many as the settings name.
    pub fn new<'a>(issuers: impl IntoIterator<Item = &'a str>) -> Self {
        let issuers = issuers.into_iter().map(|one| (one.to_owned(), Known::default()));
        Self { issuers: issuers.collect() }
    }

    /// A key, unless it is unknown or was fetched too long ago.
    pub fn key(&self, issuer: &str, id: &str, now: Timestamp) -> Option<&Arc<VerifyingKey>> {
        let known = self.issuers.get(issuer)?;
        // A clock that was set back makes keys young, and they are fetched anew.
        let old = now.since(known.fetched_at?).is_some_and(|age| age > MAX_AGE);
        if old { None } else { known.keys.key(id) }
    }

    /// A token names a key of this issuer that is not known. Answers `Fetch` at most once in [`BETWEEN_FETCHES`].
    pub fn unknown(&mut self, issuer: &str, now: Timestamp) -> FetchAdvice {
        match self.issuers.get_mut(issuer) {
            Some(known) => known.ask(now),
            None => FetchAdvice::Never,
        }
    }

    /// Issuers to fetch from now: those that never answered, and those whose keys are older than [`REFRESH`].
    pub fn due(&mut self, now: Timestamp) -> Vec<String> {
        let mut due = Vec::new();
        for (issuer, known) in &mut self.issuers {
            // A moment that has not come yet is of another clock.
            let age = known.fetched_at.and_then(|at| now.since(at));
            if age.is_none_or(|age| age >= REFRESH) && known.ask(now) == FetchAdvice::Fetch {
                due.push(issuer.clone());
            }
        }
        due
    }

    /// Takes what an issuer answered. What cannot be read leaves what was known. Says how many keys there are now.
    pub fn fetched(
        &mut self,
        issuer: &str,
        body: &[u8],
        now: Timestamp,
    ) -> Result<usize, JwksRefusal> {
        let keys = Jwks::read(body)?;
        let count = keys.len();
        if let Some(known) = self.issuers.get_mut(issuer) {
            known.keys = Arc::new(keys);
            known.fetched_at = Some(now);
        }
        Ok(count)
    }

    /// When the keys of an issuer were fetched.
    pub fn fetched_at(&self, issuer: &str) -> Option<Timestamp> {
        self.issuers.get(issuer)?.fetched_at
    }
}

impl Known {
    fn ask(&mut self, now: Timestamp) -> FetchAdvice {
        let recent = self
            .requested_at
            .filter(|at| now.since(*at).is_some_and(|past| past < BETWEEN_FETCHES));
        match recent {
            Some(at) => FetchAdvice::NotBefore(at.saturating_add(BETWEEN_FETCHES)),
            None => {
                self.requested_at = Some(now);
                FetchAdvice::Fetch
            }
        }
    }
}
