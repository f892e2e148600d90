//! What is told of key sets: how old they are, and what came of fetching them.

use serde::{Serialize, Serializer};
use std::time::Duration;

/// Where the key set of an issuer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeySetSource {
    /// From its address.
    Url,
    /// From a file.
    File,
    /// From the API server.
    Kubernetes,
}

/// What came of fetching a key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeySetOutcome {
    /// It is in use.
    Taken,
    /// Nobody was there, or not whoever should be.
    Unreachable,
    /// Another status than 200.
    Status,
    /// No whole answer in time.
    Late,
    /// What came is no key set that is taken.
    Refused,
}

/// One issuer's key set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeySetNow {
    /// The setting that it is of, such as `tenants.issuers[0]`.
    pub setting: String,
    /// Where it comes from.
    pub source: KeySetSource,
    /// The claim `iss` of its tokens; `None` while the API server has not said it.
    pub issuer: Option<String>,
    /// Keys that verify tokens.
    pub keys: usize,
    /// Since it was fetched; `None` if it never was.
    #[serde(rename = "ageSeconds", serialize_with = "seconds")]
    pub age: Option<Duration>,
    /// Why it could not be fetched the last time.
    pub trouble: Option<String>,
}

/// The key sets of all issuers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySetsNow {
    /// In the order of the settings.
    pub sets: Vec<KeySetNow>,
    /// What came of fetching, by the places of [`KeySetSource::ALL`] and [`KeySetOutcome::ALL`].
    pub fetches: [[u64; 5]; 3],
}

impl KeySetSource {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Url, Self::File, Self::Kubernetes];

    /// Its word in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::File => "file",
            Self::Kubernetes => "kubernetes",
        }
    }
}

impl KeySetOutcome {
    /// All of them, in order.
    pub const ALL: [Self; 5] =
        [Self::Taken, Self::Unreachable, Self::Status, Self::Late, Self::Refused];

    /// Its word in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Unreachable => "unreachable",
            Self::Status => "status",
            Self::Late => "late",
            Self::Refused => "refused",
        }
    }
}

impl KeySetsNow {
    /// Of each source that issuers have, the age of the oldest set that was fetched.
    pub fn ages(&self) -> impl Iterator<Item = (KeySetSource, Duration)> {
        KeySetSource::ALL.into_iter().filter_map(|source| {
            let own = self.sets.iter().filter(|set| set.source == source);
            Some((source, own.filter_map(|set| set.age).max()?))
        })
    }

    /// What came of fetching, of each source that issuers have.
    pub fn outcomes(&self) -> impl Iterator<Item = (KeySetSource, KeySetOutcome, u64)> {
        let sources = KeySetSource::ALL.into_iter().zip(self.fetches);
        let used = sources.filter(|(source, _)| self.sets.iter().any(|set| set.source == *source));
        used.flat_map(|(source, counts)| {
            let each = KeySetOutcome::ALL.into_iter().zip(counts);
            each.map(move |(outcome, count)| (source, outcome, count))
        })
    }
}

fn seconds<S: Serializer>(age: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
    age.map(|age| age.as_secs()).serialize(out)
}
