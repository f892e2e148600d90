//! The whole process: the data plane, and beside it one thread that finds engines, asks them how
//! they are, follows the settings file and ModelServices, and answers on the admin address.
//!
//! Start at [`run`].

use crate::audit::Audit;
use crate::identify::RefusedKey;
use crate::link::{self, OperatorLink};
use crate::meter::{Finished, Meter, MeterError};
use crate::models::{ModelNames, OfferedListing, sought};
use crate::serve::{self, Listener, RunningGateway};
use crate::settings::reload::{self, Watched};
use crate::settings::{GatewaySettingsFile, ModelSettings, Timeouts};
use crate::tenants::RefusedKeys;
use crate::wake::{self, Bell, Hook, OperatorOrHook};
use crate::{accept, admin};
use arc_swap::ArcSwap;
use flyball_admin::{AdminClients, Guard, ReviewedPlace, Reviews};
use flyball_fleet::collect::{self, Verifier};
use flyball_fleet::discover::{self, Failing, Readiness, Sought};
use flyball_fleet::kv_events;
use flyball_fleet::{FleetEndpoint, Listing};
use http::HeaderValue;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};

mod key_sets;
mod offered;
mod tenants;
#[cfg(test)]
mod tests;

/// Before discovery that cannot begin is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// For a last word to the collector.
const GOODBYE: Duration = Duration::from_secs(1);

/// Why a gateway cannot run.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The settings are no good.
    #[error("invalid settings: {}", .0.join("; "))]
    Settings(Vec<String>),
    /// An address cannot be listened on, or a certificate cannot be read.
    #[error("{what}: {source}")]
    Start {
        /// What was tried.
        what: &'static str,
        /// What came of it.
        source: io::Error,
    },
    /// Nothing can be counted.
    #[error(transparent)]
    Meter(#[from] MeterError),
}

/// Runs a gateway with the settings of this file until SIGTERM or SIGINT, then lets it finish.
pub fn run(file: &Path, version: &'static str) -> Result<(), GatewayError> {
    let (watched, settings) =
        Watched::open(file, SystemTime::now()).map_err(GatewayError::Settings)?;
    settings.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    let meter = Arc::new(Meter::start(&settings, version, io::stdout())?);
    let audit = Audit::open(settings.telemetry.audit_log.as_deref())
        .map_err(|source| GatewayError::Start { what: "cannot write the audit log", source })?;
    let audit = Arc::new(audit);
    let verifier = Arc::new(verifier(&meter, &audit));
    let (bell, calls) = wake::bell();
    let (meter_of, verifier_of) = (Arc::clone(&meter), Arc::clone(&verifier));
    let refusals = Arc::new(RefusedKeys::default());
    let refusals_of = Arc::clone(&refusals);
    let listener = Hub { meter: meter_of, verifier: verifier_of, bell, refusals: refusals_of };
    let listener = Arc::new(listener);
    let start = |what| move |source| GatewayError::Start { what, source };
    let running = serve::start(&settings, listener).map_err(start("cannot listen for clients"))?;
    let desks = Desks { meter, audit, verifier, refusals };
    let process = Process::new(running, desks, &settings, version);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(start("no runtime"))?;
    let process = Arc::new(process);
    runtime.block_on(async {
        let hook = settings.waker.as_ref().and_then(Hook::of);
        let link = process.link.clone();
        if hook.is_some() || link.is_some() {
            let (audit, waker) = (Arc::clone(&process.audit), OperatorOrHook { link, hook });
            tokio::spawn(wake::answer(calls, waker, move |call| called(call, &audit)));
        }
        process.live(watched, &settings, version).await
    })
}

/// What the thread beside the data plane needs.
struct Process {
    running: Arc<RunningGateway>,
    meter: Arc<Meter>,
    audit: Arc<Audit>,
    verifier: Arc<Verifier>,
    /// To the operator, if there is one.
    link: Option<Arc<OperatorLink>>,
    /// Keys that were refused, until the audit log is told.
    refusals: Arc<RefusedKeys>,
    /// What is known of Tenants.
    tenancy: tenants::Tenancy,
    /// What the settings file says.
    file: ArcSwap<GatewaySettingsFile>,
    /// What ModelServices offer.
    offered: watch::Sender<OfferedListing>,
    /// What became of that.
    names: ArcSwap<ModelNames>,
    /// Both together, as they are in use.
    models: watch::Sender<GatewaySettingsFile>,
    listing: watch::Sender<Listing>,
    draining: AtomicBool,
    /// All requests are over.
    ended: Notify,
    collecting: collect::CollectionStatus,
    discovering: discover::DiscoveryStatus,
    readiness: Readiness,
    /// For the cluster; its own is made without.
    client: Option<kube::Client>,
    hearing: Arc<kv_events::EventsStatus>,
}

/// Who is told what happens, and counts or writes it.
struct Desks {
    meter: Arc<Meter>,
    audit: Arc<Audit>,
    verifier: Arc<Verifier>,
    refusals: Arc<RefusedKeys>,
}

impl Process {
    fn new(
        running: RunningGateway,
        desks: Desks,
        settings: &GatewaySettingsFile,
        version: &'static str,
    ) -> Self {
        let Desks { meter, audit, verifier, refusals } = desks;
        let running = Arc::new(running);
        let link = settings.operator.clone().map(|operator| {
            let link = OperatorLink::new(operator, Arc::clone(&running), version);
            Arc::new(link.with_audit(Arc::clone(&audit)))
        });
        let tenancy = tenants::Tenancy::new(&settings.tenants);
        // Before it can be ready. Whoever serves on says what became of them.
        running.admit(&tenancy.readings());
        running.tokens().know(tenancy.key_sets().verifier(), true);
        let readiness = Readiness::since(running.began());
        readiness.await_model_services(settings.kubernetes.watches());
        Self {
            readiness,
            running,
            link,
            verifier,
            refusals,
            tenancy,
            file: ArcSwap::from_pointee(settings.clone()),
            offered: watch::Sender::new(OfferedListing::default()),
            names: ArcSwap::default(),
            models: watch::Sender::new(settings.clone()),
            listing: watch::Sender::new(Listing::default()),
            draining: AtomicBool::new(false),
            ended: Notify::new(),
            collecting: collect::CollectionStatus::default(),
            discovering: discover::DiscoveryStatus::default(),
            client: None,
            hearing: Arc::default(),
            meter,
            audit,
        }
    }

    async fn live(
        self: Arc<Self>,
        watched: Watched,
        settings: &GatewaySettingsFile,
        version: &'static str,
    ) -> Result<(), GatewayError> {
        let start = |what| move |source| GatewayError::Start { what, source };
        let listener = accept::listener(settings.admin)
            .map_err(start("cannot listen on the admin address"))?;
        let stop = stop().map_err(start("cannot install signal handlers"))?;
        let state = self.state(settings, version);
        self.meter.observe_with({
            let process = Arc::clone(&self);
            move || process.now()
        });
        let guard = guard(&settings.admin_clients).await;
        tokio::spawn(flyball_admin::serve(listener, Arc::clone(&state), guard));
        tokio::spawn(Arc::clone(&self).admit_tenants());
        tokio::spawn(Arc::clone(&self).watch_tenants());
        tokio::spawn(Arc::clone(&self).tend_tenants());
        tokio::spawn(Arc::clone(&self).keep_key_sets());
        tokio::spawn(Arc::clone(&self).watch_offered());
        tokio::spawn(Arc::clone(&self).serve_offered(Arc::clone(&state)));
        tokio::spawn(Arc::clone(&self).discover());
        tokio::spawn(Arc::clone(&self).list());
        tokio::spawn(Arc::clone(&self).follow_caches());
        if let Some(link) = self.link.clone() {
            tokio::spawn(async move { link.talk(std::future::pending()).await });
        }
        let collecting = tokio::spawn(Arc::clone(&self).collect(settings.collector.clone()));
        let process = Arc::clone(&self);
        tokio::spawn(reload::watch(watched, move |settings, reload| {
            process.audit.settings(&process.file.load(), settings, reload);
            if let Some(settings) = settings {
                process.change(settings, &state);
            }
            process.meter.reloaded(reload.clone());
        }));
        tracing::info!(
            listen = %self.running.address(), admin = %settings.admin,
            models = settings.models.len(), keys = settings.keys.len(), "gateway is serving"
        );
        let stop_signal = stop.await;
        self.draining.store(true, Ordering::Relaxed);
        let (settle, drain) = times(stop_signal, &self.models.borrow().timeouts);
        tracing::info!(requests = self.running.inside().requests, "gateway is draining");
        self.audit.drain_begins(self.running.inside().requests);
        // Load balancers still send connections, which are as good as any before.
        tokio::time::sleep(settle).await;
        let running = Arc::clone(&self.running);
        // The admin address goes on answering meanwhile.
        let left = tokio::task::spawn_blocking(move || running.drain(drain)).await.unwrap_or(0);
        // What nobody spends any more is for the other gateways; told while the collector is.
        self.running.quota().give_back();
        // Without a goodbye the collector would have to think that requests go on here.
        self.ended.notify_one();
        drop(tokio::time::timeout(GOODBYE, collecting).await);
        tracing::info!(cut = left, "gateway stopped");
        self.audit.drain_ended(left);
        self.note_refusals();
        // The page looks at us and we hold the meter, so it is not dropped by itself.
        self.meter.close();
        Ok(())
    }

    fn state(
        self: &Arc<Self>,
        settings: &GatewaySettingsFile,
        version: &'static str,
    ) -> Arc<admin::GatewayAdminState> {
        let process = Arc::clone(self);
        let ready = move || process.ready();
        let running = Arc::clone(&self.running);
        let demand = move || running.demand();
        let meter = Arc::clone(&self.meter);
        let state = admin::GatewayAdminState::new(version, meter, settings.clone(), ready, demand);
        let process = Arc::clone(self);
        let state = state.with_model_names(move || process.names.load_full());
        let process = Arc::clone(self);
        let state = state.with_tenants(move || process.tenancy.now());
        Arc::new(state.with_shadows(self.running.shadows()))
    }

    fn ready(&self) -> Result<(), String> {
        if self.draining.load(Ordering::Relaxed) {
            return Err("draining".to_owned());
        }
        self.tenancy.ready(self.failing_tenants().as_deref())?;
        let (listing, settings) = (self.listing.borrow(), self.models.borrow());
        let names: Vec<&str> = settings.models.iter().map(|model| model.name.as_str()).collect();
        self.readiness.judge(&listing, &names, &self.discovering, Instant::now())
    }

    fn now(&self) -> crate::meter::MeterNow {
        let inside = self.running.inside();
        let mut failing = self.discovering.failing_models();
        let mut models = self
            .running
            .glance(self.models.borrow().models.iter().map(|model| model.name.as_str()));
        models.iter_mut().for_each(|model| model.trouble = failing.remove(&*model.name));
        crate::meter::MeterNow {
            connections: inside.connections,
            requests: inside.requests,
            held_bytes: inside.bytes,
            cached_bytes: inside.cached_bytes,
            draining: self.draining.load(Ordering::Relaxed),
            engines: self.running.engines(),
            zombies: self.verifier.zombies(),
            silent_engines: self.collecting.silent_engines(),
            collector_away: self.collecting.collector_away(),
            failing_watches: self.discovering.failing_watches(),
            doubted_models: self.discovering.doubted_models(),
            model_names: self.name_counts(),
            tenants: self.tenancy.now(),
            models,
            recoveries: self.running.recoveries(),
            suspects: self.running.suspects(),
            kv_events: self.hearing(),
            operator: self.operator(),
        }
    }

    fn operator(&self) -> link::LinkNow {
        self.link.as_ref().map(|link| link.now()).unwrap_or_default()
    }

    /// The settings file says this from now on.
    fn change(&self, settings: &GatewaySettingsFile, state: &admin::GatewayAdminState) {
        self.file.store(Arc::new(settings.clone()));
        self.combine(state);
    }

    /// Looks for engines, anew when their places change. What was found before stays meanwhile.
    async fn discover(self: Arc<Self>) {
        let mut models = self.models.subscribe();
        loop {
            let targets = sought(&models.borrow_and_update().models);
            let client = self.client.clone();
            let looking = discover::watch(&targets, client, &self.listing, &self.discovering);
            tokio::select! {
                ended = looking => {
                    let Err(error) = ended;
                    tracing::error!(%error, "engine discovery cannot start; retrying");
                    let named = targets.iter().filter(|model| model.endpoints.is_empty());
                    let failing = Failing {
                        models: Arc::new(named.map(|model| model.name.clone()).collect()),
                        error: error.to_string(),
                        hint: "the log has the details",
                    };
                    let _noted = self.discovering.note("the cluster", failing);
                    tokio::time::sleep(AGAIN).await;
                }
                () = differs(&mut models, &targets) => {}
            }
        }
    }

    async fn list(self: Arc<Self>) {
        let mut listings = self.listing.subscribe();
        loop {
            // The first may have come before we looked.
            let listing = listings.borrow_and_update().clone();
            self.running.list(&listing);
            if listings.changed().await.is_err() {
                return;
            }
        }
    }

    /// Listens to what engines tell about their caches.
    async fn follow_caches(self: Arc<Self>) {
        let fleet = || self.running.fleet();
        let ports = || {
            let settings = self.models.borrow();
            let ported = |model: &ModelSettings| Some((model.name.clone(), model.kv_events?));
            settings.models.iter().filter_map(ported).collect()
        };
        let (began, standing) = (self.running.began(), Arc::clone(&self.hearing));
        kv_events::follow(fleet, ports, began, standing).await;
    }

    fn hearing(&self) -> crate::meter::KvEvents {
        let (streams, standing) = (self.hearing.streams(), &self.hearing);
        crate::meter::KvEvents { streams, batches: standing.batches(), missed: standing.missed() }
    }

    async fn collect(self: Arc<Self>, collector: Option<String>) {
        let running = Arc::clone(&self.running);
        let fleet = move || running.fleet();
        let (collector, ended) = (collector.as_deref(), self.ended.notified());
        collect::run(&fleet, &self.verifier, &self.collecting, collector, ended).await;
    }
}

/// Who may ask at the admin address. What cannot be judged is refused.
async fn guard(admin_clients: &AdminClients) -> Guard {
    let place = admin_clients.service.as_deref().and_then(ReviewedPlace::read);
    let reviews = match place {
        None => None,
        Some(place) => match discover::connect().await {
            Ok(client) => Some(Reviews::new(client, place)),
            Err(error) => {
                tracing::error!(%error, "cannot verify tokens; every request that needs admin_clients.service is refused");
                None
            }
        },
    };
    Guard::new(admin_clients.clone(), reviews)
}

/// Who is told what happens in the data plane.
struct Hub {
    meter: Arc<Meter>,
    verifier: Arc<Verifier>,
    bell: Bell,
    refusals: Arc<RefusedKeys>,
}

impl Listener for Hub {
    fn finished(&self, finished: &Finished<'_>) {
        self.meter.finished(finished);
    }

    fn refused(&self, code: &'static str) {
        self.meter.refused(code);
    }

    fn copy_dropped(&self) {
        self.meter.copy_dropped();
    }

    fn cancelled(&self, endpoint: &Arc<FleetEndpoint>) {
        self.verifier.cancelled(endpoint, Instant::now());
    }

    fn key_refused(&self, refused: &RefusedKey<'_>) {
        self.meter.key_refused(refused.why);
        self.refusals.count(refused);
    }

    fn wake(&self, model: &Arc<str>) {
        if !self.bell.ring(model) {
            tracing::error!(model = &**model, "too many wake-up calls are pending; retrying later");
        }
    }

    fn breaker_opened(&self) {
        self.meter.breaker_opened();
    }

    fn traceparent(
        &self,
        callers: Option<&str>,
        request_id: &str,
        started: SystemTime,
    ) -> Option<HeaderValue> {
        self.meter.traceparent(callers, request_id, started)
    }
}

/// What became of a call to wake a model.
fn called(called: &wake::Called, audit: &Audit) {
    audit.wake(&called.model, called.problem.as_deref().unwrap_or("sent"));
    match &called.problem {
        None => tracing::info!(model = called.model, "waking the model"),
        Some(problem) => tracing::error!(
            model = called.model,
            problem,
            "wake-up call failed; retrying after waker.again_ms"
        ),
    }
}

/// Waits until other engines are looked for. What else changes about a model begins no watch anew.
async fn differs(models: &mut watch::Receiver<GatewaySettingsFile>, targets: &[Sought]) {
    // Its sender lives as long as the process.
    let _ = models.wait_for(|now| sought(&now.models) != targets).await;
}

fn verifier(meter: &Arc<Meter>, audit: &Arc<Audit>) -> Verifier {
    let (meter, audit) = (Arc::clone(meter), Arc::clone(audit));
    Verifier::new(move |event| match event {
        collect::VerifierEvent::Freed(took) => meter.freed(took),
        collect::VerifierEvent::Quarantined { engine, zombies } => {
            (0..zombies).for_each(|_| meter.cancel_ignored());
            audit.quarantined(&engine, zombies);
        }
        collect::VerifierEvent::Released { engine } => audit.released(&engine),
        collect::VerifierEvent::Unproven(_) => {}
    })
}

/// Who said that it is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopSignal {
    /// SIGTERM: the kubelet.
    Terminate,
    /// SIGINT: a person at a terminal, before whom there is no load balancer.
    Interrupt,
}

/// Heard from the call on, and not only when it is awaited.
fn stop() -> io::Result<impl Future<Output = StopSignal>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => StopSignal::Terminate,
            _ = int.recv() => StopSignal::Interrupt,
        }
    })
}

/// How long new connections are taken, and how long requests may take after that.
fn times(stop_signal: StopSignal, timeouts: &Timeouts) -> (Duration, Duration) {
    let settle = match stop_signal {
        StopSignal::Terminate => timeouts.settle_ms,
        StopSignal::Interrupt => 0,
    };
    (Duration::from_millis(settle), Duration::from_millis(timeouts.drain_ms))
}
