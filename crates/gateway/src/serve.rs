//! Runs a gateway: threads, what they share, and how it ends.

pub use crate::shared::Listener;

use crate::accept;
use crate::admit::{AdmittedDemand, ModelNow};
use crate::answer_cache::AnswerCache;
use crate::forward::{Recoveries, Suspected, Tried, Worker};
use crate::live::Live;
use crate::orders::Ordered;
use crate::quota::GatewayQuota;
use crate::request;
use crate::settings::GatewaySettingsFile;
use crate::shadow::Shadows;
use crate::shared::Shared;
use crate::tenants::{TenantReadings, TenantReport, TenantTable};
use crate::tokens::Tokens;
use flyball_fleet::{Engines, Fleet, Listing};
use flyball_resources::stream::Orders;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks for idle connections.
const SWEEP: Duration = Duration::from_secs(2);

/// Between two looks at those who wait.
const PULSE: Duration = Duration::from_millis(25);

/// A gateway that runs.
#[derive(Debug)]
pub struct RunningGateway {
    shared: Arc<Shared>,
    tried: Arc<Tried>,
    answer_cache: Arc<AnswerCache>,
    /// What the operator said last.
    ordered: Ordered,
    threads: Vec<JoinHandle<()>>,
    address: SocketAddr,
}

/// What is inside a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Requests.
    pub requests: usize,
    /// Bytes of bodies.
    pub bytes: usize,
    /// Connections of clients.
    pub connections: usize,
    /// Bytes of answers that are kept.
    pub cached_bytes: usize,
}

/// Starts a gateway with nothing to serve yet; `Running::list` tells it where engines are.
pub fn start(
    settings: &GatewaySettingsFile,
    listener: Arc<dyn Listener>,
) -> io::Result<RunningGateway> {
    let shared = Arc::new(Shared::new(settings, listener));
    let tried = Arc::new(Tried::new(settings));
    let answer_cache = Arc::new(AnswerCache::new(&settings.response_cache));
    let tls = settings.tls.as_ref().map(accept::acceptor).transpose()?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let count = if settings.threads == 0 { cores } else { settings.threads };
    let mut address = settings.listen;
    let mut threads = Vec::with_capacity(count);
    for number in 0..count {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        if number == 0 && address.port() != 0 {
            drop(accept::listener(address)?);
        }
        let listener = accept::shared_listener(address)?;
        // With port 0 the first one decides for all.
        address = listener.local_addr()?;
        drop(entered);
        let seed = RandomState::new().hash_one(number);
        let (tried, cache) = (Arc::clone(&tried), Arc::clone(&answer_cache));
        let forward = Arc::new(Worker::new(Arc::clone(&shared), tried, cache, seed));
        let worker = Arc::new(request::Worker::new(forward));
        let (tls, shared) = (tls.clone(), Arc::clone(&shared));
        let work = move || {
            runtime.block_on(async move {
                tokio::spawn(sweep(Arc::clone(&worker.forward)));
                if number == 0 {
                    tokio::spawn(pulse(Arc::clone(&shared)));
                }
                accept::accept(Arc::clone(&shared.door), worker, listener, tls).await;
                shared.door.emptied().await;
            });
        };
        let name = format!("gateway-{number}");
        threads.push(std::thread::Builder::new().name(name).spawn(work)?);
    }
    Ok(RunningGateway {
        shared,
        tried,
        answer_cache,
        ordered: Ordered::default(),
        threads,
        address,
    })
}

impl RunningGateway {
    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes in where engines are.
    pub fn list(&self, listing: &Listing) {
        let before = self.shared.served();
        let fleet = Arc::new(before.fleet().after(listing));
        let after = Arc::new(before.after(fleet));
        // Before anybody can choose an engine that should get nothing.
        self.ordered.hold(&after, &self.shared.live());
        self.tried.shadows.list(after.fleet());
        self.shared.serve(Arc::clone(&after));
        // Orders that came between the two were laid over what was served before.
        self.ordered.hold(&after, &self.shared.live());
        after.open();
    }

    /// When its clock began.
    pub fn began(&self) -> Instant {
        self.shared.began
    }

    /// The engines that it knows.
    pub fn fleet(&self) -> Arc<Fleet> {
        Arc::clone(self.shared.served().fleet())
    }

    /// What is known of policies that were not chosen by.
    pub fn shadows(&self) -> Arc<Shadows> {
        Arc::clone(&self.tried.shadows)
    }

    /// Takes in other limits, timeouts, keys, splits and settings of models. Connections keep what they
    /// began with.
    pub fn change(&self, settings: &GatewaySettingsFile) {
        let before = self.shared.live();
        let after = Arc::new(Live::new(settings, Some(&before)));
        self.shared.follow(Arc::clone(&after));
        self.ordered.hold(&self.shared.served(), &after);
        self.answer_cache.follow(&settings.response_cache);
        self.tried.shadows.follow(settings);
    }

    /// Takes in what is known of Tenants, and says what became of each. New requests go by it; those inside stay.
    pub fn admit(&self, tenants: &TenantReadings) -> TenantReport {
        let (table, report) = TenantTable::of(tenants, &self.shared.tenants());
        self.shared.admit(Arc::new(table));
        report
    }

    /// Tokens of members of Tenants.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.shared.tokens
    }

    /// The paths of Tenants that let somebody in.
    pub(crate) fn tenant_paths(&self) -> Vec<Arc<str>> {
        self.shared.tenants().paths()
    }

    /// What is inside right now.
    pub fn inside(&self) -> Inside {
        let room = &self.shared.room;
        let connections = self.shared.door.connections();
        let cached_bytes = self.answer_cache.bytes();
        Inside { requests: room.requests(), bytes: room.bytes(), connections, cached_bytes }
    }

    /// What is wanted of each model.
    pub fn demand(&self) -> Vec<AdmittedDemand> {
        let served = self.shared.served();
        let now = served.glance(self.shared.now(), served.models().map(|model| &**model.name()));
        now.into_iter().map(|model| model.queue).collect()
    }

    /// Takes in what the operator says; all that it said before is forgotten.
    pub fn order(&self, orders: Orders) {
        let shared = &self.shared;
        self.ordered.replace(orders, Instant::now());
        self.ordered.hold(&shared.served(), &shared.live());
    }

    /// Parts of limits and budgets of Tenants.
    pub fn quota(&self) -> Arc<GatewayQuota> {
        Arc::clone(&self.shared.quota)
    }

    /// Lets requests come again to engines that the operator had drained. How many there were.
    pub fn forget_drains(&self) -> usize {
        let (shared, drained) = (&self.shared, self.drained());
        self.ordered.forget_drains();
        self.ordered.hold(&shared.served(), &shared.live());
        drained
    }

    /// Engines to which the operator lets no new requests come.
    pub fn drained(&self) -> usize {
        let served = self.shared.served();
        served.fleet().endpoints().filter(|endpoint| endpoint.is_ordered_to_drain()).count()
    }

    /// The namespace of a model's engines; `None` where the settings do not say it.
    pub(crate) fn namespace(&self, model: &str) -> Option<String> {
        self.shared.live().namespace(model).map(str::to_owned)
    }

    /// What was done about slow and broken answers so far.
    pub fn recoveries(&self) -> Recoveries {
        self.tried.recovered.now()
    }

    /// Prompts that engines died over.
    pub fn suspects(&self) -> Suspected {
        self.tried.suspects.counts(self.shared.now())
    }

    /// How many engines are in which state.
    pub(crate) fn engines(&self) -> Engines {
        let now = self.shared.now();
        let mut engines = Engines::default();
        let served = self.shared.served();
        let fleet = served.fleet();
        fleet.endpoints().for_each(|endpoint| engines.add(endpoint.state(now)));
        fleet.gone().for_each(|(_, endpoint)| engines.add(endpoint.state(now)));
        engines
    }

    /// What is known of the engines of these models, and who waits for them.
    pub(crate) fn glance<'a>(&self, models: impl Iterator<Item = &'a str>) -> Vec<ModelNow> {
        self.shared.served().glance(self.shared.now(), models)
    }

    /// Takes no new connections, lets requests finish for so long, ends the rest with an error that
    /// says so, and returns when all is done, with how many had to be ended.
    pub fn drain(&self, within: Duration) -> usize {
        self.shared.door.close();
        let until = Instant::now() + within;
        while Instant::now() < until && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let left = self.shared.room.requests();
        self.shared.door.cut();
        // Streams look once a second, and hang up with an event.
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(20));
        }
        left
    }
}

/// Looks after those who wait: who has waited long enough, and for whom there is room now. What
/// happens at an engine is seen at once; this is for what happens by the clock.
async fn pulse(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(PULSE).await;
        let (again, ending) = (shared.live().again, shared.is_cut());
        shared.refuse_unserved();
        for model in shared.served().models().filter(|model| model.gate.waiting() > 0) {
            model.engines.endpoints.iter().for_each(|endpoint| endpoint.trust());
            if model.gate.pulse(again, ending) {
                shared.listener.wake(model.name());
            }
        }
    }
}

async fn sweep(worker: Arc<Worker>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        worker.pool.sweep();
    }
}
