//! Key sets of issuers, by which tokens of members of Tenants are verified.

use super::Process;
use super::tenants::Tenancy;
use crate::shared::timestamp;
use crate::tokens::{self, FetchProblem, FetchedKeySet, KeySetsNow, KeySources, Taken, file};
use flyball_core::units::Timestamp;
use flyball_fleet::discover;
use futures::future::join_all;
use kube::Client;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Between two looks at which sets are due.
const TICK: Duration = Duration::from_secs(1);

/// To find the API server.
const FINDING: Duration = Duration::from_secs(5);

impl Tenancy {
    /// Begins with what the file has, if there is one.
    pub(super) fn restore_key_sets(&self) {
        let Some(path) = self.key_sets_file() else { return };
        match file::load(&path) {
            Ok(stored) => self.key_sets().restore(stored),
            Err(error) => {
                let file = path.display();
                tracing::warn!(%error, %file, "cannot use the last key sets; waiting for issuers");
            }
        }
    }

    /// The key sets of all issuers.
    pub(super) fn key_sets(&self) -> MutexGuard<'_, KeySources> {
        self.key_sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How old key sets are, and what came of fetching them.
    pub(super) fn key_sets_now(&self) -> KeySetsNow {
        self.key_sets().now(now())
    }

    /// Beside the list of Tenants, if that has a file and there are issuers.
    fn key_sets_file(&self) -> Option<PathBuf> {
        let has_issuers = !self.settings.issuers.is_empty();
        self.file().filter(|_| has_issuers).map(|list| file::beside(&list))
    }
}

impl Process {
    /// Fetches key sets when they are due, and at once when a token has a key that is not known; for ever.
    pub(super) async fn keep_key_sets(self: Arc<Self>) {
        let tokens = self.running.tokens();
        if !tokens.is_on() {
            return;
        }
        let mut cluster = self.client.clone();
        loop {
            let (due, unknown) = self.due_key_sets();
            if !due.is_empty() {
                let taken = self.fetch_key_sets(due, &mut cluster).await;
                unknown.iter().for_each(|issuer| tokens.answered(issuer));
                if taken {
                    Arc::clone(&self).store_key_sets().await;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(TICK) => {}
                () = tokens.rung() => {}
            }
        }
    }

    /// The places of those to fetch, and the issuers among them that a token asked for.
    fn due_key_sets(&self) -> (Vec<usize>, Vec<String>) {
        let (mut sources, now) = (self.tenancy.key_sets(), now());
        let mut due = sources.due(now);
        let mut answered = Vec::new();
        for issuer in self.running.tokens().unknown_issuers() {
            if let Some(index) = sources.unknown(&issuer, now) {
                due.push(index);
                answered.push(issuer);
            }
        }
        (due, answered)
    }

    /// Whether one of them came.
    async fn fetch_key_sets(&self, due: Vec<usize>, cluster: &mut Option<Client>) -> bool {
        let settings = {
            let sources = self.tenancy.key_sets();
            let settings =
                due.into_iter().map(|index| Some((index, sources.settings(index)?.clone())));
            settings.flatten().collect::<Vec<_>>()
        };
        if cluster.is_none() && settings.iter().any(|(_, settings)| settings.kubernetes) {
            *cluster = find().await;
        }
        let cluster = cluster.as_ref();
        // Of all at once: one that hangs keeps no other waiting for longer than a fetch takes.
        let fetching = settings.iter().map(|(index, settings)| async move {
            (*index, tokens::fetch(settings, cluster).await)
        });
        let mut taken = false;
        for (index, came) in join_all(fetching).await {
            taken |= self.take_key_set(index, came);
        }
        taken
    }

    /// Whether it is taken.
    fn take_key_set(&self, index: usize, came: Result<FetchedKeySet, FetchProblem>) -> bool {
        let (taken, name, verifier) = {
            let mut sources = self.tenancy.key_sets();
            let taken = sources.take(index, came, now());
            (taken, sources.name(index), sources.verifier())
        };
        let failed = matches!(taken, Taken::Failed { .. });
        if !failed {
            self.running.tokens().know(verifier, matches!(taken, Taken::Changed(_)));
        }
        match taken {
            Taken::Changed(keys) => {
                tracing::info!(issuer = name, keys, "key set loaded");
                self.audit.key_set(&name, &format!("loaded; keys: {keys}"));
            }
            Taken::Same { again: true } => {
                tracing::info!(issuer = name, "key set loaded again; it has not changed");
                self.audit.key_set(&name, "loaded again");
            }
            Taken::Failed { problem, first: true } => {
                tracing::warn!(issuer = name, error = %problem, "cannot fetch a key set; keeping the last one");
                self.audit.key_set(&name, &format!("not loaded: {problem}"));
            }
            Taken::Same { again: false } | Taken::Failed { first: false, .. } => {}
        }
        !failed
    }

    async fn store_key_sets(self: Arc<Self>) {
        let Some(path) = self.tenancy.key_sets_file() else { return };
        let stored = self.tenancy.key_sets().stored();
        let saving = tokio::task::spawn_blocking(move || file::save(&path, &stored));
        // A panic is logged where it happens.
        let Ok(saved) = saving.await else { return };
        let was_unwritable = self.tenancy.keys_unwritable.swap(saved.is_err(), Ordering::Relaxed);
        if let (Err(error), false) = (&saved, was_unwritable) {
            tracing::error!(%error, "cannot write key sets; a restart needs every issuer");
        }
    }
}

/// The API server; none if nobody says where it is, as whoever watches Tenants says too. It is looked for again with the
/// next fetch.
async fn find() -> Option<Client> {
    tokio::time::timeout(FINDING, discover::connect()).await.ok()?.ok()
}

fn now() -> Timestamp {
    timestamp(SystemTime::now())
}
