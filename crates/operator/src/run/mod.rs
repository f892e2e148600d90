//! The loop: look, decide, carry out, tell; and what runs beside it.
//!
//! An operator that does not lead looks and decides too, with what the leader wrote into the statuses: no
//! gateway talks to it, so that it learns little by itself. It writes nothing. `round` is one turn of the
//! loop, `publish` its last step, `listen` the door for gateways, `tenants` what Tenants come to,
//! `training` the loop over training runs and `kueue` what it has to say to Kueue.

mod kueue;
mod listen;
mod publish;
mod round;
mod tenants;
mod training;

use crate::admin::{OperatorAdminState, Page};
use crate::lead::{self, Fence};
use crate::link::{self, GatewayLink};
use crate::loans::LoanBoard;
use crate::observe::prometheus::{self, Prometheus};
use crate::observe::record::Recorder;
use crate::observe::{ObservedMemory, Watches, Witnesses, watch};
use crate::quota::{self, ConfigMapStore, TenantQuota};
use crate::report::{Attained, Board, StatusPublisher};
use crate::settings::{Lease, OperatorSettings};
use crate::tune::Tuning;
use flyball_admin::{Guard, ReviewedPlace, Reviews};
use flyball_core::ids::ModelId;
use flyball_core::units::Micros;
use kube::Client;
use listen::Door;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenants::TenantWatch;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use training::RunWatch;

/// Models whose writes are made at the same time.
const AT_ONCE: usize = 16;

/// Why an operator cannot run.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// There is no cluster.
    #[error("no Kubernetes cluster found: {0}; hint: run in a pod, or set KUBECONFIG")]
    NoCluster(String),
    /// An address cannot be listened on, or there is no runtime.
    #[error("{what}: {source}")]
    Start {
        /// What was tried.
        what: &'static str,
        /// What came of it.
        source: io::Error,
    },
    /// Gateways cannot be let in.
    #[error(transparent)]
    Gateways(link::LinkError),
    /// Prometheus' address cannot be used.
    #[error(transparent)]
    Prometheus(#[from] prometheus::AskError),
}

/// Runs an operator until SIGTERM or SIGINT.
pub async fn run(
    settings: OperatorSettings,
    version: &'static str,
    me: String,
) -> Result<(), OperatorError> {
    let client =
        Client::try_default().await.map_err(|error| OperatorError::NoCluster(error.to_string()))?;
    let start = |what| move |source| OperatorError::Start { what, source };
    let listener = TcpListener::bind(settings.admin)
        .await
        .map_err(start("cannot listen on the admin address"))?;
    let fence = Fence::default();
    let board = Arc::new(Board::new(fence.clone()));
    let state = Arc::new(OperatorAdminState::new(version, Arc::clone(&board)));
    let place = settings.admin_clients.service.as_deref().and_then(ReviewedPlace::read);
    let reviews = place.map(|place| Reviews::new(client.clone(), place));
    let guard = Guard::new(settings.admin_clients.clone(), reviews);
    tokio::spawn(flyball_admin::serve(listener, Arc::new(Page(Arc::clone(&state))), guard));
    let lease = settings.lease.clone();
    tokio::spawn(lead::lead(client.clone(), lease, me.clone(), fence.clone()));
    let link = Arc::new(GatewayLink::new());
    let door = Door { address: settings.link, auth: listen::auth(&settings, &client) };
    let talking = tokio::spawn(door.talk(Arc::clone(&link), fence.clone()));
    let prometheus =
        settings.prometheus.as_ref().map(|one| Prometheus::new(&one.url)).transpose()?;
    let recorder = settings.readings.as_ref().map(Recorder::begin).transpose();
    let recorder = recorder.map_err(start("cannot write the readings file"))?;
    let watches = watch(&client, &settings);
    let publisher = StatusPublisher::new(&client, &me, fence.clone());
    let tenants = TenantWatch {
        watches: watches.clone(),
        quota: link.quota(),
        publisher: publisher.clone(),
        fence: fence.clone(),
        board: Arc::clone(&board),
    };
    tokio::spawn(tenants.run());
    let loans = Arc::new(LoanBoard::default());
    let kueue = settings.kueue;
    let runs = RunWatch::of(&client, &watches, &publisher, &fence, &board, &loans, kueue);
    tokio::spawn(runs.run());
    tokio::spawn(give_out(&client, &settings.lease, link.quota(), fence.clone(), watches.clone()));
    let mut operator = Operator {
        publisher,
        watches,
        prometheus,
        fence,
        board,
        state,
        client,
        learnt: ObservedMemory::default(),
        tuning: Tuning::default(),
        attained: Attained::default(),
        recorder,
        witnesses: Witnesses::of(
            &settings.gateways.accounts,
            Micros::from_seconds(settings.gateways.come_within_seconds.into()),
        ),
        link,
        loans,
        written: BTreeMap::new(),
        pools_written: BTreeMap::new(),
        learnt_written: BTreeMap::new(),
        settings,
    };
    let mut end =
        signal(SignalKind::terminate()).map_err(start("cannot install signal handlers"))?;
    let mut interrupt =
        signal(SignalKind::interrupt()).map_err(start("cannot install signal handlers"))?;
    tokio::select! {
        () = operator.live() => {}
        Ok(problem) = talking => return Err(problem),
        _ = end.recv() => {}
        _ = interrupt.recv() => {}
    }
    operator.hand_over().await;
    let left = lead::leave(operator.client.clone(), &operator.settings.lease, &me);
    // Whoever comes next waits for the lease to lapse if this fails.
    let _ = tokio::time::timeout(Duration::from_secs(2), left).await;
    Ok(())
}

/// Gives out limits and budgets whenever this operator leads. Ends never.
fn give_out(
    client: &Client,
    lease: &Lease,
    quota: Arc<TenantQuota>,
    fence: Fence,
    watches: Watches,
) -> impl Future<Output = ()> + use<> {
    let name = format!("{}-quota", lease.name);
    let store = ConfigMapStore::new(client.clone(), &lease.namespace, name, fence.clone());
    async move {
        // Without a list of pods, gateways that only restart would be given up.
        watches.listed().await;
        quota::keep(&quota, &store, &fence, &watches).await;
    }
}

struct Operator {
    settings: OperatorSettings,
    client: Client,
    watches: Watches,
    prometheus: Option<Prometheus>,
    fence: Fence,
    board: Arc<Board>,
    state: Arc<OperatorAdminState>,
    publisher: StatusPublisher,
    learnt: ObservedMemory,
    tuning: Tuning,
    attained: Attained,
    witnesses: Witnesses,
    recorder: Option<Recorder>,
    link: Arc<GatewayLink>,
    loans: Arc<LoanBoard>,
    /// When each status was last written.
    written: BTreeMap<ModelId, Instant>,
    /// The same of pools.
    pools_written: BTreeMap<String, Instant>,
    /// When what was learnt was last written, or a model first seen.
    learnt_written: BTreeMap<ModelId, Instant>,
}

impl Operator {
    async fn live(&mut self) {
        self.watches.listed().await;
        self.state.is_ready();
        tracing::info!(tick_seconds = self.settings.tick_seconds, "operator is running");
        let tick = Duration::from_secs(u64::from(self.settings.tick_seconds));
        let mut ticks = tokio::time::interval(tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut wakes = self.link.wakes();
        loop {
            // Whoever waits for a first replica should not wait for a tick besides.
            tokio::select! {
                _ = ticks.tick() => {}
                Ok(()) = wakes.changed() => {}
            }
            self.round().await;
        }
    }
}
