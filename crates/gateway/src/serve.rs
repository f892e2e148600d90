//! Runs a gateway: threads, what they share, and how it ends.

use crate::accept::{self, Worker};
use crate::admit::{AdmittedDemand, ModelNow, Served};
use crate::finished::Finished;
use crate::fleet::{Engines, Fleet, FleetEndpoint, Flight, Listing, Millis, Time};
use crate::forward::{Recovered, Recoveries, Suspected, Suspects};
use crate::kept::Kept;
use crate::live::Live;
use crate::orders::Ordered;
use crate::room::Room;
use crate::settings::{GatewaySettingsFile, RequestLimits, Timeouts};
use crate::shadow::Shadows;
use arc_swap::{ArcSwap, Guard};
use flyball_resources::stream::Orders;
use http::HeaderValue;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// Between two looks for idle connections.
const SWEEP: Duration = Duration::from_secs(2);

/// Between two looks at those who wait.
const PULSE: Duration = Duration::from_millis(25);

/// Requests that may be tried again at once, beyond a fifth of those under way: a brown-out must
/// not double its own load.
const FREE_RETRIES: usize = 20;

/// Whoever is told what happens. Called by every thread; must not wait.
pub trait Listener: Send + Sync {
    /// A request is over.
    fn finished(&self, finished: &Finished<'_>);

    /// Something was refused that never became a request; the code is one that answers have.
    fn refused(&self, code: &'static str) {
        let _ = code;
    }

    /// A model is wanted that has no engine.
    fn wake(&self, model: &Arc<str>) {
        let _ = model;
    }

    /// A copy for a mirror was not sent, because there was no room.
    fn copy_dropped(&self) {}

    /// An engine's breaker opened.
    fn breaker_opened(&self) {}

    /// The `traceparent` that an engine gets; the caller's own if `None`.
    fn traceparent(
        &self,
        callers: Option<&str>,
        request_id: &str,
        started: SystemTime,
    ) -> Option<HeaderValue> {
        let _ = (callers, request_id, started);
        None
    }

    /// A request was cut off at an engine, which should now be free of it.
    fn cancelled(&self, endpoint: &Arc<FleetEndpoint>);
}

/// A gateway that runs.
#[derive(Debug)]
pub struct RunningGateway {
    shared: Arc<Shared>,
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
    pub kept_bytes: usize,
}

/// What all threads share.
pub(crate) struct Shared {
    live: ArcSwap<Live>,
    served: ArcSwap<Served>,
    pub(crate) room: Arc<Room>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) shadows: Arc<Shadows>,
    connections: AtomicUsize,
    retries: AtomicUsize,
    pub(crate) recovered: Recovered,
    /// Prompts that engines died over.
    pub(crate) suspects: Suspects,
    /// What the operator said last.
    ordered: Ordered,
    pub(crate) listener: Arc<dyn Listener>,
    began: Instant,
    closing: watch::Sender<bool>,
    cut: AtomicBool,
}

/// An open connection of a client.
pub(crate) struct Open(Arc<Shared>);

/// A try after a failed one, until its answer begins.
pub(crate) struct Retry<'a>(&'a Shared);

/// Starts a gateway with nothing to serve yet; [`Running::list`] tells it where engines are.
pub fn start(
    settings: &GatewaySettingsFile,
    listener: Arc<dyn Listener>,
) -> io::Result<RunningGateway> {
    let shared = Arc::new(Shared {
        live: ArcSwap::from_pointee(Live::new(settings, None)),
        served: ArcSwap::from_pointee(Served::default()),
        room: Arc::default(),
        kept: Arc::new(Kept::new(&settings.response_cache)),
        shadows: Arc::new(Shadows::new(settings)),
        connections: AtomicUsize::new(0),
        retries: AtomicUsize::new(0),
        recovered: Recovered::default(),
        suspects: Suspects::default(),
        ordered: Ordered::default(),
        listener,
        began: Instant::now(),
        closing: watch::Sender::new(false),
        cut: AtomicBool::new(false),
    });
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
        let worker = Arc::new(Worker::new(Arc::clone(&shared), seed));
        let (tls, shared) = (tls.clone(), Arc::clone(&shared));
        let work = move || {
            runtime.block_on(async move {
                tokio::spawn(sweep(Arc::clone(&worker)));
                if number == 0 {
                    tokio::spawn(pulse(Arc::clone(&worker)));
                }
                accept::accept(worker, listener, tls, shared.closing()).await;
                shared.emptied().await;
            });
        };
        let name = format!("gateway-{number}");
        threads.push(std::thread::Builder::new().name(name).spawn(work)?);
    }
    Ok(RunningGateway { shared, threads, address })
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
        self.shared.ordered.hold(&after, &self.shared.live());
        self.shared.shadows.list(after.fleet());
        self.shared.served.store(Arc::clone(&after));
        // Orders that came between the two were laid over what was served before.
        self.shared.ordered.hold(&after, &self.shared.live());
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
        Arc::clone(&self.shared.shadows)
    }

    /// Takes in other limits, timeouts, keys, splits and settings of models. Connections keep what they
    /// began with.
    pub fn change(&self, settings: &GatewaySettingsFile) {
        let before = self.shared.live.load();
        let after = Arc::new(Live::new(settings, Some(&before)));
        self.shared.live.store(Arc::clone(&after));
        self.shared.ordered.hold(&self.shared.served(), &after);
        self.shared.kept.follow(&settings.response_cache);
        self.shared.shadows.follow(settings);
    }

    /// What is inside right now.
    pub fn inside(&self) -> Inside {
        let room = &self.shared.room;
        let connections = self.shared.connections.load(Ordering::Relaxed);
        let kept_bytes = self.shared.kept.bytes();
        Inside { requests: room.requests(), bytes: room.bytes(), connections, kept_bytes }
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
        shared.ordered.replace(orders, Instant::now());
        shared.ordered.hold(&shared.served(), &shared.live());
    }

    /// Lets requests come again to engines that the operator had drained. How many there were.
    pub fn forget_drains(&self) -> usize {
        let (shared, drained) = (&self.shared, self.drained());
        shared.ordered.forget_drains();
        shared.ordered.hold(&shared.served(), &shared.live());
        drained
    }

    /// Engines to which the operator lets no new requests come.
    pub fn drained(&self) -> usize {
        let served = self.shared.served();
        served.fleet().endpoints().filter(|endpoint| endpoint.is_told_to_drain()).count()
    }

    /// The namespace of a model's engines; `None` where the settings do not say it.
    pub(crate) fn namespace(&self, model: &str) -> Option<String> {
        self.shared.live().namespace(model).map(str::to_owned)
    }

    /// What was done about slow and broken answers so far.
    pub fn recoveries(&self) -> Recoveries {
        self.shared.recovered.now()
    }

    /// Prompts that engines died over.
    pub fn suspects(&self) -> Suspected {
        self.shared.suspects.counts(self.shared.now())
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
        self.shared.closing.send_replace(true);
        let until = Instant::now() + within;
        while Instant::now() < until && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let left = self.shared.room.requests();
        self.shared.cut.store(true, Ordering::Relaxed);
        // Streams look once a second, and hang up with an event.
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(20));
        }
        left
    }
}

impl Shared {
    /// What may change, for a look. Not to be kept while something is awaited: a thread has room for
    /// eight such looks, and every further one goes a slower way.
    pub(crate) fn live(&self) -> Guard<Arc<Live>> {
        self.live.load()
    }

    /// The limits and timeouts of now, to be kept.
    pub(crate) fn bounds(&self) -> (RequestLimits, Timeouts) {
        let live = self.live();
        (live.limits, live.timeouts)
    }

    /// All models with engines and queues, for a look as short.
    pub(crate) fn served(&self) -> Guard<Arc<Served>> {
        self.served.load()
    }

    pub(crate) fn now(&self) -> Millis {
        self.millis(Instant::now())
    }

    pub(crate) fn millis(&self, at: Instant) -> Millis {
        Millis(at.saturating_duration_since(self.began).as_millis() as u64)
    }

    /// Both of now.
    pub(crate) fn time(&self) -> Time {
        let at = Instant::now();
        Time { at, millis: self.millis(at) }
    }

    /// Ends a flight whose connection was cut, and says so. It is counted out first: what an engine
    /// runs beyond our count is a zombie.
    pub(crate) fn cancelled(&self, flight: Flight) {
        let endpoint = Arc::clone(flight.endpoint());
        drop(flight);
        self.listener.cancelled(&endpoint);
    }

    /// A request is over; whether it was fast enough is for its model's objectives to say.
    pub(crate) fn judge(&self, finished: &Finished<'_>) {
        let served = self.served();
        if let Some(model) = finished.model.and_then(|name| served.model(name)) {
            model.gate.judge.finished(finished);
        }
    }

    /// Tells when no new requests are taken.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Whether the time to finish is over.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// A failed try may be made again, unless too many are.
    pub(crate) fn retry(&self) -> Option<Retry<'_>> {
        let before = self.retries.fetch_add(1, Ordering::Relaxed);
        let retry = Retry(self);
        (before < FREE_RETRIES + self.room.requests() / 5).then_some(retry)
    }

    /// Counts a connection, unless there are too many.
    pub(crate) fn connection(self: &Arc<Self>) -> Option<Open> {
        let open = Open(Arc::clone(self));
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        (before < self.live().limits.connections).then_some(open)
    }

    /// Waits until no connection is open.
    async fn emptied(&self) {
        while self.connections.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Retry<'_> {
    fn drop(&mut self) {
        self.0.retries.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("room", &self.room).finish_non_exhaustive()
    }
}

/// Looks after those who wait: who has waited long enough, and for whom there is room now. What
/// happens at an engine is seen at once; this is for what happens by the clock.
async fn pulse(worker: Arc<Worker>) {
    loop {
        tokio::time::sleep(PULSE).await;
        let shared = &worker.shared;
        let (again, ending) = (shared.live().again, shared.is_cut());
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
