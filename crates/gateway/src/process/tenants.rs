//! Callers from Tenants, beside the keys of the settings file.

use super::{AGAIN, Process};
use crate::meter::TenantsNow;
use crate::settings::TenantsSettings;
use crate::tenants::{self, TenantFreshness, TenantListing, TenantReadings, TenantReport, file};
use crate::tokens::KeySources;
use arc_swap::ArcSwap;
use flyball_fleet::discover::Failing;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// Between two looks at how old the list is.
const TICK: Duration = Duration::from_secs(1);

/// Looks after which the audit log is told of keys that were refused, and the file of the list's age.
const TICKS: u64 = 10;

/// The plural of the kind, as watches are named.
const TENANTS: &str = "tenants";

/// What is known of Tenants, and how well.
#[derive(Debug)]
pub(super) struct Tenancy {
    pub(super) settings: TenantsSettings,
    listing: watch::Sender<TenantListing>,
    freshness: TenantFreshness,
    report: ArcSwap<TenantReport>,
    /// What the file has.
    stored: Mutex<Option<TenantReadings>>,
    /// Whether it could not be written the last time, which is said once.
    unwritable: AtomicBool,
    /// Those of issuers of tokens.
    pub(super) key_sets: Mutex<KeySources>,
    /// Whether they could not be written the last time.
    pub(super) keys_unwritable: AtomicBool,
}

impl Tenancy {
    /// Begins with what the file has, if there is one.
    pub(super) fn new(settings: &TenantsSettings) -> Self {
        let tenancy = Self {
            settings: settings.clone(),
            listing: watch::Sender::default(),
            freshness: TenantFreshness::default(),
            report: ArcSwap::default(),
            stored: Mutex::default(),
            unwritable: AtomicBool::new(false),
            key_sets: Mutex::new(KeySources::new(&settings.issuers)),
            keys_unwritable: AtomicBool::new(false),
        };
        tenancy.restore();
        tenancy.restore_key_sets();
        tenancy
    }

    fn restore(&self) {
        let Some(path) = self.file() else { return };
        match file::load(&path, SystemTime::now()) {
            Ok(None) => {}
            Ok(Some(stored)) => {
                let age_seconds = stored.age.map(|age| age.as_secs());
                tracing::info!(
                    tenants = stored.readings.len(),
                    age_seconds,
                    "Tenants loaded from tenants.cache_file"
                );
                self.freshness.restore(stored.age, Instant::now());
                self.store(Some(stored.readings.clone()));
                self.listing.send_modify(|listing| listing.objects = stored.readings);
            }
            Err(error) => {
                tracing::warn!(%error, "cannot use tenants.cache_file; waiting for the API server");
            }
        }
    }

    /// What is known.
    pub(super) fn readings(&self) -> TenantReadings {
        self.listing.borrow().objects.clone()
    }

    /// The file of the list, if Tenants are watched and it has one.
    pub(super) fn file(&self) -> Option<PathBuf> {
        self.settings.cache_file.clone().filter(|_| self.settings.watch)
    }

    fn store(&self, readings: Option<TenantReadings>) {
        *self.stored.lock().unwrap_or_else(PoisonError::into_inner) = readings;
    }

    /// Whether the file has this. One that was begun with is brought up to date even while a namespace is not listed.
    fn is_stored(&self, listing: &TenantListing) -> bool {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        match &*stored {
            Some(stored) => *stored == listing.objects,
            None => !listing.listed,
        }
    }

    /// Whether requests may come, or why not.
    pub(super) fn ready(&self, failing: Option<&str>) -> Result<(), String> {
        if !self.settings.watch {
            return Ok(());
        }
        if !self.freshness.is_ready(Instant::now()) {
            return Err(format!("Tenants: {}", failing.unwrap_or("not listed yet")));
        }
        // Whoever asked another gateway a moment ago would be refused here. Who cannot be reached is waited for once.
        if self.key_sets().are_tried() {
            Ok(())
        } else {
            Err("key sets: not fetched yet".to_owned())
        }
    }

    /// What is known; `None` if Tenants are not watched.
    pub(super) fn now(&self) -> Option<TenantsNow> {
        let report = self.settings.watch.then(|| self.report.load_full())?;
        let (age, key_sets) = (self.freshness.age(Instant::now()), self.key_sets_now());
        Some(TenantsNow { report, age, key_sets })
    }

    /// Says what is new among what is wrong. It is said once.
    fn complain(&self, report: &TenantReport) {
        let before = self.report.load();
        for trouble in report.troubles.iter().filter(|one| !before.troubles.contains(one)) {
            let problem = trouble.problems.first().map_or("", String::as_str);
            tracing::warn!(reason = trouble.reason, problem, "{trouble}");
        }
    }
}

impl Process {
    /// Follows Tenants, if the settings say so, and goes on trying.
    pub(super) async fn watch_tenants(self: Arc<Self>) {
        if !self.tenancy.settings.watch {
            return;
        }
        let kubernetes = self.file.load().kubernetes.clone();
        loop {
            let (client, out) = (self.client.clone(), &self.tenancy.listing);
            let Err(error) = tenants::watch(&kubernetes, client, out, &self.discovering).await;
            tracing::error!(%error, "cannot watch Tenants; retrying");
            let failing = Failing {
                models: Arc::default(),
                error: error.to_string(),
                hint: "the log has the details",
            };
            let _noted = self.discovering.note(TENANTS, failing);
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Lets in whom Tenants let in, and anew when they change.
    pub(super) async fn admit_tenants(self: Arc<Self>) {
        if !self.tenancy.settings.watch {
            return;
        }
        let mut listings = self.tenancy.listing.subscribe();
        let mut before = TenantReadings::new();
        loop {
            // The first may have come before we looked.
            let listing = listings.borrow_and_update().clone();
            if listing.objects != before {
                Arc::clone(&self).admit_listing(&before, listing.objects.clone()).await;
            }
            if listing.listed {
                self.tenancy.freshness.confirm(Instant::now());
            }
            // After they are let in or thrown out: a disk may be slow.
            Arc::clone(&self).store_tenants(&listing).await;
            before = listing.objects;
            if listings.changed().await.is_err() {
                return;
            }
        }
    }

    /// Says how old the list is, and which keys were refused, for ever.
    pub(super) async fn tend_tenants(self: Arc<Self>) {
        if !self.tenancy.settings.watch {
            return;
        }
        let mut ticks = 0_u64;
        loop {
            tokio::time::sleep(TICK).await;
            ticks += 1;
            let is_due = ticks.is_multiple_of(TICKS);
            if is_due {
                self.note_refusals();
            }
            // Before the first list is in use, nobody stands behind what is.
            let (freshness, now) = (&self.tenancy.freshness, Instant::now());
            let listed = self.tenancy.listing.borrow().listed && freshness.age(now).is_some();
            if listed && self.failing_tenants().is_none() {
                freshness.confirm(now);
                if is_due {
                    Arc::clone(&self).confirm_file().await;
                }
            }
        }
    }

    /// Why Tenants cannot be looked for, if they cannot.
    pub(super) fn failing_tenants(&self) -> Option<String> {
        self.discovering.failing_kind(TENANTS)
    }

    /// Tells the audit log of keys that were refused, where Tenants have some.
    pub(super) fn note_refusals(&self) {
        if !self.tenancy.settings.watch {
            return;
        }
        for (what, outcome) in self.refusals.take() {
            self.audit.key_refused(&what, &outcome);
        }
    }

    async fn admit_listing(self: Arc<Self>, before: &TenantReadings, after: TenantReadings) {
        let changes = changes(before, &after);
        let running = Arc::clone(&self.running);
        // 10^5 keys take a while, in which health is asked for too.
        let admitted = tokio::task::spawn_blocking(move || running.admit(&after)).await;
        let Ok(report) = admitted else { return };
        self.meter.tenants(&self.running.tenant_paths());
        self.tenancy.complain(&report);
        tracing::info!(
            tenants = report.accepted,
            refused = report.refused,
            keys = report.keys,
            "Tenants loaded"
        );
        self.audit.tenants(&changes);
        self.tenancy.report.store(Arc::new(report));
    }

    async fn store_tenants(self: Arc<Self>, listing: &TenantListing) {
        let Some(path) = self.tenancy.file().filter(|_| !self.tenancy.is_stored(listing)) else {
            return;
        };
        let readings = listing.objects.clone();
        let age = self.tenancy.freshness.age(Instant::now());
        let confirmed = age.and_then(|age| SystemTime::now().checked_sub(age));
        let confirmed = confirmed.unwrap_or(SystemTime::UNIX_EPOCH);
        let saving = move || file::save(&path, &readings, confirmed).map(|()| readings);
        // A panic is logged where it happens.
        let Ok(saved) = tokio::task::spawn_blocking(saving).await else { return };
        let was_unwritable = self.tenancy.unwritable.swap(saved.is_err(), Ordering::Relaxed);
        if let (Err(error), false) = (&saved, was_unwritable) {
            tracing::error!(%error, "cannot write tenants.cache_file; a restart needs the API server");
        }
        // What cannot be written is not there any more.
        self.tenancy.store(saved.ok());
    }

    async fn confirm_file(self: Arc<Self>) {
        let Some(path) = self.tenancy.file() else { return };
        let listing = self.tenancy.listing.borrow().clone();
        if !self.tenancy.is_stored(&listing) {
            // Writing failed before: what is not there cannot be older than it says.
            return self.store_tenants(&listing).await;
        }
        let confirming = move || file::confirm(&path, SystemTime::now());
        if let Ok(Err(error)) = tokio::task::spawn_blocking(confirming).await {
            tracing::warn!(%error, "cannot renew the time of tenants.cache_file");
        }
    }
}

/// Which Tenants are new, gone and other than before.
fn changes(before: &TenantReadings, after: &TenantReadings) -> Vec<String> {
    let new = after.iter().filter_map(|(name, reading)| match before.get(name) {
        None => Some(format!("+{name}")),
        Some(old) if old != reading => Some(format!("~{name}")),
        Some(_) => None,
    });
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    new.chain(gone.map(|name| format!("-{name}"))).collect()
}
