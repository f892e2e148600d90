//! The key sets of all issuers, and when to fetch which. Pure.

use super::problem::FetchProblem;
use super::standing::{KeySetNow, KeySetOutcome, KeySetSource, KeySetsNow};
use crate::settings::IssuerSettings;
use bytes::Bytes;
use flyball_core::units::Timestamp;
use flyball_identity::{
    BETWEEN_FETCHES, FetchAdvice, IssuerProblem, Jwks, TokenVerifier, TrustedIssuer,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The key sets of all issuers.
#[derive(Debug, Default)]
pub(crate) struct KeySources {
    sources: Vec<Source>,
    verifier: TokenVerifier,
    /// When the API server was last asked who it is, while it has not said so.
    cluster_fetched_at: Option<Timestamp>,
    fetches: [[u64; 5]; 3],
}

/// One issuer.
#[derive(Debug)]
struct Source {
    settings: IssuerSettings,
    /// The claim `iss` of its tokens; `None` while the API server has not said it.
    issuer: Option<String>,
    set: Option<KeySet>,
    /// Whether it was asked, whatever came of it.
    tried: bool,
    trouble: Option<FetchProblem>,
}

#[derive(Debug)]
struct KeySet {
    body: Bytes,
    keys: usize,
    fetched_at: Timestamp,
}

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchedKeySet {
    /// Whose it is, if that was asked for.
    pub(crate) issuer: Option<String>,
    /// As it came.
    pub(crate) body: Bytes,
}

/// What became of what was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Other keys than before, so many.
    Changed(usize),
    /// The keys of before. `again` if fetching them had failed.
    Same {
        /// Whether it had failed before.
        again: bool,
    },
    /// What was known stays. `first` if that is new.
    Failed {
        /// Why.
        problem: FetchProblem,
        /// Whether it went well before, or failed for another reason.
        first: bool,
    },
}

/// A key set as the file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredKeySet {
    issuer: String,
    /// Where it came from: of another place it is not taken.
    place: String,
    fetched_at: u64,
    body: String,
}

impl KeySources {
    /// Of these issuers, without any set.
    pub(crate) fn new(issuers: &[IssuerSettings]) -> Self {
        let source = |settings: &IssuerSettings| {
            let (settings, issuer) = (settings.clone(), settings.issuer.clone());
            Source { settings, issuer, set: None, tried: false, trouble: None }
        };
        let sources: Vec<Source> = issuers.iter().map(source).collect();
        // The settings were checked: no two have one name.
        let verifier = verifier(&sources).unwrap_or_default();
        Self { sources, verifier, ..Self::default() }
    }

    /// Takes what the file has of these issuers.
    pub(crate) fn restore(&mut self, stored: Vec<StoredKeySet>) {
        for stored in stored {
            let found = self.sources.iter_mut().find(|source| source.had(&stored));
            let (Some(source), Ok(keys)) = (found, Jwks::read(stored.body.as_bytes())) else {
                continue;
            };
            let fetched_at = Timestamp::from_micros(stored.fetched_at);
            source.issuer = Some(stored.issuer);
            source.set = Some(KeySet { body: stored.body.into(), keys: keys.len(), fetched_at });
        }
        self.verifier = verifier(&self.sources).unwrap_or_else(|_| {
            // What the API server was called then is another one's name now.
            self.sources.iter_mut().for_each(Source::forget_name);
            verifier(&self.sources).unwrap_or_default()
        });
    }

    /// For the file.
    pub(crate) fn stored(&self) -> Vec<StoredKeySet> {
        self.sources.iter().filter_map(Source::stored).collect()
    }

    /// What tokens are verified by.
    pub(crate) fn verifier(&self) -> TokenVerifier {
        self.verifier.clone()
    }

    /// The settings of one.
    pub(crate) fn settings(&self, index: usize) -> Option<&IssuerSettings> {
        self.sources.get(index).map(|source| &source.settings)
    }

    /// Whether each was asked once, or its set is known from before.
    pub(crate) fn are_tried(&self) -> bool {
        self.sources.iter().all(|source| source.tried || source.set.is_some())
    }

    /// Those to fetch now, because their time has come.
    pub(crate) fn due(&mut self, now: Timestamp) -> Vec<usize> {
        let due = self.verifier.keys.due(now);
        let mut due: Vec<usize> = due.iter().filter_map(|issuer| self.index(issuer)).collect();
        let recent = self.cluster_fetched_at.and_then(|at| now.since(at));
        if let Some(unnamed) = self.sources.iter().position(|source| source.issuer.is_none())
            && recent.is_none_or(|past| past >= BETWEEN_FETCHES)
        {
            self.cluster_fetched_at = Some(now);
            due.push(unnamed);
        }
        due
    }

    /// The one to fetch, if it may be asked now, because a token has a key that is not known.
    pub(crate) fn unknown(&mut self, issuer: &str, now: Timestamp) -> Option<usize> {
        let advice = self.verifier.keys.unknown(issuer, now);
        self.index(issuer).filter(|_| advice == FetchAdvice::Fetch)
    }

    /// Takes what came of fetching one.
    pub(crate) fn take(
        &mut self,
        index: usize,
        came: Result<FetchedKeySet, FetchProblem>,
        now: Timestamp,
    ) -> Taken {
        let came = came.and_then(|fetched| self.accept(index, fetched, now));
        let Some(source) = self.sources.get_mut(index) else { return Taken::Same { again: false } };
        source.tried = true;
        let outcome = came.as_ref().err().map_or(KeySetOutcome::Taken, FetchProblem::outcome);
        self.fetches[source.kind() as usize][outcome as usize] += 1;
        let before = source.trouble.take();
        match came {
            Ok(Some(keys)) => Taken::Changed(keys),
            Ok(None) => Taken::Same { again: before.is_some() },
            Err(problem) => {
                source.trouble = Some(problem.clone());
                Taken::Failed { first: before.as_ref() != Some(&problem), problem }
            }
        }
    }

    /// What is told of one: its setting and, as far as it is known, its issuer.
    pub(crate) fn name(&self, index: usize) -> String {
        let issuer = self.sources.get(index).and_then(|source| source.issuer.as_deref());
        format!("{} ({})", setting(index), issuer.unwrap_or("the cluster"))
    }

    /// How old they are, and what came of fetching them.
    pub(crate) fn now(&self, now: Timestamp) -> KeySetsNow {
        let state = |(index, source): (usize, &Source)| source.state(index, now);
        let sets = self.sources.iter().enumerate().map(state).collect();
        KeySetsNow { sets, fetches: self.fetches }
    }

    /// How many keys there are now, if they are others than before.
    fn accept(
        &mut self,
        index: usize,
        fetched: FetchedKeySet,
        now: Timestamp,
    ) -> Result<Option<usize>, FetchProblem> {
        // Before anything is forgotten for it.
        Jwks::read(&fetched.body)?;
        if let Some(issuer) = fetched.issuer {
            self.rename(index, issuer)?;
        }
        let source = self.sources.get_mut(index).ok_or(FetchProblem::Unnamed)?;
        let issuer = source.issuer.as_deref().ok_or(FetchProblem::Unnamed)?;
        let body = fetched.body;
        let keys = self.verifier.keys.fetched(issuer, &body, now)?;
        let differs = source.set.as_ref().is_none_or(|set| set.body != body);
        source.set = Some(KeySet { body, keys, fetched_at: now });
        Ok(differs.then_some(keys))
    }

    /// The API server says who it is. Keys of who it was are forgotten.
    fn rename(&mut self, index: usize, issuer: String) -> Result<(), FetchProblem> {
        let Some(source) = self.sources.get_mut(index) else { return Ok(()) };
        if source.issuer.as_ref() == Some(&issuer) {
            return Ok(());
        }
        let before = (source.issuer.replace(issuer), source.set.take());
        match verifier(&self.sources) {
            Ok(verifier) => self.verifier = verifier,
            Err(problem) => {
                let source = &mut self.sources[index];
                (source.issuer, source.set) = before;
                return Err(problem.into());
            }
        }
        Ok(())
    }

    fn index(&self, issuer: &str) -> Option<usize> {
        self.sources.iter().position(|source| source.issuer.as_deref() == Some(issuer))
    }
}

impl Source {
    fn kind(&self) -> KeySetSource {
        match (&self.settings.jwks_url, &self.settings.jwks_file) {
            (Some(_), _) => KeySetSource::Url,
            (None, Some(_)) => KeySetSource::File,
            (None, None) => KeySetSource::Kubernetes,
        }
    }

    /// Where its set comes from.
    fn place(&self) -> String {
        let file = || self.settings.jwks_file.as_ref().map(|file| file.display().to_string());
        let url = self.settings.jwks_url.clone().or_else(file);
        url.unwrap_or_else(|| KeySetSource::Kubernetes.name().to_owned())
    }

    /// Whether this is a set of it.
    fn had(&self, stored: &StoredKeySet) -> bool {
        let named = self.settings.issuer.as_ref().is_none_or(|own| *own == stored.issuer);
        named && self.place() == stored.place
    }

    fn stored(&self) -> Option<StoredKeySet> {
        let set = self.set.as_ref()?;
        Some(StoredKeySet {
            issuer: self.issuer.clone()?,
            place: self.place(),
            fetched_at: set.fetched_at.as_micros(),
            body: String::from_utf8(set.body.to_vec()).ok()?,
        })
    }

    /// If it is the API server's and no setting says it.
    fn forget_name(&mut self) {
        if self.settings.issuer.is_none() {
            (self.issuer, self.set) = (None, None);
        }
    }

    fn state(&self, index: usize, now: Timestamp) -> KeySetNow {
        let set = self.set.as_ref();
        // Of a moment that has not come yet nobody can say how long ago it was.
        let age = set.and_then(|set| now.since(set.fetched_at));
        KeySetNow {
            setting: setting(index),
            source: self.kind(),
            issuer: self.issuer.clone(),
            keys: set.map_or(0, |set| set.keys),
            age: age.map(|age| Duration::from_micros(age.get())),
            trouble: self.trouble.as_ref().map(ToString::to_string),
        }
    }
}

fn setting(index: usize) -> String {
    format!("tenants.issuers[{index}]")
}

/// For all whose name is known, with their sets.
fn verifier(sources: &[Source]) -> Result<TokenVerifier, IssuerProblem> {
    let trusted = sources.iter().filter_map(|source| {
        let settings = &source.settings;
        Some(TrustedIssuer {
            iss: source.issuer.clone()?,
            audience: settings.audience().to_owned(),
            kubernetes: settings.kubernetes,
        })
    });
    let mut verifier = TokenVerifier::new(trusted)?;
    for source in sources {
        if let (Some(issuer), Some(set)) = (&source.issuer, &source.set) {
            // It was taken once, and is so again.
            let _ = verifier.keys.fetched(issuer, &set.body, set.fetched_at);
        }
    }
    Ok(verifier)
}
