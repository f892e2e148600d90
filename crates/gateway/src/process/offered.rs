//! Models that ModelServices offer, beside those of the settings file.

use super::{AGAIN, Process};
use crate::admin::GatewayAdminState;
use crate::meter::ModelNameCounts;
use crate::models::{self, ModelNames};
use crate::settings::GatewaySettingsFile;
use flyball_fleet::discover::Failing;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Process {
    /// Follows ModelServices, if the settings say so, and goes on trying.
    pub(super) async fn watch_offered(self: Arc<Self>) {
        let kubernetes = self.file.load().kubernetes.clone();
        if !kubernetes.watches() {
            return;
        }
        loop {
            let client = self.client.clone();
            let Err(error) =
                models::watch(&kubernetes, client, &self.offered, &self.discovering).await;
            tracing::error!(%error, "cannot watch ModelServices; retrying");
            let failing = Failing {
                models: Arc::default(),
                error: error.to_string(),
                hint: "the log has the details",
            };
            let _noted = self.discovering.note("modelservices", failing);
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Serves what ModelServices offer, and anew when that changes.
    pub(super) async fn serve_offered(self: Arc<Self>, state: Arc<GatewayAdminState>) {
        let mut offered = self.offered.subscribe();
        loop {
            // The first may have come before we looked.
            let listed = offered.borrow_and_update().listed;
            let before = served(&self.models.borrow());
            self.combine(&state);
            let after = served(&self.models.borrow());
            self.note_served(&before, &after);
            if listed {
                // Only now are the models known whose engines have to be listed.
                self.readiness.await_model_services(false);
            }
            if offered.changed().await.is_err() {
                return;
            }
        }
    }

    /// Goes by the file and by what is offered from now on.
    pub(super) fn combine(&self, state: &GatewayAdminState) {
        let (settings, names) = models::merge(&self.file.load(), &self.offered.borrow().objects);
        self.complain(&names);
        self.names.store(Arc::new(names));
        self.running.change(&settings);
        self.meter.follow(&settings);
        state.follow(&settings);
        self.models.send_replace(settings);
    }

    /// What became of the names of ModelServices, in numbers.
    pub(super) fn name_counts(&self) -> ModelNameCounts {
        let names = self.names.load();
        ModelNameCounts { served: names.served, left_out: names.left_out_by_reason() }
    }

    /// Says what is new among what is not served. It is said once.
    fn complain(&self, names: &ModelNames) {
        let before = self.names.load();
        let known: BTreeSet<_> = before.left_out.iter().collect();
        for left in names.left_out.iter().filter(|left| !known.contains(left)) {
            tracing::warn!(reason = left.why.name(), "{left}");
        }
        let known: BTreeSet<_> = before.notes.iter().collect();
        for note in names.notes.iter().filter(|note| !known.contains(note)) {
            tracing::info!("{note}");
        }
    }

    fn note_served(&self, before: &BTreeSet<String>, after: &BTreeSet<String>) {
        let new = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
            one.difference(other).cloned().collect()
        };
        let (added, removed) = (new(after, before), new(before, after));
        if added.is_empty() && removed.is_empty() {
            return;
        }
        tracing::info!(
            added = added.len(),
            removed = removed.len(),
            models = after.len(),
            "models loaded from ModelServices"
        );
        self.audit.served(&added, &removed);
    }
}

/// The models that come from ModelServices.
fn served(settings: &GatewaySettingsFile) -> BTreeSet<String> {
    let offered = settings.models.iter().filter(|model| model.model_service.is_some());
    offered.map(|model| model.name.clone()).collect()
}
